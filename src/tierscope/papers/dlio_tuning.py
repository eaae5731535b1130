"""DLIO's tuning, figures 9 to 12: transfer size, threads, HDF5 chunks and compression, each as a gain that is measured on an emulated tier with stripes.

What the tier is, and what is chosen about the studies: `tuned_studies.py`. Gains in a real application (figure 13): `dlio_applied.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.tuned_studies import COSMOFLOW, IMAGENET, SLOWER, Pipeline, SweepRequest, TunedSweep, measure
from tierscope.papers.verdict import Outcome, Verdict, direction, ratio_agrees
from tierscope.units import about_bytes

_KIB, _MIB = 1 << 10, 1 << 20
_TIER = f"Theta's Lustre, emulated {SLOWER:g} times slower, on one node of four ranks"
_RANKS = 4  # of the node
_IN_ORDER = "sample_shuffle: off, file_access: multi"
_SIZES = ("256 KiB", "1 MiB", "1536 KiB", "4 MiB")
_BATCHES, _FEW_BATCHES = 8, 3  # of a rank in an epoch: its reading and preprocessing overlap from the second on
_BATCH_BYTES = 4 * _MIB  # or the largest transfer size could change nothing
_FLAT = 0.1  # so much of a time is no difference


def _records(nbytes: int, per_file: int) -> str:
    return f"{{format: tfrecord, num_files_train: {_RANKS}, num_samples_per_file: {per_file}, record_length_bytes: {nbytes - 16}}}"


def _arrays(kib: int, per_file: int, layout: str, files: int = _RANKS) -> str:
    half = "compressibility: 50%"
    return f"{{format: hdf5, num_files_train: {files}, num_samples_per_file: {per_file}, record_length_bytes: {kib} KiB, {half}, hdf5: {{{layout}}}}}"


def _paced(name: str, sample_bytes: int, pipeline: Pipeline) -> str:
    """Where records were read: preprocessing bounds what faster reading gains."""
    milliseconds = 1000 * pipeline.preprocess_time(sample_bytes)
    rows = {"ImageNet": "D-F6-2, -3 and -6", "CosmoFlow": "D-F3-3, -4 and -9"}[name]
    return f"{_TIER}; a sample is preprocessed for {milliseconds:.2g} ms (as much slower; slept), which follows from {rows}; gains of this figure were not used, but known"


_IMAGENET, _COSMOFLOW = _paced("ImageNet", 256 * _KIB, IMAGENET), _paced("CosmoFlow", 128 * _KIB, COSMOFLOW)


@dataclass(frozen=True, slots=True)
class _RecordTuning:
    """ImageNet's or CosmoFlow's: TFRecord."""

    transfer: TunedSweep
    threads: TunedSweep
    preprocessing: TunedSweep

    @classmethod
    def of(cls, sample_bytes: int, pipeline: Pipeline, repetitions: int, batches: int) -> "_RecordTuning":
        """One key at a time, from one thread of each kind and DLIO's own transfer size on."""
        batch = _BATCH_BYTES // sample_bytes
        dataset = _records(sample_bytes, batches * batch)
        work = f"preprocess: sleep, preprocess_time: {SLOWER * pipeline.preprocess_time(sample_bytes):.6f}"
        reader = f"{{batch_size: {batch}, read_threads: 1, computation_threads: 1, {work}, {_IN_ORDER}}}"
        requests = (
            SweepRequest(dataset, reader, "transfer_size", _SIZES),
            SweepRequest(dataset, reader, "read_threads", ("1", "8", "16")),
            SweepRequest(dataset, reader, "computation_threads", ("1", "8")),
        )
        return cls(*(measure(request, repetitions) for request in requests))


@dataclass(frozen=True, slots=True)
class _ArrayTuning:
    """Cosmic Tagger's or DFFN's: HDF5."""

    chunks: TunedSweep
    compressions: TunedSweep
    levels: TunedSweep

    @classmethod
    def of(cls, kib: int, batch: int, chunks: Sequence[str], repetitions: int) -> "_ArrayTuning":
        reader = f"{{batch_size: {batch}, {_IN_ORDER}}}"
        requests = (
            SweepRequest(_arrays(kib, 48, ""), reader, "hdf5.chunk_size", chunks),
            SweepRequest(_arrays(kib, 48, "chunk_size: 64 KiB"), reader, "hdf5.compression", ("none", "lzf", "gzip")),
            SweepRequest(
                _arrays(kib, 48, "chunk_size: 64 KiB, compression: gzip"),
                reader,
                "hdf5.compression_level",
                ("1", "4", "9"),
            ),
        )
        return cls(*(measure(request, repetitions) for request in requests))


