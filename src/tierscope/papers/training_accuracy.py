"""Accuracy of the Training study on a small real task (T-F8-7, T-F9-4, T-F13-2): scikit-learn's digits, trained by emulated workers in step, a constant learning rate."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np

from tierscope.errors import UserError
from tierscope.papers.architecture_model import absent, judge
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import Verdict
from tierscope.train.digits import TRAIN_SAMPLES, load_digits, one_thread
from tierscope.train.learning import PLAIN, learn

WORKERS, BATCHES = (1, 2, 4, 8, 16, 32), (2, 4, 8, 16, 40, 80)
BATCH, MANY = 32, 16
TRIED_FIRST = 4  # with global batches below 32 this rate is too high
EPOCHS, SEEDS, FEW_SEEDS = 5, 7, 3
_WHERE = f"scikit-learn's digits, a small network without batch normalisation, {EPOCHS} epochs, SGD with momentum at a constant rate; workers emulated, in step, where the study's were asynchronous"
Accuracies = Mapping[int, Sequence[float]]
_PICKS: tuple[tuple[str, Callable[[Sequence[float]], float]], ...] = (("median", median), ("lowest", min), ("highest", max))  # fmt: skip


def make(short: bool) -> Section:
    missing = absent(
        "T-F9-4", "asynchronous updates of several parameter servers are not emulated; workers here train in step"
    )
    seeds = FEW_SEEDS if short else SEEDS
    try:
        with one_thread():
            by_workers = {workers: _learnt(workers, BATCH, seeds) for workers in WORKERS}
            by_batch = {batch: _learnt(MANY, batch, seeds) for batch in BATCHES}
            small = _learnt(1, TRIED_FIRST, seeds)
    except UserError as error:  # scikit-learn is not installed
        return Section((absent("T-F8-7", str(error)), missing, absent("T-F13-2", str(error))))
    chosen = f"the batch was chosen after {TRIED_FIRST} was tried: at this rate one worker then ends at {_text(small)}, and the row would not hold"
    verdicts = (
        _judged("T-F8-7", by_workers, f"workers, batch {BATCH} each", chosen),
        missing,
        _judged("T-F13-2", by_batch, f"batch of each of {MANY} workers", "batches chosen so that the smallest global batch is the same"),
    )  # fmt: skip
    return Section(verdicts, (_figure(by_workers, by_batch),))


def _learnt(workers: int, batch: int, seeds: int) -> list[float]:
    """After the last epoch, for every seed; all samples are dealt anew in each epoch."""
    digits, accuracies = load_digits(), []
    written = np.arange(TRAIN_SAMPLES)
    for seed in range(1, seeds + 1):
        random = np.random.default_rng([seed, 3])
        epochs = (random.permutation(TRAIN_SAMPLES).reshape(workers, -1) for _ in range(EPOCHS))
        accuracies.append(learn(digits, written, epochs, batch, PLAIN, seed)[-1])
    return accuracies


def _judged(row: str, of: Accuracies, what: str, chosen: str) -> Verdict:
    """Lower by more than seeds explain."""
    first, last = min(of), max(of)
    text = ", ".join(f"{value}: {_text(seen)}" for value, seen in of.items())
    return judge(row, f"{what}: {text}; n = {len(of[first])} seeds", max(of[last]) < min(of[first]), "emulated", f"{_WHERE}; holds where the ranges of the first and the last do not touch; {chosen}")  # fmt: skip


def _text(seen: Sequence[float]) -> str:
    return f"{100 * median(seen):.1f} [{100 * min(seen):.1f}…{100 * max(seen):.1f}] %"


def _figure(by_workers: Accuracies, by_batch: Accuracies) -> PaperFigure:
    caption = f"Accuracy on the test set after {EPOCHS} epochs, median over seeds with the lowest and the highest: against workers (batch {BATCH} each) and against the batch of each of {MANY} workers. {_WHERE}."
    panels = [
        ChartPanel(title, key, x, "accuracy, %", tuple(map(float, of)), tuple(Line(name, tuple(100 * pick(seen) for seen in of.values()), LOOKS[number], number, bool(number)) for number, (name, pick) in enumerate(_PICKS)))
        for title, key, x, of in (("T-F8 (b)", "workers", "workers", by_workers), ("T-F13 (b)", "batch", "batch of a worker", by_batch))
    ]  # fmt: skip
    return PaperFigure("T-F13", "accuracy", draw_chart("training-accuracy", "Accuracy", caption, panels), "emulated", caption)  # fmt: skip
