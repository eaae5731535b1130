"""A literal table of the things that can be chosen by name at one extension point.

Each entry names the module and attribute that implement it and the extra that installs what it needs, so
that listing names costs no import and a missing package gets the one line that cures it.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tierscope.errors import UserError
from tierscope.units import closest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    target: str  # "package.module:attribute"
    what: str  # one line: when to choose it
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    noun: str
    entries: Mapping[str, Entry]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def load(self, name: str) -> T:
        if name not in self.entries:
            guess = closest(name, self.entries)
            hint = f"did you mean {guess}?" if guess else f"known: {', '.join(self.entries)}"
            raise UserError(f"{self.noun} '{name}' is unknown; {hint}")
        entry = self.entries[name]
        module, _, attribute = entry.target.partition(":")
        try:
            found: Any = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if entry.extra is None or (error.name or "").startswith("tierscope"):
                raise
            fix = f"pip install 'tierscope[{entry.extra}]'"
            raise UserError(f"{self.noun} '{name}' needs the package {error.name}; {fix}") from error
        return found  # type: ignore[no-any-return]
