"""Logs as they are: the same numbers as Darshan's own programs give, and nothing that a log holds can hurt us."""

import io
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.imports.darshan_logs import (
    REAL,
    compressed_parts,
    needs_library,
    needs_real_logs,
    real_log,
    wheel_log,
    wheel_logs,
)
from tierscope import __version__
from tierscope.errors import MissingResourceError, UserError
from tierscope.imports import darshan_reader, darshan_worker
from tierscope.imports.darshan_library import COUNTERS, FILE_MODULES, TIMES
from tierscope.imports.darshan_reader import STREAM_NUMBERS, DarshanLog, UnreadableLog, read_logs
from tierscope.imports.darshan_worker import send

INTEGERS = ("OPENS", "READS", "BYTES_READ")
SECONDS = ("F_READ_TIME", "F_META_TIME")
ROUNDING_SECONDS = 1e-6  # of each record that darshan-parser printed
GARBAGE = "bad/bitflip.darshan"  # sums of flipped bits: too large for a float to tell small parts
Sums = dict[str, dict[str, float]]  # "POSIX:0" → counter → sum


@cache
def expected() -> dict[str, Any]:
    path = REAL / "expected.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def read(*paths: Path | str, workers: int | None = None) -> list[DarshanLog | UnreadableLog]:
    return list(read_logs([str(path) for path in paths], workers))


def read_one(path: Path | str) -> DarshanLog:
    (log,) = read(path)
    assert isinstance(log, DarshanLog), log
    return log


def sums_of(log: DarshanLog) -> Sums:
    """As they are in the log: not clipped."""
    found: Sums = {}
    for module in ("POSIX", "STDIO"):
        records = log.records[module]
        for rank in np.unique(records.ranks):
            chosen = records.ranks == rank
            sums = {"records": float(chosen.sum())}
            for name in INTEGERS:
                sums[f"{module}_{name}"] = math.fsum(records.counters[chosen, COUNTERS.index(name)].tolist())
            for name in SECONDS:
                sums[f"{module}_{name}"] = math.fsum(records.times[chosen, TIMES.index(name)].tolist())
            found[f"{module}:{rank}"] = sums
    return found


def of_files(sums: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: of for name, of in sums.items() if name.partition(":")[0] in ("POSIX", "STDIO")}


@pytest.fixture(scope="module")
def logs() -> dict[str, DarshanLog | UnreadableLog]:
    names = list(expected())
    return dict(zip(names, read(*(REAL / name for name in names)), strict=True))


@needs_real_logs
@needs_library
class TestBesideDarshanParser:
    """expected.json is what darshan-parser printed of real logs."""

    @pytest.mark.parametrize("name", [name for name, facts in expected().items() if facts["rc"] == 0])
    def test_sums_are_the_same(self, name: str, logs: dict[str, DarshanLog]) -> None:
        theirs, ours = of_files(expected()[name]["ranks"]), sums_of(logs[name])
        assert ours.keys() == theirs.keys()
        for place, sums in theirs.items():
            tolerance = ROUNDING_SECONDS * sums["records"]
            relative = 1e-9 if name == GARBAGE else 0.0
            assert ours[place] == pytest.approx(sums, abs=tolerance, rel=relative), place
            if name != GARBAGE:
                whole = {counter: value for counter, value in sums.items() if "_F_" not in counter}
                assert {counter: ours[place][counter] for counter in whole} == whole

    @pytest.mark.parametrize("name", [name for name, facts in expected().items() if facts["rc"] == 0])
    def test_the_job_is_the_same(self, name: str, logs: dict[str, DarshanLog]) -> None:
        log, theirs = logs[name], expected()[name]
        assert (str(log.job["job_id"]), str(log.job["processes"])) == (theirs["jobid"], theirs["nprocs"])
        assert {module: facts["version"] for module, facts in log.modules.items()} == theirs["modules"]
        ran = log.job["end_seconds"] - log.job["start_seconds"]
        assert ran == pytest.approx(float(theirs["run time"]), abs=1.001)  # whole seconds count from one on
        assert log.job["command"].startswith(theirs["exe"].rstrip())

    @pytest.mark.parametrize("name", [name for name, facts in expected().items() if facts["rc"] == 0])
    def test_partial_modules_are_the_same(self, name: str, logs: dict[str, DarshanLog]) -> None:
        """darshan-parser passes over the modules of DXT."""
        partial = {module for module, facts in logs[name].modules.items() if facts["partial"]}
        assert {module for module in partial if not module.startswith("DXT")} == set(expected()[name]["partial"])

    def test_only_what_darshan_complains_about_is_complained_about(
        self, logs: dict[str, DarshanLog | UnreadableLog]
    ) -> None:
        unreadable = {name for name, log in logs.items() if isinstance(log, UnreadableLog)}
        assert unreadable == {name for name, facts in expected().items() if facts["rc"] != 0}
        damaged = {name for name, log in logs.items() if isinstance(log, DarshanLog) and log.complaints}
        errors = {name for name, facts in expected().items() if any("Error" in line for line in facts["stderr"])}
        assert damaged == errors - unreadable
        for name in damaged:
            assert set(expected()[name]["stderr"]) <= set(logs[name].complaints)  # type: ignore[union-attr]

    def test_dxt_that_ran_out_of_room_is_seen(self, logs: dict[str, DarshanLog]) -> None:
        modules = logs["partial/partial_data_dxt.darshan"].modules
        assert {name for name, facts in modules.items() if facts["partial"]} == {"DXT_POSIX", "DXT_MPIIO"}


