"""What is known of a system's numbers: where each comes from, and how far it may be off."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierscope.errors import SpecError
from tierscope.spec import keys, schema
from tierscope.spec.build import read_value
from tierscope.spec.dump import scalar
from tierscope.spec.kinds import Bounded, Bytes, Integer, Kind, Optional
from tierscope.spec.schema import Key, Section
from tierscope.spec.study import System
from tierscope.spec.tree import Node
from tierscope.units import closest

KINDS = {"source": "where it was published", "assumed": "why this value", "fitted": "to what"}
MAX_DRAWS = 200
_MOST_TEXT = 1000
_EXAMPLE = 'tiers.gfs.bandwidth: {assumed: "why this value", low: 1 GB/s, high: 3 GB/s}'

Number = int | float
Draw = Mapping[str, Number | None]  # by key path; None: a limit that only other draws have


@dataclass(frozen=True, slots=True)
class KnownFigure:
    """One number. `kind` is one of KINDS, `text` what that word asks for.

    What is assumed lies within `low` and `high`. A fit may leave one end open (None): a station that was never busy is only
    known to serve at least so much. What was published needs no interval.
    """

    value: Number
    kind: str
    text: str
    low: Number | None = None
    high: Number | None = None


def given_kind(key: Key) -> Kind:
    return key.kind.kind if isinstance(key.kind, Optional) else key.kind


def is_number(key: Key) -> bool:
    return isinstance(given_kind(key), Bounded)


def nearest(key: Key, value: float) -> float:
    """A number that was computed, as near as a file may have it."""
    kind = given_kind(key)
    assert isinstance(kind, Bounded)
    rounded = kind.nearest(value)
    return round(rounded) if isinstance(kind, Integer | Bytes) and math.isfinite(rounded) else rounded


def numbers(system: System) -> dict[str, Number | None]:
    """Every number of a system by its key path; None: it is not given."""

    def of(section: object, prefix: str) -> Iterator[tuple[str, Number | None]]:
        for field in schema.fields(type(section)):
            value = getattr(section, field.name)
            if isinstance(field.meta, Key):
                if is_number(field.meta):
                    yield f"{prefix}{field.yaml}", value
            elif isinstance(field.meta, Section):
                yield from of(value, f"{prefix}{field.yaml}.")
            else:
                for named in value:
                    yield from of(named, f"{prefix}{field.yaml}.{named.name}.")

    return dict(of(system, ""))


def number_keys(system: System) -> dict[str, Key]:
    """How each number of a system is declared, by its key path."""
    leaves = keys.leaf_keys(System, [tier.name for tier in system.tiers])
    return {path: key for path, key in leaves.items() if is_number(key)}


def read_figures(node: Node | None, system: System) -> dict[str, KnownFigure]:
    """The `figures:` of a system's file."""
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, dict):
        raise SpecError(f"{node.where}: figures must map keys to their source, e.g. {_EXAMPLE}")
    values, known = numbers(system), number_keys(system)
    figures = {}
    for path, child in node.value.items():
        _refuse_unknown(path, child.where, "figures", known)
        figures[path] = _read_figure(child, path, known[path], values[path])
    return figures


def _read_figure(node: Node, path: str, key: Key, value: Number | None) -> KnownFigure:
    place = f"{node.where}: figures.{path}"
    if value is None:
        raise SpecError(f"{place}: the system has no {path}; set it or remove the figure")
    if not isinstance(node.value, dict):
        raise SpecError(f"{place} must be a mapping, e.g. {_EXAMPLE}")
    for name, child in node.value.items():
        if name not in (*KINDS, "low", "high"):
            guess = closest(name, [*KINDS, "low", "high"])
            hint = f"did you mean {guess}?" if guess else f"known here: {', '.join(KINDS)}, low, high"
            raise SpecError(f"{child.where}: figures.{path}.{name}: unknown key; {hint}")
    kinds = [name for name in node.value if name in KINDS]
    if len(kinds) != 1:
        problem = f"is {' and '.join(kinds)}" if kinds else "has no source"
        raise SpecError(f"{place} {problem}; give one of {', '.join(KINDS)}")
    (kind,) = kinds
    text = _read_text(node.value[kind], f"figures.{path}.{kind}", KINDS[kind])
    low, high = (_read_end(node, path, end, kind, key) for end in ("low", "high"))
    _refuse_interval(place, path, key, (low, value, high), kind)
    return KnownFigure(value, kind, text, low, high)


def _read_text(node: Node, path: str, asked: str) -> str:
    if not isinstance(node.value, str) or not (text := " ".join(node.value.split())):
        raise SpecError(f"{node.where}: {path} has no text; write {asked}")
    if len(text) > _MOST_TEXT or not text.isprintable():
        raise SpecError(f"{node.where}: {path} must be printable text of at most {_MOST_TEXT} characters")
    return text


