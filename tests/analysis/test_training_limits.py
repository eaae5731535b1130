"""The first sentence about a training: what someone in a hurry must not be told wrongly about storage and the loader."""

from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.test_training import asked, run, trained
from tierscope.analysis.statistics import mean_of
from tierscope.analysis.storage_stall import UNCLEAR, StorageStall
from tierscope.analysis.training import about_training, limits_of, training_json
from tierscope.analysis.training_limits import BOTH, CHECKPOINTS, INPUT, LOADER, NEITHER, STORAGE, Limit, limit_of
from tierscope.trace.trace import Trace

THEIRS: dict[str, Any] = {"name": "pytorch", "workers": 2}
FAST, SLOW = [10.0] * 5, [20.0] * 5
ABOUT_FAST, ABOUT_SLOW = [10.2] * 5, [19.8] * 5
WILD = [5.0, 35.0, 8.0, 40.0, 12.0]


def limit(*traces: Trace) -> Limit:
    (only,) = limits_of([trained(*traces)])
    assert only.text.endswith(".")
    assert "\n" not in only.text
    return only


@pytest.mark.parametrize(
    ("tiers", "memory", "synthetic", "answer", "start"),
    [
        (SLOW, ABOUT_SLOW, FAST, LOADER, "The loader, not storage, limits this training: torch's DataLoader (2 workers) takes 49.0 %"),
        (SLOW, ABOUT_FAST, FAST, STORAGE, "Storage, not the loader, limits this training: waiting for the tiers takes 49.0 %"),
        (SLOW, [15.0] * 5, FAST, BOTH, "Storage and the loader both limit this training: waiting for the tiers takes 25.0 %"),
        (SLOW, [18.0] * 5, FAST, BOTH, "Storage and the loader both limit this training: torch's DataLoader (2 workers) takes 40.0 %"),
        (SLOW, ABOUT_SLOW, ABOUT_SLOW, NEITHER, "Neither storage nor the loader limits this training, compute and the exchange of gradients do"),
        (WILD, ABOUT_SLOW, FAST, LOADER, "The loader limits this training: torch's DataLoader (2 workers) takes"),
        (SLOW, SLOW, WILD, UNCLEAR, "Storage does not limit this training, but whether the loader limits it cannot be determined"),
        (WILD, ABOUT_SLOW, ABOUT_SLOW, UNCLEAR, "Whether storage limits this training cannot be determined, and the loader does not"),
        (WILD, WILD, WILD, UNCLEAR, "Whether storage or the loader limits this training cannot be determined"),
        (SLOW[:1], SLOW[:1], FAST[:1], UNCLEAR, "Whether storage or the loader limits this training cannot be determined"),
    ],
)  # fmt: skip
def test_the_first_sentence_names_what_limits(
    tiers: list[float], memory: list[float], synthetic: list[float], answer: str, start: str
) -> None:
    told = limit(*asked(tiers, memory, synthetic, **THEIRS))
    assert (told.answer, told.loader, told.workers) == (answer, "pytorch", 2)
    assert told.text.startswith(start)


def test_what_several_ranks_exchange_is_not_called_compute() -> None:
    stall = StorageStall({}, 20.0, mean_of([0.1] * 5), mean_of([0.1] * 5), "pytorch", 2, ranks=4)
    assert limit_of(stall).answer == NEITHER
    assert ", compute and the exchange of gradients do: " in limit_of(stall).text
    assert ", compute does: " in limit_of(replace(stall, ranks=1)).text


def test_storage_that_does_not_matter_is_not_the_first_finding_where_the_loader_does() -> None:
    """Somebody who stops reading after one line must not take "storage does not matter" for "all is well"."""
    findings = about_training(trained(*asked(SLOW, ABOUT_SLOW, FAST, **THEIRS)))
    assert [finding.kind for finding in findings][:2] == ["loader_limits", "training_waits_little"]


def test_with_loaders_of_ours_it_is_called_what_it_is() -> None:
    """They hand out what is in memory directly: their threads are no part of the difference."""
    told = limit(*asked(SLOW, ABOUT_SLOW, FAST, name="native", workers=4))
    assert told.answer == INPUT
    assert told.text.startswith("Decoding and copying, not storage, limit this training")
    assert limit(*asked(SLOW, ABOUT_SLOW, FAST)).answer == INPUT  # of a result that does not say who read


def test_without_a_run_from_memory_nothing_is_called_the_loaders() -> None:
    told = limit(*asked(SLOW, [], FAST, **THEIRS))
    assert told.answer == UNCLEAR
    assert told.text.startswith("Whether storage or the loader limits this training cannot be determined: together they take 50.0 %")  # fmt: skip
    found = training_json("x", [("data", trained(*asked(SLOW, [], FAST, **THEIRS)))], [])
    assert found["storage_matters"]["of"][0]["loader"] is None
    assert limit(*asked(SLOW, [], ABOUT_SLOW, **THEIRS)).answer == NEITHER


