"""TensorFlow itself reads the TFRecords that we write, and finds the same samples in them."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import run
from tests.framework_loaders import assert_held_samples, assert_same_trace, assert_samples_of_the_plan
from tests.integration.test_training_torch import STUDY, traces
from tests.small_study import stage
from tests.tiny import tiny
from tests.traces import training_of
from tierscope.dataset.content import payload

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("per_file", [1, 5])
def test_tensorflow_reads_our_records(per_file: int, tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    study = tiny("sweep={}", "format=tfrecord", f"num_samples_per_file={per_file}")
    stage(study, str(tmp_path))
    paths = sorted(str(path) for path in (tmp_path / "tiers" / "gfs").rglob("*.tfrecord"))
    records = [bytes(record.numpy()) for record in tf.data.TFRecordDataset(paths)]
    expected = [b"".join(payload(study.seed, sample, 1024)) for sample in range(24 * per_file)]
    assert records == expected


def test_tensorflow_refuses_what_we_refuse(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    study = tiny("sweep={}", "format=tfrecord")
    stage(study, str(tmp_path))
    path = next((tmp_path / "tiers" / "gfs").rglob("*.tfrecord"))
    content = bytearray(path.read_bytes())
    content[500] ^= 4
    path.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.TFRecordDataset(str(path)))


@pytest.mark.parametrize(
    "keys",
    [
        ("format=tfrecord",),
        ("format=npz",),
        ("format=raw", "read_threads=4"),
        ("format=tfrecord", "num_samples_per_file=4", "sample_shuffle=off", "file_access=multi"),
    ],
)
def test_tf_data_gives_the_samples_of_the_plan(keys: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    study = tiny("sweep={}", "cache_rate=50%", "data_loader=tensorflow", *keys)
    assert_samples_of_the_plan(study, tmp_path)


@pytest.mark.parametrize(
    "keys",
    [("format=tfrecord",), ("format=tfrecord", "num_samples_per_file=4", "sample_shuffle=off", "file_access=multi")],
)
def test_what_tf_data_reads_is_recorded(keys: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    assert_same_trace("tensorflow", keys, tmp_path)


@pytest.mark.parametrize("per_file", [1, 5])
def test_we_read_what_tensorflow_writes(per_file: int, tmp_path: Path) -> None:
    """Records of the same samples, written by TensorFlow in place of ours, are read as if they were."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    study = tiny("sweep={}", "format=tfrecord", f"num_samples_per_file={per_file}", "data_loader=threads")
    stage(study, str(tmp_path))
    for number, path in enumerate(sorted((tmp_path / "tiers" / "gfs").rglob("*.tfrecord"))):
        path.unlink()
        with tf.io.TFRecordWriter(str(path)) as out:
            for inside in range(per_file):
                out.write(b"".join(payload(study.seed, number * per_file + inside, 1024)))
    assert_samples_of_the_plan(study, tmp_path)


@pytest.mark.parametrize("keys", [("format=raw", "read_threads=2"), ("format=npz", "preprocess=decode")])
def test_tf_data_takes_samples_from_memory_when_there_are_no_files_any_more(
    keys: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    study = tiny("sweep={}", "cache_rate=0", "nodes=1", "ranks_per_node=1", "data_loader=tensorflow", *keys)
    assert_held_samples(study, tmp_path)


def test_a_network_of_torch_is_trained_on_what_tf_data_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed: make test-tensorflow installs it")
    pytest.importorskip("torch", reason="torch is not installed: make test-tensorflow installs it")
    (tmp_path / "study.yaml").write_text(STUDY.replace("ranks_per_node: 2", "ranks_per_node: 1"))
    common = ("train", tmp_path / "study.yaml", "--model", "lenet", "--device", "cpu", "--quiet", "--repetitions", "1")
    theirs = ("--loader", "tensorflow", "--data", "tiers,memory", "--json", "--out", tmp_path / "theirs")
    assert run(*common, *theirs) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(point["data"], point["loader"]) for point in found["points"]] == [("tiers", "tensorflow"), ("memory", "tensorflow")]  # fmt: skip
    assert run(*common, "--out", tmp_path / "ours") == 0
    (ours,) = traces(tmp_path / "ours")
    for trace in traces(tmp_path / "theirs"):
        assert trace.ranks["order_digest"].to_list() == ours.ranks["order_digest"].to_list()
        assert training_of(trace).last_loss == pytest.approx(training_of(ours).last_loss, rel=1e-5)
