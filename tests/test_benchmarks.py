"""What the benchmarks make of numbers, and of a peer's own words."""

from pathlib import Path

import pytest

from benchmarks import dlio, peers
from benchmarks.common import Result, left_out, ratio

LOG = """
[INFO] 2026-06-01T10:00:01.250000 Running DLIO with 1 process(es) [main.py:115]
[INFO] 2026-06-01T10:00:02.750000 Starting data generation [main.py:154]
[INFO] [INFO] 2026-06-01T10:00:03.000000 Generating NPZ Data: [====>] 100.0% 2 of 2  [utility.py:249]
[INFO] 2026-06-01T10:00:04.000000 Generation done [main.py:159]
"""


def test_generation_is_timed_by_dlio_s_own_log() -> None:
    assert dlio.generation_seconds(LOG) == 1.25
    with pytest.raises(ValueError, match="does not say"):
        dlio.generation_seconds(LOG.partition("Generation done")[0])


def test_of_dlio_s_epochs_the_fastest_counts() -> None:
    summary = {"metric": {"train_throughput_samples_per_second": [10.0, 30.0, 20.0]}}
    assert dlio.samples_per_second(summary) == 30.0


def test_a_goal_is_met_or_missed_by_how_much() -> None:
    assert "goal ≥ 5.0: MISSED (0.80 of it)" in ratio("x", [8.0, 8.0, 8.0], [2.0, 1.0, 2.0], 5.0).line()
    assert "goal ≤ 0.25 s: met (0.40 of it)" in Result("x", 0.1, "s", 0.1, 0.1, 1, "≤ 0.25 s", met=True).line()
    assert "goal within ±3 %: met (0.50 of it)" in Result("x", -1.5, "%", -2, -1, 3, "within ±3 %", met=True).line()
    assert "goal" not in ratio("x", [8.0], [2.0]).line()


def test_what_is_not_there_is_said_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_out("a peer", "no cat", "make x").line().endswith(" (left out: no cat; make x installs it)")
    monkeypatch.setattr(dlio, "_PYTHON", tmp_path / "python")
    (line,) = dlio.dlio()
    assert line.met is None
    assert "there is no .venv-dlio; make bench-peers installs it" in line.line()


def test_an_environment_without_dlio_is_named_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'dlio_benchmark'\" >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(dlio, "_PYTHON", python)
    (line,) = dlio.reading("npz", tmp_path, 1, 1, 1, lambda *_: 1.0)
    assert "No module named 'dlio_benchmark'; make bench-peers" in line.line()


def test_dlio_reads_our_very_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "0.npz").write_bytes(b"ours")
    seen: list[str] = []

    def run(command: list[str], folder: Path, environment: object) -> None:
        seen.extend(command)
        assert (folder / "data" / "train" / "0.npz").read_bytes() == b"ours"
        assert (folder / "data" / "valid").is_dir()
        (folder / "out").mkdir()
        (folder / "out" / "summary.json").write_text('{"metric": {"train_throughput_samples_per_second": [5.0]}}')

    monkeypatch.setattr(dlio, "_run", run)
    monkeypatch.setattr(dlio, "why_not", lambda: "")
    monkeypatch.setattr(dlio, "ROUNDS", 1)
    lines = list(dlio.reading("npz", tmp_path, 10, 64, 2, lambda check, _: 0.2 if check else 0.1))
    assert {
        "++workload.reader.batch_size=2",
        "++workload.reader.read_threads=0",
        "++workload.train.computation_time=0",
    } <= set(seen)
    assert [line.value for line in lines[:3]] == pytest.approx([5.0, 10.0, 20.0])
    assert [line.goal for line in lines] == 2 * ["", "≥ 5.0", "≥ 10.0", "", "", ""]


def test_every_format_has_a_floor_and_a_peer() -> None:
    assert set(peers._CHECKSUMS) == set(peers._PEERS)
