"""Cases: keys of a study that change together, under a name (`cases: {small: {num_files_train: 64, servers: 1}, large: …}`).

A case is what a comparison is never drawn across: each is swept by itself and has a best point of its own. Keys are any
unambiguous suffix of their path, as in `--set`. A case without keys is the study as it stands. What every case sets need
not be in the study itself.
"""

import re
from collections.abc import Mapping

from tierscope.errors import SpecError
from tierscope.spec import dump, keys
from tierscope.spec.build import read_value
from tierscope.spec.schema import Key
from tierscope.spec.study import Study, StudyCase
from tierscope.spec.sweep import SET_ONCE, refuse_too_many
from tierscope.spec.tree import Node
from tierscope.units import closest

CASES = "cases"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)

Written = Mapping[str, Mapping[str, Node]]  # name of a case → full path of a key → its value as it is written


def written_cases(node: Node | None, paths: list[str]) -> Written:
    """The section as it is written, with the full paths of its keys; values are not looked at yet."""
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, dict):
        raise SpecError(
            f"{node.where}: cases must map names to keys and values, e.g. small: {{num_files_train: 64, batch_size: 4}}"
        )
    return {name: _written(name, child, paths) for name, child in node.value.items()}


def _written(name: str, node: Node, paths: list[str]) -> Mapping[str, Node]:
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{node.where}: cases: {name[:40]!r} is not a valid case name; use letters, digits, '-', '_' and '.', at most 32, "
            "starting with a letter or digit"
        )
    if node.value is not None and not isinstance(node.value, dict):
        raise SpecError(
            f"{node.where}: cases.{name} must map keys to values, e.g. {{num_files_train: 64, batch_size: 4}}"
        )
    by_path: dict[str, Node] = {}
    for short, child in (node.value or {}).items():
        path = keys.resolve(short, paths, f"{child.where}: cases.{name}")
        if path in SET_ONCE:
            raise SpecError(f"{child.where}: cases.{name}.{short}: {path} is set once for the study; remove it here")
        if path in by_path:
            raise SpecError(f"{child.where}: cases.{name}.{short}: {path} is set twice; remove one")
        by_path[path] = child
    return by_path


def with_one_case(root: Node, cases: Written, name: str, where: str) -> Node:
    """`--set case=NAME`: the study that is this case, and no other."""
    if name not in cases:
        guess = closest(name, cases) if cases else None
        hint = f"did you mean {guess}?" if guess else f"its cases: {', '.join(cases)}" if cases else "it has no cases"
        raise SpecError(f"{where}: the study has no case {name!r}; {hint}")
    for path, node in cases[name].items():
        root = root.set(path.split("."), node)
    return without_cases(root)


def without_cases(root: Node) -> Node:
    assert isinstance(root.value, dict)
    return Node({name: node for name, node in root.value.items() if name != CASES}, root.where)


def with_common_keys(root: Node, cases: Written) -> Node:
    """What every case sets stands in the study too, as in the first case, unless something else is written there."""
    first, *others = cases.values() or ({},)
    for path, node in first.items():
        if all(path in other for other in others) and not root.has(path):
            root = root.set(path.split("."), node)
    return root


def read_cases(study: Study, written: Written, leaves: Mapping[str, Key], where: str) -> tuple[StudyCase, ...]:
    """Checked values. Refused: a key that is also swept, and two cases that are the same study."""
    swept = {axis.path for axis in study.sweep}
    cases: dict[Study, StudyCase] = {}
    for name, nodes in written.items():
        for path, node in nodes.items():
            if path in swept:
                raise SpecError(
                    f"{node.where}: cases.{name}: {path} is also swept; remove it from the case or the sweep"
                )
        case = StudyCase(
            name, {path: read_value(leaves[path], node, f"cases.{name}.{path}") for path, node in nodes.items()}
        )
        same = cases.setdefault(dump.in_case(study, case), case)
        if same is not case:
            raise SpecError(f"{where}: cases {same.name} and {name} are the same study; remove one, or change a key")
    refuse_too_many(study.sweep, len(cases), where)
    return tuple(cases.values())