@dataclass(frozen=True, slots=True)
class _Shuffled:
    """Cosmic Tagger's chunks with samples in random order: as they are, and compressed, when all of a chunk has to be read for any part of it."""

    plain: TunedSweep
    compressed: TunedSweep

    @classmethod
    def of(cls, cached: bool, repetitions: int) -> "_Shuffled":
        reader = "{batch_size: 32, file_access: multi}"
        sweeps = (
            measure(
                SweepRequest(_arrays(50, 96, layout, files=2), reader, "hdf5.chunk_size", chunks, cached), repetitions
            )
            for layout, chunks in (("", ("64 KiB", "1 MiB", "4 MiB")), ("compression: gzip", ("64 KiB", "4 MiB")))
        )
        return cls(*sweeps)

    @property
    def text(self) -> str:
        plain, compressed = (sweep.gain_text(64 * _KIB, 4 * _MIB) for sweep in (self.plain, self.compressed))
        return (
            f"4 MiB instead of 64 KiB: {plain}, with gzip {compressed}; 1 MiB {self.plain.gain_text(64 * _KIB, _MIB)}"
        )


def make(short: bool) -> Section:
    repetitions = 1 if short else 3
    batches = _FEW_BATCHES if short else _BATCHES
    imagenet = _RecordTuning.of(256 * _KIB, IMAGENET, repetitions, batches)
    cosmoflow = _RecordTuning.of(128 * _KIB, COSMOFLOW, repetitions, batches)
    tagger = _ArrayTuning.of(50, 32, ("4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"), repetitions)
    dffn = _ArrayTuning.of(32, 1, ("4 KiB", "32 KiB", "128 KiB", "1 MiB"), repetitions)
    in_memory, beyond_memory = (_Shuffled.of(cached, repetitions) for cached in (True, False))
    verdicts = (
        *_of_imagenet(imagenet),
        *_of_cosmoflow(cosmoflow, imagenet),
        *_of_tagger(tagger, in_memory, beyond_memory),
        *_of_dffn(dffn),
    )
    figures = (
        _figure("D-F9", "imagenet-tuning", "ImageNet", (imagenet.transfer, imagenet.threads, imagenet.preprocessing)),
        _figure(
            "D-F10", "cosmoflow-tuning", "CosmoFlow", (cosmoflow.transfer, cosmoflow.threads, cosmoflow.preprocessing)
        ),
        _figure(
            "D-F11",
            "cosmic-tagger-tuning",
            "Cosmic Tagger",
            (tagger.chunks, tagger.levels, in_memory.plain, beyond_memory.plain),
            ("", "", ", shuffled, from memory", ", shuffled, from storage"),
        ),
        _figure("D-F12", "dffn-tuning", "DFFN", (dffn.chunks, dffn.levels)),
    )
    return Section(verdicts, figures)


def _ratio(
    row: str,
    sweep: TunedSweep,
    before: float | str,
    after: float | str,
    published: float,
    more: str = "",
    where: str = _TIER,
) -> Verdict:
    gain = sweep.gain(before, after)
    holds = ratio_agrees(gain, published)
    way = direction(*sweep.gain_range(before, after), published)
    why = where if holds else f"{way}; {where}; what a request costs beside its bytes is assumed"
    return Verdict(
        row, f"{sweep.gain_text(before, after)}{more}", "holds" if holds else "does not hold", "emulated", why
    )


def _trend(row: str, holds: bool, ours: str, why: str = _TIER) -> Verdict:
    return Verdict(row, ours, "holds" if holds else "does not hold", "emulated", why)


def _rates(sweep: TunedSweep) -> str:
    n = sweep.points[0].epoch.n
    return f"{', '.join(f'{_value(sweep.key, point.value)}: {point.bandwidth / 1e6:.0f} MB/s' for point in sweep.points)} (n={n})"


def _times(sweep: TunedSweep) -> str:
    n = sweep.points[0].epoch.n
    return f"{', '.join(f'{_value(sweep.key, point.value)}: {point.epoch.median:.2f} s' for point in sweep.points)} (n={n})"


def _value(key: str, value: float | str) -> str:
    return about_bytes(float(value)) if key.endswith("size") else str(value)


