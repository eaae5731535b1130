"""TFRecord and LMDB (T-F10): read from memory while steps as long as a P100's pass, so that what the formats themselves cost is all that differs.

LMDB maps its files, and page faults cannot be delayed: an emulated Lustre cannot tell.
"""

from collections.abc import Mapping

from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import Section
from tierscope.papers.training_model import BATCH, FAST, GPUS, IMAGES, NAMES, P100Steps, named, p100_steps
from tierscope.papers.tuned_studies import SweepRequest, TunedSweep, measure

ROWS = ("T-F10", "T-F10-1")
FORMATS = ("tfrecord", "lmdb")
FILES, PER_FILE, REPETITIONS = 4, 64, 5
_LESS = 1.0  # percent, published
_BATCH = BATCH // GPUS
_SAMPLE_BYTES = round(IMAGES.file_bytes)
_WHERE = f"files in this machine's memory, not on Lustre, whose part is not in it; two ranks, batch {_BATCH} each, {FILES * PER_FILE} samples of {_SAMPLE_BYTES:,} B read ahead; compute emulated, as long as the fast end of a P100's step"


def make(short: bool) -> Section:
    steps = p100_steps()
    if isinstance(steps, MissingMeasurement):
        return Section(tuple(absent(row, steps.reason) for row in ROWS))
    repetitions = 1 if short else REPETITIONS
    return section({name: measure(sweep_of(steps[name]), repetitions) for name in NAMES})


def sweep_of(steps: P100Steps) -> SweepRequest:
    dataset = f"{{format: tfrecord, num_files_train: {FILES}, num_samples_per_file: {PER_FILE}, record_length_bytes: {_SAMPLE_BYTES}}}"
    reader = f"{{batch_size: {_BATCH}, file_access: multi, read_threads: 2, prefetch_size: 2}}"
    return SweepRequest(dataset, reader, "format", FORMATS, cached=True, compute=steps.seconds(_BATCH, FAST))


def section(of: Mapping[str, TunedSweep]) -> Section:
    differences = {name: 100 * (sweep.gain(*FORMATS) - 1) for name, sweep in of.items()}
    texts = {name: f"{differences[name]:+.1f} % ({sweep.gain_text(*FORMATS)})" for name, sweep in of.items()}
    rates = {name: " and ".join(f"{FILES * PER_FILE / sweep.at(form).epoch.median:,.0f}" for form in FORMATS) for name, sweep in of.items()}  # fmt: skip
    less = all(abs(difference) < _LESS for difference in differences.values())
    return Section(
        (
            beside("T-F10", f"images/s of two GPUs, TFRecord and LMDB: {named(rates)}", "measured", f"values are not published; {_WHERE}"),
            judge("T-F10-1", f"LMDB faster than TFRecord by: {named(texts)}", less, "measured", f"{_WHERE}; holds where every network differs by less than {_LESS:g} %"),
        )
    )  # fmt: skip
