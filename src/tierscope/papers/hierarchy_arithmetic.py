"""What follows from the Hierarchy study's printed numbers alone: its equations, its example, and what can be derived from its percentages.

Equations are checked against loops that are written out here: `predict` must give the same.
"""

import itertools
import math
import re
from dataclasses import replace

import numpy as np

from tierscope.papers.hierarchy_facts import GOAL_META, GOAL_READ, GOAL_SECONDS, processes_of
from tierscope.papers.hierarchy_sweeps import CLASSES, LARGE_60, SMALL_60, FloatArray, case_study
from tierscope.papers.rows import rows_of
from tierscope.papers.section import Section
from tierscope.papers.verdict import Verdict
from tierscope.plan.plan import Plan
from tierscope.plan.reading import reading_of
from tierscope.predict.explore import explore
from tierscope.predict.processes import factor
from tierscope.spec.goal import IO, Goal

_IMPROVED = 50.0
_RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
_PROCESSES, _SEED = 5, 7
_GIB = 2**30


def make(short: bool) -> Section:
    del short  # nothing here takes time
    return Section((*_equations(), _imagenet(), *_derived()))


def _verdict(row_id: str, ours: str, agrees: bool, why: str = "") -> Verdict:
    return Verdict(row_id, ours, "holds" if agrees else "does not hold", "arithmetic", why)


# Equations


def _made_up() -> dict[float, FloatArray]:
    """Class seconds of a few processes at a few rates, in which another process is the slowest after an improvement."""
    random = np.random.default_rng(_SEED)
    return {rate: random.uniform(0.5, 4.0, (_PROCESSES, len(CLASSES))) for rate in _RATES}


def _by_hand(seconds: FloatArray, improvements: dict[str, float]) -> float:
    """H-E-3, written out."""
    rows: list[list[float]] = seconds.tolist()
    factors = [100 / (100 + improvements.get(name, 0.0)) for name in CLASSES]
    return max(sum(value * scaled for value, scaled in zip(row, factors, strict=True)) for row in rows)


def _equations() -> list[Verdict]:
    times = _made_up()
    processes = processes_of(times)

    def ours(improvements: dict[str, float]) -> FloatArray:
        seconds: FloatArray = processes.io_seconds(processes.factors(improvements)[None, :])[:, 0]
        return seconds

    plain = max(abs(a - _by_hand(times[rate], {})) for rate, a in zip(_RATES, ours({}), strict=True))
    wish = {"GFS-META": _IMPROVED, "LFS-READ": 120.0}
    better = max(abs(a - _by_hand(times[rate], wish)) for rate, a in zip(_RATES, ours(wish), strict=True))
    example = f"{_PROCESSES} processes at {len(_RATES)} rates"
    return [
        _verdict("H-E-1", f"+50 %: {factor(_IMPROVED):.6f} of the time", math.isclose(factor(_IMPROVED), 2 / 3)),
        _verdict("H-E-2", f"largest difference {plain:.1g} s from the sum by hand", plain < 1e-9, example),
        _verdict("H-E-3", f"largest difference {better:.1g} s from the rule by hand", better < 1e-9, example),
        _hit_rate(),
        _least_rate(times),
    ]


def _hit_rate() -> Verdict:
    """Files that the plan places on the near tier of a node, with the placement of the preset."""
    study = case_study(LARGE_60)
    files = study.workload.dataset.num_files_train
    off = []
    for rate in _RATES:
        here = replace(study, placement=replace(study.placement, cache_rate=rate))
        held = Plan.of(here, reading_of(here).file_bytes).files_held(0, 0)
        off.append(abs(held - rate * files))
    return _verdict("H-E-4", f"at most {max(off):.1f} of {files:,} files from the cache rate", max(off) <= 1.0, f"pinned, {len(_RATES)} rates")  # fmt: skip


def _least_rate(times: dict[float, FloatArray]) -> Verdict:
    """Goal such that some pairs reach it, some do not, at several rates."""
    grid = (0.0, 40.0, 80.0, 120.0)
    goal = 0.75 * min(_by_hand(seconds, {}) for seconds in times.values())
    exploration = explore(processes_of(times), Goal(IO, goal), {"GFS-META": grid, "LFS-READ": grid})
    differing = 0
    for chosen, (meta, read) in zip(exploration.chosen.tolist(), itertools.product(grid, grid), strict=True):
        reaching = [r for r in _RATES if _by_hand(times[r], {"GFS-META": meta, "LFS-READ": read}) <= goal]
        ours = exploration.sweeps[chosen]["cache_rate"] if chosen >= 0 else None
        differing += ours != (min(reaching) if reaching else None)
    return _verdict("H-E-6", f"{len(grid) ** 2 - differing} of {len(grid) ** 2} pairs as by hand", not differing, "a dot and its rate")  # fmt: skip


