"""DLIO's columns of Parquet files: our samples are one column of bytes, which costs the same only where all columns are read."""

from tierscope.spec.dlio_making import Making
from tierscope.spec.tree import Node

_BYTES = {"float16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8}
CHOSEN = "reads chosen columns of row groups, which Tierscope does not do yet; to read whole samples of record_length_bytes instead, add ++workload.dataset.parquet=null"
GROUPS = "Tierscope writes Parquet files with a row group per sample; to use that layout, add ++workload.dataset.parquet.row_group_size=null"
COLUMNS = "the columns of Parquet files: accepted where all are read and their sizes add up to record_length_bytes"
_AS_ONE = "samples are one column of as many bytes, a row group each"
_UNCLEAR = (
    "the sizes of these columns do not add up to dataset.record_length_bytes, and samples would have other bytes than in DLIO; "
    "correct them, or ignore the columns with ++workload.dataset.parquet.columns=null"
)


def row_group_size(making: Making, _node: Node) -> None:
    mode = "dataset.parquet.read_mode"
    if mode in making.given:
        making.refuse(mode, CHOSEN)
    making.refuse("dataset.parquet.row_group_size", GROUPS)


def columns(making: Making, node: Node) -> None:
    """Where all of them are read, and are the bytes of a sample, one column of bytes is as good."""
    path = "dataset.parquet.columns"
    described = [child.value for child in node.value] if isinstance(node.value, list) else []
    if any(
        isinstance(column, dict) and _text(column, "read").lower() in ("false", "no", "off") for column in described
    ):
        making.refuse(path, CHOSEN)
    length = making.text("dataset.record_length_bytes") or making.text("dataset.record_length")
    sizes = [_bytes_of(column) if isinstance(column, dict) else None for column in described]
    if described and (None in sizes or str(sum(filter(None, sizes))) != length):
        making.refuse(path, _UNCLEAR)
    making.note(path, _AS_ONE)


def _text(column: dict[str, Node], key: str) -> str:
    node = column.get(key)
    return node.value if node is not None and isinstance(node.value, str) else ""


def _bytes_of(column: dict[str, Node]) -> int | None:
    """Elements times bytes of one; None: not known."""
    size, element_bytes = _text(column, "size"), _BYTES.get(_text(column, "dtype"))
    return (
        int(size) * element_bytes
        if element_bytes is not None and size.isascii() and size.isdecimal() and len(size) <= 15
        else None
    )
