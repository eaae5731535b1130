"""The one way in for JSON of any origin: every key once, finite numbers, text that is Unicode, and no deeper than any document of ours."""

import json
import math
from collections import Counter
from typing import Any

MOST_NESTED = 64


def parse_json(content: bytes | str, finite: bool = True) -> Any:
    """Plain data; ValueError says why there is none. A key that is given twice means two things, so it is refused, as are numbers that
    are none, text that is no Unicode, and nesting beyond any document of ours. `finite`: false where infinity and NaN are news."""
    try:
        plain = json.loads(
            content,
            object_pairs_hook=_once,
            parse_constant=_refused_number if finite else None,
            parse_float=_finite if finite else None,
        )
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    _check_texts(plain)
    return plain


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{twice[:64]} is given twice")
    return document


def _refused_number(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:32]} is too large a number")
    return number


def _check_texts(plain: Any) -> None:
    left = [(plain, 0)]
    while left:
        value, depth = left.pop()
        if depth > MOST_NESTED:
            raise ValueError("is nested too deeply")
        if isinstance(value, str):
            value.encode()  # a lone surrogate is a ValueError
        elif isinstance(value, dict):
            left += ((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            left += ((part, depth + 1) for part in value)
