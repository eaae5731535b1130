"""DLIO's strong scaling, 512 to 8,192 processes, by simulation on Theta's rates: many files (D-F14), and one shared file (D-F15)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tierscope.papers.section import PaperFigure
from tierscope.papers.verdict import Verdict
from tierscope.papers.workload_studies import OWN_FILES, RANKS, SHARED_FILE, TITLES, scaled_study, simulate_run
from tierscope.report.drawn.looks import stroke
from tierscope.report.svg import (
    HEIGHT,
    WIDTH,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    Scale,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
)

PROCESSES = (512, 1024, 2048, 4096, 8192)
FEW_PROCESSES = (512, 8192)
CLOSE = 0.8  # of the ideal: close to linear from there on, clearly less below
_ASSUMED = "simulated on Theta's rates with the presets' compute; a metadata server of 30,000 opens/s is assumed, 10,000 opens/s of one file are chosen"
_OPENS, _LOCKS = ("gfs.metadata_ops", (5_000, 100_000)), ("gfs.file_open_ops", (2_000, 30_000))  # of the system `theta`
_LINES = ("later0", "later1", "later2")


@dataclass(frozen=True, slots=True)
class Scaling:
    """Seconds of the run by number of processes. `alone`: at the first and the last number, without compute; `unlocked`: that without locks of files.
    `by_rate`: at these numbers too, with compute, at both ends of the interval of the rate that is assumed for opens.
    """

    name: str
    seconds: Mapping[int, float]
    alone: tuple[float, float] | None = None
    unlocked: tuple[float, float] | None = None
    by_rate: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def efficiency_at(self, rate: int) -> float:
        return _efficiency(self.by_rate[rate], self.most)

    @property
    def most(self) -> int:
        return max(self.seconds)

    @property
    def efficiency(self) -> float:
        return _efficiency((self.seconds[RANKS], self.seconds[self.most]), self.most)

    @property
    def alone_efficiency(self) -> float | None:
        return None if self.alone is None else _efficiency(self.alone, self.most)

    @property
    def unlocked_efficiency(self) -> float | None:
        return None if self.unlocked is None else _efficiency(self.unlocked, self.most)

    @property
    def falls(self) -> bool:
        times = [self.seconds[count] for count in sorted(self.seconds)]
        return all(later < before for before, later in pairwise(times))


def _efficiency(seconds: tuple[float, float], most: int) -> float:
    first, last = seconds
    return first / last / (most / RANKS)


def scale(name: str, short: bool) -> Scaling:
    counts = FEW_PROCESSES if short else PROCESSES
    seconds = {count: simulate_run(scaled_study(name, count)).seconds for count in counts}
    if short:
        return Scaling(name, seconds)

    def ends(*settings: str, without_compute: bool = True) -> tuple[float, float]:
        first, last = (
            simulate_run(scaled_study(name, count, *settings, without_compute=without_compute)).seconds
            for count in FEW_PROCESSES
        )
        return first, last

    key, rates = _LOCKS if name in SHARED_FILE else _OPENS
    by_rate = {rate: ends(f"{key}={rate}", without_compute=False) for rate in rates}
    return Scaling(name, seconds, ends(), ends("gfs.file_open_ops=null") if name in SHARED_FILE else None, by_rate)


def scaling_verdicts(all_of: Mapping[str, Scaling]) -> list[Verdict]:
    own, shared = ([all_of[name] for name in names] for names in (OWN_FILES, SHARED_FILE))
    return [_artefact("D-F14", own), _artefact("D-F15", shared), _own_files(own), _shared_file(shared), _cause(shared)]


def _own_files(own: Sequence[Scaling]) -> Verdict:
    def close(seconds: Sequence[float]) -> bool:
        return all(value >= CLOSE for value in seconds)

    slow = [TITLES[one_of.name] for one_of in own if one_of.efficiency < CLOSE]
    falls, at_rates = all(one_of.falls for one_of in own), _at_rates(own)
    as_assumed = falls and not slow
    others = {rate: falls and close(seconds) for rate, seconds in at_rates.items()}
    holding = [f"{rate:,}" for rate, holds in others.items() if holds]
    failing = [f"{rate:,}" for rate, holds in others.items() if not holds]
    reasons = []
    if not as_assumed:
        reasons.append(f"not {', '.join(slow)}: opens wait for the metadata server" if slow else "time does not fall")
    if failing and (as_assumed or holding):
        reasons.append(f"the assumed rate decides: with {_listed(failing)} opens/s it does not hold, with {_listed(holding or ['30,000'])} it does")  # fmt: skip
    why = f"at least {CLOSE:.0%} of ideal at {own[0].most:,} processes; {_assumed(own)}; FRNN with 40,960 files, since 2,800 cannot be dealt to 8,192"
    return _judged("D-F14-1", own, as_assumed and not failing, _OPENS[0], "; ".join([*reasons, why]))


def _shared_file(shared: Sequence[Scaling]) -> Verdict:
    too_good = [TITLES[one_of.name] for one_of in shared if one_of.efficiency >= CLOSE]
    rises = [TITLES[one_of.name] for one_of in shared if not one_of.falls]
    as_assumed = not too_good and not rises
    failing = [f"{rate:,}" for rate, seconds in _at_rates(shared).items() if max(seconds) >= CLOSE]
    slower = sorted({f"{rate:,}" for one_of in shared for rate, (first, last) in one_of.by_rate.items() if last >= first})  # fmt: skip
    reasons = []
    if too_good:
        reasons.append(f"not {', '.join(too_good)}: compute is most of their time")
    if rises:
        reasons.append(f"not {', '.join(rises)}: time does not fall")
    if as_assumed and failing:
        reasons.append(f"the chosen rate decides: with {_listed(failing)} opens/s of one file it does not hold")
    if slower:
        reasons.append(f"with {_listed(slower)} opens/s of one file some even get slower")
    why = f"less than {CLOSE:.0%} of ideal at {shared[0].most:,} processes; {_assumed(shared)}"
    return _judged("D-F15-1", shared, as_assumed and not failing and not slower, _LOCKS[0], "; ".join([*reasons, why]))


def _at_rates(some: Sequence[Scaling]) -> dict[int, list[float]]:
    """Efficiencies at the ends of the interval of the rate of opens; none in the short form."""
    return {rate: [one_of.efficiency_at(rate) for one_of in some] for rate in some[0].by_rate}


def _assumed(some: Sequence[Scaling]) -> str:
    judged = (
        "judged over their intervals"
        if some[0].by_rate
        else "the ends of their intervals are left out of the short form"
    )
    return f"{_ASSUMED}: {judged}"


def _judged(row_id: str, some: Sequence[Scaling], holds: bool, key: str, why: str) -> Verdict:
    ends = [f"{', '.join(f'{value:.2f}' for value in seconds)} with {rate:,}/s" for rate, seconds in _at_rates(some).items()]  # fmt: skip
    text = _texts(some) + _alone_texts(some) + (f"; {key}: {'; '.join(ends)}" if ends else "")
    return Verdict(row_id, text, "holds" if holds else "does not hold", "simulated", why)


def _listed(rates: Sequence[str]) -> str:
    return " and ".join(rates)


def _cause(shared: Sequence[Scaling]) -> Verdict:
    row_id = "D-F15-2"
    known = [
        (TITLES[one_of.name], with_locks, without)
        for one_of in shared
        if (with_locks := one_of.alone_efficiency) is not None and (without := one_of.unlocked_efficiency) is not None
    ]
    if not known:
        return Verdict(row_id, "", "not available here", "", "left out of the short form: it needs four more simulations of each workload")  # fmt: skip
    text = ", ".join(f"{title} {with_locks:.2f}, without locks {without:.2f}" for title, with_locks, without in known)
    holds = all(with_locks < 0.9 * without for _, with_locks, without in known)
    apart = [title for title, with_locks, without in known if with_locks >= 0.9 * without]
    not_so = f"not {', '.join(apart)}: without locks of files they scale as badly, so the locks are not what holds them back here; " if apart else ""  # fmt: skip
    why = f"{not_so}I/O alone; the cause holds where efficiency is a tenth better without locks of files; the rate of a lock is chosen, so this shows the mechanism and is not a measurement"  # fmt: skip
    return Verdict(row_id, text, "holds" if holds else "does not hold", "simulated", why)


def _artefact(row_id: str, some: Sequence[Scaling]) -> Verdict:
    return Verdict(row_id, f"drawn: {_name(row_id)}.svg; {_texts(some)}", "beside", "simulated", "its seconds are not published: judged by the statements about it")  # fmt: skip


def _name(row_id: str) -> str:
    return f"{row_id[2:].lower()}-scaling"


def _texts(some: Sequence[Scaling]) -> str:
    return ", ".join(
        f"{TITLES[one_of.name]} {one_of.seconds[RANKS]:.3g} s to {one_of.seconds[one_of.most]:.3g} s ({one_of.efficiency:.2f} of ideal)"
        for one_of in some
    )


def _alone_texts(some: Sequence[Scaling]) -> str:
    known = [
        f"{TITLES[one_of.name]} {one_of.alone_efficiency:.2f}" for one_of in some if one_of.alone_efficiency is not None
    ]
    return f"; I/O alone: {', '.join(known)}" if known else ""


def scaling_figure(row_id: str, title: str, some: Sequence[Scaling]) -> PaperFigure:
    """Speed-up against processes, so that three workloads share an axis."""
    counts = sorted(some[0].seconds)
    about = "Simulated on Theta's rates; fixed data, four processes on a node, with the presets' compute."
    canvas = Canvas(_name(row_id), title, about)
    entries = [
        LegendEntry(stroke(f"sample curve io {look}"), TITLES[one_of.name])
        for one_of, look in zip(some, _LINES, strict=False)
    ]
    legend = Legend([*entries, LegendEntry(stroke("goal"), "ideal")], WIDTH)
    top = counts[-1] / counts[0]
    frame = Frame(64.0, legend.height + 12, WIDTH - 24, HEIGHT - 58)
    height = Scale(0.0, 1.05 * top, frame.bottom, frame.top)
    ticks = [2**power for power in range(5) if 2**power <= top]
    draw_y_axis(canvas, frame, [(height(tick), f"{tick}×") for tick in ticks], f"speed-up over {RANKS} processes")
    axis = SweptAxis.of("", [f"{count:,}" for count in counts], frame.left, frame.right)
    canvas.path([(x, height(count / RANKS)) for x, count in zip(axis.places, counts, strict=True)], "goal")
    for one_of, look in zip(some, _LINES, strict=False):
        gains = [one_of.seconds[RANKS] / one_of.seconds[count] for count in counts]
        spots = [(x, height(gain)) for x, gain in zip(axis.places, gains, strict=True)]
        canvas.path(spots, f"curve io {look}")
        for place, count, gain in zip(spots, counts, gains, strict=True):
            tip = f"{TITLES[one_of.name]}, {count:,} processes: {one_of.seconds[count]:.3g} s, {gain:.3g}×"
            canvas.marker(0, place, 3.4, f"mark io {look}", tip)
    draw_x_axis(canvas, frame, axis, "processes")
    legend.draw(canvas)
    return PaperFigure(row_id, _name(row_id), canvas.to_text(), "simulated", f"{title}. {about}")
