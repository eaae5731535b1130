"""Which workloads the rows of a table name: rows of another one than the study's cannot be compared with it."""

import re
from collections.abc import Sequence, Set

from tierscope.errors import UserError

KNOWN = frozenset(
    "bert candle climate cosmoflow deepcam dffn dlrm flux frnn imagenet l2hmc resnet50 retinanet unet3d".split()
)
_WORDS = re.compile(r"[a-z0-9]+")


def workloads_in(text: str) -> frozenset[str]:
    """Known workloads that a text names as words of their own, as paths do."""
    return KNOWN & set(_WORDS.findall(text.lower()))


def refuse_other_workloads(name: str, named: Sequence[tuple[str, Set[str]]], study: str) -> None:
    """`named`: for each row that names workloads, the column that does, and which."""
    own = workloads_in(study)
    if not own:
        return
    (workload,) = sorted(own)[:1]
    others = sorted({other for _, workloads in named if not workloads & own for other in workloads})
    if not others:
        return
    column = next((column for column, workloads in named if workloads & own), None)
    if column is None:
        raise UserError(
            f"{name}: its rows are of other workloads ({', '.join(others)}) than {study}; choose their --study"
        )
    raise UserError(
        f"{name}: has rows of other workloads ({', '.join(others)}) than {study}; add --where {column}~{workload}"
    )
