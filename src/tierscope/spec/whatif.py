"""What users ask on the command line: improvements of classes in percent, ranges of them, and a goal."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tierscope.errors import UserError
from tierscope.spec.goal import Goal, GoalKind
from tierscope.spec.kinds import Seconds
from tierscope.spec.sweep import split_range, spread
from tierscope.units import closest, parse_seconds

T = TypeVar("T")

_SMALLEST = 1e-9  # above zero: what is less is a slip, and quotients of it are infinite
LEAST, MOST = -99.9, 1e6  # percent that a class can be improved by


def read_improvements(texts: Iterable[str], classes: Iterable[str]) -> dict[str, float]:
    """`GFS-META=50`: 50 % more throughput in that class; below zero: less."""
    return _read_all("--improve", texts, list(classes), _percent, "GFS-META=50")


def read_variations(texts: Iterable[str], classes: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """`GFS-META=0:200:10`, `GFS-META=0..200 step 10` or `GFS-META=0,50,100`; ascending."""
    return _read_all("--vary", texts, list(classes), _percents, "GFS-META=0:200:10")


def read_goal(text: str) -> Goal:
    """`io=4s`, `epoch=10min` or `au=90%`; a bare time is one of I/O."""
    try:
        return GoalKind().parse(text)
    except ValueError as error:
        raise UserError(f"--goal {text}: {error}") from None


def read_duration(option: str, text: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}; write it like 4s, 400ms or 2min") from None
    if not seconds > 0:
        raise UserError(f"{option} {text}: must be above 0, e.g. 4s")
    try:
        return float(Seconds(above=0).parse(text))
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None


def _read_all(
    option: str, texts: Iterable[str], known: list[str], read: Callable[[str], T], example: str
) -> dict[str, T]:
    values: dict[str, T] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} {text}: has no value; write it like {example}")
        resolved = _resolve(option, name.strip(), known)
        if resolved in values:
            raise UserError(f"{option} {text}: {resolved} is given twice; remove one")
        if not value.strip():
            raise UserError(f"{option} {text}: has no value; write it like {example}")
        try:
            values[resolved] = read(value.strip())
        except ValueError as error:
            raise UserError(f"{option} {text}: {value.strip()} {error}; write it like {example}") from None
    return values


def _resolve(option: str, name: str, known: list[str]) -> str:
    by_lower: Mapping[str, str] = {class_name.lower(): class_name for class_name in known}
    if name in known or name.lower() in by_lower:
        return name if name in known else by_lower[name.lower()]
    guess = closest(name.lower(), by_lower)
    hint = f"did you mean {by_lower[guess]}? " if guess else ""
    raise UserError(f"{option} {name}: no such class; {hint}choose from {', '.join(known)}")


def _number(text: str) -> float:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    if 0 < abs(number) < _SMALLEST:
        raise ValueError(f"must be 0 or at least {_SMALLEST:g}")
    return number


def _percent(text: str) -> float:
    number = _number(text.removesuffix("%").strip())
    if not LEAST <= number <= MOST:
        raise ValueError(f"must be within {LEAST:g} and {MOST:,.0f} percent")
    return number


def _percents(text: str) -> tuple[float, ...]:
    parts = split_range(text)
    values = spread(*(_percent(part) for part in parts)) if parts else [_percent(part) for part in text.split(",")]
    if len(set(values)) != len(values):
        raise ValueError("has a value twice; remove one")
    return tuple(sorted(values))
