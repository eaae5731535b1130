"""Keys that loaders of frameworks do not know are refused, not ignored."""

import pytest

from tests.tiny import tiny
from tierscope.errors import SpecError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("data_loader=pytorch", "read_ahead=all"), "read_ahead = all, which workload.reader.data_loader = pytorch does not support"),
        (("data_loader=pytorch", "odirect=true"), "odirect = true, which"),
        (("data_loader=tensorflow", "io_engine=uring"), "io_engine = uring, which"),
        (("data_loader=pytorch", "computation_threads=2", "preprocess=decode"), "computation_threads = 2, which"),
        (("data_loader=pytorch", "policy=first-touch"), "first-touch, but workload.reader.data_loader = pytorch copies nothing"),
        (("data_loader=pytorch", "format=synthetic"), "format = synthetic, but"),
        (("pin_memory=true",), "pin_memory = true works only with data_loader: pytorch"),
        (("multiprocessing_context=fork",), "multiprocessing_context = fork works only with data_loader: pytorch"),
        (("data_loader=tensorflow", "num_samples_per_file=3"), "reads TFRecord files from beginning to end"),
        (
            ("data_loader=tensorflow", "num_samples_per_file=3", "file_access=multi", "sample_shuffle=off", "ranks_per_node=5"),
            "does not divide evenly among 10 ranks, but workload.reader.data_loader = tensorflow reads whole files",
        ),
        (("data_loader=tensorflow", "format=hdf5"), "reads TFRecord files from beginning to end"),
        (
            ("data_loader=pytorch", "gfs.emulate=true", "gfs.bandwidth=1MB/s", "gfs.discipline=sharing"),
            "gfs.discipline is emulated only in Python",
        ),
    ],
)  # fmt: skip
def test_what_they_do_not_do_is_refused(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        tiny("sweep={}", *settings)
    assert words in str(caught.value)
