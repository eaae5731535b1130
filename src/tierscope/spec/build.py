"""Tree of nodes → checked specs, with one clear line for the first thing that is wrong."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from tierscope.errors import SpecError
from tierscope.spec import schema
from tierscope.spec.goal import GoalKind
from tierscope.spec.kinds import Optional
from tierscope.spec.schema import Key, NamedSections, Section
from tierscope.spec.tree import Node
from tierscope.units import closest

T = TypeVar("T")


def build_section(section_type: type[T], node: Node, path: str = "", also: Sequence[str] = (), **given: Any) -> T:
    """A section from its mapping; `given` are fields that have no key of their own, `also` keys read elsewhere."""
    mapping = _mapping(node, path)
    known = {field.yaml: field for field in schema.fields(section_type)}
    for name, child in mapping.items():
        if name not in known:
            raise SpecError(f"{child.where}: {_join(path, name)}: unknown key; {_suggest(name, [*known, *also])}")
    values: dict[str, Any] = dict(given)
    for name, field in known.items():
        full = _join(path, name)
        child_node = mapping.get(name)
        match field.meta:
            case Section(type=inner):
                values[field.name] = build_section(inner, child_node or Node({}, node.where), full)
            case NamedSections(type=inner):
                values[field.name] = _build_named(inner, child_node, node, full)
            case Key() if child_node is not None:
                values[field.name] = read_value(field.meta, child_node, full)
            case Key() if field.required:
                raise SpecError(f"{node.where}: {full} is missing; {field.meta.help}: add it")
    return section_type(**values)


def read_value(key: Key, node: Node, path: str) -> Any:
    """The typed value of a scalar node; a goal may be a mapping of its kind to its value."""
    if isinstance(node.value, dict) and isinstance(key.kind, Optional) and isinstance(key.kind.kind, GoalKind):
        node = _joined(key.kind.kind, node, path)
    if isinstance(node.value, dict | list):
        kind = "a mapping" if isinstance(node.value, dict) else "a list"
        raise SpecError(f"{node.where}: {path} is {kind}; must be a single value ({key.help})")
    if node.value is None:
        if isinstance(key.kind, Optional):
            return None
        raise SpecError(f"{node.where}: {path} has no value; {key.help}: add a value or remove the key")
    try:
        return key.kind.parse(node.value)
    except ValueError as error:
        raise SpecError(f"{node.where}: {path} = {_show(node.value)}; {error}") from None


def _joined(kind: GoalKind, node: Node, path: str) -> Node:
    assert isinstance(node.value, dict)
    texts: dict[str, str | None] = {}
    for name, child in node.value.items():
        if isinstance(child.value, dict | list):
            raise SpecError(f"{child.where}: {path}.{name} must be a single value, e.g. {{epoch: 10 min}}")
        texts[name] = child.value
    try:
        return Node(kind.joined(texts), node.where)
    except ValueError as error:
        raise SpecError(f"{node.where}: {path}: {error}") from None


def _show(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"


def _build_named(inner: type[T], named: Node | None, parent: Node, path: str) -> tuple[T, ...]:
    if named is None:
        raise SpecError(f"{parent.where}: {path} is missing; name at least one storage tier and its path")
    mapping = _mapping(named, path)
    if not mapping:
        raise SpecError(f"{named.where}: {path} is empty; name at least one storage tier and its path")
    for name, child in mapping.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,15}", name):
            raise SpecError(
                f"{child.where}: {path}.{name}: a tier name must be lower-case letters, digits and '_', at most 16"
            )
    return tuple(build_section(inner, child, _join(path, name), name=name) for name, child in mapping.items())


def _mapping(node: Node, path: str) -> dict[str, Node]:
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        raise SpecError(f"{node.where}: {path or 'the study'} must be a mapping of keys to values")
    return node.value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _suggest(name: str, known: list[str]) -> str:
    guess = closest(name, known)
    return f"did you mean {guess}?" if guess else f"known here: {', '.join(known)}"
