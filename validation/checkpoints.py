"""Checkpoints and copies in the model: against a closed formula, and against measured runs of emulated tiers with rates of writing.

One server, ranks that begin together: a checkpoint takes all its bytes, its operations and one rank's latencies, whatever the order. The demo's system with rates of writing is
measured with checkpoints of one rank and of all ranks, synchronous and in the background, and with first-touch; the model simulates the same studies with the same rates: nothing is fitted.
Each is measured three times, beside a sleeper that says how late this machine is (lateness.py).
"""

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from tierscope.analysis.analysis import Analysis
from tierscope.commands.analyze import analyze
from tierscope.commands.simulate import simulate_study
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import load_study
from tierscope.watch import Silent
from validation.lateness import Late, Lateness, judged, with_lateness
from validation.measuring import measure, median, scratch
from validation.table import Row

_FORMULA_GOAL, _MEASURED_GOAL = 0.5, 5.0  # percent
_SYSTEM = (
    *("nodes=2", "ranks_per_node=2", "num_files_train=128", "sweep={}", "cache_rate=0%", "lfs.capacity=null"),
    *(
        "gfs.servers=2",
        "gfs.bandwidth=40 MiB/s",
        "gfs.write_bandwidth=10 MiB/s",
        "lfs.write_bandwidth=8 MiB/s",
        "transfer_size=128 KiB",  # who comes first behind a large write is chance, and would decide the rest
    ),
)
_MODEL = ("steps_between_checkpoints=4", "model_parameters=2000000", "precision=fp32", "optimizer=none")
CASES: dict[str, tuple[str, ...]] = {
    "one rank": _MODEL,
    "all ranks": (*_MODEL, "mode=all_ranks"),
    "all ranks, to the near tier": (*_MODEL, "mode=all_ranks", "checkpoint.tier=lfs"),
    "in the background": (*_MODEL, "mode=all_ranks", "checkpoint.background=true", "computation_time=150 ms"),
    "first-touch": (
        "policy=first-touch",
        "cache_rate=100%",
        "transfer_size=1 MiB",
    ),  # copies in several writes are not modelled
}
_SHORT = ("all ranks", "first-touch")
_STANDING, _WRITING = "standing still in an epoch", "seconds of writing"
_REPEATED = 3
_SEEDS = (1, 2, 3, 4)  # beside the study's own: which rank comes first is chance, measured or simulated


@dataclass(frozen=True, slots=True)
class Beside:
    """Of one case: measured (the median), by events (the median over seeds) and by the bound. `spread`: half of what lies between the shortest and the longest measurement; `chance`: the same of seeds; `late`: what this machine's lateness may add."""

    what: str
    measured: float
    events: float
    bound: float
    spread: float
    chance: float
    late: float
    lateness: str = ""


def rows(short: bool, keep: str | None = None) -> list[Row]:
    """`keep`: a folder where measured results stay, and are gone on with."""
    table_rows = [_formula()]
    for name, settings in CASES.items():
        if short and name not in _SHORT:
            continue
        with scratch() if keep is None else nullcontext(os.path.join(keep, name.replace(" ", "-"))) as folder:
            table_rows += [row for beside in _compared(folder, name, settings) for row in _rows(name, beside)]
    return table_rows


def _formula() -> Row:
    """Eight ranks write 1/8 of 8 MB each to one server of 10 MB/s in pieces of 64 KiB, each of which takes a millisecond more of it."""
    settings = (
        *("nodes=4", "ranks_per_node=2", "sweep={}", "cache_rate=0%", "num_files_train=64", "epochs=1", "fsync=false"),
        *("gfs.servers=1", "gfs.bandwidth=1 GB/s", "gfs.write_bandwidth=10 MB/s", "gfs.write_ops=1000/s"),
        *("gfs.metadata_ops=null", "transfer_size=64 KiB", "steps_between_checkpoints=1", "mode=all_ranks"),
        *("model_parameters=2000000", "precision=fp32", "optimizer=none"),
    )
    simulation = Simulation.of(load_study("demo", settings))
    outcome = simulation.epoch(1, "events")
    assert outcome.saved is not None
    plan = simulation.saves
    assert plan is not None
    writes = int(plan.turns[plan.kinds == 2].sum())
    exact = float(plan.nbytes.sum()) / 10e6 + writes / 1000
    error = 100 * (median(outcome.saved.seconds) / exact - 1)
    return Row(
        "checkpoints",
        "engine against the closed formula of one server",
        f"{error:+.2f} %",
        f"≤ {_FORMULA_GOAL:g} %",
        abs(error) <= _FORMULA_GOAL,
        f"{exact:.3f} s a checkpoint",
    )