def _read_end(node: Node, path: str, end: str, kind: str, key: Key) -> Number | None:
    """An end of the interval. A missing one is told from an open one (null)."""
    assert isinstance(node.value, dict)
    child = node.value.get(end)
    if child is None:
        if kind == "source" and "low" not in node.value and "high" not in node.value:
            return None
        raise SpecError(f"{node.where}: figures.{path}.{end} is missing; set low and high")
    if child.value is None and kind == "fitted":
        return None
    number: Number | None = read_value(key, child, f"figures.{path}.{end}")
    if number is None:
        raise SpecError(f"{child.where}: figures.{path}.{end} has no value; only fitted figures may be open-ended")
    return number


def _refuse_interval(
    place: str, path: str, key: Key, ends: tuple[Number | None, Number, Number | None], kind: str
) -> None:
    low, value, high = ends
    if kind == "fitted" and low is None and high is None:
        raise SpecError(f"{place} is open at both ends; set low or high")
    if low is not None and high is not None and low > high:
        raise SpecError(f"{place}: low = {key.kind.format(low)} is above high = {key.kind.format(high)}; swap them")
    if (low is not None and value < low) or (high is not None and value > high):
        interval = " – ".join("open" if end is None else key.kind.format(end) for end in (low, high))
        raise SpecError(f"{place}: {path} = {key.kind.format(value)} is outside {interval}; correct one of them")


def read_draws(node: Node | None, system: System, figures: Mapping[str, KnownFigure]) -> tuple[Draw, ...]:
    """The `draws:` of a system's file: what was fitted, each time all of it."""
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, list):
        raise SpecError(f"{node.where}: draws must be a list of mappings from keys to values")
    if len(node.value) > MAX_DRAWS:
        raise SpecError(f"{node.where}: draws has {len(node.value)} entries; at most {MAX_DRAWS}: remove some")
    known = number_keys(system)
    left_out = {path for path, value in numbers(system).items() if value is None}
    draws: list[Draw] = []
    for index, child in enumerate(node.value):
        draws.append(_read_draw(child, f"draws[{index}]", known, figures, left_out))
        if draws[-1].keys() != draws[0].keys():
            path = min(draws[-1].keys() ^ draws[0].keys())
            raise SpecError(
                f"{child.where}: draws[{index}] and draws[0] do not both have {path}; draw all keys together"
            )
    return tuple(draws)


def _read_draw(
    node: Node, name: str, known: Mapping[str, Key], figures: Mapping[str, KnownFigure], left_out: Collection[str]
) -> Draw:
    """`left_out`: limits that the system has not, and some of its draws may have."""
    if not isinstance(node.value, dict) or not node.value:
        raise SpecError(f"{node.where}: {name} must map keys to values, e.g. tiers.gfs.metadata_ops: 900/s")
    draw: dict[str, Number | None] = {}
    for path, child in node.value.items():
        _refuse_unknown(path, child.where, name, known)
        if path not in left_out and (path not in figures or figures[path].kind == "source"):
            raise SpecError(
                f"{child.where}: {name}.{path}: only figures that are fitted or assumed can be drawn; add figures.{path} as fitted"
            )
        value: Number | None = read_value(known[path], child, f"{name}.{path}")
        if value is None and path not in left_out:
            raise SpecError(f"{child.where}: {name}.{path} has no value; add one or remove the draw")
        draw[path] = value
    return draw


def _refuse_unknown(path: str, where: str, section: str, known: Mapping[str, Key]) -> None:
    if path in known:
        return
    guess = closest(path, known)
    hint = f"did you mean {guess}?" if guess else "write its full path, e.g. tiers.gfs.bandwidth"
    raise SpecError(f"{where}: {section}.{path}: is not a number of this system; {hint}")


def figure_lines(figures: Mapping[str, KnownFigure], system: System) -> Iterator[str]:
    """As `read_figures` reads them."""
    known = number_keys(system)
    if figures:
        yield "figures:"
    for path, figure in figures.items():
        yield f"  {path}:"
        yield f"    {figure.kind}: {scalar(figure.text)}"
        if figure.kind != "source" or figure.low is not None:
            for end, value in (("low", figure.low), ("high", figure.high)):
                yield f"    {end}: {scalar(None if value is None else known[path].kind.format(value))}"


def draw_lines(draws: Sequence[Draw], system: System) -> Iterator[str]:
    """As `read_draws` reads them."""
    known = number_keys(system)
    if draws:
        yield "draws:"
    for draw in draws:
        for place, (path, value) in enumerate(draw.items()):
            yield f"{'  ' if place else '- '}{path}: {scalar(None if value is None else known[path].kind.format(value))}"