def _drawn(row: str, sweeps: Sequence[TunedSweep], why: str = "") -> Verdict:
    points = sum(len(sweep.points) for sweep in sweeps)
    return Verdict(
        row,
        f"{len(sweeps)} panels, {points} points",
        "beside",
        "emulated",
        f"{why or _TIER}; its points are not published: judged by the statements about it",
    )


def _of_imagenet(tuning: _RecordTuning) -> list[Verdict]:
    sizes, threads = tuning.transfer, tuning.threads
    return [
        _drawn("D-F9", (tuning.transfer, threads, tuning.preprocessing), _IMAGENET),
        _trend("D-F9-1", sizes.is_slower(256 * _KIB, _MIB) and sizes.is_slower(4 * _MIB, _MIB), _rates(sizes), f"{_IMAGENET}; absolute rates are another machine's"),
        _ratio("D-F9-2", sizes, 256 * _KIB, _MIB, 1.25, where=_IMAGENET),
        _trend("D-F9-3", threads.is_slower(1, 8) and threads.is_slower(16, 8), _times(threads), _IMAGENET),
        _ratio("D-F9-4", threads, 1, 8, 1.2, where=_IMAGENET),
        _ratio("D-F9-5", tuning.preprocessing, 1, 8, 1.66, where=_IMAGENET),
    ]  # fmt: skip


