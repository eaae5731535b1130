"""The inner loop: short reads are completed, and the recorder says what the system saw."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.accesses import Counting, Short
from tests.small_study import NEEDS_LIBRARY, small_study, source_of, stage, totals
from tierscope.dataset import content
from tierscope.errors import DamagedDataError
from tierscope.loaders import reader as reader_module
from tierscope.loaders.base import Slots, StepSamples
from tierscope.loaders.reader import SampleReader
from tierscope.native import library
from tierscope.trace import recorder as recorder_module
from tierscope.trace.ops import OP_ROW
from tierscope.trace.recorder import Lane, OpSink, WallClock

pytestmark = pytest.mark.whole

RECORD = 1016  # a TFRecord of 1000 bytes


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("staged"))
    stage(small_study("cache_rate=0"), out)
    return out


WORK = StepSamples(0, [4, 2, 9], [4, 2, 9], [0, 0, 0], [1, 1, 1])


def slots_of(samples: int) -> tuple[list[memoryview], list[memoryview]]:
    memory = Slots(samples, RECORD, slice(0, 1))
    return memory.slots, memory.payloads


class TestShortReads:
    """A filesystem may give less than asked for; only nothing at all is the end of a file."""

    @pytest.mark.parametrize("whole_files", [True, False])
    @pytest.mark.parametrize("most", [1, 100, 1015])
    def test_the_rest_is_read_and_recorded(self, staged: str, tmp_path: Path, whole_files: bool, most: int) -> None:
        access, sink = Short(most), OpSink(str(tmp_path / "ops"))
        lane = Lane(0, 2, 1, None if whole_files else WallClock(), sink)
        source = source_of(small_study("cache_rate=0"), staged, lambda: access)
        memory = Slots(3, RECORD, source.usual_payload)
        SampleReader(source, lane).read(WORK, memory.slots, memory.payloads)
        assert [content.sample_number(payload) for payload in memory.payloads] == [4, 2, 9]
        table = lane.finish()
        sink.close()
        reads = -(-RECORD // most)
        assert totals([table], "ops", "read") == [0, 3 * reads] == [0, len(access.reads)]
        assert totals([table], "nbytes", "read") == [0, 3 * RECORD]
        assert totals([table], "ops", "open") == totals([table], "ops", "close") == [0, 3]
        assert access.open_fds == set()
        self.check_list(tmp_path / "ops", access)

    def check_list(self, path: Path, access: Counting) -> None:
        """Each read with its place and size, and one operation after another."""
        rows = np.fromfile(path, OP_ROW)
        rows = rows[np.argsort(rows["start_ns"], kind="stable")]
        reads = rows[rows["kind"] == 1]
        found = [(int(row["offset"]), int(row["bytes"])) for row in reads]
        assert found == access.reads
        assert list(dict.fromkeys(reads["file"].tolist())) == [4, 2, 9]
        ends = rows["start_ns"] + rows["busy_ns"]
        assert (ends[:-1] <= rows["start_ns"][1:]).all()

    def test_a_file_that_comes_whole_takes_one_read(self, staged: str) -> None:
        access, lane = Short(RECORD), Lane(0, 2)
        source = source_of(small_study("cache_rate=0"), staged, lambda: access)
        SampleReader(source, lane).read(WORK, *slots_of(3))
        assert access.reads == [(0, RECORD)] * 3
        assert totals([lane.finish()], "ops", "read") == [0, 3]

    @pytest.mark.parametrize("whole_files", [True, False])
    def test_each_operation_has_its_own_time(
        self, staged: str, tmp_path: Path, whole_files: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a clock that moves by one each time it is read, every operation lasts one."""
        ticks = itertools.count()
        for module in (reader_module, recorder_module):
            monkeypatch.setattr(module, "_now", lambda: next(ticks))
        sink = OpSink(str(tmp_path / "ops"))
        lane = Lane(0, 2, 1, None if whole_files else WallClock(), sink)
        source = source_of(small_study("cache_rate=0"), staged, lambda: Short(400))
        SampleReader(source, lane).read(WORK, *slots_of(3))
        lane.finish()
        sink.close()
        rows = np.fromfile(tmp_path / "ops", OP_ROW)
        assert rows["busy_ns"].tolist() == [1] * 3 * (1 + 3 + 1)


class TestChecks:
    def test_checking_can_be_switched_off(self, staged: str) -> None:
        source = source_of(small_study("cache_rate=0"), staged, Zeros)
        memory = Slots(3, RECORD, slice(0, RECORD))
        SampleReader(replace(source, check=False), Lane(0, 2)).read(WORK, memory.slots, memory.payloads)
        with pytest.raises(DamagedDataError):
            SampleReader(source, Lane(0, 2)).read(WORK, memory.slots, memory.payloads)

    def test_only_the_samples_of_a_partial_batch_are_checked(self, staged: str) -> None:
        source = source_of(small_study("cache_rate=0"), staged)
        memory = Slots(5, RECORD, slice(0, RECORD))  # two slots hold nothing
        SampleReader(source, Lane(0, 2)).read(WORK, memory.slots, memory.payloads)


