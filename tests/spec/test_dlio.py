"""Files of DLIO as a whole: recognised by their shape, with DLIO's defaults, overridden, and refused in one clear line."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.dlio_files import FOLDER, SMALL, loaded, noted, refusal
from tests.spec.texts import SMALL as OURS
from tierscope.errors import SpecError
from tierscope.spec.dlio import convert, is_dlio
from tierscope.spec.dlio_keys import RULES
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.dump import to_yaml
from tierscope.spec.load import load, parse_study
from tierscope.spec.tree import parse_yaml


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def written(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (SMALL, True),
        ("dataset: {}", True),
        ("workload: {model: x}", True),
        ("workload: {dataset: {}, reader: {}}", False),
        (OURS, False),
        ("study: x\ndataset: {}", False),
        ("model: x\nsystem: {}", False),
        ("[model]", False),
        ("", False),
    ],
)
def test_a_file_is_recognised_by_its_shape(text: str, known: bool) -> None:
    assert is_dlio(parse_yaml(text, "x")) == known


def test_unet3d_as_it_is() -> None:
    made = loaded(FOLDER / "unet3d_a100.yaml")
    study, workload = made.study, made.study.workload
    assert (study.study, study.seed, study.system.ranks) == ("unet3d", 123, 1)
    assert study.system.tiers[0].path == "{out}/data/unet3d"
    assert (workload.dataset.format, workload.dataset.num_files_train) == ("npz", 168)
    assert (workload.dataset.record_length_bytes, workload.dataset.record_length_bytes_stdev) == (146600628, 68341808)
    assert (workload.reader.batch_size, workload.reader.read_threads, workload.reader.prefetch_size) == (7, 4, 2)
    assert (workload.reader.file_shuffle, workload.reader.sample_shuffle) == ("seed", "seed")
    assert (workload.train.epochs, workload.train.computation_time, workload.train.sync) == (5, 0.636, "step")
    checkpoint = workload.checkpoint
    assert (checkpoint.epochs_between_checkpoints, checkpoint.steps_between_checkpoints, checkpoint.fsync) == (
        5,
        0,
        False,
    )
    assert checkpoint.model_parameters == math.ceil(499153191 / 4)
    assert (checkpoint.precision, checkpoint.optimizer) == ("fp32", "none")
    assert made.wanted == MetricOptions(0.9, 1, 0)
    assert noted(made.notes, "dataset.record_length_bytes_resize")
    assert any("generates its own files" in note for note in made.notes)


def test_bert_as_it_is() -> None:
    made = loaded(FOLDER / "bert_v100.yaml")
    workload = made.study.workload
    assert workload.train.total_training_steps == 1000
    assert not workload.train.seed_change_epoch
    assert (workload.checkpoint.steps_between_checkpoints, workload.checkpoint.epochs_between_checkpoints) == (250, 0)
    assert noted(made.notes, "reader.computation_threads")


@pytest.mark.parametrize(
    ("name", "said", "settings"),
    [
        ("default", "workflow.evaluation = True; evaluation is not run here", ["workflow.evaluation=False"]),
        ("cosmoflow_a100", "reader.data_loader = native_dali", ["reader.data_loader=pytorch"]),
        ("llama_8b_zero3", "dataset.format = mmap_indexed_binary", ["dataset.format=npy"]),
        (
            "resnet50_a100",
            "dataset.record_length_std: DLIO has no such key; did you mean dataset.record_length_stdev?",
            None,
        ),
    ],
)
def test_what_cannot_be_says_what_to_change(name: str, said: str, settings: list[str] | None) -> None:
    line = refusal(FOLDER / f"{name}.yaml")
    assert said in line
    assert f"{name}.yaml:" in line
    if settings is not None:
        loaded(FOLDER / f"{name}.yaml", *(f"++workload.{setting}" for setting in settings))


def test_the_parameters_of_a_transformer_are_counted() -> None:
    checkpoint = loaded(FOLDER / "llama_8b_zero3.yaml", "++workload.dataset.format=npy").study.workload.checkpoint
    assert checkpoint.model_parameters == 8_030_261_248  # as published
    assert (checkpoint.zero_stage, checkpoint.mode, checkpoint.precision) == (3, "all_ranks", "bf16")


def test_what_is_not_written_is_dlios_default(tmp_path: Path) -> None:
    study = loaded(written(tmp_path, "framework: pytorch")).study
    dataset, reader = study.workload.dataset, study.workload.reader
    assert (dataset.format, dataset.num_files_train, dataset.record_length_bytes) == ("tfrecord", 8, 65536)
    assert (reader.batch_size, reader.file_shuffle, reader.sample_shuffle, reader.prefetch_size) == (1, "off", "off", 2)
    assert (study.workload.train.epochs, study.seed, study.study) == (1, 123, "file")
    assert not study.workload.checkpoint.wanted


def test_old_spellings_are_understood(tmp_path: Path) -> None:
    text = "model: old name\ndata_reader: {batch_size: 2}\ndataset: {record_length: 114660.07}"
    made = loaded(written(tmp_path, text))
    assert (made.study.study, made.study.workload.reader.batch_size) == ("old-name", 2)
    assert made.study.workload.dataset.record_length_bytes == 114660
    assert any("rounded to 114660 bytes" in note for note in made.notes)


def test_a_file_may_be_wrapped(tmp_path: Path) -> None:
    inside = SMALL.replace("\n", "\n  ")
    wrapped = loaded(written(tmp_path, f"workload:\n  {inside}\nhydra: {{run: {{dir: x}}}}"))
    assert to_yaml(wrapped.study) == to_yaml(loaded(written(tmp_path, SMALL)).study)
    assert noted(wrapped.notes, "hydra")


def test_overrides_come_before_everything_and_settings_after(small: Path) -> None:
    study = loaded(small, "batch_size=9", "++workload.reader.batch_size=16", "ranks_per_node=2").study
    assert (study.workload.reader.batch_size, study.system.ranks) == (9, 2)
    assert loaded(small, "++workload.reader.batch_size=16").study.workload.reader.batch_size == 16
    assert loaded(small, "++workload.model=other").study.study == "other"
    assert loaded(small, "++workload.data_reader.batch_size=3").study.workload.reader.batch_size == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("++reader.batch_size=1", "write it as ++workload.reader.batch_size=1"),
        ("++workload.reader.batch_size", "write it as ++workload.KEY=VALUE"),
        ("++workload.reader.batch_size=", "no value; write it as ++workload.reader.batch_size=VALUE"),
        ("++workload..=1", "write it as ++workload.KEY=VALUE"),
        ("++workload.reader.batchsize=1", "reader.batchsize: DLIO has no such key; did you mean reader.batch_size?"),
        ("++workload.reader.computation_time=1", "did you mean reader.computation_threads?"),
        ("++workload.zzz=1", "zzz: DLIO has no such key; known here: model"),
        ("++workload.dataset.zzz=1", "known in dataset: data_folder"),
        ("++workload.reader.batch_size=[1]", "reader.batch_size is a list"),
        ("++workload.reader=7", "reader must be a mapping"),
        ("++workload.dataset.data_folder=${oc.env:HOME}", "is not expanded"),
        ("++workload.dataset.record_dims=[" + "9" * 14 + ",99999999999]", "is too large"),
        ("++workload.dataset.record_length=1e999", "is too large"),
        ("++workload.train.computation_time=inf", "must be a number of seconds"),
        ("++workload.train.computation_time={mean: [1]}", "train.computation_time.mean"),
        ("++workload.train.computation_time={type: normal}", "train.computation_time.mean is missing"),
        ("++workload.train.computation_time={mean: 1, stdv: 1}", "did you mean stdev?"),
        ("++workload.reader.preprocess_time={type: [x]}", "reader.preprocess_time.type"),
        ("++workload.dataset.record_length_bytes=5 ++workload.x=1", "record_length_bytes"),
        ("++workload.dataset.format='npz", "not valid YAML"),
    ],
)
def test_a_wrong_override_gets_one_clear_line(small: Path, override: str, said: str) -> None:
    line = refusal(small, override)
    assert said in line
    assert line.startswith(override[:40])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: x\ndataset: [1]", ":2: dataset must be a mapping"),
        ("model: x\ndataset: 7", ":2: dataset must be a mapping"),
        ("modle: x\ndataset:", ":1: modle: DLIO has no such key; did you mean model?"),
        ("workload: {model: x}\nother: 1", ":2: other: is outside workload"),
        ("model: {name: {a: b}}", ":1: model.name is a mapping"),
        ("model: x\nreader: {}\ndata_reader: {}", ":3: data_reader: is the former name of reader"),
        ("model: x\ndataset: {record_length: 5, record_length_bytes: 5}", "dataset.record_length_bytes sets it too"),
        ("model: x\ntrain: {epochs: 311541}", ":2: workload.train.epochs = 311541; must be within 1 – 10000"),
        ("model: x\nmodel: y", "given twice"),
        ("model: !!python/object:x {}", "tag"),
    ],
)
def test_a_wrong_file_gets_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(written(tmp_path, text))


def test_null_is_as_if_it_was_not_written(tmp_path: Path) -> None:
    made = loaded(written(tmp_path, "model: x\nreader:\ndataset: {data_folder: null}\noutput: {folder: ~}"))
    assert made.study.workload.reader.batch_size == 1
    assert not noted(made.notes, "output.folder")


def test_a_study_of_ours_takes_no_overrides_and_is_no_file_of_dlio(tmp_path: Path) -> None:
    path = written(tmp_path, OURS)
    assert "use --set" in refusal(path, "++workload.reader.batch_size=1")
    with pytest.raises(SpecError, match="is a key of a Tierscope study"):
        load(str(path), is_dlio=True)


def test_folders(small: Path) -> None:
    def path(*settings: str) -> str:
        return loaded(small, *(f"++workload.{setting}" for setting in settings)).study.system.tiers[0].path

    assert path() == "{out}/data"
    assert path("dataset.data_folder=./a/../b/") == "{out}/b"
    assert path("storage.storage_root=root", "dataset.data_folder=b") == "{out}/root/b"
    assert path("dataset.data_folder=/mnt/b") == "/mnt/b/tierscope"
    assert path("storage.storage_root=/mnt", "dataset.data_folder=b") == "/mnt/b/tierscope"


def test_a_system_given_instead_has_its_own_paths(small: Path) -> None:
    made = loaded(
        small, "++workload.dataset.data_folder=x", "++workload.dataset.num_files_train=100000", system="fugaku"
    )
    assert len(made.study.system.tiers) > 1
    assert noted(made.notes, "dataset.data_folder")


def test_a_last_step_that_is_not_full_is_said(small: Path) -> None:
    assert any("DLIO drops such a step" in note for note in loaded(small, "++workload.reader.batch_size=7").notes)
    assert not any("DLIO drops" in note for note in loaded(small, "++workload.reader.batch_size=8").notes)


def test_converting_and_reading_back_is_the_same_study() -> None:
    for name in ("unet3d_a100", "unet3d_h100", "bert_v100", "tiny"):
        study = loaded(FOLDER / f"{name}.yaml").study
        assert parse_study(to_yaml(study), "x") == study


@given(
    key=st.sampled_from(sorted(RULES)),
    value=st.one_of(
        st.sampled_from(["", "[]", "{}", "[{}]", "{a: {b: [1]}}", "-0", "1e309", "0x10", "${a.b}", "\u202e", "true"]),
        st.integers().map(str),
        st.floats().map(str),
        st.text(max_size=8),
    ),
    on=st.booleans(),
)
def test_any_value_of_any_key_makes_a_study_or_one_line(key: str, value: str, on: bool) -> None:
    overrides = [f"++workload.workflow.checkpoint={on}", f"++workload.{key}={value}"]
    said: tuple[str, ...]
    try:
        said = convert(parse_yaml(SMALL, "x"), "x", overrides).notes
    except SpecError as error:
        said = (str(error),)
    assert all(line.isprintable() for line in said)
