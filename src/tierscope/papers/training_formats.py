"""TFRecord and LMDB (T-F10): read from memory while steps as long as a P100's pass, so that what the formats themselves cost is all that differs.

LMDB maps its files, and page faults cannot be delayed: an emulated Lustre cannot tell. Both formats are read by the same loader, threads in Python: the native
one reads TFRecord but no LMDB, and the row would compare loaders.
"""

from collections.abc import Mapping

from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import Section
from tierscope.papers.training_model import BATCH, FAST, GPUS, IMAGES, NAMES, TITLES, P100Steps, named, p100_steps
from tierscope.papers.tuned_studies import SweepRequest, TunedSweep, measure

ROWS = ("T-F10", "T-F10-1")
FORMATS = ("tfrecord", "lmdb")
FILES, PER_FILE, REPETITIONS = 4, 256, 5
_LESS = 1.0  # percent, published
_BATCH = BATCH // GPUS
_RANKS = 2
_FULL = 0.9  # of the images/s that steps alone allow: below it reading is the limit
_SAMPLE_BYTES = round(IMAGES.file_bytes)
_WHERE = f"files in this machine's memory, not on Lustre, whose part is not in it; two ranks, batch {_BATCH} each, {FILES * PER_FILE:,} samples of {_SAMPLE_BYTES:,} B read ahead; both formats by the same loader (two threads of a rank in Python), TFRecord's checksums checked as TensorFlow does, LMDB has none; compute emulated, as long as the fast end of a P100's step"


def make(short: bool) -> Section:
    steps = p100_steps()
    if isinstance(steps, MissingMeasurement):
        return Section(tuple(absent(row, steps.reason) for row in ROWS))
    repetitions = 1 if short else REPETITIONS
    possible = {name: _RANKS * _BATCH / steps[name].seconds(_BATCH, FAST) for name in NAMES}
    return section({name: measure(sweep_of(steps[name]), repetitions) for name in NAMES}, possible)


def sweep_of(steps: P100Steps) -> SweepRequest:
    dataset = f"{{format: tfrecord, num_files_train: {FILES}, num_samples_per_file: {PER_FILE}, record_length_bytes: {_SAMPLE_BYTES}}}"
    reader = f"{{batch_size: {_BATCH}, file_access: multi, read_threads: 2, prefetch_size: 2, data_loader: threads}}"
    return SweepRequest(dataset, reader, "format", FORMATS, cached=True, compute=steps.seconds(_BATCH, FAST))


def section(of: Mapping[str, TunedSweep], possible: Mapping[str, float]) -> Section:
    """`possible`: images/s that steps alone allow."""
    differences = {name: 100 * (sweep.gain(*FORMATS) - 1) for name, sweep in of.items()}
    texts = {name: f"{differences[name]:+.1f} % ({sweep.gain_text(*FORMATS)})" for name, sweep in of.items()}
    measured = {
        name: [FILES * PER_FILE / sweep.at(form).epoch.median for form in FORMATS] for name, sweep in of.items()
    }
    rates = {name: f"{tfrecord:,.0f} and {lmdb:,.0f} of {possible[name]:,.0f}" for name, (tfrecord, lmdb) in measured.items()}  # fmt: skip
    limited = [TITLES[name] for name in of if min(measured[name]) < _FULL * possible[name]]
    reading = (
        f"reading is the limit of {', '.join(limited)}: below {_FULL:.0%} of what steps alone allow"
        if limited
        else "steps are the limit of every network"
    )
    less = all(abs(difference) < _LESS for difference in differences.values())
    return Section(
        (
            beside("T-F10", f"images/s of two GPUs, TFRecord and LMDB, of what steps alone allow: {named(rates)}", "measured", f"values are not published; {_WHERE}"),
            judge("T-F10-1", f"LMDB faster than TFRecord by: {named(texts)}", less, "measured", f"{_WHERE}; {reading}; holds where every network differs by less than {_LESS:g} %"),
        )
    )  # fmt: skip
