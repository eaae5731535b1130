"""The probe: rates that are recovered from known laws, folders that are left as they were, operations that are counted right."""

import errno
import fcntl
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.errors import ForeignDirectoryError, StoppedError, SuspendedError, UserError
from tierscope.output import manifest
from tierscope.probe import files as probe_files
from tierscope.probe import request
from tierscope.probe.crew import ProbeCrew
from tierscope.probe.findings import findings_of
from tierscope.probe.measure import (
    FLAT,
    MOST_PROCESSES,
    NO_TIME,
    MeasuredLevel,
    Repetition,
    Series,
    levels_up_to,
    measure_series,
    throughput,
    variation,
)
from tierscope.probe.probe import Probed, ProbedTier, known_system, run_probe
from tierscope.probe.rates import derive, fit_law
from tierscope.probe.request import DEFAULT_SIZES, ProbeRequest, read_wanted
from tierscope.probe.work import ProbeJob, ProbeTimes, path_of, perform
from tierscope.spec.known import dump_system, parse_system
from tierscope.watch import Silent

SIZES = (4 << 10, 128 << 10, 1 << 20, 16 << 20)


class Storage:
    """One server and a latency, without noise; a clock that goes only while it works."""

    def __init__(
        self,
        per_op: float,
        per_byte: float = 0.0,
        latency: float = 0.0,
        on_processor: float = 0.1,
        stream_per_byte: float = 0.0,
    ) -> None:
        self.per_op, self.per_byte, self.latency, self.on_processor = per_op, per_byte, latency, on_processor
        self.stream_per_byte = stream_per_byte
        self.now = 0.0
        self.tried: list[int] = []

    def attempt(self, nbytes: int) -> Callable[[int, float], Repetition]:
        def once(processes: int, seconds: float) -> Repetition:
            self.now += seconds
            self.tried.append(processes)
            service = self.per_op + self.per_byte * nbytes
            alone = max(service, self.stream_per_byte * nbytes) + self.latency
            rate = min(processes / alone, 1 / service)
            return Repetition(rate, processes / rate, 0.25, max(1, int(rate * seconds)), self.on_processor)

        return once

    def series(self, kind: str, nbytes: int, most: int, seconds: float = 60.0) -> Series:
        return measure_series(kind, nbytes, levels_up_to(most), self.attempt(nbytes), seconds, lambda: self.now)


def measured(opens: Storage, reads: Storage, most: int) -> list[Series]:
    return [opens.series("open", SIZES[0], most), *(reads.series("read", size, most) for size in SIZES)]


def test_the_rates_of_a_saturated_server_are_recovered() -> None:
    found = derive(measured(Storage(1 / 2000, latency=1e-3), Storage(1 / 5000, 1 / 400e6, latency=2e-3), 64))
    expected = {"metadata_ops": 2000, "metadata_latency": 1e-3, "read_ops": 5000, "bandwidth": 400e6, "latency": 2e-3}
    assert {key: found[key].value for key in expected} == pytest.approx(expected, rel=1e-6)
    assert not any(rate.at_least for rate in found.values())
    assert found["metadata_variation"].value == found["service_variation"].value == 0.25
    for rate in found.values():
        assert rate.low is not None
        assert rate.high is not None
        assert rate.low <= rate.value <= rate.high
        assert rate.n >= 3
        assert rate.text.startswith("by tierscope probe: ")


def test_a_limit_of_every_stream_is_told_from_the_server_s() -> None:
    """Else a process alone is simulated ten times as fast as any was seen."""
    reads = Storage(1 / 5000, 1 / 400e6, latency=2e-3, stream_per_byte=1 / 40e6)
    found = derive(measured(Storage(1 / 2000), reads, 64))
    assert found["bandwidth"].value == pytest.approx(400e6, rel=0.01)
    assert found["stream_bandwidth"].value == pytest.approx(40e6, rel=0.02)
    assert found["latency"].value == pytest.approx(2e-3, rel=0.1)
    assert "by one process alone" in found["stream_bandwidth"].text
    assert "stream_bandwidth" not in derive(measured(Storage(1 / 2000), Storage(1 / 5000, 1 / 400e6, 2e-3), 64))
    one_size = [Storage(1 / 2000).series("open", SIZES[0], 64), reads.series("read", SIZES[2], 64)]
    assert "stream_bandwidth" not in derive(one_size)  # a latency says the same of one size


