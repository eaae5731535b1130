"""What rules about DLIO's keys work with: the keys that are given, and the study that is being made of them."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tierscope.errors import SpecError
from tierscope.spec.build import read_value
from tierscope.spec.kinds import Kind
from tierscope.spec.schema import Key
from tierscope.spec.tree import Node

MAPPED, NOTED, REFUSED = "mapped", "no effect here", "refused"
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """What a file of DLIO says about its metrics: the goal for accelerator utilisation, and steps that do not count."""

    au: float | None = None
    exclude_start_steps: int = 1
    exclude_end_steps: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One key of DLIO. `to`: keys of ours. `apply`: None where a family of keys is read together. `whole`: may be a list or a mapping."""

    path: str
    does: str
    says: str
    to: tuple[str, ...] = ()
    apply: "Callable[[Making, Node], None] | None" = None
    whole: bool = False


@dataclass(slots=True)
class Making:
    """`given`: nodes by DLIO's path, nulls left out."""

    given: Mapping[str, Node]
    tree: Node
    own_system: bool
    wanted: MetricOptions = field(default_factory=MetricOptions)
    generates_only: bool = False  # nothing is trained, and no checkpoint is written
    _notes: dict[str, list[str]] = field(default_factory=dict)

    def put(self, path: str, value: str | None, where: str) -> None:
        self.tree = self.tree.set(path.split("."), Node(value, where))

    def note(self, path: str, reason: str) -> None:
        self._notes.setdefault(reason, []).append(path)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{', '.join(dict.fromkeys(paths))}: {reason}" for reason, paths in self._notes.items())

    def refuse(self, path: str, reason: str) -> NoReturn:
        node = self.given[path]
        shown = f" = {_short(node.value)}" if isinstance(node.value, str) else ""
        raise SpecError(f"{node.where}: {path}{shown}; {reason}")

    def text(self, path: str, default: str = "") -> str:
        node = self.given.get(path)
        return node.value if node is not None and isinstance(node.value, str) else default

    def where(self, path: str) -> str:
        node = self.given.get(path)
        return node.where if node is not None else f"{self.tree.where} (DLIO's default of {path})"

    def read(self, path: str, kind: Kind, help_: str, default: Any) -> Any:
        """A value that we compute with."""
        node = self.given.get(path)
        return default if node is None else read_value(Key(kind, help_), node, path)

    def flag(self, path: str, default: bool = False) -> bool:
        text = self.text(path).lower()
        if path in self.given and text not in (*_YES, *_NO):
            self.refuse(path, "must be True or False")
        return default if path not in self.given else text in _YES

    def numbers(self, path: str) -> list[int]:
        """A list of whole numbers above 0."""
        value = self.given[path].value
        texts = [child.value for child in value] if isinstance(value, list) else [value]
        numbers = [int(text) for text in texts if isinstance(text, str) and text.isdecimal() and 0 < len(text) <= 15]
        if len(numbers) != len(texts) or 0 in numbers or not numbers:
            self.refuse(path, "must be a list of whole numbers above 0, e.g. [256, 256]")
        return numbers


def is_off(text: str) -> bool:
    return text.lower() in _NO


def whole(text: str) -> str:
    """A number of bytes as DLIO may write it (114660.07), rounded; anything else as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return text if text.isdecimal() or not abs(value) < 2**53 else str(round(value))


def amount(path: str, node: Node) -> float:
    """Seconds that we compute with."""
    text = node.value if isinstance(node.value, str) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise SpecError(f"{node.where}: {path} = {_short(text)}; must be a number of seconds, 0 or more")
    return value


def product(sizes: list[int], cap: int = 2**62) -> int:
    """Of the sizes, or the cap: what is too large is said where the number is used."""
    return next((size for size in itertools.accumulate(sizes, lambda a, b: a * b) if size > cap), math.prod(sizes))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
