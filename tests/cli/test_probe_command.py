"""probe as a user types it: a system that simulates, one clear line for every mistake, nothing left behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench.test_crew import wait_until_dead
from tests.cli.test_commands import one_line, run
from tests.tiny import TINY
from tierscope.probe import files as probe_files
from tierscope.probe.request import ProbeRequest, read_wanted
from tierscope.signals import stopped_by
from tierscope.spec.known import load_system

pytestmark = pytest.mark.whole

SMALL = ("--seconds", "1", "--ranks", "2", "--size", "4KiB", "--size", "64KiB")
SMALLEST = ("--seconds", "1", "--ranks", "2", "--size", "4KiB")


@pytest.fixture(autouse=True)
def _half_a_second_for_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is the least that a user can ask for, and all of it is spent reading."""

    def shorter(*arguments: Any) -> ProbeRequest:
        wanted = read_wanted(*arguments)
        return replace(wanted, seconds=min(wanted.seconds, 0.5 * len(wanted.tiers)))

    monkeypatch.setattr("tierscope.probe.request.read_wanted", shorter)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    near, far = tmp_path / "near", tmp_path / "far"
    for place in (near, far):
        place.mkdir()
        (place / "theirs.txt").write_text("theirs")
    return near, far


def untouched(*places: Path) -> bool:
    return all([entry.name for entry in place.iterdir()] == ["theirs.txt"] for place in places)