def test_what_still_grew_is_at_least() -> None:
    found = derive(measured(Storage(1 / 2000, latency=0.1), Storage(1 / 5000, 1 / 400e6, latency=1.0), 4))
    assert found["metadata_ops"].value == pytest.approx(4 / (0.1 + 1 / 2000))
    for key in ("metadata_ops", "read_ops", "bandwidth"):
        rate = found[key]
        assert (rate.low, rate.high) == (rate.value, None)
        assert "throughput was still growing with 4 processes" in rate.at_least
        assert "at least: " in rate.text
    # A faster server would leave more of the time to latency, all of it at most.
    assert found["metadata_latency"].high == pytest.approx(0.1 + 1 / 2000)


def test_a_host_that_is_busy_itself_tells_no_more_than_at_least() -> None:
    series = Storage(1 / 2000, on_processor=0.95).series("open", 4096, 16)
    assert series.stopped == FLAT
    assert not series.saturated
    found = derive([series])
    assert found["metadata_ops"].high is None
    assert "this host's CPUs were the limit" in found["metadata_ops"].at_least


def test_processes_are_doubled_until_throughput_stands_still() -> None:
    storage = Storage(1e-3, latency=2.5e-3)  # 3.5 processes keep it busy
    series = storage.series("open", 4096, 64)
    assert [point.processes for point in series.points] == [1, 2, 4, 8]
    assert (series.stopped, series.saturated, series.most.processes) == (FLAT, True, 4)
    assert [point.processes for point in Storage(1e-3).series("open", 4096, 64).points] == [1, 2]
    assert Storage(1e-6, latency=1.0).series("open", 4096, 6).stopped == MOST_PROCESSES
    assert levels_up_to(6) == [1, 2, 4, 6]
    assert levels_up_to(1) == [1]


def test_every_point_is_repeated_within_the_budget() -> None:
    for seconds in (1.0, 60.0, 1000.0):
        storage = Storage(1e-6, latency=1.0)
        series = storage.series("open", 4096, 16, seconds)
        assert all(3 <= point.n <= 10 for point in series.points)
        assert storage.now <= seconds + 0.1


def test_without_time_two_levels_are_measured_all_the_same() -> None:
    class Slow(Storage):
        def attempt(self, nbytes: int) -> Callable[[int, float], Repetition]:
            once = super().attempt(nbytes)
            return lambda processes, _seconds: once(processes, 5.0)

    series = Slow(1e-6, latency=1.0).series("open", 4096, 16, seconds=2.0)
    assert [(point.processes, point.n) for point in series.points] == [(1, 1), (2, 1)]
    assert series.stopped == NO_TIME
    assert (
        "throughput was still growing with 2 processes, and time ran out" in derive([series])["metadata_ops"].at_least
    )


def test_rates_are_divided_between_servers_that_were_told() -> None:
    reads = Storage(1 / 5000, 1 / 400e6)
    series = measured(Storage(1 / 2000), reads, 64)
    one, four = derive(series), derive(series, servers=4)
    for key in ("read_ops", "bandwidth"):
        assert four[key].value == pytest.approx(one[key].value / 4)
        assert "divided evenly between 4 servers, as specified" in four[key].text
        assert f"2 processes cannot keep {4} servers busy" in four[key].at_least
    assert four["metadata_ops"] == one["metadata_ops"]


