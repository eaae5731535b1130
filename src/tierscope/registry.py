"""A literal table of the things that can be chosen by name at one extension point.

Each entry names the module and attribute that implement it and the extra that installs what it needs, so
that listing names costs no import and a missing package gets the one line that cures it. Where others may add
things of their own, names that are not in the table are looked up among the entry points of installed packages.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tierscope.errors import UserError
from tierscope.units import closest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    plugins: str | None = None  # the group of entry points that add to it

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def load(self, name: str) -> T:
        if name not in self.entries:
            if plugin := self._plugin(name):
                return self._load_plugin(plugin)
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

    def _plugin(self, name: str) -> "EntryPoint | None":
        """One of ours is never replaced by it."""
        if self.plugins is None:
            return None
        from importlib.metadata import entry_points  # noqa: PLC0415  (slow, and rarely wanted)

        return next(iter(entry_points(group=self.plugins, name=name)), None)

    def _load_plugin(self, plugin: "EntryPoint") -> T:
        try:
            return plugin.load()  # type: ignore[no-any-return]
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"{self.noun} '{plugin.name}' ({plugin.value}) cannot be loaded: {error}; install its package again"
            ) from error
