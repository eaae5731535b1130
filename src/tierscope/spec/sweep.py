"""Sweeps: the values a key takes, keys that change together (`zip`), and the points that all of them make in every case."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tierscope.errors import SpecError
from tierscope.spec import dump, keys
from tierscope.spec.build import read_value
from tierscope.spec.kinds import Bounded, Optional
from tierscope.spec.schema import Key
from tierscope.spec.study import Axis, Point, Study
from tierscope.spec.tree import Node
from tierscope.units import counted

MAX_POINTS = 10_000
CASE = "case"  # what a case is called among the swept values of a point
ZIP = "zip"
SET_ONCE = ("study", "repetitions", "goal")

_RANGE_COLONS = re.compile(r"([^:]+):([^:]+):([^:]+)")


def split_range(text: str) -> tuple[str, str, str] | None:
    """First, last and step of `a..b step c` or `a:b:c`; None: not a range."""
    first, _, rest = text.partition("..")
    words = rest.split()
    place = words.index("step") if "step" in words else 0
    last, step = " ".join(words[:place]), " ".join(words[place + 1 :])
    if first.strip() and last and step:
        return first.strip(), last, step
    match = _RANGE_COLONS.fullmatch(text.strip())
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
    """The `sweep:` section: key → list of values, range or single value; `zip` → mappings of keys that change together."""
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, dict):
        raise SpecError(f"{node.where}: sweep must map keys to values, e.g. placement.cache_rate: 0%..100% step 5%")
    axes: dict[str, Axis] = {}
    for short, child in node.value.items():
        if short == ZIP:
            for number, together in enumerate(zips(child), start=1):
                _add(axes, _zipped(together, leaves, number), together.where)
        else:
            path = _swept_path(short, child, leaves, "sweep")
            _add(
                axes,
                [Axis(path, tuple(_values(leaves[path], child, f"sweep.{short}")))],
                f"{child.where}: sweep.{short}",
            )
    listed = tuple(axes.values())
    refuse_too_many(listed, 1, node.where)
    return listed


def zips(node: Node) -> list[Node]:
    """The mappings of `zip:`, which is one of them or a list."""
    mappings = node.value if isinstance(node.value, list) else [node]
    for mapping in mappings:
        if not isinstance(mapping.value, dict) or len(mapping.value) < 2:
            raise SpecError(
                f"{mapping.where}: sweep.zip must map two or more keys to lists of values, like "
                "{num_files_train: [64, 256], record_length_bytes: [512 KiB, 128 KiB]}; several of them are a list"
            )
    return mappings


def _zipped(node: Node, leaves: dict[str, Key], number: int) -> list[Axis]:
    """Keys that take their first values together, then their second."""
    assert isinstance(node.value, dict)
    by_key: dict[str, Axis] = {}
    for short, child in node.value.items():
        path = _swept_path(short, child, leaves, "sweep.zip")
        listed = _values(leaves[path], child, f"sweep.zip.{short}", repeated=True)
        first = next(iter(by_key), short)
        if by_key and len(by_key[first].values) != len(listed):
            raise SpecError(
                f"{child.where}: sweep.zip: {first} has {counted(len(by_key[first].values), 'value')} and {short} {len(listed)}; "
                "keys of a zip change together: use equally many values"
            )
        by_key[short] = Axis(path, tuple(listed), number)
    together = list(zip(*(axis.values for axis in by_key.values()), strict=True))
    if len(set(together)) != len(together):
        raise SpecError(f"{node.where}: sweep.zip: {', '.join(by_key)} contain the same combination twice; remove one")
    return list(by_key.values())


def _swept_path(short: str, node: Node, leaves: dict[str, Key], section: str) -> str:
    path = keys.resolve(short, list(leaves), node.where)
    if path in SET_ONCE:
        raise SpecError(f"{node.where}: {section}.{short}: {path} cannot be swept; it is set once for the study")
    return path


def _add(axes: dict[str, Axis], more: list[Axis], place: str) -> None:
    for axis in more:
        if axis.path in axes:
            raise SpecError(f"{place}: {axis.path} is swept twice; remove one")
        axes[axis.path] = axis


def _values(key: Key, node: Node, path: str, repeated: bool = False) -> list[Any]:
    """`repeated`: a value may be there twice."""
    if isinstance(node.value, list):
        if not node.value:
            raise SpecError(f"{node.where}: {path} is an empty list; add at least one value")
        values = [read_value(key, child, path) for child in node.value]
    else:
        text = node.value if isinstance(node.value, str) else ""
        parts = split_range(text)
        values = _range(key, node, path, parts) if parts else [_single(key, node, path, text)]
    if not repeated and len(set(values)) != len(values):
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
        raise SpecError(f"{node.where}: {path} = {node.value}; this key does not support ranges: use a list")
    first, last = (read_value(key, Node(text, node.where), path) for text in parts[:2])
    try:
        step = kind.amount(parts[2])
    except ValueError as error:
        raise SpecError(f"{node.where}: {path} = {node.value}; its step {error}") from None
    try:
        return spread(first, last, step)
    except ValueError as error:
        raise SpecError(f"{node.where}: {path} = {node.value}; {error}") from None


def refuse_too_many(axes: Sequence[Axis], cases: int, where: str) -> None:
    """More points than anybody could measure are a mistake."""
    if (count := _count(axes) * cases) > MAX_POINTS:
        in_cases = f" in {cases} cases" if cases > 1 else ""
        raise SpecError(
            f"{where}: sweep has {count} points{in_cases}; at most {MAX_POINTS}: use a larger step or fewer keys"
        )


def _together(axes: Sequence[Axis]) -> list[list[Axis]]:
    """Axes that advance together: those of one zip, or a single one."""
    groups: dict[int | str, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(axis.zipped or axis.path, []).append(axis)
    return list(groups.values())


def _count(axes: Sequence[Axis]) -> int:
    return math.prod(len(group[0].values) for group in _together(axes))


def runs(study: Study) -> int:
    """How many there are: every repetition of every point."""
    return _count(study.sweep) * max(1, len(study.cases)) * study.repetitions


def points(study: Study) -> Iterator[Point]:
    """Every point of the sweep's grid, in the order of the axes, for one case after the other; one point when nothing is swept."""
    names = keys.short_names([axis.path for axis in study.sweep])
    mixed = {axis.path for axis in study.sweep if len({isinstance(value, bool) for value in axis.values}) > 1}
    index = itertools.count()
    for case in study.cases or (None,):
        in_case, named = (case.settings, {CASE: case.name}) if case else ({}, {})
        for settings in _grid(study.sweep):
            short = {names[path]: _word(value) if path in mixed else value for path, value in settings.items()}
            yield Point(next(index), named | short, dump.with_settings(study, {**in_case, **settings}))


def _word(value: Any) -> Any:
    """Of a key that is true, false or a word: all of them words, so that they are one column of a table."""
    return str(value).lower() if isinstance(value, bool) else value


def _grid(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Full paths and values of one combination after the other."""
    groups = _together(axes)
    paths = [axis.path for group in groups for axis in group]
    rows = (zip(*(axis.values for axis in group), strict=True) for group in groups)
    for combination in itertools.product(*rows):
        yield dict(zip(paths, itertools.chain.from_iterable(combination), strict=True))
