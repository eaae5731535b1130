"""Quantities as people write them (`128 KiB`, `1.5 ms`, `900/s`, `65%`) to base units and back.

Everything inside Tierscope is in bytes, seconds, operations per second, bytes per second and fractions;
only this module converts. A bare number is in base units. `format_x(parse_x(text))` keeps the value exactly.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
BYTE_UNITS = {"B": 1, **_BINARY, **_DECIMAL, "KB": 10**3}
FLOP_UNITS = {"FLOP": 1, "MFLOP": 10**6, "GFLOP": 10**9, "TFLOP": 10**12, "PFLOP": 10**15}
SECOND_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}

_QUANTITY = re.compile(r"([+-]?(?:\d[\d_]*+\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?)\s*+([^\d\s].*+)?")
_LARGE = 999.5  # three digits would need an exponent
_MAX_DIGITS = 400  # beyond any number that is meant


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if any is near enough."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


@lru_cache(maxsize=4096)  # every point of a sweep reads the same few
def _split(text: str) -> tuple[Fraction, str]:
    """Number, exactly as written, and unit: in floats 16.1 kB would not be a whole number of bytes."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        raise ValueError("is not a number")
    digits = match[1].replace("_", "")
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("is too large")
    exact = Fraction(digits) if number and len(digits) < _MAX_DIGITS else Fraction(number)
    return exact, (match[2] or "").strip()


def _parse(text: str, units: dict[str, float] | dict[str, int], example: str) -> Fraction:
    number, unit = _split(text)
    if not unit:
        return number
    if unit not in units:
        guess = next((known for known in units if known.lower() == unit.lower()), closest(unit, units))
        hint = f"did you mean {guess}?" if guess else f"write it like {example}"
        raise ValueError(f"has the unknown unit '{unit}'; {hint}")
    return number * _split(str(units[unit]))[0]


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("is too large") from None


def parse_bytes(text: str) -> int:
    value = _parse(text, BYTE_UNITS, "128 KiB")
    if abs(value) >= 2**63:
        raise ValueError("is too large")
    if value.denominator != 1:
        raise ValueError("is not a whole number of bytes")
    return int(value)


def parse_seconds(text: str) -> float:
    return _float(_parse(text, SECOND_UNITS, "1.5 ms"))


def parse_rate(text: str) -> float:
    """Operations per second: `900/s` or a bare number."""
    body, slash, unit = text.strip().partition("/")
    if slash and unit.strip() != "s":
        raise ValueError("must be per second; write it like 900/s")
    number, rest = _split(body)
    if rest:
        raise ValueError(f"has the unknown unit '{rest}'; write it like 900/s")
    return _float(number)


def parse_bandwidth(text: str) -> float:
    """Bytes per second: `40 MiB/s` or a bare number."""
    body, slash, unit = text.strip().partition("/")
    if slash and unit.strip() != "s":
        raise ValueError("must be per second; write it like 40 MiB/s")
    value = _parse(body, BYTE_UNITS, "40 MiB/s")
    if not slash and _split(body)[1]:
        raise ValueError("is an amount, not a rate; write it like 40 MiB/s")
    return _float(value)


def parse_flops(text: str) -> float:
    """Floating-point operations per second: `15.7 TFLOP/s` or a bare number."""
    body, slash, unit = text.strip().partition("/")
    if slash and unit.strip() != "s":
        raise ValueError("must be per second; write it like 15.7 TFLOP/s")
    value = _parse(body, FLOP_UNITS, "15.7 TFLOP/s")
    if not slash and _split(body)[1]:
        raise ValueError("is an amount, not a rate; write it like 15.7 TFLOP/s")
    return _float(value)


def parse_fraction(text: str) -> float:
    body = text.strip()
    if body.endswith("%"):
        number, rest = _split(body[:-1])
        value = number / 100
    else:
        number, rest = _split(body)
        value = number
    if rest:
        raise ValueError("must be a fraction or a percentage; write it like 0.65 or 65%")
    return _float(value)


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _exact(value: float, candidates: Iterable[str], parse: Callable[[str], float], suffix: str = "") -> str:
    """The first candidate that reads back as exactly the value."""
    for text in candidates:
        if parse(text) == value:
            return text
    return f"{_number(value)}{suffix}"