def test_one_size_is_all_bandwidth_and_ranges_come_from_repetitions() -> None:
    rates = [90.0, 100.0, 130.0]
    points = tuple(
        MeasuredLevel("read", 1000, count, tuple(Repetition(rate, 0.01, 0.0, 9, 0.0) for rate in rates))
        for count in (1, 2)
    )
    opens = Storage(1e-3).series("open", 1000, 2)
    found = derive([opens, Series("read", 1000, points, FLAT)])
    assert "read_ops" not in found
    bandwidth = found["bandwidth"]
    assert (bandwidth.low, bandwidth.value, bandwidth.high) == pytest.approx((90e3, 100e3, 130e3))
    assert bandwidth.n == 3


@given(
    st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=6),
)
def test_no_term_of_a_fit_is_below_zero(seconds: list[float]) -> None:
    sizes = [4096 << (2 * place) for place in range(len(seconds))]
    law = fit_law(sizes, seconds)
    assert law.per_op >= 0
    assert law.per_byte >= 0
    assert law.per_op + law.per_byte > 0


def done(*times: tuple[float, float]) -> ProbeTimes:
    pairs = np.array(times) * 1e9
    return ProbeTimes(pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64))


def test_only_the_stretch_in_which_all_work_counts() -> None:
    first = done((0, 1), (1, 2), (2, 3), (3, 4))
    late = done((1, 3), (3, 7))  # works from 1 to 7; both do from 1 to 4: 3 operations of the first, 1.25 of this one
    assert throughput([first]) == pytest.approx(1.0)
    assert throughput([first, late]) == pytest.approx((3 + 1.25) / 3)
    assert throughput([done((0, 1)), done((2, 3))]) == pytest.approx(2 / 3)  # never together


def test_a_lost_core_does_not_decide_the_variation() -> None:
    times = np.full(1000, 3e-6)
    times[:5] = 4e-3
    assert variation(times) == pytest.approx(0)
    assert variation(np.array([1.0, 3.0])) == pytest.approx(0.5)


def probed_tier(name: str, **changes: Any) -> ProbedTier:
    series = measured(Storage(1 / 2000, latency=1e-3), Storage(1 / 5000, 1 / 400e6, latency=2e-3), 8)
    fields: dict[str, Any] = {
        "name": name,
        "path": f"/data/{name}",
        "filesystem": "ext4",
        "device": len(name),
        "cold": True,
        "files": dict.fromkeys(SIZES, 100),
        "left_out": {},
        "series": tuple(series),
        "derived": derive(series),
        "servers": 1,
        "servers_told": False,
        "own_seconds": 1e-7,
        "operations": {"open": 5},
    }
    return ProbedTier(**{**fields, **changes})


def test_a_system_of_it_reads_back_as_the_same() -> None:
    known = known_system(Probed((probed_tier("bb"), probed_tier("gfs")), 8, 1.0, 600.0))
    assert parse_system(dump_system(known), "system.yaml") == known
    assert [(tier.name, tier.visible_to) for tier in known.system.tiers] == [("bb", "node"), ("gfs", "global")]
    assert (known.system.nodes, known.system.ranks_per_node) == (1, 8)
    assert known.figures["tiers.gfs.metadata_ops"].kind == "fitted"
    assert "cannot see servers" in known.figures["tiers.gfs.servers"].text


def flat_series(kind: str, nbytes: int, rate: float, op_seconds: float, spread: float) -> Series:
    """As if nothing came of a second process."""
    once = Repetition(rate, op_seconds, spread, 100, 0.1)
    levels = tuple(MeasuredLevel(kind, nbytes, processes, (once,) * 3) for processes in (1, 2))
    return Series(kind, nbytes, levels, FLAT)


SECONDS = st.floats(1e-9, 1e5) | st.sampled_from([0.1, 0.3, 1e-9])


