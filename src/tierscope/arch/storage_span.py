"""Whether the verdict on storage holds wherever its uncertain figures lie, and which of them turn it round.

Slow storage is tried with the shortest step, fast storage with the longest: what lies between has an answer between. Only the tiers' figures are varied; what is
uncertain of the hardware stays as it is.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from tierscope.arch.machine import machine_of
from tierscope.arch.requirements import UNCLEAR, YES, Requirements, StorageSpan, StorageTurn
from tierscope.arch.scaling import Scaled, scaled
from tierscope.arch.stations import with_stations_of
from tierscope.spec.known import KnownSystem
from tierscope.spec.storage_ends import FAST, SLOW, UncertainFigure, either_way, moved, uncertain_storage
from tierscope.spec.study import System


def with_storage_span(requirements: Requirements, known: KnownSystem) -> Requirements:
    """Unchanged where every figure of the tiers that are read from is certain."""
    figures = tuple(figure for figure in uncertain_storage(known) if figure.tier in requirements.machine.read_tiers)
    if not figures:
        return requirements
    ends = {end: _points(requirements, known.system, figures, end) for end in (SLOW, FAST)}
    turned = {SLOW: set[int](), FAST: set[int]()}
    for place, verdict in enumerate(requirements.described_verdicts):
        end = FAST if verdict == YES else SLOW
        if verdict != UNCLEAR and (verdict == YES) != _may_matter(ends[end][place]):
            turned[end].add(place)
    turns: list[StorageTurn | None] = [None] * len(requirements.scaling)
    for end, places in turned.items():
        for place, turn in _turns(requirements, known.system, figures, end, sorted(places)):
            turns[place] = turn
    return replace(requirements, storage=StorageSpan(figures, ends[SLOW], ends[FAST], tuple(turns)))


def _turns(
    requirements: Requirements, system: System, figures: Sequence[UncertainFigure], end: str, places: Sequence[int]
) -> Iterator[tuple[int, StorageTurn]]:
    """For the numbers of nodes at these places, which all turn at this end."""
    if not places:
        return
    alone = [(figure, _points(requirements, system, [figure], end, places)) for figure in figures]
    tiers = list(dict.fromkeys(figure.tier for figure in figures))
    together = {
        tier: _points(requirements, system, [figure for figure in figures if figure.tier == tier], end, places)
        for tier in tiers
    }
    for number, place in enumerate(places):
        turning = [(points[number], figure) for figure, points in alone if _may_matter(points[number]) == (end == SLOW)]
        turning.sort(key=lambda point_and_figure: _reads(point_and_figure[0]), reverse=end == SLOW)
        enough = [tier for tier in tiers if _may_matter(together[tier][number]) == (end == SLOW)]
        yield place, StorageTurn(tuple(figure for _, figure in turning), tuple(enough or tiers))


def _may_matter(point: Scaled) -> bool:
    """Also where the share fits no tier of which anybody says how fast it is."""
    return point.storage_matters or not point.source_known


def _reads(point: Scaled) -> float:
    return point.reads_seconds if point.source_known else math.inf


def _points(
    requirements: Requirements,
    system: System,
    figures: Sequence[UncertainFigure],
    end: str,
    places: Collection[int] | None = None,
) -> tuple[Scaled, ...]:
    """The scaling with these figures at their end."""
    tried = [_points_on(requirements, moved(system, some, end), end, places) for some in either_way(figures)]
    farthest = max if end == SLOW else min
    return tuple(farthest(points, key=_reads) for points in zip(*tried, strict=True))


def _points_on(
    requirements: Requirements, system: System, end: str, places: Collection[int] | None
) -> tuple[Scaled, ...]:
    """The scaling on a system that differs in its tiers alone; `places`: of which numbers of nodes."""
    other = machine_of(requirements.machine.name, system)
    machine = replace(requirements.machine, near=other.near, far=other.far)
    step_seconds = requirements.step.low if end == SLOW else requirements.step.high
    job = replace(requirements.job, step_seconds=step_seconds)
    nodes = [count for place, count in enumerate(requirements.wish.nodes) if places is None or place in places]
    points = [scaled(job, machine, count) for count in nodes]
    return with_stations_of(replace(requirements, machine=machine), system, points)
