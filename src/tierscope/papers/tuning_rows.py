"""What DLIO states of tuning, figures 9 to 12, as questions to the measured sweeps. A gain that was published as a percentage is judged as one; every row
says why it does not hold, where it does not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tierscope.papers.tuned_studies import COSMOFLOW, IMAGENET, SLOWER, Pipeline, TunedSweep
from tierscope.papers.tuning_sweeps import KIB, MIB, READING_THREADS, ArrayTuning, RecordTuning, ShuffledChunks
from tierscope.papers.verdict import POINTS_OFF, Verdict, direction, gain_agrees, ratio_agrees
from tierscope.units import about_bytes

TIER = f"Theta's Lustre, emulated {SLOWER:g} times slower, on one node of four ranks"
FLAT = 0.1  # so much of a time is no difference

_NO_FALL = "larger requests do not take longer here for their bytes, since a request is served by all its stripes at once: what slows them down on Theta is not modelled; and from 1 MiB on preprocessing takes as long as reading"  # fmt: skip
_PACED_BY = "a larger request saves only what a request costs beside its bytes, which is assumed; the limit of a stream stays, and preprocessing takes nearly as long as reading"  # fmt: skip
_NO_INTERFERENCE = "threads share a file that is opened once, so more of them do not interfere in metadata as they did in the study"  # fmt: skip
_STREAM = "every reading thread is a stream of its own with the fitted limit of one, so that threads gain more here than on Theta"
_SLEPT = "preprocessing is slept, so that its threads need no cores and scale as long as reading keeps up: how the study's scaled is not published"  # fmt: skip
_STEADY = "the rate rises with every doubling until the limit of a stream is reached, by no jump that is clearly the largest at the published size"  # fmt: skip
_PLATEAU = "from some chunk size on the limit of a stream bounds the rate, not the number of requests, and a request over the end of a stripe costs nothing more"  # fmt: skip
_LEVELS = "half of a sample is random, so every level compresses it to about a half, and inflating hardly depends on the level"  # fmt: skip
_INFLATED = "half of the bytes do not take half of the time: what a request costs beside them is assumed, and inflating takes time of its own"  # fmt: skip
_REQUESTS = "what a request costs beside its bytes is assumed"


def paced(name: str, sample_bytes: int, pipeline: Pipeline) -> str:
    """Where records were read: preprocessing bounds what faster reading gains."""
    milliseconds = 1000 * pipeline.preprocess_time(sample_bytes)
    rows = {"ImageNet": "D-F6-2, -3 and -6", "CosmoFlow": "D-F3-3, -4 and -9"}[name]
    return f"{TIER}; a sample is preprocessed for {milliseconds:.2g} ms (as much slower; slept), which follows from {rows}; gains of this figure were not used, but known"


_IMAGENET, _COSMOFLOW = paced("ImageNet", 256 * KIB, IMAGENET), paced("CosmoFlow", 128 * KIB, COSMOFLOW)


def value_text(key: str, value: float | str) -> str:
    return about_bytes(float(value)) if key.endswith("size") else str(value)


def _said(row: str, holds: bool, ours: str, reason: str, where: str = TIER) -> Verdict:
    """`reason`: why it does not hold, if it does not."""
    return Verdict(row, ours, "holds" if holds else "does not hold", "emulated", where if holds else f"{reason}; {where}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Gain:
    """Of a value over another, beside the published one; `agrees`: as a ratio, or as the percentage that was published."""

    sweep: TunedSweep
    before: float | str
    after: float | str
    published: float
    agrees: Callable[[float, float], bool] = ratio_agrees

    @property
    def way(self) -> str:
        return direction(*self.sweep.gain_range(self.before, self.after), self.published)

    @property
    def holds(self) -> bool:
        """What may be no gain at all is none, whatever the tolerance."""
        return self.way == "the same direction" and self.agrees(self.sweep.gain(self.before, self.after), self.published)  # fmt: skip

    @property
    def text(self) -> str:
        return self.sweep.gain_text(self.before, self.after)

    def said(self, row: str, reason: str, where: str = TIER, also: bool = True, more: str = "") -> Verdict:
        """`also`: what else the row states, besides the gain."""
        if self.way == "no clear difference":
            missed = "no gain that is clearly more than repetitions differ by"
        elif self.holds:
            missed = f"the gain is as published, what else is stated is not: {reason}"
        else:
            missed = f"{self.way}: {reason}"
        return _said(row, self.holds and also, f"{self.text}{more}", missed, where)


def _rates(sweep: TunedSweep) -> str:
    n = sweep.points[0].epoch.n
    return f"{', '.join(f'{value_text(sweep.key, point.value)}: {point.bandwidth / 1e6:.0f} MB/s' for point in sweep.points)} (n={n})"


def _times(sweep: TunedSweep) -> str:
    n = sweep.points[0].epoch.n
    return f"{', '.join(f'{value_text(sweep.key, point.value)}: {point.epoch.median:.2f} s' for point in sweep.points)} (n={n})"


def _drawn(row: str, sweeps: Sequence[TunedSweep], why: str = TIER) -> Verdict:
    points = sum(len(sweep.points) for sweep in sweeps)
    ours = f"{len(sweeps)} panels, {points} points"
    return Verdict(row, ours, "beside", "emulated", f"{why}; its points are not published: judged by the statements about it")  # fmt: skip


def of_imagenet(tuning: RecordTuning) -> list[Verdict]:
    sizes, threads = tuning.transfer, tuning.threads
    peak = sizes.is_slower(256 * KIB, MIB) and sizes.is_slower(4 * MIB, MIB)
    return [
        _drawn("D-F9", (sizes, threads, tuning.preprocessing), _IMAGENET),
        _said("D-F9-1", peak, _rates(sizes), _NO_FALL, f"{_IMAGENET}; absolute rates are another machine's"),
        _Gain(sizes, 256 * KIB, MIB, 1.25).said("D-F9-2", _PACED_BY, _IMAGENET),
        _said("D-F9-3", threads.is_slower(1, 8) and threads.is_slower(16, 8), _times(threads), _NO_INTERFERENCE, _IMAGENET),
        _Gain(threads, 1, 8, 1.2).said("D-F9-4", _STREAM, _IMAGENET),
        _preprocessing("D-F9-5", tuning.preprocessing, 1.66, _IMAGENET),
    ]  # fmt: skip


def of_cosmoflow(tuning: RecordTuning, imagenet: RecordTuning) -> list[Verdict]:
    sizes, threads, best = tuning.transfer, tuning.threads, tuning.transfer.best.value
    sharp, here = _sharpness(imagenet.transfer), _sharpness(sizes)
    rule = float(best) % MIB == 0 and sizes.is_slower(1.5 * MIB, MIB) and sizes.is_slower(1.5 * MIB, 4 * MIB)
    return [
        _drawn("D-F10", (sizes, threads, tuning.preprocessing), _COSMOFLOW),
        _Gain(sizes, 256 * KIB, MIB, 1.32).said("D-F10-1", f"{_PACED_BY}; {_NO_FALL}", _COSMOFLOW, _is_best(sizes, MIB), f"; best {value_text('size', best)}"),
        _Gain(threads, 1, 8, 1.2).said("D-F10-2", f"{_STREAM}; {_NO_INTERFERENCE}", _COSMOFLOW, _is_best(threads, 8), f"; best {threads.best.value}"),
        _preprocessing("D-F10-3", tuning.preprocessing, 1.04, _COSMOFLOW),
        _said("D-F10-4", sharp.low > here.high, f"rate at 1 MiB of the mean at 256 KiB and 4 MiB: {_spread(sharp)}, CosmoFlow {_spread(here)}", f"neither has an optimum at 1 MiB: {_NO_FALL}", f"they must be apart; {TIER}"),
        _said("D-F10-5", rule, f"best {value_text('size', best)}; {_rates(sizes)}", _NO_FALL, f"a multiple of the stripe must be best, and both neighbours of 1.5 MiB clearly better than it; {_COSMOFLOW}"),
    ]  # fmt: skip


def _is_best(sweep: TunedSweep, value: float) -> bool:
    """No other value is clearly better."""
    return not any(sweep.is_slower(value, point.value) for point in sweep.points)


def _preprocessing(row: str, sweep: TunedSweep, published: float, where: str) -> Verdict:
    """Flat from 8 on: twice as many change as little as two percentages may differ."""
    beyond = 100 * (sweep.gain(8, 16) - 1)
    more = f"; 16 instead of 8: {beyond:+.0f} %"
    about = f"{READING_THREADS} reading threads, or reading would bound it; {where}"
    return _Gain(sweep, 1, 8, published, gain_agrees).said(row, _SLEPT, about, abs(beyond) <= POINTS_OFF, more)


@dataclass(frozen=True, slots=True)
class _Sharpness:
    median: float
    low: float
    high: float


def _sharpness(sweep: TunedSweep) -> _Sharpness:
    """The rate at the stripe's size over those beside it: of medians, and what the intervals of all three allow."""
    peak, sides = sweep.at(MIB).epoch, [sweep.at(size).epoch for size in (256 * KIB, 4 * MIB)]

    def ratio(top: float, others: Sequence[float]) -> float:
        return 2 / top / sum(1 / seconds for seconds in others)

    return _Sharpness(
        ratio(peak.median, [side.median for side in sides]),
        ratio(peak.high, [side.low for side in sides]),
        ratio(peak.low, [side.high for side in sides]),
    )


