"""The Hierarchy study on Fugaku (Fukai, Sato, Hirofuchi, PDCAT 2022): what was fitted, and how. Its statements one by one: fugaku_cases.py.

Fitted: small files on 60 OSTs, and on one. Four figures (opens/s of the metadata server, reads/s of an SSD, how much SSDs differ, latency of a read outside the
queue) are such that what is published of the first case holds, the bandwidth of an OST that what is published of the second does. Estimates there are by the
simple scaling of the second epoch, and so they are here. `python -m validation.fugaku --search` repeats the search; its result is in the system `fugaku`.

Conditional: large files. Nothing is fitted to them, but H-F2-14 bounds the bandwidth of the SSDs.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.papers.hierarchy_facts import (
    BEST,
    BEST_WITH_META,
    BEST_WITH_READ,
    GAIN_WITH_META,
    GAIN_WITH_READ,
    GFS_META,
    GOAL_READ,
    GOAL_SECONDS,
    HAND_OVER,
    LFS_READ,
    SHARED_AT,
    STEP,
    Facts,
    facts,
    published_estimates,
)
from tierscope.papers.hierarchy_sweeps import FloatArray, Times, second_epoch, slowest
from tierscope.papers.verdict import points_agree
from tierscope.plan.reading import reading_of
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from validation.table import Row

CALIBRATED = "fugaku-small-60ost"
Vector = dict[str, float]
SEARCHED = (0.55, 0.6, 0.65, 0.7)
# What we ask of ourselves
POINTS, CLOSE, SHARE = 3.0, 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Statement:
    what: str
    value: str
    goal: str
    holds: bool


def rows(short: bool) -> list[Row]:
    from validation import fugaku_cases  # noqa: PLC0415  (it needs us)

    return fugaku_cases.rows(short)


def statements(known: Facts, steps: int = 1) -> list[Statement]:
    """One by one; rates may be `steps` of the sweep off."""

    def rate(what: str, value: float, stated: float) -> Statement:
        near = abs(value - stated) < (steps + 0.5) * STEP
        return Statement(what, f"{value:.0%}", f"{stated:.0%} ± {steps * STEP:.0%}", near)

    def gain(what: str, value: float, stated: float) -> Statement:
        return Statement(what, f"{value:+.1f} %", f"{stated:+.1f} ± {POINTS:g}", abs(value - stated) <= POINTS)

    return [
        Statement(
            "GFS-META is the bottleneck below the hand-over",
            "yes" if known.meta_before else "no",
            "yes",
            known.meta_before,
        ),
        Statement(
            "LFS-READ is the bottleneck from",
            f"{known.hand_over:.0%}",
            f"{HAND_OVER:.0%} ± {STEP:.0%}",
            abs(known.hand_over - HAND_OVER) < 1.5 * STEP,
        ),
        Statement(
            f"both share the slowest process at {SHARED_AT:.0%}: the lesser has",
            f"{known.shared:.0%}",
            f"≥ {SHARE:.0%}",
            known.shared >= SHARE,
        ),
        rate("best rate", known.best, BEST),
        rate("best rate, GFS-META +50 %", known.best_with_meta, BEST_WITH_META),
        gain("best I/O time, GFS-META +50 %", known.gain_with_meta, GAIN_WITH_META),
        rate("best rate, LFS-READ +50 %", known.best_with_read, BEST_WITH_READ),
        gain("best I/O time, LFS-READ +50 %", known.gain_with_read, GAIN_WITH_READ),
        Statement(
            "I/O time at 65 %, LFS-READ +120 % and GFS-META +140 %",
            f"{known.goal_seconds:.2f} s",
            f"{GOAL_SECONDS:g} s ± {CLOSE:.0%}",
            abs(known.goal_seconds / GOAL_SECONDS - 1) <= CLOSE,
        ),
        Statement(
            "least LFS-READ for 4 s at 65 % with GFS-META +140 %",
            f"+{known.least_read:.0f} %",
            f"+{GOAL_READ:g} % ± {CLOSE:.0%} of it",
            points_agree(known.least_read, GOAL_READ),
        ),
    ]


# --- the search ---

# What is varied at START opens/s, before the goal sets the scale. Of 48 SSDs the slowest, two deviations or so below the mean, matter:
# so their rate is varied, and the mean follows from the variation. The box is what wider random searches left (latency 0–50 ms).
START = 28e3
BOX = {"slow_reads": (880.0, 1060.0), "variation": (0.03, 0.25), "latency": (0.034, 0.042)}
EVENLY, BANDS, POLISH = 64, 3, 16
SEARCH_SEED = 2301_01494


@dataclass(frozen=True, slots=True)
class Tried:
    asked: FloatArray  # as BOX
    figures: Vector
    penalty: float
    facts: Facts


def with_figures(study: Study, figures: Vector) -> Study:
    """`reads` are reads of the study's samples per second and SSD; the configured bandwidth has its part in them."""
    lfs, gfs = study.system.tiers
    of_bytes = reading_of(study).sample_bytes / lfs.bandwidth if lfs.bandwidth else 0.0
    lfs = replace(
        lfs,
        read_ops=1 / (1 / figures["reads"] - of_bytes),
        variation=figures["variation"],
        latency=figures["latency"],
    )
    gfs = replace(gfs, metadata_ops=figures["metadata_ops"])
    return replace(study, system=replace(study.system, tiers=(lfs, gfs)))


