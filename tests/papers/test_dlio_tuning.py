"""DLIO's tuning: verdicts follow from what was measured, and from the dated file alone."""

import json
from pathlib import Path

import msgspec
import pytest

from tierscope.analysis.statistics import interval
from tierscope.errors import ResultError
from tierscope.papers import dlio_tuning
from tierscope.papers.dlio_applied import applied
from tierscope.papers.dlio_tuning import _RecordTuning, make
from tierscope.papers.reproduce import check_section
from tierscope.papers.sections import STUDIES
from tierscope.papers.transfer_file import PATH, TransferFile, read_transfer
from tierscope.papers.tuned_studies import SLOWER, SweepRequest, TunedPoint, TunedSweep, theta_tier
from tierscope.plan.inert import inert_axes
from tierscope.plan.reading import is_buffered
from tierscope.spec.load import parse_study

KIB, MIB = 1 << 10, 1 << 20


def number(text: str) -> float | str:
    for unit, factor in ((" KiB", KIB), (" MiB", MIB)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text) if text.isdigit() else text


def pretended(request: SweepRequest, repetitions: int) -> TunedSweep:
    """The study is made, and judged to be worth it, but not run: later values take a tenth less."""
    study = request.study(repetitions)
    assert not inert_axes(study), f"{request.key} would be tuned although it changes nothing"
    points = [
        TunedPoint(number(value), interval([0.9**place] * repetitions), 1e9)
        for place, value in enumerate(request.values)
    ]
    return TunedSweep(request.key, tuple(points))


@pytest.mark.parametrize("short", [True, False])
def test_every_row_has_a_verdict(monkeypatch: pytest.MonkeyPatch, short: bool) -> None:
    monkeypatch.setattr(dlio_tuning, "measure", pretended)
    section = make(short)
    entry = next(entry for entry in STUDIES["dlio"].sections if entry.module == "dlio_tuning")
    check_section("dlio", entry, section.verdicts)
    assert {figure.id for figure in section.figures} >= {"D-F9", "D-F10", "D-F11", "D-F12"}
    assert all(verdict.why for verdict in section.verdicts)


def test_verdicts_follow_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def tuned(transfer: dict[float, float], threads: dict[float, float]) -> dict[str, str]:
        sweeps = [
            TunedSweep(key, tuple(TunedPoint(value, interval([seconds]), 1.0) for value, seconds in times.items()))
            for key, times in (("transfer_size", transfer), ("read_threads", threads), ("computation_threads", {1: 1.0, 2: 0.9}))
        ]  # fmt: skip
        return {verdict.id: verdict.outcome for verdict in dlio_tuning._of_imagenet(_RecordTuning(*sweeps))}

    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    as_published = tuned({256 * KIB: 1.25, MIB: 1.0, 4 * MIB: 1.1}, {1: 1.2, 8: 1.0, 16: 1.1})
    assert as_published == {"D-F9": "beside", **dict.fromkeys(("D-F9-1", "D-F9-2", "D-F9-3", "D-F9-4"), "holds"), "D-F9-5": "not available here"}  # fmt: skip
    other = tuned({256 * KIB: 1.5, MIB: 1.0, 4 * MIB: 0.9}, {1: 2.0, 8: 1.0, 16: 0.9})
    assert {other[row] for row in ("D-F9-1", "D-F9-2", "D-F9-3", "D-F9-4")} == {"does not hold"}


def test_the_tier_is_theta_in_slow_motion() -> None:
    theta = parse_study(
        "study: a\nworkload: {dataset: {num_files_train: 512, record_length_bytes: 1}, reader: {}, train: {}}\nsystem: {preset: theta}",
        "test",
    ).system.tiers[-1]
    tier = theta_tier()
    assert (tier.stripe_size, tier.stripe_count, tier.emulate) == (MIB, 48, True)
    assert tier.latency == theta.latency * SLOWER
    assert tier.bandwidth == (theta.bandwidth or 0) / SLOWER


def test_records_are_read_through_a_buffer() -> None:
    assert is_buffered(SweepRequest(dlio_tuning._records(256 * KIB, 64), "{batch_size: 64, sample_shuffle: off}", "transfer_size", ("1 MiB",)).study(1))  # fmt: skip


def test_the_dated_file_is_whole_and_small() -> None:
    transfer = read_transfer()
    assert transfer is not None
    assert PATH.stat().st_size < 16 * KIB
    assert {setting.name for setting in transfer.settings} >= {"transfer", "threads", "chunk"}
    for setting in transfer.settings:
        for gain in (setting.emulated, setting.application):
            assert gain.low <= gain.gain <= gain.high
            assert gain.n >= 3


def test_without_the_file_rows_are_not_available() -> None:
    verdicts = applied(None)
    assert [verdict.id for verdict in verdicts] == ["D-F13", *(f"D-F13-{number}" for number in range(1, 6))]
    assert {verdict.outcome for verdict in verdicts} == {"not available here"}


@pytest.mark.parametrize(
    "change",
    [{"schema_version": 2}, {"made": "yesterday"}, {"settings": []}, {"more": 1}, {"tier": ""}],
    ids=lambda change: next(iter(change)),
)
def test_a_damaged_file_is_one_line(tmp_path: Path, change: dict[str, object]) -> None:
    plain = json.loads(PATH.read_bytes())
    path = tmp_path / "transfer.json"
    path.write_text(json.dumps({**plain, **change}))
    with pytest.raises(ResultError, match=f"^{path}: is damaged"):
        read_transfer(path)
    path.write_text(json.dumps(plain))
    assert isinstance(read_transfer(path), TransferFile)
    assert msgspec.convert(plain, TransferFile) == read_transfer(path)