def _spread(sharp: _Sharpness) -> str:
    return f"{sharp.median:.2f} ({sharp.low:.2f}–{sharp.high:.2f})"


@dataclass(frozen=True, slots=True)
class _Rise:
    """Of the rate, from the size before to this one: bytes a second, as the figure's axis has it, and what the intervals of both allow."""

    value: float | str
    median: float
    low: float
    high: float


def _rises(sweep: TunedSweep) -> Iterator[_Rise]:
    for before, after in pairwise(sweep.points):
        slow, fast, moved = before.epoch, after.epoch, after.payload_bytes
        yield _Rise(after.value, moved / fast.median - moved / slow.median, moved / fast.high - moved / slow.low, moved / fast.low - moved / slow.high)  # fmt: skip


def _jumps(sweep: TunedSweep, at: Sequence[int]) -> tuple[bool, str]:
    """Whether the rate jumps where it was published to: more than at any other doubling, also by the intervals."""
    rises = sorted(_rises(sweep), key=lambda rise: -rise.median)
    text = ", ".join(f"+{rise.median / 1e6:.1f} MB/s at {value_text('size', rise.value)}" for rise in rises[:2])
    others = max(rise.high for rise in rises if rise.value not in at)
    return rises[0].value in at and rises[0].low > others, f"largest rises {text}"


