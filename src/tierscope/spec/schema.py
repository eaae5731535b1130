"""How a section of a study is declared: a frozen dataclass whose fields carry their kind and their help.

One definition per key: reading, checking, printing, sweeping and documenting it all come from here.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any

from tierscope.spec.kinds import Kind


@dataclass(frozen=True, slots=True)
class Key:
    """A scalar setting. `dumped`: written also where it has its default, as all are that results have always had."""

    kind: Kind
    help: str
    dumped: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """A nested mapping with fixed keys."""

    type: type
    help: str


@dataclass(frozen=True, slots=True)
class NamedSections:
    """A mapping from names that the user chooses to sections, in order (the tiers)."""

    type: type
    help: str


_REQUIRED = dataclasses.MISSING
_META = "tierscope"


def key(kind: Kind, help: str, default: Any = _REQUIRED, yaml: str | None = None, dumped: bool = True) -> Any:  # noqa: A002
    return dataclasses.field(default=default, metadata={_META: Key(kind, help, dumped), "yaml": yaml})


def section(type_: type, help: str, default: Any = _REQUIRED) -> Any:  # noqa: A002
    """`default`: for studies that are put together in Python; one from YAML has every section."""
    return dataclasses.field(default=default, metadata={_META: Section(type_, help)})


def named_sections(type_: type, help: str) -> Any:  # noqa: A002
    return dataclasses.field(metadata={_META: NamedSections(type_, help)})


@dataclass(frozen=True, slots=True)
class Field:
    name: str  # of the dataclass field
    yaml: str  # of the key in YAML
    meta: Key | Section | NamedSections
    default: Any

    @property
    def required(self) -> bool:
        return isinstance(self.meta, Key) and self.default is _REQUIRED


def fields(section_type: type) -> tuple[Field, ...]:
    """The keys of a section, in the order in which they are declared and printed."""
    return _fields(section_type)


@cache
def _fields(section_type: type) -> tuple[Field, ...]:
    return tuple(
        Field(field.name, field.metadata.get("yaml") or field.name, field.metadata[_META], field.default)
        for field in dataclasses.fields(section_type)
        if _META in field.metadata
    )
