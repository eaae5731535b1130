"""YAML text to a tree of plain nodes that remember where each of them was written.

Hostile input is bounded here: size, depth, number of nodes (also through aliases) and duplicate keys.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from tierscope.errors import SpecError

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar (text, or None for null), a list of nodes or a mapping of nodes; and its place."""

    value: "str | list[Node] | dict[str, Node] | None"
    where: str

    def set(self, path: list[str], child: "Node") -> "Node":
        """The same tree with the node at the path replaced or added."""
        if not path:
            return child
        mapping = dict(self.value) if isinstance(self.value, dict) else {}
        head = mapping.get(path[0], Node({}, child.where))
        mapping[path[0]] = head.set(path[1:], child)
        return Node(mapping, self.where)


class _Reader:
    def __init__(self, source: str, offset: bool) -> None:
        self._source = source
        self._with_line = offset
        self._count = 0

    def where(self, mark: Any) -> str:
        return f"{self._source}:{mark.line + 1}" if self._with_line else self._source

    def convert(self, node: yaml.Node, depth: int = 0) -> Node:
        self._count += 1
        where = self.where(node.start_mark)
        if depth > MAX_DEPTH or self._count > MAX_NODES:
            raise SpecError(f"{where}: nested too deeply or too large for a study; remove aliases and repetition")
        if isinstance(node, yaml.ScalarNode):
            is_null = node.tag == "tag:yaml.org,2002:null"
            if not node.tag.startswith("tag:yaml.org,2002:"):
                raise SpecError(f"{where}: tag {node.tag} is not allowed in a study; write a plain value")
            return Node(None if is_null else str(node.value), where)
        if isinstance(node, yaml.SequenceNode):
            return Node([self.convert(child, depth + 1) for child in node.value], where)
        mapping: dict[str, Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise SpecError(f"{self.where(key_node.start_mark)}: a key must be plain text")
            name = str(key_node.value)
            key_where = self.where(key_node.start_mark)
            if name in mapping:
                raise SpecError(f"{key_where}: {name} is given twice; remove one")
            child = self.convert(value_node, depth + 1)
            mapping[name] = Node(child.value, key_where)
        return Node(mapping, where)


def parse_yaml(text: str, source: str, with_line: bool = True) -> Node:
    """The tree of a YAML text; `source` is what error messages call it."""
    if len(text) > MAX_BYTES:
        raise SpecError(f"{source}: larger than 1 MiB; a study is a page of YAML")
    reader = _Reader(source, with_line)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        place = reader.where(mark) if mark else source
        raise SpecError(f"{place}: not valid YAML: {problem}; check indentation, colons and quotes") from None
    except RecursionError:
        raise SpecError(f"{source}: nested too deeply for a study") from None
    if root is None:
        return Node({}, source)
    return reader.convert(root)