@given(st.data(), st.floats(0, 20) | st.just(1e-17))
def test_any_measured_time_becomes_a_system_that_can_be_read(data: st.DataObject, spread: float) -> None:
    """Times and rates from anywhere: differences of equal ones, fits with a term that is next to nothing, hours for a read."""
    service = data.draw(SECONDS)
    alone = data.draw(st.sampled_from([service, service * (1 + 2e-16), service * 2]) | SECONDS)
    sizes = data.draw(st.sampled_from([SIZES[:1], SIZES[:2], SIZES]))
    law = data.draw(st.tuples(st.sampled_from([0.0, service]), st.sampled_from([1e-25, 1e-12, 1.0])))
    series = [flat_series("open", SIZES[0], 1 / service, alone, spread)]
    series += [flat_series("read", size, 1 / (law[0] + law[1] * size), alone, spread) for size in sizes]
    tier = probed_tier("gfs", series=tuple(series), derived=derive(series))
    known = known_system(Probed((tier,), 8, 1.0, 600.0))
    assert parse_system(dump_system(known), "system.yaml") == known


def test_a_latency_that_rounding_left_is_none() -> None:
    """1/(1/x) is not x: what is left of their difference is no time that an open takes."""
    service = next(x for x in (number / 7e5 for number in range(1, 1000)) if 1 / (1 / x) < x)
    derived = derive([flat_series("open", SIZES[0], 1 / service, service, 0.0)])
    rate = derived["metadata_latency"]
    assert (rate.value, rate.low, rate.high) == (0.0, 0.0, 0.0)


def test_a_term_that_rounding_left_is_no_rate() -> None:
    """The same time for any size: bytes limit nothing, and no bandwidth is made up for them."""
    reads = [flat_series("read", size, 1 / (1e-3 + 1e-26 * size), 1e-3, 0.0) for size in SIZES]
    derived = derive([flat_series("open", SIZES[0], 1000.0, 1e-3, 0.0), *reads])
    assert derived["read_ops"].value == pytest.approx(1000.0)
    assert "bandwidth" not in derived


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"cold": False, "filesystem": "tmpfs"}, "warm_reads"),
        ({"cold": None}, "unknown_pages"),
        ({"left_out": {16 << 20: "time"}}, "no_time"),
        ({"left_out": {16 << 20: "room"}}, "no_room"),
        ({"files": {4096: 9}}, "one_size"),
        ({"own_seconds": 1.0}, "own_cost"),
        ({"left_behind": "/data/x"}, "left_behind"),
    ],
)
def test_findings(changes: dict[str, Any], kind: str) -> None:
    plain = {each.kind for each in findings_of(Probed((probed_tier("gfs"),), 8, 1.0, 600.0))}
    found = findings_of(Probed((probed_tier("gfs", **changes),), 8, 1.0, 600.0))
    assert {each.kind for each in found} - plain == {f"probe_{kind}"}
    assert all(each.text and each.suggestion for each in found)


def test_two_names_for_one_device_and_an_overrun_are_said() -> None:
    found = findings_of(Probed((probed_tier("lfs"), probed_tier("gfs")), 8, 1000.0, 600.0))
    assert {"probe_same_device", "probe_over_budget"} <= {each.kind for each in found}


# Files


def folder_in(path: Path) -> Path:
    (found,) = path.glob("tierscope-probe-*")
    return found


def test_nothing_is_left_and_nothing_foreign_is_touched(tmp_path: Path) -> None:
    (tmp_path / "theirs.bin").write_text("theirs")
    (tmp_path / "4096").mkdir()
    (tmp_path / "4096" / "000000.bin").write_text("theirs too")
    with probe_files.own_folder(str(tmp_path), "gfs") as folder:
        probe_files.make_size_folder(folder, 4096)
        Path(path_of(folder, 4096, 0)).write_text("ours")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["4096", "theirs.bin"]
    assert (tmp_path / "4096" / "000000.bin").read_text() == "theirs too"


