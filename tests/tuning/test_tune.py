"""Tuning on emulated tiers with real ranks; and its rounds with runs that only pretend."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tierscope.bench.overhead import Overhead
from tierscope.bench.tasks import OverheadTask
from tierscope.errors import UserError
from tierscope.measure.crews import Crews
from tierscope.report.tuning import verdict
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.tuning import trials as tune_trials
from tierscope.tuning.trials import Trial, Trials
from tierscope.tuning.tuner import tune
from tierscope.tuning.tuning import Tuning, tuning_json
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

PLANTED = """
study: planted
seed: 7
workload:
  dataset: {format: raw, num_files_train: 40, num_samples_per_file: 1, record_length_bytes: 64 KiB}
  reader: {batch_size: 2, read_threads: 1, prefetch_size: 4, transfer_size: 16 KiB}
  train: {epochs: 2}
system:
  tiers:
    gfs: {path: "{out}/gfs", read_ops: 5000/s, latency: 1 ms, emulate: true}
"""


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def planted(*settings: str) -> Study:
    return parse_study(PLANTED, "planted.yaml", settings)


def tuned(
    study: Study,
    out: Path,
    *vary: str,
    budget: float = 60.0,
    minimised: str = "epoch_seconds",
    watch: Notes | None = None,
) -> Tuning:
    crews = Crews()
    try:
        return tune(study, vary, minimised, budget, str(out), crews, watch or Notes())
    finally:
        crews.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own cost, which takes a second for every reader, is not measured."""
    real = tune_trials._Remembering.call

    def call(self: Any, task: Any, progress: Any) -> Any:
        return [Overhead(0.0, 0.0, 0.0)] if isinstance(task, OverheadTask) else real(self, task, progress)

    monkeypatch.setattr(tune_trials._Remembering, "call", call)


Model = Callable[[Study], float]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model], list[str]]:
    """Runs that take what a model says, for a whole epoch; the names of their folders, in the order of runs."""

    def set_up(model: Model) -> list[str]:
        folders: list[str] = []

        def measure(_self: Trials, study: Study, folder: str, share: float, _watch: object) -> Trial:
            folders.append(os.path.basename(folder))
            seconds = model(study) * share
            return Trial(seconds, seconds * study.workload.train.epochs, {"GFS-READ": seconds}, {"stall": seconds})

        monkeypatch.setattr(Trials, "_measure", measure)
        monkeypatch.setattr(tune_trials, "generate_data", lambda *_: 0)
        return folders

    return set_up


@pytest.mark.usefixtures("quick")
def test_a_planted_optimum_is_found_and_explained(tmp_path: Path) -> None:
    # Four times the latency: what the interpreter takes on a busy machine must not matter.
    study = planted("num_files_train=8", "system.tiers.gfs.latency=4 ms")
    found = tuned(study, tmp_path / "out", "reader.transfer_size=4KiB,16KiB,64KiB", "read_threads=1,4", budget=20.0)
    assert found.winner.settings == {"transfer_size": 65536, "read_threads": 4}
    assert found.is_better
    assert 4 < found.speedup.low <= found.speedup.median <= found.speedup.high
    assert "GFS-READ of the slowest process shrank most" in found.why
    result = tuning_json(found)
    assert (result["schema_version"], result["kind"], result["minimised"]) == (1, "tuning", "epoch_seconds")
    assert result["winner"]["n"] >= 3
    assert result["winner"]["low"] <= result["winner"]["seconds"] <= result["winner"]["high"] < result["baseline"]["seconds"]  # fmt: skip
    assert len(result["trials"]) == 5
    dropped = [each for each in result["trials"] if each["dropped_in_round"] is not None]
    assert len(dropped) == 3
    assert all(len(each["rounds"]) == 1 and each["rounds"][0]["repetitions"] == 1 for each in dropped)
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["result"]["winner"] == result["winner"]
    assert [entry.name for entry in (tmp_path / "out" / "tiers" / "gfs").iterdir() if entry.is_dir()] == [
        "raw-8x1-65536B-seed7"
    ]


@pytest.mark.usefixtures("quick")
def test_what_was_finished_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, real, calls = tmp_path / "out", Trials.run, []

    def stopping(self: Trials, *args: Any) -> Trial:
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(Trials, "run", stopping)
    monkeypatch.setattr("tierscope.tuning.halving.MOST_REPETITIONS", 3)
    with pytest.raises(KeyboardInterrupt):
        tuned(planted("num_files_train=16"), out, "transfer_size=64KiB")
    monkeypatch.setattr(Trials, "run", real)
    before = {path: path.stat().st_mtime_ns for path in (out / "trials").rglob("*.parquet")}
    assert len(before) == 4  # with the pilot
    found = tuned(planted("num_files_train=16"), out, "transfer_size=64KiB")
    after = {path: path.stat().st_mtime_ns for path in (out / "trials").rglob("*.parquet")}
    assert before.items() <= after.items()
    assert len(after) == 1 + 2 * found.speedup.n
    assert found.is_better
    assert (
        tuning_json(tuned(planted("num_files_train=16"), out, "transfer_size=64KiB"))["speedup"] == found.speedup.median
    )
    assert {path: path.stat().st_mtime_ns for path in (out / "trials").rglob("*.parquet")} == after


