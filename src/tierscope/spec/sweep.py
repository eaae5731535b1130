"""Sweeps: the values a key takes, and the grid of points that several swept keys make."""

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

from tierscope.errors import SpecError
from tierscope.spec import dump, keys
from tierscope.spec.build import read_value
from tierscope.spec.kinds import Bounded, Optional
from tierscope.spec.schema import Key
from tierscope.spec.study import Axis, Point, Study
from tierscope.spec.tree import Node

MAX_POINTS = 10_000

_RANGE_WORDS = re.compile(r"(.+?)\.\.(.+?)\s+step\s+(.+)")
_RANGE_COLONS = re.compile(r"([^:]+):([^:]+):([^:]+)")


def split_range(text: str) -> tuple[str, str, str] | None:
    """First, last and step of `a..b step c` or `a:b:c`; None: not a range."""
    match = _RANGE_WORDS.fullmatch(text.strip()) or _RANGE_COLONS.fullmatch(text.strip())
    return (match[1].strip(), match[2].strip(), match[3].strip()) if match else None


def spread(first: Any, last: Any, step: Any) -> list[Any]:
    """All values of a range, its end included. ValueError says what is wrong with it."""
    if step <= 0 or last < first:
        raise ValueError("a range needs first ≤ last and a step above 0")
    steps = (last - first) / step + 1e-9
    if steps >= MAX_POINTS:
        raise ValueError(f"more than {MAX_POINTS} values: use a larger step")
    values = [first + i * step for i in range(int(steps) + 1)]
    if isinstance(first, float):
        values = [round(value, 12) for value in values]
    # "Include the end": a last step that would fall short of it is shortened.
    return [*values[:-1], last] if last - values[-1] < 1e-6 * step else [*values, last]


def read_axes(node: Node | None, leaves: dict[str, Key]) -> tuple[Axis, ...]:
    """The `sweep:` section: key → list of values, range or single value."""
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, dict):
        raise SpecError(f"{node.where}: sweep must map keys to values, like placement.cache_rate: 0%..100% step 5%")
    axes: dict[str, Axis] = {}
    for short, child in node.value.items():
        path = keys.resolve(short, list(leaves), child.where)
        if path in ("study", "repetitions", "goal"):
            raise SpecError(f"{child.where}: sweep.{short}: {path} cannot be swept; it is set once for the study")
        if path in axes:
            raise SpecError(f"{child.where}: sweep.{short}: {path} is swept twice; remove one")
        axes[path] = Axis(path, tuple(_values(leaves[path], child, f"sweep.{short}")))
    points = 1
    for axis in axes.values():
        points *= len(axis.values)
    if points > MAX_POINTS:
        raise SpecError(
            f"{node.where}: sweep has {points} points; at most {MAX_POINTS}: use a larger step or fewer keys"
        )
    return tuple(axes.values())


def _values(key: Key, node: Node, path: str) -> list[Any]:
    if isinstance(node.value, list):
        if not node.value:
            raise SpecError(f"{node.where}: {path} is an empty list; give at least one value")
        values = [read_value(key, child, path) for child in node.value]
    else:
        text = node.value if isinstance(node.value, str) else ""
        parts = split_range(text)
        values = _range(key, node, path, parts) if parts else [_single(key, node, path, text)]
    if len(set(values)) != len(values):
        raise SpecError(f"{node.where}: {path} has a value twice; remove one")
    return values


def _single(key: Key, node: Node, path: str, text: str) -> Any:
    try:
        return read_value(key, node, path)
    except SpecError as error:
        if ".." in text or ":" in text:
            raise SpecError(f"{error}; a range is written as a..b step c or a:b:c") from None
        raise


def _range(key: Key, node: Node, path: str, parts: tuple[str, str, str]) -> list[Any]:
    kind = key.kind.kind if isinstance(key.kind, Optional) else key.kind
    if not isinstance(kind, Bounded):
        raise SpecError(f"{node.where}: {path} = {node.value}; this key has no ranges: give a list")
    first, last = (read_value(key, Node(text, node.where), path) for text in parts[:2])
    try:
        step = kind.amount(parts[2])
    except ValueError as error:
        raise SpecError(f"{node.where}: {path} = {node.value}; its step {error}") from None
    try:
        return spread(first, last, step)
    except ValueError as error:
        raise SpecError(f"{node.where}: {path} = {node.value}; {error}") from None


def runs(study: Study) -> int:
    """How many there are: every repetition of every point."""
    return math.prod(len(axis.values) for axis in study.sweep) * study.repetitions


def points(study: Study) -> Iterator[Point]:
    """Every point of the sweep's grid, in the order of the axes; one point when nothing is swept."""
    names = keys.short_names([axis.path for axis in study.sweep])
    for index, values in enumerate(itertools.product(*(axis.values for axis in study.sweep))):
        settings = {axis.path: value for axis, value in zip(study.sweep, values, strict=True)}
        short = {names[path]: value for path, value in settings.items()}
        yield Point(index, short, dump.with_settings(study, settings))