class Zeros(Counting):
    """Files of zeros."""

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        buffers[0][:] = bytes(buffers[0].nbytes)
        return buffers[0].nbytes


def test_each_epoch_s_steps_are_noted(staged: str, tmp_path: Path) -> None:
    sink = OpSink(str(tmp_path / "ops"))
    lane = Lane(5, 2, epoch=3, sink=sink)
    reader = SampleReader(source_of(small_study("cache_rate=0"), staged), lane)
    memory = Slots(3, RECORD, slice(0, RECORD))
    for step in (7, 8):
        reader.read(replace(WORK, step=step), memory.slots, memory.payloads)
    lane.finish()
    sink.close()
    rows = np.fromfile(tmp_path / "ops", OP_ROW)
    assert sorted(rows["step"].tolist()) == [7] * 9 + [8] * 9
    assert set(rows["epoch"].tolist()) == {3}
    assert set(rows["lane"].tolist()) == {5}


READ_ONE_EPOCH_OF_EACH = """
import json, sys
from tests.small_study import loader_of, plan_of, small_study, source_of, totals
for out, name, settings in json.loads(sys.argv[1]):
    study = small_study(*settings)
    loader = loader_of(study, source_of(study, out), name or None)
    for _ in loader.batches(plan_of(study).reads(0, 1)):
        pass
    tables, _ = loader.finish()
    counts = {kind: totals(tables, "ops", kind) for kind in ("open", "read", "close")}
    print(json.dumps(counts | {"bytes": totals(tables, "nbytes", "read")}))
"""
WATCHED = {
    "inline": ("read_threads=0",),
    "one": ("read_threads=1",),
    "threads": ("read_threads=3", "transfer_size=512"),
    "extents": ("read_threads=1", "format=npz", "num_files_train=6", "num_samples_per_file=4"),
}


@pytest.fixture(scope="module")
def strace() -> str:
    path = shutil.which("strace")
    if path is None:
        pytest.skip("strace is not installed")
    if subprocess.run([path, "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace is not permitted here")
    return path


def calls_seen(log: str, folder: str) -> dict[str, list[tuple[str, int]]]:
    """System calls on files below a folder: by name, (path, result)."""
    seen: dict[str, list[tuple[str, int]]] = {"openat": [], "preadv": [], "close": [], "other": []}
    pending: dict[str, tuple[str, str]] = {}
    for line in log.splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if resumed := re.match(r"<\.\.\. (\w+) resumed>.*= (-?\d+)", call):
            if thread in pending:
                name, path = pending.pop(thread)
                seen[name].append((path, int(resumed[2])))
            continue
        found = re.match(rf"(\w+)\(.*?({re.escape(folder)}[^\">]*)", call)
        if not found:
            continue
        name = {"preadv2": "preadv", "pread64": "preadv"}.get(found[1], found[1])  # whichever reads at an offset
        name = name if name in seen else "other"
        if call.endswith("<unfinished ...>"):
            pending[thread] = (name, found[2])
        elif result := re.search(r"= (-?\d+)(<.*>)?$", call):
            seen[name].append((found[2], int(result[1])))
    assert pending == {}
    return seen


class Watched(NamedTuple):
    """What the system saw of an epoch, and what was recorded of it."""

    out: Path
    log: str
    recorded: dict[str, list[int]]


@pytest.fixture(scope="module")
def watched(strace: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Watched]:
    """By setting and loader: one process reads them all, each from a folder of its own, as starting it takes longest."""
    folder = tmp_path_factory.mktemp("watched")
    loaders = ["", *(["native"] if library.load() is not None else [])]
    cases = {(case, name): folder / f"{case}-{name or 'any'}" for case in WATCHED for name in loaders}
    for (case, _), out in cases.items():
        stage(small_study(*WATCHED[case]), str(out))
    log = folder / "log"
    traced = [strace, "-f", "-y", "-e", "trace=file,desc", "-o", str(log)]
    asked = json.dumps([(str(out), name, WATCHED[case]) for (case, name), out in cases.items()])
    done = subprocess.run(
        [*traced, sys.executable, "-c", READ_ONE_EPOCH_OF_EACH, asked],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    lines, seen = done.stdout.splitlines(), log.read_text()
    return {key: Watched(out, seen, json.loads(line)) for (key, out), line in zip(cases.items(), lines, strict=True)}


@pytest.mark.parametrize("case", WATCHED)
@pytest.mark.parametrize("name", ["", pytest.param("native", marks=NEEDS_LIBRARY)])
def test_the_system_saw_what_was_recorded(watched: dict[tuple[str, str], Watched], case: str, name: str) -> None:
    out, log, recorded = watched[case, name]
    for tier, folder in enumerate(("lfs", "gfs")):
        seen = calls_seen(log, str(out / folder))
        assert 0 < len(seen["openat"]) == recorded["open"][tier]
        assert len(seen["preadv"]) == recorded["read"][tier]
        assert sum(got for _, got in seen["preadv"]) == recorded["bytes"][tier]
        assert len(seen["close"]) == recorded["close"][tier]
        assert seen["other"] == []  # no stat, no seek, no read of another kind