def _of_cosmoflow(tuning: _RecordTuning, imagenet: _RecordTuning) -> list[Verdict]:
    sizes, best = tuning.transfer, tuning.transfer.best.value
    sharp, here = _sharpness(imagenet.transfer), _sharpness(sizes)
    rule = float(best) % _MIB == 0 and sizes.is_slower(1.5 * _MIB, _MIB) and sizes.is_slower(1.5 * _MIB, 4 * _MIB)
    return [
        _drawn("D-F10", (sizes, tuning.threads, tuning.preprocessing), _COSMOFLOW),
        _ratio("D-F10-1", sizes, 256 * _KIB, _MIB, 1.32, f"; best {_value('size', best)}", _COSMOFLOW),
        _ratio("D-F10-2", tuning.threads, 1, 8, 1.2, f"; best {tuning.threads.best.value}", _COSMOFLOW),
        _ratio("D-F10-3", tuning.preprocessing, 1, 8, 1.04, where=_COSMOFLOW),
        _trend("D-F10-4", sharp.low > here.high, f"rate at 1 MiB of the mean at 256 KiB and 4 MiB: {_spread(sharp)}, CosmoFlow {_spread(here)}", "they must be apart; " + _TIER),
        _trend("D-F10-5", rule, f"best {_value('size', best)}; {_rates(sizes)}", f"a multiple of the stripe must be best, and both neighbours of 1.5 MiB clearly better than it; {_COSMOFLOW}"),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Sharpness:
    median: float
    low: float
    high: float


def _sharpness(sweep: TunedSweep) -> _Sharpness:
    """The rate at the stripe's size over those beside it: of medians, and what the intervals of all three allow."""
    peak, sides = sweep.at(_MIB).epoch, [sweep.at(size).epoch for size in (256 * _KIB, 4 * _MIB)]

    def ratio(top: float, others: Sequence[float]) -> float:
        return 2 / top / sum(1 / seconds for seconds in others)

    return _Sharpness(
        ratio(peak.median, [side.median for side in sides]),
        ratio(peak.high, [side.low for side in sides]),
        ratio(peak.low, [side.high for side in sides]),
    )


def _spread(sharp: _Sharpness) -> str:
    return f"{sharp.median:.2f} ({sharp.low:.2f}–{sharp.high:.2f})"


def _jump(sweep: TunedSweep) -> float | str:
    """The value at which the rate rises most, from the value before."""
    pairs = list(zip(sweep.points, sweep.points[1:], strict=False))
    return max(pairs, key=lambda pair: pair[1].bandwidth / pair[0].bandwidth)[1].value


def _of_tagger(tuning: _ArrayTuning, in_memory: _Shuffled, beyond: _Shuffled) -> list[Verdict]:
    chunks, levels = tuning.chunks, tuning.levels
    falls = all(
        later.epoch.median <= (1 + _FLAT) * earlier.epoch.median
        for earlier, later in zip(chunks.points, chunks.points[1:], strict=False)
    )
    best = _value("size", chunks.best.value)
    peak = all(point.value == _MIB or chunks.is_slower(point.value, _MIB) for point in chunks.points)
    return [
        _drawn("D-F11", (chunks, levels, in_memory.plain, beyond.plain)),
        _trend("D-F11-1", falls and _jump(chunks) == 64 * _KIB, f"{_rates(chunks)}; jumps at {_value('size', _jump(chunks))}"),
        _ratio("D-F11-2", chunks, 4 * _KIB, chunks.best.value, 96.0, f"; best {best}"),
        _trend("D-F11-3", peak, f"best {best}; record × batch is {about_bytes(50 * 32 * _KIB)}, the stripe 1 MiB", f"{_TIER}; taken as the largest divisor of the stripe below record × batch, which must be clearly the best"),
        _compressed("D-F11-4", tuning),
        _heavier("D-F11-5", tuning),
        _harmless("D-F11-6", in_memory),
        _reread("D-F11-7", beyond),
    ]  # fmt: skip


def _harmless(row: str, in_memory: _Shuffled) -> Verdict:
    """Judged uncompressed, as the next row is: what figure 11c had is not published."""
    holds = in_memory.plain.gain(64 * _KIB, 4 * _MIB) > 1 - _FLAT
    why = "files in the page cache of this machine; judged uncompressed, since gzip inflates all of a chunk for every sample"
    return _trend(row, holds, in_memory.text, why)


def _reread(row: str, beyond: _Shuffled) -> Verdict:
    """Chunks of 4 MiB, of which a random sample needs little."""
    gain = _ratio(row, beyond.plain, 64 * _KIB, 4 * _MIB, 1 / 6.7)
    why = f"judged uncompressed: {gain.why}; the library reads all of a chunk that is compressed or fits its cache of 1 MiB, and of others only what is wanted"
    return Verdict(row, beyond.text, gain.outcome, gain.source, why)


def _compressed(row: str, tuning: _ArrayTuning) -> Verdict:
    """gzip at level 4, the default, over none; and no other level is clearly better."""
    gain, levels = _ratio(row, tuning.compressions, "none", "gzip", 1.35), tuning.levels
    best = levels.best.value
    beaten = levels.is_slower(4, best)
    apart = "" if best == 4 else ", apart from 4" if beaten else ", not apart from 4"
    outcome: Outcome = "does not hold" if beaten else gain.outcome
    return Verdict(row, f"{gain.ours}; best level {best}{apart}", outcome, gain.source, gain.why)


def _heavier(row: str, tuning: _ArrayTuning) -> Verdict:
    heavy, light = tuning.levels.at(9).epoch, tuning.levels.at(1).epoch
    none = tuning.compressions.at("none").epoch
    ours = f"level 9: {heavy.median:.2f} s, level 1: {light.median:.2f} s, none: {none.median:.2f} s (n={heavy.n})"
    why = f"{_TIER}; samples that compress to a half at any level, and inflating takes about as long whatever the level was"
    return _trend(row, heavy.low > max(light.high, none.high), ours, why)


def _of_dffn(tuning: _ArrayTuning) -> list[Verdict]:
    jump = _jump(tuning.chunks)
    return [
        _drawn("D-F12", (tuning.chunks, tuning.levels)),
        _trend("D-F12-1", jump in (32 * _KIB, 128 * _KIB), f"{_rates(tuning.chunks)}; jumps at {_value('size', jump)}"),
        _compressed("D-F12-2", tuning),
    ]


def _figure(row: str, name: str, title: str, sweeps: Sequence[TunedSweep], notes: Sequence[str] = ()) -> PaperFigure:
    """`notes`: behind titles of the first panels, where a key alone does not say what was varied."""
    caption = f"{title}: epoch seconds, measured; {_TIER}"
    panels = []
    for letter, sweep, note in zip_longest("abcd"[: len(sweeps)], sweeps, notes, fillvalue=""):
        assert isinstance(sweep, TunedSweep)
        key = sweep.key.rpartition(".")[2]
        words = key.replace("_", " ")
        line = Line("epoch", tuple(point.epoch.median for point in sweep.points), LOOKS[0], 0)
        places = tuple(float(point.value) for point in sweep.points)
        panels.append(ChartPanel(f"({letter}) {words}{note}", key, words, "epoch, s", places, (line,)))
    return PaperFigure(row, name, draw_chart(name, f"{title} tuning", caption, panels), "emulated", caption)