WITNESS = """
import json, sys
import darshan.backend.cffi_backend as backend
found = {}
for path in sys.argv[1:]:
    log = backend.log_open(path)
    modules = backend.log_get_modules(log)
    found[path] = {"job": backend.log_get_job(log), "mounts": backend.log_get_mounts(log), "sums": {}, "modules": list(modules)}
    found[path]["names"] = {str(number): name for number, name in backend.log_get_name_records(log).items()}
    for module in set(modules) & {"POSIX", "STDIO"}:
        names = backend.counter_names(module) + backend.fcounter_names(module)
        while (record := backend.log_get_record(log, module, dtype="numpy")) is not None:
            sums = found[path]["sums"].setdefault(f"{module}:{record['rank']}", {"records": 0})
            sums["records"] += 1
            values = dict(zip(names, [*record["counters"].tolist(), *record["fcounters"].tolist()]))
            for name in %r:
                sums[f"{module}_{name}"] = sums.get(f"{module}_{name}", 0) + values[f"{module}_{name}"]
    stripes = found[path]["stripes"] = {}
    while "LUSTRE" in modules and (record := backend.log_get_record(log, "LUSTRE", dtype="dict")) is not None:
        servers = [ost for component in record["components"] for ost in component["ost_ids"]]
        stripes[found[path]["names"].get(str(record["id"]))] = servers
    backend.log_close(log)
json.dump(found, sys.stdout, default=str)
"""


@pytest.fixture(scope="module")
def witness() -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", WITNESS % ((*INTEGERS, *SECONDS),), *map(str, wheel_logs())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def wheel() -> dict[str, DarshanLog | UnreadableLog]:
    """All of them at once: a worker reads one after another, and starting it takes longest."""
    return {log.path: log for log in read(*wheel_logs(), workers=1)}


@needs_library
class TestBesidePyDarshan:
    """PyDarshan reads the logs that it brings along, in a process of its own: it may warn of what it likes."""

    @pytest.mark.parametrize("path", wheel_logs(), ids=lambda path: path.name)
    def test_it_says_the_same(self, path: Path, witness: dict[str, Any], wheel: dict[str, DarshanLog]) -> None:
        log, theirs = wheel[str(path)], witness[str(path)]
        assert not log.complaints
        ours = sums_of(log)
        assert ours.keys() == theirs["sums"].keys()
        for place, sums in theirs["sums"].items():
            assert ours[place] == pytest.approx(sums, rel=1e-12), place
        assert set(log.modules) == set(theirs["modules"])
        assert [list(mount) for mount in log.mounts] == theirs["mounts"]
        names = [STREAM_NUMBERS.get(int(number), name) for number, name in theirs["names"].items()]
        assert sorted(name for name in log.paths if name) == sorted(filter(None, names))
        named = {name: servers for name, servers in theirs["stripes"].items() if name != "null" and servers}
        assert {log.paths[file]: striped.servers for file, striped in log.stripes.items()} == named
        job = theirs["job"]
        assert (log.job["job_id"], log.job["processes"]) == (job["jobid"], job["nprocs"])
        assert (int(log.job["start_seconds"]), int(log.job["end_seconds"])) == (
            job["start_time_sec"],
            job["end_time_sec"],
        )


@needs_library
def test_streams_have_the_same_numbers_in_every_log(witness: dict[str, Any]) -> None:
    """A log with names proves them, an anonymised one has no others for its streams."""
    named: dict[str, set[str]] = defaultdict(set)
    for log in witness.values():
        for number in map(str, STREAM_NUMBERS):
            if number in log["names"]:
                named[number].add(log["names"][number])
    for known, stream in STREAM_NUMBERS.items():
        others = named[str(known)] - {stream}
        assert stream in named[str(known)]
        assert others
        assert all(name.isdigit() for name in others)