def of_tagger(tuning: ArrayTuning, in_memory: ShuffledChunks, beyond: ShuffledChunks) -> list[Verdict]:
    chunks, levels = tuning.chunks, tuning.levels
    falls = all(later.epoch.median <= (1 + FLAT) * earlier.epoch.median for earlier, later in pairwise(chunks.points))
    best = value_text("size", chunks.best.value)
    peak = all(point.value == MIB or chunks.is_slower(point.value, MIB) for point in chunks.points)
    jumps, rises = _jumps(chunks, (64 * KIB,))
    return [
        _drawn("D-F11", (chunks, levels, in_memory.plain, beyond.plain)),
        _said("D-F11-1", falls and jumps, f"{_rates(chunks)}; {rises}", _STEADY if falls else "time does not fall with the chunk size"),
        _Gain(chunks, 4 * KIB, chunks.best.value, 96.0).said("D-F11-2", _REQUESTS, more=f"; best {best}"),
        _said("D-F11-3", peak, f"best {best}; record × batch is {about_bytes(50 * 32 * KIB)}, the stripe 1 MiB", _PLATEAU, f"{TIER}; taken as the largest divisor of the stripe below record × batch, which must be clearly the best"),
        _compressed("D-F11-4", tuning),
        _heavier("D-F11-5", tuning),
        _harmless("D-F11-6", in_memory),
        _reread("D-F11-7", beyond),
    ]  # fmt: skip


def _harmless(row: str, in_memory: ShuffledChunks) -> Verdict:
    """Judged uncompressed, as the next row is: what figure 11c had is not published."""
    holds = in_memory.plain.gain(64 * KIB, 4 * MIB) > 1 - FLAT
    why = "files in the page cache of this machine; judged uncompressed, since gzip inflates all of a chunk for every sample"
    return _said(row, holds, in_memory.text, "a larger chunk takes longer to copy from memory, for samples that need little of it", why)  # fmt: skip


def _reread(row: str, beyond: ShuffledChunks) -> Verdict:
    """Chunks of 4 MiB, of which a random sample needs little."""
    library = "the library reads all of a chunk that is compressed or fits its cache of 1 MiB, and of others only what is wanted"  # fmt: skip
    gain = _Gain(beyond.plain, 64 * KIB, 4 * MIB, 1 / 6.7).said(row, library, f"judged uncompressed; {TIER}")
    return Verdict(row, beyond.text, gain.outcome, gain.source, gain.why)


def _compressed(row: str, tuning: ArrayTuning) -> Verdict:
    """gzip at level 4, the default, over none; and no other level is clearly better."""
    levels, best = tuning.levels, tuning.levels.best.value
    is_best = _is_best(levels, 4)
    apart = "" if best == 4 else ", not apart from 4" if is_best else ", apart from 4"
    reason = _INFLATED if is_best else _LEVELS
    return _Gain(tuning.compressions, "none", "gzip", 1.35).said(row, reason, also=is_best, more=f"; best level {best}{apart}")  # fmt: skip


def _heavier(row: str, tuning: ArrayTuning) -> Verdict:
    heavy, light = tuning.levels.at(9).epoch, tuning.levels.at(1).epoch
    none = tuning.compressions.at("none").epoch
    ours = f"level 9: {heavy.median:.2f} s, level 1: {light.median:.2f} s, none: {none.median:.2f} s (n={heavy.n})"
    return _said(row, heavy.low > max(light.high, none.high), ours, _LEVELS)


def of_dffn(tuning: ArrayTuning) -> list[Verdict]:
    jumps, rises = _jumps(tuning.chunks, (32 * KIB, 128 * KIB))
    return [
        _drawn("D-F12", (tuning.chunks, tuning.levels)),
        _said("D-F12-1", jumps, f"{_rates(tuning.chunks)}; {rises}", _STEADY),
        _compressed("D-F12-2", tuning),
    ]
