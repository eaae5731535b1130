"""Points whose files do not fit, or of which nobody can tell: what a reader must know before anything is recommended."""

from tierscope.analysis.breakdown import Breakdown, SweepPoint, measure_of, sweep_text
from tierscope.analysis.statistics import settled
from tierscope.analysis.wording import Finding
from tierscope.spec.feasibility import UNKNOWN, TierRoom

ROOM_KINDS = ("does_not_fit", "no_point_fits", "capacity_unknown")


def about_feasibility(breakdown: Breakdown, simulated: bool) -> list[Finding]:
    """`simulated`: nothing was staged, so that a capacity that is not given is a question."""
    findings: list[Finding] = []
    points = [point for group in breakdown.groups for point in group.points]
    misfits = [point for point in points if not point.is_possible]
    if misfits and len(misfits) == len(points):
        findings.append(Finding("no_point_fits", {"points": len(points), **_least(misfits)}))
    elif misfits:
        findings.append(
            Finding("does_not_fit", {"misfits": len(misfits), "points": len(points), **_shortest(misfits, breakdown)})
        )
    return [*findings, *(_unknown(breakdown) if simulated else [])]


def unconstrained_best(breakdown: Breakdown) -> SweepPoint:
    """What would be best if there were room for everything; of the first group."""
    return _first(list(breakdown.groups[0].points), breakdown)


def _first(points: list[SweepPoint], breakdown: Breakdown) -> SweepPoint:
    return min(points, key=lambda point: settled(measure_of(point, breakdown.ranked_by).median))


def _least(misfits: list[SweepPoint]) -> dict[str, str]:
    def needed(point: SweepPoint) -> int:
        return point.feasibility.doubt.needed if point.feasibility and point.feasibility.doubt else 0

    return _words(min(misfits, key=needed))


def _shortest(misfits: list[SweepPoint], breakdown: Breakdown) -> dict[str, str]:
    return _words(_first(misfits, breakdown))


def _words(point: SweepPoint) -> dict[str, str]:
    return {"where": sweep_text(point.sweep), "why": point.feasibility.text if point.feasibility else ""}


def _unknown(breakdown: Breakdown) -> list[Finding]:
    """Of the best points only: nobody is told to buy the others."""
    rooms: dict[str, TierRoom] = {}
    for group in breakdown.groups:
        feasibility = group.best.feasibility
        if feasibility is not None and feasibility.fits == UNKNOWN and feasibility.doubt is not None:
            known = rooms.get(feasibility.doubt.tier)
            if known is None or known.needed < feasibility.doubt.needed:
                rooms[feasibility.doubt.tier] = feasibility.doubt
    return [
        Finding("capacity_unknown", {"tier": room.tier, "bytes": room.needed, "whose": room.where})
        for room in rooms.values()
    ]