def test_a_strangers_file_in_our_folder_stays(tmp_path: Path) -> None:
    with probe_files.own_folder(str(tmp_path), "gfs") as folder:
        probe_files.make_size_folder(folder, 4096)
        theirs = [Path(folder, "notes.txt"), Path(folder, "4096", "notes.txt")]
        for path in theirs:
            path.write_text("theirs")
        Path(path_of(folder, 4096, 0)).write_text("ours")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "000000.bin").write_text("theirs")
        os.symlink(elsewhere, Path(folder, "1024"))
    assert all(path.read_text() == "theirs" for path in theirs)
    assert not Path(path_of(folder, 4096, 0)).exists()
    assert (elsewhere / "000000.bin").exists()
    assert probe_files.strangers(folder)
    with probe_files.own_folder(str(tmp_path), "gfs"):
        pass  # still ours
    assert all(path.exists() for path in theirs)


def test_what_a_killed_probe_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with probe_files.own_folder(str(tmp_path), "gfs") as folder:
        pass
    manifest.claim(folder, probe_files.KIND)
    Path(folder, "lock").touch()
    Path(folder, "4096").mkdir()
    left = Path(path_of(folder, 4096, 17))
    left.write_text("ours")
    with probe_files.own_folder(str(tmp_path), "gfs"):
        assert not left.exists()
    assert not list(tmp_path.iterdir())


def test_folders_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    with probe_files.own_folder(str(tmp_path), "gfs") as folder:
        pass
    Path(folder).mkdir()
    Path(folder, "thesis.tex").touch()
    with pytest.raises(ForeignDirectoryError), probe_files.own_folder(str(tmp_path), "gfs"):
        pass
    assert Path(folder, "thesis.tex").exists()
    os.rename(folder, tmp_path / "moved")
    os.symlink(tmp_path / "moved", folder)
    with pytest.raises(ForeignDirectoryError, match="symbolic link"), probe_files.own_folder(str(tmp_path), "gfs"):
        pass


def test_two_probes_do_not_share_a_folder(tmp_path: Path) -> None:
    with probe_files.own_folder(str(tmp_path), "gfs") as folder:
        with open(Path(folder, "lock"), "rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(UserError, match="another probe"), probe_files.own_folder(str(tmp_path), "gfs"):
            pass
        assert Path(folder).is_dir()


def test_files_fit_the_room() -> None:
    room = probe_files.FreeSpace(free_bytes=400 << 20, usable_bytes=200 << 20, usable_files=10_000)
    wished = probe_files.files_wished(SIZES, room, processes=4)
    assert sum(size * count for size, count in wished.items()) <= 200 << 20
    assert wished == {4 << 10: 2500, 128 << 10: 400, 1 << 20: 50, 16 << 20: 3}
    plenty = probe_files.FreeSpace(1 << 50, 1 << 49, 1 << 40)
    assert probe_files.files_wished(SIZES, plenty, 4) == {4 << 10: 4000, 128 << 10: 4000, 1 << 20: 1024, 16 << 20: 64}


def test_a_full_disk_is_refused_before_a_byte_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_files, "room_in", lambda _: probe_files.FreeSpace(9000, 4500, 1000))
    with pytest.raises(UserError, match="too little to probe"):
        run_probe(ProbeRequest({"gfs": str(tmp_path)}), Silent())
    assert not list(tmp_path.iterdir())


# Operations, counted by somebody else


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "100").mkdir()
    for number in range(5):
        (tmp_path / "100" / f"{number:06d}.bin").write_bytes(bytes(100))
    return tmp_path


def counted(monkeypatch: pytest.MonkeyPatch, *names: str) -> Counter[str]:
    calls: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **more: Any) -> Any:
            calls[name] += str(arguments[0]).endswith(".bin") or isinstance(arguments[0], int)
            return real(*arguments, **more)

        return call

    for name in names:
        monkeypatch.setattr(os, name, counting(name))
    return calls


