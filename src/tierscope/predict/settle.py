"""The fewest further measurements that would settle a study: points of it that a calibration or a probe says nothing of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tierscope.errors import UnidentifiedError, UserError
from tierscope.jsonable import SweepValues
from tierscope.predict.identified import identify
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.simulation import Simulation
from tierscope.predict.unsimulated import refuse_unsimulated
from tierscope.predict.work_limit import refuse_endless
from tierscope.spec import sweep
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import Axis, Point, Study, System


@dataclass(frozen=True, slots=True)
class SettlingPoint:
    """A point to measure, and what that tells."""

    sweep: SweepValues
    tells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settling:
    """`points`: measured, they settle all that is open; none: nothing is. `asked`: points of the study; `open_points`: of these, not settled yet."""

    study: str
    asked: int
    open_points: int
    points: tuple[SettlingPoint, ...]
    swept: tuple[Axis, ...] = ()


def settle(known: KnownSystem, study: Study) -> Settling:
    """Which points of the study to measure, the fewest that cover everything that is not known."""
    points = list(sweep.points(_on(study, known)))
    refuse_endless(points, "bound", epochs=1)
    unknown = {place: set(_unknown(point, known)) for place, point in enumerate(points)}
    left = set[str]().union(*unknown.values())
    settling_points: list[SettlingPoint] = []
    while left:
        place = max(unknown, key=lambda candidate: (len(unknown[candidate] & left), -_edge(points[candidate])))
        told = unknown[place] & left
        settling_points.append(SettlingPoint(dict(points[place].sweep), tuple(sorted(told))))
        left -= told
    open_points = sum(bool(keys) for keys in unknown.values())
    return Settling(study.study, len(points), open_points, tuple(settling_points), study.sweep)


def _edge(point: Point) -> float:
    """Points in the middle read from all tiers: of equal ones they tell more."""
    return abs(point.study.placement.cache_rate - 0.5)


def _unknown(point: Point, known: KnownSystem) -> Sequence[str]:
    refuse_unsimulated(point.study)
    try:
        refuse_missing_rates(point.study, known)
    except UnidentifiedError as error:
        return [error.reason]
    except UserError:
        rate = point.study.placement.cache_rate
        return [f"nothing is known about a tier that is read at cache rate {0 if rate < 1 else 1:.0%}"]
    simulation = Simulation.of(point.study)
    outcome = simulation.epoch(min(2, point.study.workload.train.epochs), "bound")
    systems = drawn_systems(point.study.system, known)
    return identify(point.study, known, simulation.reading, outcome, systems, simulation.saves).reasons


def _on(study: Study, known: KnownSystem) -> Study:
    """The study's own shape (nodes, ranks, servers, paths) with what is known of the rates."""
    by_name = {tier.name: tier for tier in known.system.tiers}
    if missing := [tier.name for tier in study.system.tiers if tier.name not in by_name]:
        raise UserError(
            f"--for {study.study}: its tier {missing[0]} is not in this system; its tiers are {', '.join(by_name)}"
        )
    tiers = tuple(
        replace(
            by_name[tier.name],
            servers=tier.servers,
            metadata_servers=tier.metadata_servers,
            stripe_count=tier.stripe_count,
            visible_to=tier.visible_to,
            device_shared_by=tier.device_shared_by,
        )
        for tier in study.system.tiers
    )
    system: System = replace(
        known.system, nodes=study.system.nodes, ranks_per_node=study.system.ranks_per_node, tiers=tiers
    )
    return replace(study, system=system)
