"""YAML text to a tree of plain nodes that remember where each of them was written.

Hostile input is bounded here: size, depth, number of nodes (also through aliases) and duplicate keys.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from tierscope.errors import SpecError, UserError
from tierscope.plain_files import read_plain

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 32
_MOST_SHOWN = 40

# Those that YAML itself gives to what is written without a tag.
_TAGS = {"null", "str", "bool", "int", "float", "timestamp", "merge", "value", "seq", "map"}


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar (text, or None for null), a list of nodes or a mapping of nodes; and its place."""

    value: "str | list[Node] | dict[str, Node] | None"
    where: str

    @property
    def shown(self) -> str:
        """What was written, as an error quotes it: the beginning of a text, or what it is instead."""
        if isinstance(self.value, str):
            return self.value[:_MOST_SHOWN]
        return "null" if self.value is None else f"a {'list' if isinstance(self.value, list) else 'mapping'}"

    def set(self, path: list[str], child: "Node") -> "Node":
        """The same tree with the node at the path replaced or added."""
        if not path:
            return child
        if self.value is not None and not isinstance(self.value, dict):
            return self  # building it tells what is wrong with it
        mapping = dict(self.value or {})
        head = mapping.get(path[0], Node({}, child.where))
        mapping[path[0]] = head.set(path[1:], child)
        return Node(mapping, self.where)

    def has(self, path: str) -> bool:
        """Whether a key is written."""
        node: Node | None = self
        for part in path.split("."):
            node = node.value.get(part) if node is not None and isinstance(node.value, dict) else None
        return node is not None

    def place(self, path: str) -> str:
        """Where a key is written, or the nearest section around it."""
        node = self
        for part in path.split("."):
            if not isinstance(node.value, dict) or part not in node.value:
                break
            node = node.value[part]
        return node.where


class _Reader:
    def __init__(self, source: str, offset: bool, noun: str) -> None:
        self._source = source
        self._with_line = offset
        self._noun = noun
        self._count = 0

    def where(self, mark: Any) -> str:
        return self.place(mark.line + 1)

    def place(self, line: int) -> str:
        return f"{self._source}:{line}" if self._with_line else self._source

    def convert(self, node: yaml.Node, depth: int = 0) -> Node:
        self._count += 1
        where = self.where(node.start_mark)
        if depth > MAX_DEPTH or self._count > MAX_NODES:
            raise SpecError(f"{where}: nested too deeply or too large for {self._noun}; remove aliases and repetition")
        tag = self._tag(node)
        if isinstance(node, yaml.ScalarNode):
            return Node(None if tag == "null" else str(node.value), where)
        if isinstance(node, yaml.SequenceNode):
            return Node([self.convert(child, depth + 1) for child in node.value], where)
        mapping: dict[str, Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise SpecError(f"{self.where(key_node.start_mark)}: a key must be plain text")
            self._tag(key_node)
            name = str(key_node.value)
            key_where = self.where(key_node.start_mark)
            if name in mapping:
                raise SpecError(f"{key_where}: {name} is given twice; remove one")
            child = self.convert(value_node, depth + 1)
            mapping[name] = Node(child.value, key_where)
        return Node(mapping, where)

    def _tag(self, node: yaml.Node) -> str:
        tag: str = node.tag.removeprefix("tag:yaml.org,2002:")
        if tag not in _TAGS:
            raise SpecError(
                f"{self.where(node.start_mark)}: tag {tag} is not allowed in {self._noun}; write a plain value"
            )
        return tag


def parse_yaml(text: str, source: str, with_line: bool = True, noun: str = "a study") -> Node:
    """The tree of a YAML text; `source` is what error messages call it, `noun` what it should be."""
    if len(text) > MAX_BYTES:
        raise SpecError(f"{source}: larger than 1 MiB; {noun} is a page of YAML")
    reader = _Reader(source, with_line, noun)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        if isinstance(error, yaml.reader.ReaderError):
            place = reader.place(text.count("\n", 0, error.position) + 1)
        else:
            place = reader.where(mark) if mark else source
        raise SpecError(f"{place}: not valid YAML: {problem}; check indentation, colons and quotes") from None
    except RecursionError:
        raise SpecError(f"{source}: nested too deeply for {noun}") from None
    if root is None:
        return Node({}, source)
    return reader.convert(root)


def read_yaml_text(path: str, fix: str) -> str:
    """The text of a YAML file that the user named; `fix`: what such a file is, or how it is made."""
    try:
        return read_plain(path, MAX_BYTES, follow=True).decode()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {fix}") from None
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a text file"
        raise UserError(f"{path}: cannot be read: {reason}; {fix}") from None