@pytest.mark.parametrize(("kind", "call"), [("open", "open"), ("stat", "stat"), ("read", "preadv")])
def test_as_many_operations_as_are_reported(files: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: str) -> None:
    calls = counted(monkeypatch, call)
    found = perform(ProbeJob(kind, str(files), 100, (0, 1, 2, 3, 4), 0.01), lambda: 0 if kind != "read" else 1 << 62)
    assert len(found.starts) == len(found.ends) == calls[call]
    assert len(found.starts) == (5 if kind == "read" else 1)  # a start long ago: one operation, then the time is over
    assert (found.ends >= found.starts).all()
    assert (found.starts[1:] >= found.ends[:-1]).all()


def test_a_file_that_is_cut_short_is_named(files: Path) -> None:
    (files / "100" / "000003.bin").write_bytes(bytes(50))
    with pytest.raises(StoppedError, match="a file was truncated by another program"):
        perform(ProbeJob("read", str(files), 100, (3,), 1.0), lambda: 0)


def test_a_writer_stops_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "100").mkdir()
    real, left = os.write, [250]

    def write(fd: int, data: Any) -> int:
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    found = perform(ProbeJob("write", str(tmp_path), 100, (0, 1, 2, 3), 1e6), lambda: 0)
    assert found.full
    assert len(found.starts) == 2
    assert sorted(entry.name for entry in (tmp_path / "100").iterdir()) == ["000000.bin", "000001.bin"]
    assert (tmp_path / "100" / "000000.bin").read_bytes() != (tmp_path / "100" / "000001.bin").read_bytes()


@pytest.mark.faults
def test_a_process_that_dies_ends_the_probe_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ProbeCrew.run

    def run(crew: ProbeCrew, jobs: list[ProbeJob]) -> list[ProbeTimes]:
        if jobs[0].kind == "stat":
            crew._processes[1].kill()
        return real(crew, jobs)

    monkeypatch.setattr(ProbeCrew, "run", run)
    with pytest.raises(StoppedError, match="process 1 of the probe died or was killed"):
        run_probe(ProbeRequest({"gfs": str(tmp_path)}, sizes=(4096,), processes=2, seconds=1.0), Silent())
    assert not list(tmp_path.iterdir())


def test_tiers_in_the_wrong_order_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(request, "filesystem_of", lambda path: "lustre" if path.endswith("scratch") else "xfs")
    far, near = f"gfs={tmp_path / 'scratch'}", f"lfs={tmp_path / 'disk'}"
    assert list(read_wanted([near, far], [], 2, 600.0, []).tiers) == ["lfs", "gfs"]
    with pytest.raises(UserError, match="nearest tier first: lfs, then gfs"):
        read_wanted([far, near], [], 2, 600.0, [])


def test_what_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(40)))
    wanted = read_wanted([f"gfs={tmp_path}"], ["1MiB", "4KiB"], None, 600.0, ["gfs=60"])
    assert wanted == ProbeRequest({"gfs": str(tmp_path)}, (4096, 1 << 20), 16, 600.0, {"gfs": 60})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert read_wanted([f"gfs={tmp_path}"], [], None, 600.0, []).processes == 2
    assert read_wanted([f"gfs={tmp_path}"], [], None, 600.0, []).sizes == DEFAULT_SIZES


@pytest.mark.faults
def test_a_probe_whose_process_was_suspended_measures_again(tmp_path: Path) -> None:
    """And one whose process stays suspended ends, and leaves nobody."""
    with ProbeCrew(2, stall_seconds=0.5) as crew:
        pids = crew.pids
        nothing = [ProbeJob("nothing", str(tmp_path), 0, (), 0.02)] * 2
        assert len(crew.run(nothing)) == 2
        os.kill(pids[1], signal.SIGCONT)
        with pytest.raises(SuspendedError, match="process 1 was suspended"):
            crew.run(nothing)
        assert len(crew.run(nothing)) == 2
        os.kill(pids[0], signal.SIGSTOP)
        with pytest.raises(StoppedError, match=rf"process 0 \(pid {pids[0]}\) was suspended for 0.5 s .*; run again"):
            crew.run(nothing)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