def tried(study: Study, asked: FloatArray) -> Tried:
    """All times scale with the rates, but for what GFS reads take, which is nothing here: so the goal of 4 s sets the scale."""
    slow_reads, variation, latency = asked.tolist()
    reads = slow_reads / (1 - 2 * variation)
    start = {"metadata_ops": START, "reads": reads, "variation": variation, "latency": latency}
    times = second_epoch(with_figures(study, start), SEARCHED)
    scale = GOAL_SECONDS / facts(times).goal_seconds
    times = {rate: seconds * scale for rate, seconds in times.items()}
    figures = {**start, "metadata_ops": START / scale, "reads": reads / scale, "latency": latency * scale}
    return Tried(asked, figures, penalty(times), facts(times))


def penalty(times: Times) -> float:
    """0 where every statement holds exactly; grows smoothly with what does not."""
    rates = sorted(times)
    plain, with_meta, with_read, _ = published_estimates(times).T

    def not_best(seconds: FloatArray, stated: float) -> float:
        """By how much others are better than the stated rate, or not clearly worse."""
        here = seconds[rates.index(stated)]
        return float(sum(max(0.0, 1.005 * here / other - 1) for other in np.delete(seconds, rates.index(stated))))

    def gain(seconds: FloatArray, stated: float) -> float:
        return float(abs(seconds.min() / plain.min() - 1 - stated / 100))

    known = facts(times)
    below, above = slowest(times[0.55]), slowest(times[0.65])
    turned = max(0.0, below[LFS_READ] - below[GFS_META]) + max(0.0, above[GFS_META] - above[LFS_READ])
    return (
        not_best(plain, BEST)
        + not_best(with_meta, BEST_WITH_META)
        + not_best(with_read, BEST_WITH_READ)
        + gain(with_meta, GAIN_WITH_META)
        + gain(with_read, GAIN_WITH_READ)
        + float(turned) / GOAL_SECONDS
        + max(0.0, SHARE - known.shared)
    )


def search() -> list[Tried]:
    """Vectors spread evenly over BOX, then the simplex from the best at small, middle and large variation: the valley runs along it.

    Smallest penalty first.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  (only here)
    from scipy.stats import qmc  # noqa: PLC0415

    study = load_study(CALIBRATED)
    low, high = (np.array([ends[side] for ends in BOX.values()]) for side in (0, 1))
    trials: list[Tried] = []

    def attempt(vector: FloatArray) -> float:
        inside = np.clip(vector, low, high)
        trials.append(tried(study, inside))
        last = trials[-1]
        print(f"{len(trials):4d}  {last.penalty:.4f}  {_text(last.figures)}", file=sys.stderr, flush=True)
        return last.penalty + float(np.abs((vector - inside) / (high - low)).sum())

    for place in qmc.Sobol(len(BOX), seed=SEARCH_SEED).random(EVENLY):
        attempt(low + place * (high - low))
    evenly = sorted(trials, key=lambda trial: trial.figures["variation"])
    for band in range(BANDS):
        best = min(evenly[band * EVENLY // BANDS : (band + 1) * EVENLY // BANDS], key=lambda trial: trial.penalty).asked
        simplex = np.vstack([best, *(best + np.diag(0.08 * (high - low)))])
        minimize(attempt, best, method="Nelder-Mead", options={"initial_simplex": simplex, "maxfev": POLISH})
    return sorted(trials, key=lambda trial: trial.penalty)


def central(kept: Sequence[Tried]) -> Tried:
    """The one nearest to the middle of all that keep the statements: several figures trade against each other."""
    asked = np.array([trial.asked for trial in kept])
    distances = (np.abs(asked - np.median(asked, axis=0)) / np.ptp(asked, axis=0).clip(1e-12)).sum(axis=1)
    return kept[int(distances.argmin())]


def _text(figures: Vector) -> str:
    return (
        f"{figures['metadata_ops']:,.0f} opens/s, {figures['reads']:,.0f} reads/s per SSD, "
        f"variation {figures['variation']:.1%}, latency {1000 * figures['latency']:.1f} ms"
    )


def main() -> int:
    if sys.argv[1:] != ["--search"]:
        print("usage: python -m validation.fugaku --search", file=sys.stderr)
        return 2
    trials = search()
    kept = [trial for trial in trials if all(statement.holds for statement in statements(trial.facts, steps=0))]
    for title, chosen in (("smallest penalty", trials[:1]), ("middle of those kept", [central(kept)] if kept else [])):
        for trial in chosen:
            print(f"{title}: {_text(trial.figures)}; penalty {trial.penalty:.4f}")
            for statement in statements(trial.facts, steps=0):
                print(
                    f"  {'holds' if statement.holds else 'FAILS'}  {statement.what}: {statement.value} (stated: {statement.goal})"
                )
    for steps in (0, 1):
        kept = [trial for trial in trials if all(statement.holds for statement in statements(trial.facts, steps))]
        print(f"{len(kept)} of {len(trials)} vectors keep all statements, best rates within {steps} steps:")
        for name in trials[0].figures if kept else ():
            values = [trial.figures[name] for trial in kept]
            print(f"  {name}: {min(values):.4g} … {max(values):.4g}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