@needs_library
def test_lustre_names_its_servers() -> None:
    log = read_one(wheel_log("sample-goodost.darshan"))
    assert len(log.stripes) == 48
    assert {(len(striped.servers), striped.stripe_bytes) for striped in log.stripes.values()} == {(1, 1 << 20)}
    assert all(log.paths[file].startswith("/scratch1/") for file in log.stripes)


@needs_library
@pytest.mark.parametrize("name", ["odd name.darshan", "two\nlines.darshan", "ünïcode.darshan", b"\xff\xfe.darshan"])
def test_any_name_of_a_file_will_do(name: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(wheel_log("sample.darshan").read_bytes())
    assert len(read_one(path).records["POSIX"]) > 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\x1f\x8b\x08\x00", "is a log of Darshan 1 or 2, which Darshan 3's library cannot read"),
        (b"BZh91AY", "is a log of Darshan 1 or 2, which Darshan 3's library cannot read"),
    ],
)
@needs_library
def test_what_is_no_log_of_today_is_seen_at_once(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.darshan"
    path.write_bytes(content)
    assert read(path) == [UnreadableLog(str(path), reason)]


@needs_library
def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    (gone,) = read(tmp_path / "gone.darshan")
    assert gone == UnreadableLog(str(tmp_path / "gone.darshan"), "cannot be read: No such file or directory")


@needs_library
def test_a_cut_log_says_so(tmp_path: Path) -> None:
    whole = wheel_log("sample.darshan").read_bytes()
    reasons = []
    for length in (3, 9, 100, len(whole) // 2, len(whole) - 20):
        path = tmp_path / f"{length}.darshan"
        path.write_bytes(whole[:length])
        (log,) = read(path)
        reasons.append(log.reason if isinstance(log, UnreadableLog) else log.complaints)
    assert all(reasons), reasons


@needs_library
def test_names_that_cannot_be_read_are_no_crash(tmp_path: Path) -> None:
    """The library closes such a log itself: whoever uses it further, or closes it again, works in freed memory."""
    whole = bytearray(wheel_log("sample.darshan").read_bytes())
    start, length = next(iter(compressed_parts(bytes(whole)).values()))
    whole[start : start + length] = bytes(length)
    path = tmp_path / "nameless.darshan"
    path.write_bytes(whole)
    (log,) = read(path)
    assert isinstance(log, DarshanLog) or "crash" not in log.reason
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir()] == ["nameless.darshan"]


@needs_real_logs
@needs_library
def test_old_logs_are_called_old() -> None:
    found = read(*sorted((REAL / "v2").iterdir()))
    assert len(found) == 3
    assert all(isinstance(log, UnreadableLog) and "Darshan 1 or 2" in log.reason for log in found)


@needs_real_logs
@needs_library
def test_the_default_limit_kept_a_part() -> None:
    log = read_one(real_log("twotier/record_limit_partial.darshan"))
    assert len(log.records["POSIX"]) == 1024
    assert log.modules["POSIX"]["partial"]
    assert not log.complaints


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(darshan_reader, "library_path", lambda: None)
    with pytest.raises(UserError, match=r"needs PyDarshan's library; pip install 'tierscope\[darshan\]'"):
        list(read_logs([str(tmp_path / "a.darshan")]))


def limited(tmp_path: Path, kilobytes: int) -> str:
    """An interpreter that gets so much address space, and cannot raise it again, as users cannot."""
    held = "setpriv --bounding-set=-sys_resource " if os.geteuid() == 0 else ""
    if held and not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    target = tmp_path / "limited"
    target.write_text(f"#!/bin/sh\nulimit -v {kilobytes}\nexec {held}'{sys.executable}' \"$@\"\n")
    target.chmod(0o755)
    return str(target)


@needs_library
class TestLittleMemory:
    """What is short is said; no log is called damaged for it."""

    def test_eight_gigabytes_are_enough(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", limited(tmp_path, 8_000_000))
        assert len(read_one(wheel_log("example.darshan")).records["POSIX"]) == 1

    def test_a_worker_that_cannot_start(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", limited(tmp_path, 60_000))
        with pytest.raises(MissingResourceError, match=r"darshan_worker could not start: not enough memory; "):
            read(wheel_log("example.darshan"))

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (
                resource.RLIM_INFINITY,
                {"error": r"takes more than \d+ MiB of memory to read, far too much for its size"},
            ),
            (1 << 28, {"error": r"takes more than 256 MiB of memory to read$", "short": True}),
        ],
    )
    def test_a_log_that_takes_more_than_there_is(
        self, given: int, told: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def take_all(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(darshan_worker, "read", take_all)
        monkeypatch.setattr(resource, "getrlimit", lambda _: (given, resource.RLIM_INFINITY))
        monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
        (tmp_path / "a.darshan").write_bytes(b"log")
        head, arrays = darshan_worker.answer(None, darshan_worker.Memory(), str(tmp_path / "a.darshan"), False)  # type: ignore[arg-type]
        assert re.search(str(told["error"]), head["error"])
        assert (head["short"], arrays) == (told.get("short", False), [])

    def test_a_short_answer_ends_the_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(*_: object) -> tuple[dict[str, Any], list[Any]]:
            return {"error": "takes more than 9 MiB of memory to read", "short": True, "complaints": []}, []

        monkeypatch.setattr(darshan_reader._Workers, "_ask_twice", answer)
        (tmp_path / "a.darshan").write_bytes(b"log")
        with pytest.raises(MissingResourceError, match=r"a\.darshan: takes more than 9 MiB of memory to read; "):
            read(tmp_path / "a.darshan")


@pytest.mark.parametrize("change", [b"longer than before", b"x"])
def test_a_log_that_changes_while_it_is_read(change: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.darshan"
    path.write_bytes(b"a log")

    def read_and_change(*_: object) -> tuple[dict[str, Any], list[Any]]:
        path.write_bytes(change)
        return {}, []

    monkeypatch.setattr(darshan_worker, "read", read_and_change)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    head, _ = darshan_worker.answer(None, darshan_worker.Memory(), str(path), False)  # type: ignore[arg-type]
    assert head["error"] == "changed while it was read; wait until the job that writes it has finished"


# A worker that does what the name of the file says.
FAKE = (
    f"""
import json, os, signal, sys, time

os.write(1, b"{darshan_reader.WORKER} {__version__}\\n")
"""
    + """
out = sys.stdout.buffer
poisoned = False
for line in sys.stdin:
    name = os.path.basename(json.loads(line)["path"])
    if name.startswith("crash") or poisoned:
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("memory"):
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("half"):
        out.write(b"\\x40\\0\\0\\0\\0\\0\\0\\0{")
        out.flush()
        os._exit(0)
    if name.startswith("garbage"):
        out.write(b"\\xff" * 4096)
        out.flush()
        continue
    if name.startswith("slow"):
        time.sleep(0.3)
    poisoned = name.startswith("poison")
    answer = open(os.path.join(os.path.dirname(__file__), "error" if name.startswith("error") else "log"), "rb").read()
    out.write(answer.replace(b"111111111111", str(os.getpid()).rjust(12).encode()))
    out.flush()
"""
)


def empty_log() -> bytes:
    """What a worker says of a log without files: made here, since it takes packages that are slow to import. Its job is the worker's process."""
    job = {
        "start_seconds": 0.0,
        "end_seconds": 1.0,
        "processes": 1,
        "job_id": 111111111111,
        "metadata": {},
        "command": "",
    }
    empty: list[Any] = [np.zeros((0, 2), np.int64), np.zeros((len(COUNTERS), 0), np.int64), np.zeros((len(TIMES), 0))]
    named: list[Any] = [np.zeros(0, np.uint64), np.zeros(0, np.uint8)]
    head = {"job": job, "mounts": [], "modules": {}, "stripes": {}, "complaints": []}
    out = io.BytesIO()
    send(out, head, [*empty * len(FILE_MODULES), *named])
    return out.getvalue()


class TestWorkers:
    @pytest.fixture(autouse=True)
    def fake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "fake.py").write_text(FAKE)
        (tmp_path / "log").write_bytes(empty_log())
        with (tmp_path / "error").open("wb") as out:
            send(out, {"error": "has no end", "complaints": ["Error: it is so.", "Error: more."]}, [])
        (tmp_path / "python").write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{tmp_path}/fake.py'\n")
        (tmp_path / "python").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        monkeypatch.setattr(darshan_reader, "library_path", lambda: "unused")
        self.folder = tmp_path

    @pytest.fixture(autouse=True)
    def no_process_is_left(self, fake: None) -> Iterator[None]:
        before = children()
        yield
        assert children() == before

    def logs(self, *names: str) -> list[str]:
        paths = [str(self.folder / f"{name}.darshan") for name in names]
        for path in paths:
            Path(path).write_bytes(b"log")
        return paths

    @pytest.mark.parametrize("workers", [1, 2, 4])
    @pytest.mark.parametrize("bad", ["crash", "memory", "half", "garbage"])
    def test_a_crash_costs_one_log_only(self, bad: str, workers: int) -> None:
        names = ["a", bad, "b", f"{bad}-2", f"{bad}-3", "c"]
        found = read(*self.logs(*names), workers=workers)
        assert [os.path.basename(log.path) for log in found] == [f"{name}.darshan" for name in names]
        assert [isinstance(log, DarshanLog) for log in found] == [not name.startswith(bad) for name in names]
        reasons = {log.reason for log in found if isinstance(log, UnreadableLog)}
        killed = "its reader was killed, probably out of memory; use a machine with more, or end other programs"
        assert reasons == {killed if bad == "memory" else "crashes Darshan's own library: it is damaged"}

    @pytest.mark.faults
    @pytest.mark.parametrize("workers", [1, 3])
    def test_one_that_hangs_costs_one_log_and_its_time(self, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(darshan_reader, "PATIENCE_SECONDS", 1.0)
        began = time.monotonic()
        found = read(*self.logs("a", "hang", "b"), workers=workers)
        assert time.monotonic() - began < 10
        first, hung, last = found
        assert isinstance(first, DarshanLog)
        assert isinstance(last, DarshanLog)
        assert isinstance(hung, UnreadableLog)
        assert hung.reason == "took longer than 1 s: it is damaged"

    @pytest.mark.faults
    def test_what_hangs_is_never_called_a_crash(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(darshan_reader, "PATIENCE_SECONDS", 0.25)
        found = read(*self.logs(*(f"hang-{number}" for number in range(12))), workers=4)
        reasons = [log.reason for log in found if isinstance(log, UnreadableLog)]
        assert reasons == ["took longer than 0.25 s: it is damaged"] * 12

    def test_a_log_that_spoils_the_worker_does_not_cost_the_next(self) -> None:
        """A damaged log may leave the library's memory in disorder, so that it dies on the next."""
        found = read(*self.logs("poison", "good", "better"), workers=1)
        assert [type(log) for log in found] == [DarshanLog] * 3

    def test_what_the_worker_says_is_told(self) -> None:
        (log,) = read(*self.logs("error"))
        assert isinstance(log, UnreadableLog)
        assert log.reason == "has no end; it is so"

    def test_order_is_kept_when_some_take_longer(self) -> None:
        names = ["slow-1", "a", "slow-2", "b", "c"]
        found = read(*self.logs(*names), workers=3)
        assert [os.path.basename(log.path) for log in found] == [f"{name}.darshan" for name in names]

    def test_many_logs_share_few_workers(self) -> None:
        found = read(*self.logs(*(f"slow-{number}" for number in range(8))), workers=4)
        by_worker: dict[int, int] = defaultdict(int)
        for log in found:
            assert isinstance(log, DarshanLog)
            by_worker[log.job["job_id"]] += 1
        assert 2 <= len(by_worker) <= 4
        assert sum(by_worker.values()) == 8

    def test_hundreds_of_logs_are_read_by_as_many_workers_as_were_asked_for(self) -> None:
        found = read(*self.logs(*(f"log-{number}" for number in range(300))), workers=2)
        assert len({log.job["job_id"] for log in found if isinstance(log, DarshanLog)}) <= 2
        assert [log.path for log in found] == [str(self.folder / f"log-{number}.darshan") for number in range(300)]

    @pytest.mark.faults
    def test_whoever_stops_early_leaves_no_process(self) -> None:
        """Nor trips over a thread that is just starting a worker, or replacing one."""
        for moment in range(8):
            reading = read_logs(self.logs("a", "crash", "crash-2", "d"), 2)
            next(reading)
            time.sleep(0.005 * moment)
            reading.close()  # type: ignore[attr-defined]

    def test_whoever_stops_early_need_not_wait_for_a_log_that_hangs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else a Ctrl-C would be heard when the patience has ended."""
        monkeypatch.setattr(darshan_reader, "PATIENCE_SECONDS", 6.0)
        reading = read_logs(self.logs("a", "hang"), 2)
        next(reading)
        time.sleep(0.2)
        began = time.monotonic()
        reading.close()  # type: ignore[attr-defined]
        assert time.monotonic() - began < 3

    def test_no_logs_need_no_worker(self) -> None:
        assert read() == []


def children() -> set[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found |= set(Path(f"/proc/self/task/{task}/children").read_text().split())
        except OSError:  # that thread has just ended
            continue
    return found
