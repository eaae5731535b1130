"""Darshan logs that commands find on disk, made by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.imports.darshan_logs import Did, made_log, reading
from tierscope.imports.darshan_reader import DarshanLog

NAME = "me_python_id77-1_1-1-100-1_1.darshan"
SHARED = {"SLOWEST_RANK": 3, "FASTEST_RANK": 0, "F_SLOWEST_RANK_TIME": 464.0, "F_FASTEST_RANK_TIME": 440.0}
LUSTRE = [("/scratch", "lustre")]


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A log with these records lies there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def put(*records: Did, **about: Any) -> str:
        log = made_log(records, name=NAME, **about)
        Path(NAME).touch()

        def read(paths: Sequence[str], segments: bool = False) -> list[DarshanLog]:
            return [log for _ in paths]

        monkeypatch.setattr("tierscope.imports.logs.read_logs", read)
        monkeypatch.setattr("tierscope.imports.darshan_accesses.read_logs", read)
        return NAME

    return put


def writing(path: str, rank: int, seconds: float, **counts: Any) -> Did:
    return Did(path, rank, {"OPENS": 1, "WRITES": 1024, "BYTES_WRITTEN": 1 << 20, "F_WRITE_TIME": seconds, **counts})


def horovod() -> list[Did]:
    """2 TiB on a mount that nobody told about, libraries on a known one."""
    paths = [f"/gpfs/alpine/imagenet/train-{n}.tfrecord" for n in range(4)]
    data = [reading(path, rank, 296.0, 0.01, BYTES_READ=1 << 39) for rank, path in enumerate(paths)]
    return [*data, reading("/home/me/config.json", 0, 0.0006, 0.0204)]


def small_and_large() -> list[Did]:
    """A few large private reads, many small ones of a shared file."""
    large = reading("/scratch/a", 0, READS=30, BYTES_READ=30 << 22, SIZE_READ_1M_4M=30)
    small = reading(
        "/scratch/b", -1, READS=970, BYTES_READ=970 * 4096, SIZE_READ_1K_10K=970, SEQ_READS=900, CONSEC_READS=100
    )
    return [large, small]