# The example, and what is derived


def _imagenet() -> Verdict:
    dataset, rate = 150e9, 0.6
    needed = dataset * rate
    return _verdict(
        "H-F2-8",
        f"{needed / 1e9:.0f} GB = {needed / _GIB:.1f} GiB",
        round(needed / 1e9) == 90,
        "printed as 90 GiB; 90 GB is meant (H-C-5)",
    )


def _derived() -> list[Verdict]:
    """From printed percentages and the setup; each is compared with what the table of rows says, digit for digit."""
    saved_read, saved_meta = 0.24, 0.128  # H-F3-4, H-F3-2
    third = 1 - 100 / (100 + _IMPROVED)
    read_share = saved_read / third
    meta_share = 1 - read_share
    most_saved = meta_share * third
    meta_at_60 = saved_meta / third
    lowest = GOAL_SECONDS / (1 - saved_read)
    shrunk_read, shrunk_meta = 100 / (100 + GOAL_READ), 100 / (100 + GOAL_META)
    # What is left of a second is least where LFS-READ has its least share: GFS-META shrinks more.
    left = read_share * shrunk_read + meta_share * shrunk_meta
    highest = GOAL_SECONDS / left
    small, large = (case_study(case) for case in (SMALL_60, LARGE_60))
    ranks = small.system.ranks
    files = {name: study.workload.dataset.num_files_train for name, study in (("small", small), ("large", large))}
    batches = {name: study.workload.reader.batch_size for name, study in (("small", small), ("large", large))}
    per_rank = {name: count // ranks for name, count in files.items()}
    steps = {name: per_rank[name] // batches[name] for name in files}
    gfs_opens = round(files["small"] * 0.35)
    shared_by = small.system.tiers[0].device_shared_by
    assert shared_by is not None
    per_ssd = round(files["small"] * 0.65 * shared_by / small.system.nodes)
    per_ssd_gib = per_ssd * small.workload.dataset.record_length_bytes / _GIB
    rates = [per_ssd / seconds for seconds in (highest, lowest)]
    megabytes = [rate * small.workload.dataset.record_length_bytes / 2**20 for rate in rates]
    return [
        _printed("H-X-1", f"LFS-READ at least {100 * read_share:.0f} %", f"{100 * read_share:.0f}"),
        _printed("H-X-2", f"GFS-META at most {100 * meta_share:.0f} %, saves at most {100 * most_saved:.1f} %", f"{100 * meta_share:.0f}", f"{100 * most_saved:.1f}"),
        _printed("H-X-3", f"GFS-META at least {100 * meta_at_60:.1f} %", f"{100 * meta_at_60:.1f}"),
        _printed("H-X-4", f"{lowest:.2f} s < T65 ≤ {highest:.2f} s", f"{lowest:.2f}", f"{highest:.2f}"),
        _printed("H-X-5", f"{per_rank['small']} files in {steps['small']} steps; {per_rank['large']} in {steps['large']}; {files['small'] // files['large']} times fewer opens",
                 str(per_rank["small"]), str(steps["small"]), str(per_rank["large"]), str(steps["large"]), str(files["small"] // files["large"])),
        _printed("H-X-6", f"{batches['small'] * ranks:,} and {batches['large'] * ranks:,}", f"{batches['small'] * ranks:,}", f"{batches['large'] * ranks:,}"),
        _printed("H-X-7", f"{gfs_opens:,} opens; {per_ssd:,} files ({per_ssd_gib:.3f} GiB) on an SSD", f"{per_ssd:,}", f"{per_ssd_gib:.3f}", f"{gfs_opens:,}"),
        _x8(rates, megabytes),
    ]  # fmt: skip


def _printed(row_id: str, ours: str, *numbers: str) -> Verdict:
    """Holds where every number is in the row as it is printed there."""
    printed = set(re.findall(r"\d[\d,]*(?:\.\d+)?", rows_of("hierarchy")[row_id].published))
    other = [number for number in numbers if number not in printed]
    return _verdict(
        row_id, ours, not other, f"printed otherwise: {', '.join(other)}" if other else "to the printed digits"
    )


def _x8(rates: list[float], megabytes: list[float]) -> Verdict:
    """Printed rounded to tens: 890 to 1,520 files/s, 111–190 MiB/s."""
    printed_rates, printed_megabytes = (890, 1520), (111, 190)
    agrees = all(abs(rate - printed) <= 5 for rate, printed in zip(rates, printed_rates, strict=True))
    agrees &= all(abs(value - printed) <= 1 for value, printed in zip(megabytes, printed_megabytes, strict=True))
    return _verdict("H-X-8", f"{rates[0]:,.0f} to {rates[1]:,.0f} files/s ({megabytes[0]:.0f}–{megabytes[1]:.0f} MiB/s)", agrees, "printed rounded to tens")  # fmt: skip
