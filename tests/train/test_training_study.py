"""What `train` makes of a study: real work in place of emulated, one thing varied at a time."""

from pathlib import Path

import pytest

from tests.tiny import TINY
from tierscope.errors import UserError
from tierscope.spec.study import Axis
from tierscope.spec.sweep import points
from tierscope.train.training_study import Planned, TrainOptions, plan_training

BATCH, DATA, LOADER = "workload.reader.batch_size", "workload.model.data", "workload.reader.data_loader"


@pytest.fixture
def study(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def axes(planned: Planned) -> dict[str | None, tuple[Axis, ...]]:
    return {key: study.sweep for key, study in planned.parts}


def test_options_become_keys_and_lenet_is_lenet5(study: str) -> None:
    asked = TrainOptions("lenet", "cpu", "amp", "adam", "1x32x32", "8", "memory")
    base = plan_training(study, asked).base
    model = base.workload.model
    assert (model.network, model.device, model.arithmetic, model.solver) == ("lenet5", "cpu", "amp", "adam")
    assert (model.input, model.data, base.workload.reader.batch_size) == ("1x32x32", "memory", 8)


def test_enough_repetitions_and_epochs_for_an_interval(study: str) -> None:
    planned = plan_training(study, TrainOptions("lenet"), ["epochs=1"])
    assert (planned.base.repetitions, planned.base.workload.train.epochs) == (5, 2)
    assert any("epochs: 2 instead of 1" in note for note in planned.notes)
    assert plan_training(study, TrainOptions("lenet"), ["repetitions=7"]).base.repetitions == 7
    assert plan_training(study, TrainOptions("lenet", repetitions=2), ["repetitions=7"]).base.repetitions == 2


def test_without_anything_to_vary_the_study_sweeps_as_it_does(study: str) -> None:
    assert axes(plan_training(study, TrainOptions("lenet"))) == {None: (Axis("placement.cache_rate", (0.0, 0.5, 1.0)),)}


def test_a_list_is_varied_in_place_of_the_studys_sweep(study: str) -> None:
    planned = plan_training(study, TrainOptions("lenet", batch="8,16"))
    assert axes(planned) == {"batch_size": (Axis(BATCH, (8, 16)),)}
    assert any("the study's own sweep (placement.cache_rate) is ignored" in note for note in planned.notes)


def test_several_keys_are_varied_one_at_a_time_from_a_common_base(study: str) -> None:
    asked = TrainOptions("lenet", batch="8,16", data="memory,synthetic", vary=("gfs.metadata_servers=1,2",))
    planned = plan_training(study, asked)
    assert axes(planned) == {
        "batch_size": (Axis(BATCH, (4, 8, 16)),),
        "data": (Axis(DATA, ("tiers", "memory", "synthetic")),),
        "metadata_servers": (Axis("system.tiers.gfs.metadata_servers", (1, 2)),),
    }
    assert {part.workload.reader.batch_size for _, part in planned.parts} == {4}


def test_what_only_emulates_training_is_taken_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "emulated.yaml"
    path.write_text(
        TINY.replace("train: {epochs: 2}", "train: {epochs: 2, computation_time: 1ms, computation_time_stdev: 1ms, computation_time_distribution: normal}")
        .replace("prefetch_size: 2", "prefetch_size: 2, preprocess: busy, preprocess_time: 1ms")
    )  # fmt: skip
    planned = plan_training(str(path), TrainOptions("lenet"))
    train, reader = planned.base.workload.train, planned.base.workload.reader
    assert (train.computation_time, train.computation_time_stdev) == (0, 0)
    assert (reader.preprocess, reader.preprocess_time) == ("decode", 0)
    assert [note.partition(":")[0] for note in planned.notes] == ["the study's compute time is ignored", "preprocess"]


@pytest.mark.parametrize(
    ("changes", "preprocess", "loader"),
    [
        (("format: raw", "format: png"), "decode", "auto"),
        (("prefetch_size: 2", "prefetch_size: 2, data_loader: pytorch"), "none", "pytorch"),
        (("epochs: 2", "epochs: 2"), "none", "auto"),
    ],
)
def test_samples_are_real_and_come_from_the_loader_of_the_study(
    tmp_path: Path, changes: tuple[str, str], preprocess: str, loader: str
) -> None:
    path = tmp_path / "changed.yaml"
    path.write_text(TINY.replace(*changes))
    planned = plan_training(str(path), TrainOptions("lenet"))
    reader = planned.base.workload.reader
    assert (reader.preprocess, reader.data_loader) == (preprocess, loader)
    assert bool(planned.notes) == (preprocess == "decode")


def test_a_loader_is_the_studys_own_or_compared(study: str) -> None:
    assert plan_training(study, TrainOptions("lenet", loader="pytorch")).base.workload.reader.data_loader == "pytorch"
    planned = plan_training(study, TrainOptions("lenet", loader="native,pytorch"))
    assert axes(planned) == {"data_loader": (Axis(LOADER, ("native", "pytorch")),)}


def test_keys_of_workers_are_only_given_to_loaders_that_have_some(study: str) -> None:
    planned = plan_training(study, TrainOptions("lenet", loader="native,pytorch"), ["pin_memory=true"])
    assert [(point.study.workload.reader.data_loader, point.study.workload.reader.pin_memory) for point in points(planned.parts[0][1])] == [("native", False), ("pytorch", True)]  # fmt: skip


def test_loaders_are_compared_at_every_source_of_samples(study: str) -> None:
    """With one loader only, the others would be said to be like it."""
    asked = TrainOptions("lenet", data="tiers,memory", loader="native,pytorch", batch="4,8")
    assert axes(plan_training(study, asked)) == {
        "data_loader": (Axis(LOADER, ("native", "pytorch")), Axis(DATA, ("tiers", "memory"))),
        "batch_size": (Axis(BATCH, (4, 8)),),
    }


@pytest.mark.parametrize("name", ["demo", "imagenet", "cosmoflow", "unet3d"])
def test_presets_can_be_trained_on(name: str) -> None:
    assert plan_training(name, TrainOptions("resnet50", batch="4")).base.workload.model.network == "resnet50"


def test_a_varied_value_that_cannot_be_says_where(study: str) -> None:
    with pytest.raises(UserError, match="format = png"):
        plan_training(study, TrainOptions("lenet", vary=("format=raw,png",)))


def test_what_a_case_or_a_zip_sets_is_not_given_by_an_option(tmp_path: Path) -> None:
    """It would silently be the case's own."""
    path = tmp_path / "cased.yaml"
    path.write_text(TINY + "cases: {a: {batch_size: 2}, b: {batch_size: 4}}\n")
    assert [case.name for _, part in plan_training(str(path), TrainOptions("lenet")).parts for case in part.cases] == [
        "a",
        "b",
    ]
    with pytest.raises(UserError, match=r"batch_size is set by cases of the study; add --set case=a"):
        plan_training(str(path), TrainOptions("lenet", batch="8"))
    with pytest.raises(UserError, match=r"the cases a, b, but only one case can be trained; add --set case=a"):
        plan_training(str(path), TrainOptions("lenet", batch="8,16"))
    assert axes(plan_training(str(path), TrainOptions("lenet", batch="8,16"), ["case=a"]))
    zipped = ["sweep={zip: {batch_size: [1, 2], seed: [1, 2]}}", "cases={}"]
    with pytest.raises(UserError, match=r"batch_size is part of a zip"):
        plan_training(str(path), TrainOptions("lenet", batch="8"), zipped)
