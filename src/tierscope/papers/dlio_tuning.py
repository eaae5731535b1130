"""DLIO's tuning, figures 9 to 12: transfer size, threads, HDF5 chunks and compression, each as a gain that is measured on an emulated tier with stripes.

What the tier is, and what is chosen about the studies: `tuned_studies.py`. Gains in a real application (figure 13): `dlio_applied.py`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.tuned_studies import SLOWER, SweepRequest, TunedSweep, measure
from tierscope.papers.verdict import Verdict, ratio_agrees
from tierscope.units import about_bytes

_KIB, _MIB = 1 << 10, 1 << 20
_TIER = f"Theta's Lustre, emulated {SLOWER:g} times slower, on two ranks"
_IN_ORDER = "sample_shuffle: off, file_access: multi"
_SIZES = ("256 KiB", "1 MiB", "1536 KiB", "4 MiB")
_BUSY = "preprocess: busy, preprocess_time: 2 ms"
_CORES_WANTED = 8  # a core for each preprocessing thread of at least one rank
_FLAT = 0.1  # so much of a time is no difference


def _records(nbytes: int, per_file: int) -> str:
    return f"{{format: tfrecord, num_files_train: 4, num_samples_per_file: {per_file}, record_length_bytes: {nbytes - 16}}}"


def _arrays(kib: int, per_file: int, layout: str) -> str:
    half = "compressibility: 50%"
    return f"{{format: hdf5, num_files_train: 2, num_samples_per_file: {per_file}, record_length_bytes: {kib} KiB, {half}, hdf5: {{{layout}}}}}"


@dataclass(frozen=True, slots=True)
class _RecordTuning:
    """ImageNet's or CosmoFlow's: TFRecord."""

    transfer: TunedSweep
    threads: TunedSweep
    preprocessing: TunedSweep

    @classmethod
    def of(cls, sample_bytes: int, repetitions: int, short: bool) -> "_RecordTuning":
        dataset = _records(sample_bytes, 16 * _MIB // sample_bytes)
        reader = f"{{batch_size: 64, {_IN_ORDER}%s}}"
        threads = ("1", "8", "16") if short else ("1", "2", "4", "8", "16")
        requests = (
            SweepRequest(dataset, reader % "", "transfer_size", _SIZES),
            SweepRequest(dataset, reader % "", "read_threads", threads),
            SweepRequest(
                dataset,
                reader % f", transfer_size: 1 MiB, {_BUSY}",
                "computation_threads",
                ("1", "2") if short else ("1", "2", "8"),
            ),
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


def make(short: bool) -> Section:
    repetitions = 1 if short else 3
    imagenet, cosmoflow = (_RecordTuning.of(size, repetitions, short) for size in (256 * _KIB, 128 * _KIB))
    tagger = _ArrayTuning.of(50, 32, ("4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"), repetitions)
    dffn = _ArrayTuning.of(32, 1, ("4 KiB", "32 KiB", "128 KiB", "1 MiB"), repetitions)
    shuffled = [
        measure(
            SweepRequest(_arrays(50, 96, ""), reader, "hdf5.chunk_size", ("64 KiB", "1 MiB", "4 MiB"), cached),
            repetitions,
        )
        for reader, cached in (
            ("{batch_size: 32, file_access: multi}", True),
            ("{batch_size: 32, file_access: multi}", False),
        )
    ]
    in_memory, beyond_memory = shuffled
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
            "D-F11", "cosmic-tagger-tuning", "Cosmic Tagger", (tagger.chunks, tagger.levels, in_memory, beyond_memory)
        ),
        _figure("D-F12", "dffn-tuning", "DFFN", (dffn.chunks, dffn.levels)),
    )
    return Section(verdicts, figures)


def _ratio(
    row: str, sweep: TunedSweep, before: float | str, after: float | str, published: float, more: str = ""
) -> Verdict:
    gain = sweep.gain(before, after)
    holds = ratio_agrees(gain, published)
    direction = "the same direction" if (gain > 1) == (published > 1) else "the opposite direction"
    why = _TIER if holds else f"{direction}; {_TIER}, where what a request costs beside its bytes is assumed"
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
    rates = {point.value: point.bandwidth for point in tuning.transfer.points}
    threads = tuning.threads
    return [
        _drawn("D-F9", (tuning.transfer, threads, tuning.preprocessing)),
        _trend("D-F9-1", rates[256 * _KIB] < rates[_MIB] > rates[4 * _MIB], _rates(tuning.transfer), f"{_TIER}; absolute rates are another machine's"),
        _ratio("D-F9-2", tuning.transfer, 256 * _KIB, _MIB, 1.25),
        _trend("D-F9-3", threads.best.value == 8, _times(threads)),
        _ratio("D-F9-4", threads, 1, 8, 1.2),
        _preprocessing("D-F9-5", tuning.preprocessing, 1.66),
    ]  # fmt: skip


def _preprocessing(row: str, sweep: TunedSweep, published: float) -> Verdict:
    """Threads that compute need cores."""
    cores = len(os.sched_getaffinity(0))
    most = sweep.points[-1].value
    if most == 8 and cores >= _CORES_WANTED:
        return _ratio(row, sweep, 1, most, published)
    why = f"{cores} cores here, or the short form: 8 preprocessing threads need {_CORES_WANTED}"
    return Verdict(row, f"{most} instead of 1: {sweep.gain_text(1, most)}", "not available here", "emulated", why)


def _of_cosmoflow(tuning: _RecordTuning, imagenet: _RecordTuning) -> list[Verdict]:
    sizes, best = tuning.transfer, tuning.transfer.best.value
    peaks = [_sharpness(sweep.transfer) for sweep in (imagenet, tuning)]
    between = sizes.at(1.5 * _MIB).bandwidth < (sizes.at(_MIB).bandwidth + sizes.at(4 * _MIB).bandwidth) / 2
    rule = float(best) % _MIB == 0 and between
    return [
        _drawn("D-F10", (sizes, tuning.threads, tuning.preprocessing)),
        _ratio("D-F10-1", sizes, 256 * _KIB, _MIB, 1.32, f"; best {_value('size', best)}"),
        _ratio("D-F10-2", tuning.threads, 1, 8, 1.2, f"; best {tuning.threads.best.value}"),
        _preprocessing("D-F10-3", tuning.preprocessing, 1.04),
        _trend("D-F10-4", peaks[0] > peaks[1], f"rate at 1 MiB of the mean at 256 KiB and 4 MiB: {peaks[0]:.2f}, CosmoFlow {peaks[1]:.2f}"),
        _trend("D-F10-5", rule, f"best {_value('size', best)}; {_rates(sizes)}", "a multiple of the stripe is best, and 1.5 MiB less than its neighbours suggest" if rule else _TIER),
    ]  # fmt: skip


def _sharpness(sweep: TunedSweep) -> float:
    sides = (sweep.at(256 * _KIB).bandwidth + sweep.at(4 * _MIB).bandwidth) / 2
    return sweep.at(_MIB).bandwidth / sides


def _jump(sweep: TunedSweep) -> float | str:
    """The value at which the rate rises most, from the value before."""
    pairs = list(zip(sweep.points, sweep.points[1:], strict=False))
    return max(pairs, key=lambda pair: pair[1].bandwidth / pair[0].bandwidth)[1].value


def _of_tagger(tuning: _ArrayTuning, in_memory: TunedSweep, beyond: TunedSweep) -> list[Verdict]:
    chunks, levels = tuning.chunks, tuning.levels
    falls = all(
        later.epoch.median <= (1 + _FLAT) * earlier.epoch.median
        for earlier, later in zip(chunks.points, chunks.points[1:], strict=False)
    )
    harmless = in_memory.gain(64 * _KIB, 4 * _MIB) > 1 - _FLAT
    best = _value("size", chunks.best.value)
    return [
        _drawn("D-F11", (chunks, levels, in_memory, beyond)),
        _trend("D-F11-1", falls and _jump(chunks) == 64 * _KIB, f"{_rates(chunks)}; jumps at {_value('size', _jump(chunks))}"),
        _ratio("D-F11-2", chunks, 4 * _KIB, chunks.best.value, 96.0, f"; best {best}"),
        _trend("D-F11-3", chunks.best.value == _MIB, f"best {best}; record × batch is {about_bytes(50 * 32 * _KIB)}, the stripe 1 MiB", f"{_TIER}; taken as the largest divisor of the stripe below record × batch"),
        _compressed("D-F11-4", tuning),
        _heavier("D-F11-5", tuning),
        _trend("D-F11-6", harmless, f"4 MiB instead of 64 KiB: {in_memory.gain_text(64 * _KIB, 4 * _MIB)}", "files in the page cache of this machine; the library reads and copies a whole chunk for every sample, which is not free" if not harmless else "files in the page cache of this machine"),
        _reread("D-F11-7", beyond),
    ]  # fmt: skip


def _reread(row: str, beyond: TunedSweep) -> Verdict:
    """Chunks of 4 MiB, of which a random sample needs little."""
    gain = _ratio(row, beyond, 64 * _KIB, 4 * _MIB, 1 / 6.7)
    why = f"{gain.why}; of a chunk that is larger than its cache and not compressed, the library reads only what is wanted"
    return Verdict(row, gain.ours, gain.outcome, gain.source, why)


def _compressed(row: str, tuning: _ArrayTuning) -> Verdict:
    """gzip at level 4, the default, over none."""
    gain = _ratio(row, tuning.compressions, "none", "gzip", 1.35)
    best = tuning.levels.best.value
    return Verdict(row, f"{gain.ours}; best level {best}", gain.outcome, gain.source, gain.why)


def _heavier(row: str, tuning: _ArrayTuning) -> Verdict:
    heavy, light = tuning.levels.at(9).epoch.median, tuning.levels.at(1).epoch.median
    none = tuning.compressions.at("none").epoch.median
    ours = f"level 9: {heavy:.2f} s, level 1: {light:.2f} s, none: {none:.2f} s (n={tuning.levels.at(9).epoch.n})"
    why = f"{_TIER}; samples that compress to a half at any level, and inflating takes about as long whatever the level was"
    return _trend(row, heavy > max(light, none), ours, why)


def _of_dffn(tuning: _ArrayTuning) -> list[Verdict]:
    jump = _jump(tuning.chunks)
    return [
        _drawn("D-F12", (tuning.chunks, tuning.levels)),
        _trend("D-F12-1", jump in (32 * _KIB, 128 * _KIB), f"{_rates(tuning.chunks)}; jumps at {_value('size', jump)}"),
        _compressed("D-F12-2", tuning),
    ]


def _figure(row: str, name: str, title: str, sweeps: Sequence[TunedSweep]) -> PaperFigure:
    caption = f"{title}: epoch seconds, measured; {_TIER}"
    letters = "abcd"
    panels = [
        ChartPanel(
            f"({letters[number]}) {sweep.key.rpartition('.')[2].replace('_', ' ')}",
            sweep.key.rpartition(".")[2],
            sweep.key.rpartition(".")[2].replace("_", " "),
            "epoch, s",
            tuple(float(point.value) for point in sweep.points),
            (Line("epoch", tuple(point.epoch.median for point in sweep.points), LOOKS[0], 0),),
        )
        for number, sweep in enumerate(sweeps)
    ]
    return PaperFigure(row, name, draw_chart(name, f"{title} tuning", caption, panels), "emulated", caption)
