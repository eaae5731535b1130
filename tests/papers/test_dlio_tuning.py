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
from tierscope.papers.tuned_studies import (
    COSMOFLOW,
    IMAGENET,
    SLOWER,
    SweepRequest,
    TunedPoint,
    TunedSweep,
    theta_tier,
)
from tierscope.papers.verdict import direction
from tierscope.plan.inert import inert_axes
from tierscope.plan.reading import is_buffered
from tierscope.spec.emulation import RATES
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
    drawings = {figure.id: figure.svg for figure in section.figures}
    assert all(f"chunk size, shuffled, from {where}" in drawings["D-F11"] for where in ("memory", "storage"))


def test_verdicts_follow_the_measurement() -> None:
    def tuned(transfer: dict[float, float], threads: dict[float, float]) -> dict[str, str]:
        sweeps = [
            TunedSweep(key, tuple(TunedPoint(value, interval([seconds]), 1.0) for value, seconds in times.items()))
            for key, times in (("transfer_size", transfer), ("read_threads", threads), ("computation_threads", {1: 1.0, 8: 0.6}))
        ]  # fmt: skip
        return {verdict.id: verdict.outcome for verdict in dlio_tuning._of_imagenet(_RecordTuning(*sweeps))}

    as_published = tuned({256 * KIB: 1.25, MIB: 1.0, 4 * MIB: 1.1}, {1: 1.2, 8: 1.0, 16: 1.1})
    assert as_published == {"D-F9": "beside", **dict.fromkeys(("D-F9-1", "D-F9-2", "D-F9-3", "D-F9-4", "D-F9-5"), "holds")}  # fmt: skip
    other = tuned({256 * KIB: 1.5, MIB: 1.0, 4 * MIB: 0.9}, {1: 2.0, 8: 1.0, 16: 0.9})
    assert {other[row] for row in ("D-F9-1", "D-F9-2", "D-F9-3", "D-F9-4")} == {"does not hold"}


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(1.1, 1.3, "the same direction"), (0.7, 0.9, "the opposite direction"), (0.89, 1.01, "no clear difference")],
)
def test_an_interval_around_one_has_no_direction(low: float, high: float, said: str) -> None:
    assert direction(low, high, 1.35) == said


def test_effects_that_nobody_can_see_resemble_each_other() -> None:
    """A gain of 0.98 and one of 1.02, both within noise, do not contradict each other; 1.5 and 1.0 do."""
    transfer = read_transfer()
    assert transfer is not None
    known = transfer.settings[0]

    def outcome(median: float, low: float, high: float) -> str:
        emulated = msgspec.structs.replace(known.emulated, gain=0.98, low=0.9, high=1.02)
        application = msgspec.structs.replace(known.application, gain=median, low=low, high=high)
        setting = msgspec.structs.replace(known, emulated=emulated, application=application)
        verdicts = applied(msgspec.structs.replace(transfer, settings=[setting]))
        return next(verdict.outcome for verdict in verdicts if verdict.id == "D-F13-5")

    assert outcome(1.02, 0.95, 1.1) == "holds"
    assert outcome(1.5, 1.4, 1.6) == "does not hold"


def test_compression_holds_only_where_no_other_level_is_clearly_better() -> None:
    def outcome(ninth: float) -> str:
        levels = {1: 1.0, 4: 1.0, 9: ninth}
        sweeps = ({4096: 1.0}, {"none": 1.35, "gzip": 1.0}, levels)
        made = (TunedSweep("hdf5.x", tuple(TunedPoint(value, interval([0.99 * seconds, seconds, 1.01 * seconds]), 1.0) for value, seconds in times.items())) for times in sweeps)  # fmt: skip
        return dlio_tuning._compressed("D-F12-2", dlio_tuning._ArrayTuning(*made)).outcome

    assert outcome(0.99) == "holds"
    assert outcome(0.7) == "does not hold"


def test_the_tier_is_theta_in_slow_motion() -> None:
    theta = parse_study(
        "study: a\nworkload: {dataset: {num_files_train: 512, record_length_bytes: 1}, reader: {}, train: {}}\nsystem: {preset: theta}",
        "test",
    ).system.tiers[-1]
    tier = theta_tier()
    assert (tier.stripe_size, tier.stripe_count, tier.emulate) == (MIB, 48, True)
    changed = {}
    for name in RATES:
        slow, fast = getattr(tier, name), getattr(theta, name)
        assert bool(slow) == bool(fast)
        if fast:
            changed[name] = slow / fast
    assert changed.pop("latency") == changed.pop("metadata_latency") == SLOWER
    assert changed == dict.fromkeys(changed, 1 / SLOWER)  # or gains would be those of another machine
    assert {"stream_bandwidth", "file_open_ops", "node_bandwidth", "bandwidth"} <= set(changed)


def test_preprocessing_follows_from_the_published_pipelines_alone() -> None:
    """By hand: 256 KiB at 32 GB/s of 512 processes take 4.19 ms, which are 15 of the 28 % that the pipeline takes."""
    assert IMAGENET.preprocess_time(256 * KIB) == pytest.approx(0.00419 * 13 / 15, rel=0.01)
    assert COSMOFLOW.preprocess_time(128 * KIB) == pytest.approx(0.00186 * 11 / 12, rel=0.01)


def test_records_are_tuned_one_key_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """More reading threads must not preprocess too, and a batch holds the largest request."""
    asked: list[SweepRequest] = []

    def note(request: SweepRequest, repetitions: int) -> TunedSweep:
        asked.append(request)
        return pretended(request, repetitions)

    monkeypatch.setattr(dlio_tuning, "measure", note)
    _RecordTuning.of(256 * KIB, IMAGENET, 1, 8)
    for request in asked:
        study = request.study(1)
        reader, dataset = study.workload.reader, study.workload.dataset
        assert reader.preprocess == "sleep"
        assert reader.preprocess_time == pytest.approx(SLOWER * 0.00363, rel=0.01)
        assert (reader.read_threads, reader.computation_threads) == (1, 1)
        assert reader.batch_size * dataset.record_length_bytes >= 4 * MIB - KIB
        assert dataset.samples == 4 * 8 * reader.batch_size
        assert study.system.ranks_per_node == 4


def test_what_noise_decides_does_not_hold() -> None:
    """Medians that fall and rise by less than their intervals are flat."""

    def sweep(key: str, times: dict[float, float]) -> TunedSweep:
        points = tuple(TunedPoint(value, interval([0.9 * seconds, seconds, 1.1 * seconds]), 1.0) for value, seconds in times.items())  # fmt: skip
        return TunedSweep(key, points)

    flat = _RecordTuning(
        sweep("transfer_size", {256 * KIB: 1.05, MIB: 1.0, 1.5 * MIB: 1.02, 4 * MIB: 1.01}),
        sweep("read_threads", {1: 1.05, 8: 1.0, 16: 1.01}),
        sweep("computation_threads", {1: 1.0, 2: 1.0, 8: 1.0}),
    )
    outcomes = {verdict.id: verdict.outcome for verdict in (*dlio_tuning._of_imagenet(flat), *dlio_tuning._of_cosmoflow(flat, flat))}  # fmt: skip
    assert {outcomes[row] for row in ("D-F9-1", "D-F9-3", "D-F10-4", "D-F10-5")} == {"does not hold"}


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
