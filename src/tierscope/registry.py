"""A literal table of the things that can be chosen by name at one extension point.

Each entry names the module and attribute that implement it, when to choose it, the extra that installs what it needs, and what it can do:
the facts by which a study is checked before anything is loaded. So listing names and asking what they can do costs no import, and a
missing package gets the one line that cures it. Where others may add things of their own, names that are not in the table are looked up among
the entry points of installed packages.

A module that holds a registry imports no room, and names modules of its own room only. So anyone may import a registry, `spec` too, and
every name is written once (docs/decisions.md).
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tierscope.errors import UserError
from tierscope.units import closest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
E = TypeVar("E", bound="Entry")


@dataclass(frozen=True, slots=True)
class Entry:
    """An extension point whose things differ in what they can do has an entry of its own, with those facts as fields."""

    target: str  # "package.module:attribute"
    what: str  # one line: when to choose it
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Registry(Generic[T, E]):
    noun: str
    entries: Mapping[str, E]
    plugins: str | None = None  # the group of entry points that add to it

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __getitem__(self, name: str) -> E:
        """What is known of a thing without loading it."""
        if name not in self.entries:
            guess = closest(name, self.entries)
            hint = f"did you mean {guess}?" if guess else f"known: {', '.join(self.entries)}"
            raise UserError(f"{self.noun} '{name}' is unknown; {hint}")
        return self.entries[name]

    def where(self, fact: Callable[[E], object]) -> tuple[str, ...]:
        """The names of those of whom it is so."""
        return tuple(name for name, entry in self.entries.items() if fact(entry))

    def load(self, name: str) -> T:
        if name not in self.entries and (plugin := self._plugin(name)):
            return self._load_plugin(plugin)
        entry = self[name]
        module, _, attribute = entry.target.partition(":")
        try:
            loaded: Any = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if entry.extra is None or (error.name or "").startswith("tierscope"):
                raise
            fix = f"pip install 'tierscope[{entry.extra}]'"
            raise UserError(f"{self.noun} '{name}' needs the package {error.name}; {fix}") from error
        return loaded  # type: ignore[no-any-return]

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
                f"{self.noun} '{plugin.name}' ({plugin.value}) cannot be loaded: {error}; reinstall its package"
            ) from error
