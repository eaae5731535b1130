"""Other cache policies, read by their hit rate (H-D-2): does the pinned curve give the epoch time of a policy with that hit rate?

Four nodes with their part of the machine: at full size a node reads 768 of 589,824 files in an epoch, so a cache that learns from its own
reads would need hundreds of epochs.
"""

from dataclasses import dataclass, replace

import numpy as np

from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.hierarchy_sweeps import SMALL_60, case_study
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import RATIO_OFF, Verdict
from tierscope.predict.shuffling_io import part_of_system
from tierscope.predict.simulation import Simulation, hash_seed
from tierscope.spec.study import Study

NODES, FILES, EPOCHS = 4, 3072, 8
SIZES, FEW_SIZES = tuple(step / 10 for step in range(11)), (0.0, 0.25, 0.5, 0.75, 1.0)
POLICIES = ("first-touch", "lru")


@dataclass(frozen=True, slots=True)
class PolicyPoint:
    """The last epoch with a cache of this size (a share of all files)."""

    policy: str
    size: float
    hit_rate: float
    seconds: float
    by_hit_rate: float  # the pinned curve, at a cache rate equal to the hit rate

    @property
    def off(self) -> float:
        return self.seconds / self.by_hit_rate - 1


def make(short: bool) -> Section:
    sizes = FEW_SIZES if short else SIZES
    study = _study()
    pinned = {size: _epoch(study, "pinned", size)[1] for size in SIZES}
    points = [_point(study, policy, size, pinned) for policy in POLICIES for size in sizes]
    worst = {policy: max((point.off for point in points if point.policy == policy), key=abs) for policy in POLICIES}
    agrees = all(abs(off) <= RATIO_OFF for off in worst.values())
    verdict = Verdict(
        "H-D-2",
        "; ".join(f"{policy}: at most {off:+.0%} from the pinned curve at its hit rate" for policy, off in worst.items())
        + f", n = {len(sizes)} cache sizes",
        "holds" if agrees else "does not hold",
        "fitted",
        f"within {RATIO_OFF:.0%} needed; epoch {EPOCHS}, {NODES} nodes with their part of the machine"
        + ("" if agrees else "; a cache that fills while it is read, as LRU does, copies every missed file to the LFS, which the hit rate does not contain"),
    )  # fmt: skip
    return Section((verdict,), (_figure(points, sizes),), (_table(points),))


def _study() -> Study:
    study = case_study(SMALL_60)
    dataset = replace(study.workload.dataset, num_files_train=FILES)
    train = replace(study.workload.train, epochs=EPOCHS)
    system = part_of_system("fugaku", NODES, study.system.ranks_per_node).system
    return replace(study, system=system, workload=replace(study.workload, dataset=dataset, train=train))


def _epoch(study: Study, policy: str, size: float) -> tuple[float, float]:
    """Hit rate and seconds of the last epoch."""
    here = replace(study, placement=replace(study.placement, policy=policy, cache_rate=size))
    outcome = Simulation.of(here).epoch(EPOCHS, "events", seed=hash_seed(study.seed, 1, EPOCHS))
    return outcome.hit_rate or 0.0, float(outcome.seconds.max())


def _point(study: Study, policy: str, size: float, pinned: dict[float, float]) -> PolicyPoint:
    hit_rate, seconds = _epoch(study, policy, size)
    read_off = float(np.interp(hit_rate, list(pinned), list(pinned.values())))
    return PolicyPoint(policy, size, hit_rate, seconds, read_off)


def _figure(points: list[PolicyPoint], sizes: tuple[float, ...]) -> PaperFigure:
    def of(policy: str, name: str, factor: float = 1.0) -> tuple[float, ...]:
        return tuple(factor * getattr(point, name) for point in points if point.policy == policy)

    hits = [Line(f"{policy}, hit rate", of(policy, "hit_rate", 100.0), LOOKS[number + 2], number) for number, policy in enumerate(POLICIES)]  # fmt: skip
    panels = [ChartPanel("(a) size and hit rate", "cache_rate", "cache size, share of all files", "hit rate (%)", sizes, tuple(hits))]  # fmt: skip
    for letter, policy in zip("bc", POLICIES, strict=True):
        lines = (
            Line("epoch, simulated", of(policy, "seconds"), LOOKS[0], 0),
            Line("epoch, pinned at the same hit rate", of(policy, "by_hit_rate"), LOOKS[1], 1, True),
        )
        panels.append(ChartPanel(f"({letter}) {policy}", "cache_rate", "cache size, share of all files", "s per epoch", sizes, lines))  # fmt: skip
    caption = f"Caches that learn from reads: which hit rate a size gives, and whether the pinned curve at that hit rate gives the epoch. Epoch {EPOCHS}, {NODES} nodes of Fugaku with their part of the storage."  # fmt: skip
    return PaperFigure("H-D-2", "d2", draw_chart("hierarchy-d2", "Other cache policies", caption, panels), "fitted", caption)  # fmt: skip


def _table(points: list[PolicyPoint]) -> PaperTable:
    lines = tuple((point.policy, point.size, point.hit_rate, point.seconds, point.by_hit_rate, 100 * point.off) for point in points)  # fmt: skip
    columns = (
        "policy",
        "size, share of all files",
        "hit rate",
        "epoch, s",
        "pinned at this hit rate, s",
        "difference, %",
    )
    return PaperTable("H-D-2", "policies", columns, lines, "fitted", f"cache policies in epoch {EPOCHS} against the pinned curve")  # fmt: skip
