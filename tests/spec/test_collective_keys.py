"""`file_access: collective` is refused where ranks could not read one file in step."""

import pytest

from tests.spec.texts import SMALL, edited, parsed, refusal

ONE_FILE = edited(
    "num_files_train: 64\n    record_length_bytes: 4 KiB\n  reader:\n",
    "num_files_train: 1\n    num_samples_per_file: 64\n    format: raw\n    record_length_bytes: 4 KiB\n"
    "  reader:\n    file_access: collective\n    read_threads: 0\n",
)
WITH = "but with workload.reader.file_access: collective"
IN_STEP = f"{WITH} all ranks read batch by batch, in step"


def test_one_file_of_raw_or_hdf5_is_read_together() -> None:
    for name in ("raw", "hdf5"):
        study = parsed(ONE_FILE, f"format={name}")
        assert study.workload.reader.file_access == "collective"
    assert parsed(ONE_FILE, "data_loader=threads", "prefetch_size=9", "sample_shuffle=offset", "sync=step")


@pytest.mark.parametrize(
    ("setting", "key", "why", "fix"),
    [
        ("num_files_train=2", "workload.dataset.num_files_train = 2", f"{WITH} all ranks read a single file together", "1 and more num_samples_per_file"),
        ("format=tfrecord", "workload.dataset.format = tfrecord", f"{WITH} only raw or hdf5 files are read", "raw or hdf5"),
        ("read_threads=1", "workload.reader.read_threads = 1", IN_STEP, "0"),
        ("data_loader=native", "workload.reader.data_loader = native", IN_STEP, "auto or threads"),
        ("data_loader=pytorch", "workload.reader.data_loader = pytorch", IN_STEP, "auto or threads"),
        ("data_loader=tensorflow", "workload.reader.data_loader = tensorflow", IN_STEP, "auto or threads"),
        ("read_ahead=all", "workload.reader.read_ahead = all", IN_STEP, "batches"),
        ("odirect=true", "workload.reader.odirect = true", IN_STEP, "false"),
        ("io_engine=uring", "workload.reader.io_engine = uring", IN_STEP, "pread"),
    ],
)  # fmt: skip
def test_what_ranks_could_not_do_in_step(setting: str, key: str, why: str, fix: str) -> None:
    line = refusal(ONE_FILE, setting)
    assert line == f"--set {setting}: {key}, {why}; set {fix}, or file_access: shared"


def test_the_fix_is_one() -> None:
    text = ONE_FILE.replace("read_threads: 0", "read_threads: 1")
    assert parsed(text, "file_access=shared").workload.reader.read_threads == 1
    assert parsed(text, "read_threads=0").workload.reader.file_access == "collective"


def test_nobody_holds_up_a_library_of_mpi() -> None:
    line = refusal(ONE_FILE, "gfs.latency=1 ms", "gfs.emulate=true")
    said = f"system.tiers.gfs.emulate = true, {WITH} the MPI library reads, and its reads cannot be delayed; set false, or file_access: shared"
    assert line == f"--set gfs.emulate=true: {said}"
    assert parsed(ONE_FILE, "gfs.latency=1 ms")


def test_the_other_ways_know_nothing_of_it() -> None:
    assert parsed(SMALL, "read_threads=3").workload.reader.file_access == "shared"
