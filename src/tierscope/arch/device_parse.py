"""Reads a device file; every number is checked, and what does not fit is named."""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from tierscope.arch.device_file import FEWEST_ROWS, KIND, SCHEMA_VERSION, AllReduce, DeviceFile, DeviceOrigin, WorkRow
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.smooth import MOST_VARIANCE, PARTS, Smooth, SmoothPart
from tierscope.arch.work_kinds import KINDS, WorkKind
from tierscope.errors import UserError
from tierscope.spec.tree import Node, parse_yaml, read_yaml_text

_CEILINGS = ("memory_bandwidth", "fp32", "tf32", "bf16")
_HOST_KINDS = frozenset(
    {
        *("conv", "conv_bias", "depthwise", "norm", "relu", "leaky", "dropout", "max_pool", "avg_pool"),
        *("add", "concat", "resize", "linear", "view", "step", "mixed"),
    }
)
_MOST_ROWS = 3_000  # a surface through them takes their square in memory
_MOST_SECONDS = 1e6
_PARTS = {"2": 1, str(SCHEMA_VERSION): PARTS}  # of a surface, by version of the file
_FIX = "measure again with 'tierscope probe --accelerator cuda -o FILE'"


def load_device(path: str) -> DeviceFile:
    return parse_device(read_yaml_text(path, _FIX), path)


def parse_device(text: str, source: str) -> DeviceFile:
    root = parse_yaml(text, source, noun="a device file")
    kind = _child(root, "kind")
    if kind.value != KIND:
        raise UserError(f"{source}: kind: {kind.shown} is not {KIND}; {_FIX}")
    version = _child(root, "schema_version")
    parts = _PARTS.get(version.value) if isinstance(version.value, str) else None
    if parts is None:
        raise UserError(f"{version.where}: schema_version: {version.shown} is not known here; {_FIX}")
    origin, ceilings = _child(root, "origin"), _child(root, "ceilings")
    host = _host(_child(root, "host"))
    return DeviceFile(
        origin=DeviceOrigin(
            device=_text(origin, "device"),
            memory_bytes=int(_number(_child(origin, "memory_bytes"), least=0)),
            torch=_text(origin, "torch"),
            cudnn=_text(origin, "cudnn"),
            time=_text(origin, "time"),
        ),
        ceilings={name: _number(_child(ceilings, name)) for name in _CEILINGS},
        rows=_work(_child(root, "work"), host),
        host=host,
        left_out={name: int(_number(node, least=0)) for name, node in _left_out(root).items() if name in KINDS},
        smooth=_smooth(_child(root, "smooth"), parts, host),
        all_reduce=_all_reduce(_child(root, "all_reduce")) if "all_reduce" in _mapping(root) else None,
    )


def _all_reduce(node: Node) -> AllReduce:
    """Files of one device have none."""
    table = _child(node, "seconds")
    lines = table.value.splitlines() if isinstance(table.value, str) else []
    rows = []
    for line in lines[:_MOST_ROWS]:
        size, _, seconds = line.partition(":")
        rows.append((_number(Node(size.strip(), table.where)), _number(Node(seconds.strip(), table.where), most=_MOST_SECONDS)))  # fmt: skip
    if len(rows) < 2 or any(later <= earlier for (earlier, _), (later, _) in pairwise(rows)):
        raise UserError(f"{table.where}: all_reduce.seconds: must be lines of bytes: seconds, bytes rising; {_FIX}")
    devices = int(_number(_child(node, "devices"), 2, 1e6))
    return AllReduce(devices, _text(node, "backend"), tuple(rows))


def _host(node: Node) -> Mapping[str, Mapping[str, tuple[float, float, float]]]:
    """Of every precision that the device has kernels for; other parts have the same ones."""
    costs = {}
    precisions = [precision for precision in PRECISIONS if precision in _mapping(node)]
    if not precisions:
        raise UserError(f"{node.where}: host: has neither {' nor '.join(PRECISIONS)}; {_FIX}")
    for precision in precisions:
        section = _child(node, precision)
        missing = sorted(_HOST_KINDS - set(_mapping(section)))
        if missing:
            raise UserError(f"{section.where}: host.{precision}: {missing[0]} is missing; {_FIX}")
        costs[precision] = {name: _three(_child(section, name)) for name in sorted(_HOST_KINDS)}
    return costs


