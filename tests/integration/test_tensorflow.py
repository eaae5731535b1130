"""TensorFlow itself reads the TFRecords that we write, and finds the same samples in them."""

from pathlib import Path

import pytest

from tests.small_study import stage
from tests.tiny import tiny
from tierscope.data.content import payload

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