def _compared(folder: str, name: str, settings: Sequence[str]) -> list[Beside]:
    wanted = [*_SYSTEM, *settings]
    measured, late = [], Late()
    for number in range(_REPEATED):
        with Lateness() as lateness:
            measured.append(measure("demo", wanted, os.path.join(folder, f"measured-{number}")))
        late = max(late, lateness.seen, key=lambda seen: seen.seconds)
    study = load_study("demo", wanted)
    simulated, orders = [], []
    for seed in _SEEDS:
        out = os.path.join(folder, f"seed-{seed}")
        orders.append(analyze(out, store=simulate_study(replace(study, seed=seed), out, "events", Silent())))
    for how, here, method in (
        ("events", study, "events"),
        ("bound", study, "bound"),
        ("late", with_lateness(study, late), "events"),
    ):
        out = os.path.join(folder, how)
        simulated.append(analyze(out, store=simulate_study(here, out, method, Silent())))
    figures = {what: value for what, value in _FIGURES.items() if what in _COMPARED[name]}
    added = {what: max(0.0, value(simulated[2]) - value(simulated[0])) for what, value in figures.items()}
    if _WRITING in added:  # what is left of standing still beside reads that go on meanwhile
        added[_WRITING] = max(added[_WRITING], added[_STANDING])
    compared = []
    for what, value in figures.items():
        seconds = [value(analysis) for analysis in measured]
        by_seed = [value(simulation) for simulation in (simulated[0], *orders)]
        spread, chance = ((max(some) - min(some)) / 2 for some in (seconds, by_seed))
        bound = value(simulated[1])
        compared.append(Beside(what, median(seconds), median(by_seed), bound, spread, chance, added[what], late.words))
    return compared


def _save_seconds(analysis: Analysis) -> float:
    medians = [about.checkpoint.seconds_median for about in analysis.times.about if about.checkpoint]
    return float(medians[0] or 0.0)


_FIGURES: dict[str, Callable[[Analysis], float]] = {
    "seconds of a checkpoint": _save_seconds,
    _STANDING: lambda analysis: float(analysis.breakdown.best.checkpoint_seconds or 0.0),
    _WRITING: lambda analysis: float(analysis.breakdown.best.write_seconds),
    "epoch": lambda analysis: float(analysis.breakdown.best.epoch_seconds or 0.0),
    "first epoch's I/O": lambda analysis: float(analysis.breakdown.best.first_epoch_io_seconds or 0.0),
}
_SAVED = ("seconds of a checkpoint", _STANDING, _WRITING, "epoch")
_COMPARED = {
    **dict.fromkeys(CASES, _SAVED),
    "in the background": ("seconds of a checkpoint", "epoch"),
    "first-touch": ("first epoch's I/O", "epoch"),
}


def _rows(name: str, beside: Beside) -> list[Row]:
    events, bound = (100 * (value / beside.measured - 1) for value in (beside.events, beside.bound))
    spread, chance, late = (100 * value / beside.measured for value in (beside.spread, beside.chance, beside.late))
    measured = Row(
        "checkpoints",
        f"{name}: {beside.what}, events against measured (emulated)",
        f"{events:+.1f} % (measurements ± {spread:.1f} %, seeds ± {chance:.1f} %, lateness up to {late:.1f} %)",
        f"≤ {_MEASURED_GOAL:g} %",
        note=f"measured {beside.measured:.3f} s, median of {_REPEATED}; {beside.lateness}; nothing fitted",
    )
    return [
        judged(measured, events, _MEASURED_GOAL, spread + chance, late),
        Row(
            "checkpoints",
            f"{name}: {beside.what}, bound against events",
            f"{100 * (beside.bound / beside.events - 1):+.1f} % ({bound:+.1f} % of measured)",
            note="without what readers that read ahead ask of servers while a checkpoint is written",
        ),
    ]
