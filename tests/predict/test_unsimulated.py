"""What is not simulated is refused or said."""

import pytest

from tests.tiny import tiny
from tierscope.errors import UserError
from tierscope.predict.simulation import Simulation
from tierscope.predict.unsimulated import left_out, refuse_unsimulated
from tierscope.spec.load import load_study
from tierscope.spec.study import Study


def test_a_real_network_is_refused() -> None:
    refuse_unsimulated(tiny("read_ahead=all"))
    with pytest.raises(UserError, match=r"network = lenet5 is not simulated"):
        refuse_unsimulated(tiny("model.network=lenet5"))


@pytest.mark.parametrize(
    ("settings", "method", "word"),
    [
        (("preprocess=decode",), "events", "preprocess: decode"),
        (("computation_time=1ms", "computation_time_distribution=exponential"), "events", "as its mean"),
        (("sync=step",), "bound", "simulated only by --method events"),
        (
            ("steps_between_checkpoints=1", "checkpoint.background=true"),
            "bound",
            "only --method events simulates reads that wait for a whole write",
        ),
        (("record_length_bytes_stdev=10",), "bound", "uses the mean sample size"),
        (("format=hdf5",), "events", "one read"),
        (("format=hdf5", "hdf5.chunk_size=10"), "events", "whole chunks, uncompressed"),
        (
            ("file_access=collective", "num_files_train=1", "num_samples_per_file=24", "read_threads=0"),
            "bound",
            "collective is simulated as shared",
        ),
    ],
)
def test_what_is_left_out_is_said(settings: tuple[str, ...], method: str, word: str) -> None:
    (line,) = left_out(tiny(*settings), method)
    assert word in line


def test_nothing_is_said_of_what_is_simulated() -> None:
    assert not list(left_out(tiny("format=synthetic", "statistics.file_bytes=4 KiB"), "bound"))
    assert not list(left_out(tiny("sync=step", "computation_time=1ms"), "events"))


def test_meeting_after_every_step_takes_longer() -> None:
    pytest.importorskip("numba")

    def seconds(sync: str) -> float:
        idle = ("gfs.servers=64", "gfs.metadata_ops=null", "gfs.service_variation=1")  # nobody waits at a station
        study: Study = load_study("demo", ["sweep={}", "cache_rate=0%", f"sync={sync}", *idle])
        return float(Simulation.of(study).epoch(2, "events").seconds.max())

    assert seconds("step") > 1.02 * seconds("epoch")