def test_without_a_run_on_samples_of_the_device_the_loader_is_unknown() -> None:
    assert limit(*asked(SLOW, FAST, **THEIRS)).text.endswith("what the loader costs was not measured; add synthetic to --data.")  # fmt: skip
    told = limit(*asked(SLOW, ABOUT_SLOW, **THEIRS))
    assert (told.answer, told.text.partition(":")[0]) == (UNCLEAR, "Storage does not limit this training")


def test_samples_from_the_tiers_alone_tell_nothing() -> None:
    told = limit(run([50.0, 20.0], stall=13.0, log=THEIRS))
    assert told.answer == UNCLEAR
    assert told.text == (
        "Whether storage or the loader limits this training cannot be determined: waiting for batches and copying them take 70.0 % of an epoch (n=1); "
        "add --storage-matters."
    )


def test_a_loader_that_nobody_waits_for_may_still_take_the_networks_cpu() -> None:
    told = limit(run([50.0, 200.0], stall=0.1, log=THEIRS))
    assert told.answer == UNCLEAR
    assert "on the same CPU is not known; add --storage-matters" in told.text
    assert limit(run([50.0, 200.0], stall=0.1, log={**THEIRS, "device": "NVIDIA H200"})).answer == NEITHER


def test_training_that_stands_still_for_checkpoints_is_not_limited_by_compute() -> None:
    told = limit(*asked(SLOW, ABOUT_SLOW, ABOUT_SLOW, checkpoint=6.0, **THEIRS))
    assert told.answer == CHECKPOINTS
    assert told.text.startswith(
        "Checkpoints limit this training: they take 30.0 % of an epoch; waiting for the tiers takes"
    )
    told = limit(*asked(SLOW, ABOUT_SLOW, FAST, checkpoint=6.0, **THEIRS))
    assert told.answer == LOADER
    assert told.text.endswith(" Checkpoints take 30.0 % of an epoch.")
    told = limit(run([50.0, 20.0], stall=0.1, checkpoint=6.0, log=THEIRS))
    assert told.answer == UNCLEAR
    assert told.text.startswith("Checkpoints take 30.0 % of an epoch. Whether storage or the loader limits this training")  # fmt: skip


def test_checkpoints_are_named_where_no_other_point_waits_longer_for_batches() -> None:
    device = {**THEIRS, "device": "NVIDIA H200"}
    often = run([50.0, 200.0], sweep={"steps": 1}, stall=0.1, checkpoint=90.0, log=device)
    never = run([50.0, 200.0], point=1, sweep={"steps": 0}, stall=0.2, checkpoint=0.0, log=device)
    told = limit(often, never)
    assert (told.answer, told.sweep) == (CHECKPOINTS, {"steps": 1})
    assert told.text.startswith("Checkpoints limit this training (steps 1): they take 45.0 % of an epoch; waiting for")


def test_nothing_is_said_of_training_that_reads_nothing() -> None:
    assert limits_of([trained(run([20.0], log={"data": "synthetic"}))]) == []


def test_every_loader_has_a_sentence_of_its_own() -> None:
    """What is true with one loader is not true with another."""
    theirs, ours = asked(SLOW, ABOUT_SLOW, FAST, **THEIRS), asked(ABOUT_FAST, ABOUT_FAST, FAST, name="native", workers=2)  # fmt: skip
    both = [
        run([50.0, *_seconds(trace)], point=point, repetition=trace.key.repetition, sweep={"data_loader": name, **trace.about.sweep}, log=_log(trace))
        for point, (name, trace) in enumerate([*(("pytorch", trace) for trace in theirs), *(("native", trace) for trace in ours)])
    ]  # fmt: skip
    told = limits_of([trained(*both)])
    assert {item.sweep["data_loader"]: item.answer for item in told} == {"pytorch": LOADER, "native": NEITHER}
    assert all(f"data_loader {item.loader}" in item.text for item in told)


def _seconds(trace: Trace) -> list[float]:
    return trace.ranks.filter(epoch=2, rank=0)["epoch_seconds"].to_list()


def _log(trace: Trace) -> dict[str, Any]:
    training = trace.about.training
    assert training is not None
    return {"data": training.data, "name": training.loader_name, "workers": training.loader_workers}


def test_json_has_the_loaders_cost_with_interval_and_n() -> None:
    found = training_json("x", [("data", trained(*asked(SLOW, ABOUT_SLOW, FAST, **THEIRS)))], [])
    (entry,) = found["limits"]
    assert (entry["answer"], entry["loader"], entry["workers"]) == (LOADER, "pytorch", 2)
    cost = found["storage_matters"]["of"][0]["loader"]
    assert (cost["share"], cost["n"], len(cost["interval"])) == (pytest.approx(0.49), 5, 2)
    assert (found["points"][0]["loader"], found["points"][0]["workers"]) == ("pytorch", 2)
