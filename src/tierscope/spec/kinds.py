"""The kinds of value that a key in a study may have: how each is read, checked and written back.

A kind turns the text of a YAML scalar into a typed value, or raises ValueError with the reason. All kinds
read text, not what YAML made of it, so that `off`, `1e3` and `0:30` mean what they say.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from tierscope import units
from tierscope.units import closest

_UNLIMITED = "unlimited"  # a rate that nobody waits for


class Kind(Protocol):
    def parse(self, text: str) -> Any:
        """The typed value, or ValueError with the rest of the sentence 'key = value …'."""

    def format(self, value: Any) -> str:
        """Text that parses to the same value."""


class Bounded:
    """A quantity with limits, read and written by a pair of functions of `units`.

    Beside the limits of a key, every kind has those of physics: what is nearer to zero than `least`, or beyond `most`, is a slip, and would make
    sums and quotients of it infinite.
    """

    noun = "a number"
    least: float = 0
    most: float | None = None

    def __init__(self, low: float | None = None, high: float | None = None, above: float | None = None) -> None:
        self._low, self._high, self._above = low, high, above

    def _read(self, text: str) -> Any:
        raise NotImplementedError

    def format(self, value: Any) -> str:
        return str(value)

    def amount(self, text: str) -> Any:
        """The value without its limits: the step of a range."""
        try:
            return self._read(text)
        except ValueError as error:
            known = self.noun in str(error) or "write it like" in str(error)
            raise ValueError(str(error) if known else f"{error} (expected {self.noun})") from None

    def parse(self, text: str) -> Any:
        value = self.amount(text)
        too_low = (self._low is not None and value < self._low) or (self._above is not None and value <= self._above)
        too_high = self._high is not None and value > self._high
        if too_low or too_high:
            raise ValueError(f"must be {self._limits()}")
        if 0 < abs(value) < self.least:
            raise ValueError(f"must be {'0 or ' if self._above is None else ''}at least {self.format(self.least)}")
        if self.most is not None and value > self.most:
            raise ValueError(f"must be at most {self.format(self.most)}")
        return value

    def nearest(self, value: float) -> float:
        """The closest value that `parse` takes: what was computed may be beyond a limit, or what rounding left of 0."""
        if 0 < abs(value) < self.least:
            value = 0.0
        value = min(value, *(most for most in (self._high, self.most) if most is not None), math.inf)
        value = max(value, -math.inf if self._low is None else self._low)
        return self.least if self._above is not None and value <= self._above else value

    def _limits(self) -> str:
        if self._low is not None and self._high is not None:
            return f"within {self.format(self._low)} – {self.format(self._high)}"
        if self._above is not None:
            return f"more than {self.format(self._above)}"
        if self._low is not None:
            return f"at least {self.format(self._low)}"
        return f"at most {self.format(self._high)}"


class Integer(Bounded):
    noun = "a whole number"

    def _read(self, text: str) -> int:
        cleaned = text.strip().replace("_", "")
        if not re.fullmatch(r"[+-]?\d{1,300}", cleaned):
            raise ValueError("must be a whole number")
        return int(cleaned)


class Bytes(Bounded):
    noun = "a size like 128 KiB"

    def _read(self, text: str) -> int:
        return units.parse_bytes(text)

    def format(self, value: int) -> str:
        return units.format_bytes(value)


class Seconds(Bounded):
    noun = "a time like 1.5 ms"
    least = 1e-12
    most = 1e10

    def _read(self, text: str) -> float:
        return units.parse_seconds(text)

    def format(self, value: float) -> str:
        return units.format_seconds(value)


class Rate(Bounded):
    noun = "operations per second like 900/s"
    least = 1e-6
    most = 1e15

    def _read(self, text: str) -> float:
        return self.most if text.strip() == _UNLIMITED else units.parse_rate(text)

    def format(self, value: float) -> str:
        return _UNLIMITED if value == self.most else units.format_rate(value)


class Bandwidth(Bounded):
    noun = "bytes per second like 40 MiB/s"
    least = 1e-3
    most = 1e21

    def _read(self, text: str) -> float:
        return self.most if text.strip() == _UNLIMITED else units.parse_bandwidth(text)

    def format(self, value: float) -> str:
        return _UNLIMITED if value == self.most else units.format_bandwidth(value)


class Flops(Bounded):
    noun = "operations per second like 15.7 TFLOP/s"
    least = 1.0
    most = 1e27

    def _read(self, text: str) -> float:
        return units.parse_flops(text)

    def format(self, value: float) -> str:
        return units.format_flops(value)


class Fraction(Bounded):
    noun = "a fraction or a percentage like 65%"
    least = 1e-9
    most = 1e9

    def _read(self, text: str) -> float:
        return units.parse_fraction(text)

    def format(self, value: float) -> str:
        return units.format_fraction(value)


class Choice:
    def __init__(self, *names: str) -> None:
        self.names: Sequence[str] = names

    def parse(self, text: str) -> str:
        if text in self.names:
            return text
        guess = closest(text, self.names)
        known = (
            f"must be {' or '.join(self.names)}" if len(self.names) < 3 else f"must be one of {', '.join(self.names)}"
        )
        raise ValueError(f"{known}; did you mean {guess}?" if guess else known)

    def format(self, value: str) -> str:
        return value


class Registered(Choice):
    """One of the names that a registry holds when the value is read."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return tuple(self._names())


class Dimensions:
    """Sides of a tensor, like 3x224x224, or only one; kept as text."""

    def parse(self, text: str) -> str:
        if not re.fullmatch(r"[1-9]\d{0,6}(x[1-9]\d{0,6}){0,4}", text):
            raise ValueError("must be whole numbers joined by x, like 3x224x224")
        return text

    def format(self, value: str) -> str:
        return value


class Flag:
    def parse(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError("must be true or false")
        return text == "true"

    def format(self, value: bool) -> str:
        return "true" if value else "false"


class FlagOr:
    """True, false, or more than true."""

    def __init__(self, *names: str) -> None:
        self.names = ("true", "false", *names)

    def parse(self, text: str) -> bool | str:
        name = Choice(*self.names).parse(text)
        return name == "true" if name in ("true", "false") else name

    def format(self, value: bool | str) -> str:
        return value if isinstance(value, str) else "true" if value else "false"


class Name:
    """A word that is safe in file names, tables and pages."""

    def parse(self, text: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
            raise ValueError("must be letters, digits, '.', '_' or '-', starting with a letter or digit, at most 64")
        return text

    def format(self, value: str) -> str:
        return value


_MOST_PATH = 4096  # characters: no system takes more


class PathPattern:
    """A directory, with {out}, {node} and environment variables to be filled in on each node."""

    def parse(self, text: str) -> str:
        if not text.strip() or "\0" in text or "\n" in text or len(text) > _MOST_PATH:
            raise ValueError("must be a directory")
        for placeholder in re.findall(r"\{([^}]*)\}", text):
            if placeholder not in ("out", "node"):
                raise ValueError(f"has the unknown placeholder {{{placeholder}}}; known: {{out}}, {{node}}")
        return text

    def format(self, value: str) -> str:
        return value


class Optional:
    """A kind that may also be left out or `null`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def parse(self, text: str) -> Any:
        return self.kind.parse(text)

    def format(self, value: Any) -> str:
        return self.kind.format(value)
