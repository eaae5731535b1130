"""The kernel's own count of opens (inotify): a file is opened when it is read, and at no other time.

So its name is not looked up just before a timed open, which would make META warm."""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.test_run_rank import task_of
from tests.small_study import NEEDS_LIBRARY, small_study, stage, tier_files, totals
from tierscope.bench.group import Alone
from tierscope.bench.run import run_rank

_IN_OPEN, _IN_CLOSE = (
    0x20,
    0x10,
)  # two events that are alike become one: with closes between them, opens of one thread are not
_EVENT = struct.Struct("=iIII")
PACKED = ("num_samples_per_file=6", "num_files_train=4", "read_threads=1")


@contextmanager
def opens_in(folder: str) -> Iterator[Counter[str]]:
    """Of files in it, by name; complete when the block is left."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), _IN_OPEN | _IN_CLOSE) < 0:
        pytest.skip(f"no inotify here: {os.strerror(ctypes.get_errno())}")
    counted = Counter[str]()
    try:
        yield counted
        while True:
            try:
                events = os.read(fd, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(events):
                _, mask, _, length = _EVENT.unpack_from(events, at)
                name = events[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0").decode()
                counted[name] += bool(mask & _IN_OPEN)
                at += _EVENT.size + length
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "settings",
    [
        ("data_loader=threads",),
        ("data_loader=threads", "read_threads=0"),
        ("data_loader=threads", "format=npz", *PACKED),
        ("data_loader=threads", "format=hdf5", *PACKED),
        ("data_loader=threads", "policy=first-touch"),
        ("data_loader=threads", "read_ahead=all"),
        pytest.param(("data_loader=native",), marks=NEEDS_LIBRARY),
        pytest.param(("data_loader=native", "read_threads=0"), marks=NEEDS_LIBRARY),
        pytest.param(("data_loader=native", "format=raw", *PACKED), marks=NEEDS_LIBRARY),
        pytest.param(("data_loader=native", "io_engine=uring"), marks=NEEDS_LIBRARY),
    ],
    ids=" ".join,
)
def test_there_is_one_open_for_every_open_that_is_recorded(tmp_path: Path, settings: tuple[str, ...]) -> None:
    study = small_study("cache_rate=0", "evict=true", *settings)
    stage(study, str(tmp_path))
    _, files = tier_files(study, str(tmp_path))
    with opens_in(files.folder) as counted:
        trace = run_rank(task_of(study, tmp_path), Alone())
    data = {name: opens for name, opens in counted.items() if name.endswith(files.suffix)}
    recorded = sum(totals(epoch.lanes, "ops", "open")[1] for epoch in trace.epochs if epoch.lanes)
    assert sum(data.values()) == recorded > 0
    assert len(data) == study.workload.dataset.num_files_train
    if study.workload.dataset.num_samples_per_file == 1:
        once = study.placement.policy == "first-touch" or study.workload.reader.read_ahead == "all"
        assert set(data.values()) <= ({1, 2} if once else {2})  # two epochs
