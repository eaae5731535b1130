"""Specs → YAML that reads back as the same study; every key, block style, each with its help."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

import yaml

from tierscope.jsonable import SweepValues
from tierscope.spec import keys, schema
from tierscope.spec.build import read_value
from tierscope.spec.goal import Goal
from tierscope.spec.kinds import Kind
from tierscope.spec.schema import Key, NamedSections, Section
from tierscope.spec.study import Study, StudyCase
from tierscope.spec.tree import Node

T = TypeVar("T")

_INDENT = "  "
_PLAIN = re.compile(r"[A-Za-z0-9](?:[\w ./%+-]*[\w/%+-])?", re.ASCII)


def to_yaml(study: Study, comments: bool = False) -> str:
    """The resolved study."""
    lines = list(section_lines(study, 0, comments))
    return "\n".join(lines) + "\n"


def section_lines(section: Any, depth: int = 0, comments: bool = False) -> Iterator[str]:
    """Every key of a section, a line each."""
    pad = _INDENT * depth
    for field in schema.fields(type(section)):
        value = getattr(section, field.name)
        match field.meta:
            case Key(dumped=False) if value == field.default and not comments:
                continue
            case Key(kind=kind, help=help_):
                yield _commented(f"{pad}{field.yaml}: {_written(kind, value)}", help_, comments)
            case Section(help=help_):
                inside = list(section_lines(value, depth + 1, comments))
                if inside:  # else none of its keys is written
                    yield _commented(f"{pad}{field.yaml}:", help_, comments)
                yield from inside
            case NamedSections(help=help_):
                yield _commented(f"{pad}{field.yaml}:", help_, comments)
                for named in value:
                    yield f"{pad}{_INDENT}{named.name}:"
                    yield from section_lines(named, depth + 2, comments)
        if isinstance(section, Study) and field.yaml == "placement":
            yield from _case_lines(section)
            yield from _sweep_lines(section)


def _case_lines(study: Study) -> Iterator[str]:
    leaves = _leaves(study)
    if study.cases:
        yield "cases:"
    for case in study.cases:
        yield f"{_INDENT}{case.name}:" if case.settings else f"{_INDENT}{case.name}: {{}}"
        for path, value in case.settings.items():
            yield f"{_INDENT * 2}{path}: {scalar(_text(leaves[path].kind, value))}"


def _sweep_lines(study: Study) -> Iterator[str]:
    if not study.sweep:
        yield "sweep: {}"
        return
    leaves = _leaves(study)
    yield "sweep:"
    last = 0
    for axis in study.sweep:
        pad = _INDENT * 2 if axis.zipped else _INDENT
        if axis.zipped and not last:
            yield f"{_INDENT}zip:"
        yield f"{_INDENT}- {axis.path}:" if axis.zipped > last else f"{pad}{axis.path}:"
        last = axis.zipped
        yield from (f"{pad}- {scalar(_text(leaves[axis.path].kind, value))}" for value in axis.values)


def _commented(line: str, help_: str, comments: bool) -> str:
    return f"{line:<51} # {help_}" if comments else line


def _written(kind: Kind, value: Any) -> str:
    """As YAML: a goal of another kind than I/O is a mapping."""
    text = _text(kind, value)
    if isinstance(value, Goal) and text and "=" in text:
        return f"{{{text.replace('=', ': ', 1)}}}"
    return scalar(text)


def _text(kind: Kind, value: Any) -> str | None:
    return None if value is None else kind.format(value)


def scalar(text: str | None) -> str:
    """Quoted where YAML would read something else into it."""
    if text is None:
        return "null"
    if _PLAIN.fullmatch(text) and text.lower() != "null":
        return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).removesuffix("\n")


def _leaves(study: Study) -> dict[str, Key]:
    return keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])


def to_tree(section: Any, where: str) -> Node:
    """The nodes that would build this section again."""
    mapping: dict[str, Node] = {}
    for field in schema.fields(type(section)):
        value = getattr(section, field.name)
        match field.meta:
            case Key(kind=kind):
                mapping[field.yaml] = Node(_text(kind, value), where)
            case Section():
                mapping[field.yaml] = to_tree(value, where)
            case NamedSections():
                mapping[field.yaml] = Node({named.name: to_tree(named, where) for named in value}, where)
    return Node(mapping, where)


def with_settings(study: Study, settings: SweepValues) -> Study:
    """The study with some keys (full paths, typed values) set, checked again; no cases, and nothing left to sweep."""
    leaves = _leaves(study)
    texts = {path: _text(leaves[path].kind, value) for path, value in settings.items()}
    where = "sweep: " + ", ".join(f"{path} = {scalar(text)}" for path, text in texts.items())
    for path, text in texts.items():
        study = _replaced(study, path.split("."), read_value(leaves[path], Node(text, where), path))
    return replace(study, cases=(), sweep=())


def _replaced(section: T, path: list[str], value: Any) -> T:
    """The section with the value of one key: all others were checked when they were read."""
    field = next(field for field in schema.fields(type(section)) if field.yaml == path[0])
    old = getattr(section, field.name)
    match field.meta:
        case Section():
            value = _replaced(old, path[1:], value)
        case NamedSections():
            value = tuple(_replaced(named, path[2:], value) if named.name == path[1] else named for named in old)
    return cast(T, replace(cast(Any, section), **{field.name: value}))


def in_case(study: Study, case: StudyCase) -> Study:
    """The study that a case is, without anything to sweep."""
    return with_settings(study, case.settings)


def differences(old: Study, new: Study) -> list[str]:
    """`key: old → new` for every line of the resolved study that differs."""
    changed = []
    before, after = _flat(old), _flat(new)
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            changed.append(f"{path}: {before.get(path, '(none)')} → {after.get(path, '(none)')}")
    return changed


def _flat(study: Study) -> dict[str, str]:
    leaves = _leaves(study)

    def walk(node: Node, prefix: str) -> Iterator[tuple[str, str]]:
        if isinstance(node.value, dict):
            for name, child in node.value.items():
                yield from walk(child, f"{prefix}{name}.")
        else:
            yield prefix[:-1], "null" if node.value is None else str(node.value)

    flat = dict(walk(to_tree(study, ""), ""))
    # The order of these means something: which tier is nearer, and how the points are numbered.
    flat["system.tiers"] = ", ".join(tier.name for tier in study.system.tiers)
    if len(study.sweep) > 1:
        flat["sweep"] = ", ".join(axis.path for axis in study.sweep)
    for axis in study.sweep:
        texts = (scalar(_text(leaves[axis.path].kind, value)) for value in axis.values)
        flat[f"sweep.{axis.path}"] = f"[{', '.join(texts)}]" + (f" (zip {axis.zipped})" if axis.zipped else "")
    if study.cases:
        flat["cases"] = ", ".join(case.name for case in study.cases)
    for case in study.cases:
        for path, value in case.settings.items():
            flat[f"cases.{case.name}.{path}"] = scalar(_text(leaves[path].kind, value))
    return flat


def identity(study: Study) -> str:
    """All of a study that its results depend on, as text: the goal, for one, can change afterwards."""
    return to_yaml(replace(study, cases=(), sweep=(), goal=None))