def _three(node: Node) -> tuple[float, float, float]:
    values = [_number(value, 0, _MOST_SECONDS) for value in _list(node)]
    if len(values) != 3:
        raise UserError(f"{node.where}: must be three numbers, of forward, backward and update; {_FIX}")
    return values[0], values[1], values[2]


def _smooth(node: Node, parts: int, precisions: Iterable[str]) -> Mapping[tuple[str, str, str], Smooth]:
    surfaces = {}
    for kind in KINDS.values():
        for precision in precisions:
            for way in kind.ways:
                line = _child(node, f"{kind.name} {precision} {way}")
                surfaces[kind.name, precision, way] = _surface(line, kind.feature_count, parts)
    return surfaces


def _surface(line: Node, features: int, parts: int) -> Smooth:
    """Of each part the reaches, by feature, and its variance; last what no size explains."""
    nodes = _list(line)
    if len(nodes) != (wanted := parts * (features + 1) + 1):
        raise UserError(f"{line.where}: must be {wanted} numbers, not {len(nodes)}; {_FIX}")

    def part(first: int) -> SmoothPart:
        *reach, spread = nodes[first : first + features + 1]
        return SmoothPart(tuple(map(_number, reach)), _number(spread, most=MOST_VARIANCE))

    rows = range(0, len(nodes) - 1, features + 1)
    return Smooth(tuple(map(part, rows)), _number(nodes[-1], most=MOST_VARIANCE))


def _work(node: Node, precisions: Iterable[str]) -> Mapping[tuple[str, str], tuple[WorkRow, ...]]:
    tables = {}
    for kind in KINDS.values():
        for precision in precisions:
            table = _child(_child(node, kind.name), precision)
            if not isinstance(table.value, str):
                raise UserError(f"{table.where}: work.{kind.name}.{precision}: must be lines of text; {_FIX}")
            if table.value.count("\n") > _MOST_ROWS:
                raise UserError(f"{table.where}: work.{kind.name}.{precision}: more than {_MOST_ROWS:,} sizes; {_FIX}")
            rows = tuple(_row(line, kind, table.where) for line in table.value.splitlines() if line.strip())
            if len(rows) < FEWEST_ROWS:
                raise UserError(f"{table.where}: work.{kind.name}.{precision}: fewer than {FEWEST_ROWS} sizes; {_FIX}")
            tables[kind.name, precision] = rows
    return tables


def _row(line: str, kind: WorkKind, where: str) -> WorkRow:
    sizes, _, seconds = line.partition(":")
    row = WorkRow(
        tuple(_number(Node(word, where)) for word in sizes.split()),
        tuple(_number(Node(word, where), most=_MOST_SECONDS) for word in seconds.split()),
    )
    if len(row.sizes) != len(kind.sizes) or len(row.seconds) != len(kind.ways):
        wanted = f"{len(kind.sizes)} sizes: {len(kind.ways)} seconds"
        raise UserError(f"{where}: work.{kind.name}: {line.strip()[:60]!r} is not {wanted}; {_FIX}")
    return row


def _left_out(root: Node) -> dict[str, Node]:
    return _mapping(_child(root, "left_out")) if "left_out" in _mapping(root) else {}


def _mapping(node: Node) -> dict[str, Node]:
    if not isinstance(node.value, dict):
        raise UserError(f"{node.where}: must be a mapping; {_FIX}")
    return node.value


def _list(node: Node) -> list[Node]:
    if not isinstance(node.value, list):
        raise UserError(f"{node.where}: must be a list of numbers; {_FIX}")
    return node.value


def _child(node: Node, name: str) -> Node:
    mapping = _mapping(node)
    if name not in mapping:
        raise UserError(f"{node.where}: {name} is missing; {_FIX}")
    return mapping[name]


def _text(node: Node, name: str) -> str:
    child = _child(node, name)
    if not isinstance(child.value, str) or not child.value.isprintable():
        raise UserError(f"{child.where}: {name}: must be text; {_FIX}")
    return child.value


def _number(node: Node, least: float = 1e-12, most: float = 1e18) -> float:
    try:
        value = float(node.value) if isinstance(node.value, str) else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        raise UserError(f"{node.where}: {node.shown!r} is not a number between {least:g} and {most:g}; {_FIX}")
    return value
