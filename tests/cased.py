"""Times of a study with cases, made by hand: two that are swept over the cache rate, with different bests and systems."""

import random
from collections.abc import Sequence
from pathlib import Path

from tests.traces import CLASSES, times_of
from tierscope.analysis.times import ClassTimes

RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
FACTORS = {"zoo": (4.0, 1.0), "bee": (1.0, 9.0), "cat": (2.5, 2.5)}  # of far metadata and near reads


def case_rows(cases: Sequence[str] = tuple(FACTORS), ranks: int = 6, repetitions: int = 2) -> list[dict[str, object]]:
    dice = random.Random(11)
    rows: list[dict[str, object]] = []
    for case in cases:
        far, near = FACTORS[case]
        for rate in RATES:
            for repetition, epoch, rank in (
                (r, e, k) for r in range(1, repetitions + 1) for e in (1, 2, 3) for k in range(ranks)
            ):
                share = 1 - rate
                seconds = (0.3 * share, far * share, near * rate, 0.05 * rate)
                for name, value, count in zip(CLASSES, seconds, (share, 2 * share, rate, 2 * rate), strict=True):
                    ops = round(100 * count)
                    noisy = value * dice.uniform(0.95, 1.05) * (1 + 0.02 * (rank % 3))
                    where = {"case": case, "cache_rate": rate, "rank": rank, "epoch": epoch, "repetition": repetition}
                    rows.append({**where, "class": name, "seconds": noisy, "ops": ops, "bytes": ops * 1024})
    return rows


def cased_times(*cases: str) -> ClassTimes:
    return times_of(case_rows(cases or tuple(FACTORS)), ["case", "cache_rate"])


def write_cases(path: Path, *cases: str) -> Path:
    rows = case_rows(cases or tuple(FACTORS))
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