def test_a_probed_system_can_be_simulated(
    tmp_path: Path, places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    near, far = places
    system, study = tmp_path / "system.yaml", tmp_path / "tiny.yaml"
    assert run("probe", "--tier", f"lfs={near}", "--tier", f"gfs={far}", "-o", system, *SMALL) == 0
    text = capsys.readouterr().out
    for words in ("read 4 KiB", "MB/s", "metadata_ops", "all servers as one", f"System: {system}"):
        assert words in text
    assert untouched(near, far)

    known = load_system(str(system))
    assert [(tier.name, tier.visible_to) for tier in known.system.tiers] == [("lfs", "node"), ("gfs", "global")]
    assert (known.system.nodes, known.system.ranks_per_node) == (1, 2)
    assert all(tier.metadata_ops and (tier.read_ops or tier.bandwidth) for tier in known.system.tiers)
    assert known.figures["tiers.gfs.metadata_ops"].text.startswith("by tierscope probe: opens")

    study.write_text(TINY)
    assert run("simulate", study, "--system", system, "--out", tmp_path / "out", "--quiet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["simulated"] is True

    assert run("probe", "--tier", f"gfs={far}", "-o", system, *SMALL) == 2
    assert "--force" in one_line(capsys)


def test_json_has_points_derived_rates_and_findings(
    tmp_path: Path, places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, far = places
    assert run("probe", "--tier", f"gfs={far}", "--servers", "gfs=8", *SMALL, "--json", "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    assert (found["schema_version"], found["kind"]) == (1, "probe")
    (tier,) = found["tiers"]
    assert (tier["name"], tier["path"]) == ("gfs", str(far))
    assert tier["cold"] in (True, False, None)
    kinds = {finding["kind"] for finding in found["findings"]}
    sizes = [each["bytes"] for each in tier["files"]]
    assert sizes == [4096, 65536] or (sizes == [4096] and "no_time" in kinds)  # on a machine that is very busy
    expected = {("open", None), ("stat", None), *(("read", size) for size in sizes)}
    assert {(point["kind"], point["bytes"]) for point in tier["points"]} == expected
    for point in tier["points"]:
        assert point["low"] <= point["ops_per_second"] <= point["high"]
        assert point["n"] == len(point["repetitions"]) >= 1
        if point["kind"] == "read":
            assert point["bytes_per_second"] == pytest.approx(point["ops_per_second"] * point["bytes"])
    for kind, bytes_ in expected:
        series = [point for point in tier["points"] if (point["kind"], point["bytes"]) == (kind, bytes_)]
        assert [point["processes"] for point in series] == [1, 2]
    assert tier["derived"]["servers"] == {"value": 8, "told": True}
    assert tier["derived"]["metadata_ops"]["value"] > 0
    assert {"warm_metadata", "at_least"} <= kinds


def test_a_memory_filesystem_is_called_warm(capsys: pytest.CaptureFixture[str]) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        assert run("probe", "--tier", f"lfs={place}", *SMALLEST, "--json", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    (tier,) = found["tiers"]
    if tier["filesystem"] != "tmpfs" or tier["cold"] is None:
        pytest.skip("/dev/shm is no tmpfs, or this kernel cannot say what is cached")
    assert tier["cold"] is False
    assert "warm_reads" in {finding["kind"] for finding in found["findings"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--tier is missing; name the paths of the data"),
        (("--tier", "gfs"), "must be NAME=/path"),
        (("--tier", "gfs=/no/such/place"), "no such file or directory"),
        (("--tier", "gfs={far}", "--tier", "gfs={near}"), "given twice"),
        (("--tier", "gfs={far}", "--tier", "lfs={far}"), "already belongs to gfs"),
        (("--tier", "gfs={far},{near}"), "one directory"),
        (("--tier", "gfs={far}/theirs.txt"), "is a file"),
        (("--tier", "gfs={far}", "--size", "4 potatoes"), "unknown unit"),
        (("--tier", "gfs={far}", "--size", "0"), "must be within"),
        (("--tier", "gfs={far}", "--size", "2TiB"), "must be within"),
        (("--tier", "gfs={far}", "--servers", "60"), "TIER=COUNT"),
        (("--tier", "gfs={far}", "--servers", "gsf=60"), "did you mean gfs?"),
        (("--tier", "gfs={far}", "--servers", "gfs=none"), "whole number"),
        (("--tier", "gfs={far}", "--seconds", "0"), "--seconds"),
        (("--tier", "gfs={far}", "--ranks", "0"), "--ranks"),
        (("--tier", "gfs={far}", "--sice", "1"), "--sice"),
        (
            ("--tier", "gfs={far}", "-o", "{far}/no/such/system.yaml"),
            "system.yaml: no such directory: {far}/no/such; create it, or choose another name",
        ),
    ],
)
def test_mistakes_get_one_clear_line(
    places: tuple[Path, Path], arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    near, far = places
    assert run("probe", *(text.format(near=near, far=far) for text in arguments)) == 2
    assert words.format(near=near, far=far) in one_line(capsys)
    assert untouched(near, far)


def test_a_full_place_gets_one_clear_line(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = places
    monkeypatch.setattr(probe_files, "room_in", lambda _: probe_files.FreeSpace(9000, 4500, 1000))
    assert run("probe", "--tier", f"lfs={near}", "--tier", f"gfs={far}", *SMALL) == 2
    assert "too little to probe" in one_line(capsys)
    assert untouched(near, far)


def test_a_place_without_permission_gets_one_clear_line(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    near, far = places
    far.chmod(0o500)
    assert run("probe", "--tier", f"lfs={near}", "--tier", f"gfs={far}", *SMALL) == 2
    assert "permission denied" in one_line(capsys)
    assert untouched(near, far)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def started(far: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A probe that would take long, and its processes; it has files of ours by now."""
    command = [sys.executable, "-m", "tierscope.cli.main", "probe", "--tier", f"gfs={far}", "--quiet"]
    options = ["--seconds", "600", "--ranks", "2", "--size", "4KiB"]
    probing = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(far.glob("tierscope-probe-*/4096/*.bin")):
        assert probing.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return probing, children(probing.pid)


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stopping_leaves_neither_files_nor_processes(places: tuple[Path, Path], number: signal.Signals) -> None:
    _, far = places
    probing, processes = started(far)
    probing.send_signal(number)
    _, said = probing.communicate(timeout=60)
    assert probing.returncode == 3
    assert said == f"tierscope: {stopped_by(number)}; the probe's files were removed; no system was written\n"
    assert len(processes) == 2
    assert not wait_until_dead(processes)
    assert untouched(far)


@pytest.mark.faults
def test_what_a_kill_leaves_the_next_probe_removes(places: tuple[Path, Path]) -> None:
    _, far = places
    probing, processes = started(far)
    probing.kill()
    probing.communicate()
    assert not wait_until_dead(processes)
    assert not untouched(far)
    assert run("probe", "--tier", f"gfs={far}", *SMALLEST, "--quiet", "--json") == 0
    assert untouched(far)


def test_strace_counts_the_same_reads_and_stats(tmp_path: Path, places: tuple[Path, Path]) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    _, far = places
    log = tmp_path / "log"
    tracing = [strace, "-f", "-qq", "-y", "-o", str(log), "-e", "trace=preadv,preadv2,stat,newfstatat"]
    command = [sys.executable, "-m", "tierscope.cli.main", "probe", "--tier", f"gfs={far}", *SMALL, "--json", "--quiet"]
    done = subprocess.run([*tracing, *command], capture_output=True, text=True, check=False, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip(f"strace cannot trace here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    (tier,) = json.loads(done.stdout)["tiers"]
    seen = log.read_text()
    ours = r"tierscope-probe-[^/]+/\d+/\d{6}\.bin"
    reads = len(re.findall(rf"preadv2?\(\d+<[^>]*{ours}>", seen))
    stats = len(re.findall(rf'(?:newfstatat\(AT_FDCWD[^,]*, |stat\()"[^"]*{ours}"', seen))
    assert reads == tier["operations"]["read"]
    assert stats == tier["operations"]["stat"]
    counted = sum(point["operations"] for point in tier["points"] if point["kind"] == "read")
    assert 0 < counted < reads  # the first ones are not counted
