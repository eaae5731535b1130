"""Which workloads the rows of a table name: rows of another one than the study's cannot be compared with it."""

import re
from collections.abc import Mapping, Sequence, Set

from tierscope.errors import UserError

KNOWN = frozenset(
    [
        "bert",
        "candle",
        "climate",
        "cosmoflow",
        "deepcam",
        "dffn",
        "dlrm",
        "flux",
        "frnn",
        "imagenet",
        "l2hmc",
        "resnet50",
        "retinanet",
        "unet3d",
    ]
)
_WORDS = re.compile(r"[a-z0-9]+")


def workloads_in(text: str) -> frozenset[str]:
    """Known workloads that a text names as words of their own, as paths do."""
    return KNOWN & set(_WORDS.findall(text.lower()))


def named_workloads(rows: Sequence[Mapping[str, str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Columns with the workloads that they name, each pair once; the first column of a row that names any speaks for it."""
    of_rows = (((column, workloads_in(cell)) for column, cell in row.items()) for row in rows)
    firsts = (next((pair for pair in pairs if pair[1]), None) for pairs in of_rows)
    return tuple(dict.fromkeys(pair for pair in firsts if pair is not None))


def refuse_other_workloads(name: str, named: Sequence[tuple[str, Set[str]]], study: str) -> None:
    """`named`: see `named_workloads`."""
    own = workloads_in(study)
    if not own:
        return
    workload = min(own)
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