def _in_bytes(value: float) -> str:
    if value != int(value):
        return f"{value!r} B"
    whole = int(value)
    units = sorted({**_BINARY, **_DECIMAL}.items(), key=lambda item: item[1], reverse=True)
    texts = (f"{whole // factor} {unit}" for unit, factor in units if whole and whole % factor == 0)
    return next(texts, f"{whole} B")


def format_bytes(value: int) -> str:
    """Exact, in the largest unit that divides it: 131072 → `128 KiB`."""
    return _in_bytes(value)


def format_bandwidth(value: float) -> str:
    return f"{_in_bytes(value)}/s"


def format_flops(value: float) -> str:
    unit = next((unit for unit in ("PFLOP", "TFLOP", "GFLOP") if value >= FLOP_UNITS[unit]), "FLOP")
    scaled = round(value / FLOP_UNITS[unit], 9)
    return _exact(value, [f"{_number(scaled)} {unit}/s"], parse_flops)


def format_rate(value: float) -> str:
    return f"{_number(value)}/s"


def format_fraction(value: float) -> str:
    percent = round(value * 100, 10)
    return _exact(value, [f"{_number(percent)}%"], parse_fraction)


def format_seconds(value: float) -> str:
    unit = "s" if value == 0 or value >= 1 else "ms" if value >= 1e-3 else "us"
    scaled = round(value / SECOND_UNITS[unit], 9)
    return _exact(value, [f"{_number(scaled)} {unit}"], parse_seconds, " s")


def format_money(amount: float) -> str:
    """Grouped, and never in powers of ten; in whatever money prices are."""
    return f"{Decimal(f'{amount:.6g}'):,f}" if abs(amount) < 999_999.5 else f"{amount:,.0f}"


def counted(amount: int, noun: str, grouped: bool = False) -> str:
    """An amount with its noun: 1 → `1 file`, 2 → `2 files`; `grouped`: 1234 → `1,234 files`."""
    ending = "" if amount == 1 else "es" if noun.endswith(("s", "x")) else "s"
    return f"{amount:,} {noun}{ending}" if grouped else f"{amount} {noun}{ending}"


def about_bytes(value: float) -> str:
    """Rounded, for reading: 201_326_592 → `192 MiB`."""
    for unit, factor in reversed(_BINARY.items()):
        if value >= factor:
            return f"{value / factor:.3g} {unit}" if value / factor < _LARGE else f"{value / factor:.0f} {unit}"
    return f"{value:.0f} B"


def about_bandwidth(value: float) -> str:
    """Rounded, in the decimal units that systems are described in: 2_520_000_000 → `2.52 GB/s`."""
    for unit, factor in reversed(_DECIMAL.items()):
        if float(f"{value:.3g}") >= factor:
            return f"{about_number(value / factor)} {unit}/s"
    return f"{value:.3g} B/s"


def about_flops(value: float) -> str:
    """Rounded, for reading: 68_862_099_968 → `68.9 GFLOP`."""
    for unit, factor in reversed(FLOP_UNITS.items()):
        if value >= factor:
            return f"{about_number(value / factor)} {unit}"
    return f"{value:.3g} FLOP"


def about_number(value: float) -> str:
    """Rounded, for reading: 1.2345 → `1.23`, 1024.3 → `1,024`."""
    return f"{value:.3g}" if abs(value) < _LARGE else f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.3g}"


def about_seconds(value: float) -> str:
    """Rounded, for reading: 0.00123 → `1.23 ms`, 12345.6 → `12,346 s`."""
    if value < 0:
        return f"-{about_seconds(-value)}"
    if value >= _LARGE:
        return f"{about_number(value)} s"
    for unit in ("s", "ms", "µs", "ns"):
        text = f"{value / SECOND_UNITS[unit]:.3g}"
        if float(text) >= 1:  # after rounding: 999.96 ms are 1 s
            return f"{text} {unit}"
    return "<1 ns" if value > 0 else f"{value:.3g} ns"