def test_where_nothing_helps_it_says_so(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    noise = random.Random(3)
    pretend(lambda _study: noise.lognormvariate(0, 0.05))
    found = tuned(planted(), tmp_path / "out", "read_threads=1:8:1", budget=1000.0)
    assert not found.is_better
    assert found.speedup.low <= 1
    assert tuning_json(found)["better"] is False


def test_finalists_that_cannot_be_told_from_the_winner_are_named(
    tmp_path: Path, pretend: Callable[[Model], list[str]]
) -> None:
    pretend(lambda study: 10.0 / min(4, study.workload.reader.read_threads))
    found = tuned(planted(), tmp_path / "out", "read_threads=2,4,8")
    assert found.winner.settings == {"read_threads": 4}
    assert found.equals == ({"read_threads": 8},)
    assert tuning_json(found)["cannot_be_told_apart"] == [{"read_threads": 8}]


def test_rounds_are_interleaved_in_a_random_order_that_the_seed_gives(
    tmp_path: Path, pretend: Callable[[Model], list[str]]
) -> None:
    folders = pretend(lambda study: 10.0 / study.workload.reader.read_threads)
    found = tuned(planted("num_files_train=400"), tmp_path / "a", "read_threads=1:30:1", budget=1e5)
    assert found.winner.settings == {"read_threads": 30}
    assert folders[0] == "0000-pilot"
    rounds = [name.split("-")[1] for name in folders[1:]]
    assert rounds == sorted(rounds)
    assert [rounds.count(str(index)) for index in range(4)] == [30, 22, 10, 27]
    last = [name for name in folders if "-3-" in name]
    groups = [last[start : start + 3] for start in range(0, 27, 3)]
    assert all(len({name.split("-")[0] for name in group}) == 3 and "0000" in "".join(group) for group in groups)
    assert len({tuple(name.split("-")[0] for name in group) for group in groups}) > 1
    assert found.equals == ()
    steps = [each.steps for each in found.winner.rounds]
    assert steps == [16, 23, 67, None]
    again = pretend(lambda study: 10.0 / study.workload.reader.read_threads)
    tuned(planted("num_files_train=400"), tmp_path / "b", "read_threads=1:30:1", budget=1e5)
    assert again == folders


def test_larger_batches_read_the_same_samples_in_fewer_steps(
    tmp_path: Path, pretend: Callable[[Model], list[str]]
) -> None:
    pretend(lambda study: 10.0 / study.workload.reader.batch_size)
    settings = ("num_files_train=400", "total_training_steps=100")
    found = tuned(planted(*settings), tmp_path / "out", "batch_size=1,4,8,16", budget=1e5)
    assert {each.settings["batch_size"]: each.rounds[0].steps for each in found.tried} == {1: 67, 4: 17, 8: 9, 16: 5}
    assert found.winner.rounds[-1].steps == 13


def test_without_time_only_the_first_round_is_done_and_more_time_goes_on(
    tmp_path: Path, pretend: Callable[[Model], list[str]]
) -> None:
    folders = pretend(lambda study: 100.0 / study.workload.reader.read_threads)
    watch = Notes()
    found = tuned(planted(), tmp_path / "out", "read_threads=1:9:1", budget=1.0, watch=watch)
    assert not found.is_decided
    assert tuning_json(found)["speedup_low"] is None
    assert any(note.startswith("the first round takes about") for note in watch.notes)
    assert any("ended after round 1 of 2" in note for note in watch.notes)
    assert len(folders) == 10
    assert tuned(planted(), tmp_path / "out", "read_threads=1:9:1", budget=1e5).is_better


def test_what_cannot_be_run_is_listed_and_left_out(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    pretend(lambda study: 1.0 if study.workload.dataset.hdf5.chunk_size else 2.0)
    study = planted("format=hdf5")
    found = tuned(study, tmp_path / "out", "hdf5.chunk_size=null,4KiB,1MiB")
    assert found.winner.settings == {"chunk_size": 4096}
    (refused,) = found.refused
    assert refused.settings == {"chunk_size": 2**20}
    assert "a file holds 65536 bytes of samples" in refused.line


def test_what_turns_out_not_to_run_is_left_out_too(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    def model(study: Study) -> float:
        if study.workload.reader.odirect:
            raise UserError("the filesystem knows no O_DIRECT")
        return 1.0 / study.workload.reader.read_threads

    pretend(model)
    found = tuned(planted(), tmp_path / "out", "odirect=false,true", "read_threads=1,2")
    assert [each.line for each in found.refused] == ["the filesystem knows no O_DIRECT"] * 2
    assert found.winner.settings == {"odirect": False, "read_threads": 2}


@pytest.mark.parametrize(
    ("vary", "line"),
    [
        ((), "nothing varies; add the keys to try, e.g. --vary"),
        (("read_threads",), "--vary read_threads: must be KEY=VALUES"),
        (("read_thread=1,2",), "--vary read_thread=1,2: read_thread: unknown key; did you mean"),
        (("read_threads=1,two",), "workload.reader.read_threads = two; "),
        (("read_threads=1,1",), "has a value twice"),
        (("read_threads=1,2", "reader.read_threads=4"), "is given twice"),
        (("read_threads=1",), "the only combination is the unchanged study"),
        (("read_threads=[1, 2",), "not valid YAML"),
        (("epochs=1,2",), "workload.train.epochs changes the training itself, not its I/O"),
        (("repetitions=1,2",), "repetitions cannot be swept"),
        (("read_threads=0:200:1", "prefetch_size=0:200:1"), "40,401 combinations; at most 10,000"),
        (("record_length_bytes=1KiB,2KiB",), "none of 2 combinations can run; the first: workload.dataset.record"),
    ],
)
def test_mistakes_are_said_in_one_line_before_anything_is_touched(
    tmp_path: Path, vary: tuple[str, ...], line: str
) -> None:
    with pytest.raises(UserError) as error:
        tuned(planted(), tmp_path / "out", *vary)
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tune works on one point; add --set 'sweep=\{\}'"):
        tuned(planted("sweep.batch_size=[1, 2]"), tmp_path / "out", "read_threads=1,2")


def test_a_directory_of_another_tune_or_kind_is_refused(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    pretend(lambda _study: 1.0)
    tuned(planted(), tmp_path / "out", "read_threads=1,2")
    with pytest.raises(UserError, match=r"contains a different tune \(vary differs\); choose another --out"):
        tuned(planted(), tmp_path / "out", "read_threads=1,4")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine").touch()
    with pytest.raises(UserError, match="was not created by Tierscope"):
        tuned(planted(), tmp_path / "foreign", "read_threads=1,2")
    for text in ("{", "[" * 100_000, "[]", "{}", '{"asked": {}, "rounds": [{"entrants": "many"}]}'):
        (tmp_path / "out" / "tune.json").write_text(text)
        with pytest.raises(UserError, match=r"tune\.json: is damaged"):
            tuned(planted(), tmp_path / "out", "read_threads=1,2")
    (tmp_path / "out" / "tune.json").unlink()
    os.mkfifo(tmp_path / "out" / "tune.json")  # and is not waited for
    with pytest.raises(UserError, match=r"tune\.json: cannot be read"):
        tuned(planted(), tmp_path / "out", "read_threads=1,2")


def test_values_of_an_inert_key_are_not_ranked(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    """Files of 64 KiB: larger transfers change nothing, so noise must not make one of them the winner."""
    noise = random.Random(1)
    pretend(lambda study: (1 + noise.random()) / study.workload.reader.read_threads)
    vary = ("reader.transfer_size=64KiB,256KiB,1MiB", "read_threads=1,4")
    found = tuned(planted(), tmp_path / "out", *vary)
    assert {tried.settings["transfer_size"] for tried in found.tried} == {65536}
    assert len(found.inert) == 4
    assert "transfer_size changes nothing here: a file has at most 64 KiB" in found.inert[0].line
    assert tuning_json(found)["inert"][0]["settings"]["transfer_size"] > 65536


def test_a_winner_names_no_key_without_an_effect(tmp_path: Path, pretend: Callable[[Model], list[str]]) -> None:
    """Whoever sets 256 KiB beside the threads would believe in it; no table of what was tried leaves it out."""
    pretend(lambda study: 1 / study.workload.reader.read_threads)
    found = tuned(
        planted("reader.transfer_size=64KiB"), tmp_path / "out", "reader.transfer_size=256KiB", "read_threads=1,4"
    )
    assert found.winner.settings == {"transfer_size": 256 << 10, "read_threads": 4}
    assert tuning_json(found)["winner"]["settings"] == {"read_threads": 4}
    assert "transfer_size" not in verdict(found)
    assert found.commands == ("--set workload.reader.read_threads=4",)


def test_nothing_but_inert_keys_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"nothing to tune: same effect as the default \(shuffle_nodes changes nothing here"
    ):
        tuned(planted(), tmp_path / "out", "shuffle_nodes=2,4")
