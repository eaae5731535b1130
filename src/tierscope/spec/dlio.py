"""A file of DLIO as a study of ours: no key of it is ignored in silence.

DLIO's file has no system: a study of it runs on one node with one rank, on one tier whose directory is DLIO's data folder.
`spec/dlio_keys.py` says what becomes of every key.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierscope.errors import SpecError
from tierscope.spec.dlio_keys import DEFAULTS, FAMILIES, RULES
from tierscope.spec.dlio_making import Making, MetricOptions
from tierscope.spec.study import Study
from tierscope.spec.tree import Node, parse_yaml
from tierscope.units import closest, counted

_SHAPE = ("model", "framework", "workflow", "dataset")
_OURS = ("study", "system", "placement", "cases", "sweep")
_BESIDE = ("hydra", "defaults")  # of Hydra, beside the workload
_OVERRIDE = re.compile(r"\+\+(workload|hydra)\.(\w+(?:\.\w+)*)=(.*)", re.DOTALL)
_OWN_DATA = "dataset: Tierscope generates its own files of the same number, size and format; DLIO's files are not read"
_SYNC = "train: all ranks synchronise after every step, as in DLIO (train.sync: step)"


@dataclass(frozen=True, slots=True)
class Converted:
    """The tree of a study, what must be said about it, and what its metrics are wanted like."""

    root: Node
    notes: tuple[str, ...]
    wanted: MetricOptions
    generates_only: bool = False


def is_dlio(root: Node) -> bool:
    """By its shape: DLIO's sections at the top, or under `workload`, and nothing that only a study of ours has."""
    if not isinstance(root.value, dict) or any(name in root.value for name in _OURS):
        return False
    wrapped = root.value.get("workload")
    inner = wrapped.value if wrapped and isinstance(wrapped.value, dict) else {}
    return any(name in root.value for name in _SHAPE) or any(name in inner for name in _SHAPE if name != "dataset")


def convert(root: Node, source: str, overrides: Sequence[str] = (), own_system: bool = True) -> Converted:
    """`overrides`: `++workload.KEY=VALUE`, before anything is looked at. `own_system`: no other is given instead."""
    body = _overridden(_unwrapped(root), overrides)
    given = dict(_flat(body, ""))
    tree = Node({}, source)
    making = Making(given, tree, own_system)
    for path, value in DEFAULTS.items():
        making.put(path, value, f"{source} (DLIO's default)")
    making.put("study", _name(making, source), making.where("model.name"))
    for path, node in given.items():
        apply = RULES[path].apply
        if apply is not None:
            apply(making, node)
    for family in FAMILIES:
        family(making)
    own = (_OWN_DATA, _SYNC) if making.flag("workflow.train", default=True) else ()
    return Converted(making.tree, (*own, *making.notes), making.wanted, making.generates_only)


def notes_of(study: Study) -> Iterator[str]:
    """Where what is made of DLIO's file differs by how many ranks there are."""
    dataset, reader = study.workload.dataset, study.workload.reader
    left = dataset.samples // study.system.ranks % reader.batch_size
    if left and study.workload.train.total_training_steps is None:
        yield f"reader.batch_size: the last step of a rank has {counted(left, 'sample')}; DLIO drops such a step"


def _unwrapped(root: Node) -> Node:
    """DLIO's sections at the top, each a mapping: `model: NAME` and `data_reader` are how old files say it."""
    assert isinstance(root.value, dict)
    body = dict(root.value)
    for name in _OURS:
        if name in body:
            raise SpecError(
                f"{body[name].where}: {name}: is a key of a Tierscope study, not of a DLIO file; it needs no conversion: run it without --dlio"
            )
    if "workload" in body:
        inner = body.pop("workload")
        if inner.value is not None and not isinstance(inner.value, dict):
            raise SpecError(f"{inner.where}: workload must be a mapping of keys to values")
        for name, node in body.items():
            if name not in _BESIDE:
                raise SpecError(f"{node.where}: {name}: is outside workload; DLIO keys belong inside it: move it there")
        body |= inner.value or {}
    if "model" in body and isinstance(body["model"].value, str):
        body["model"] = Node({"name": body["model"]}, body["model"].where)
    if "data_reader" in body:
        if "reader" in body:
            raise SpecError(
                f"{body['data_reader'].where}: data_reader: is the former name of reader; remove one of them"
            )
        body["reader"] = body.pop("data_reader")
    return Node(body, root.where)


def _overridden(body: Node, overrides: Sequence[str]) -> Node:
    for override in overrides:
        match = _OVERRIDE.fullmatch(override)
        if not match:
            bare = override.lstrip("+")
            hint = (
                f"write it as ++workload.{bare}"
                if "=" in bare and not bare.startswith("workload.")
                else "write it as ++workload.KEY=VALUE"
            )
            raise SpecError(f"{override}: {hint}")
        section, key, text = match.groups()
        if not text.strip():
            raise SpecError(
                f"{override}: has no value; write it as ++{section}.{key}=VALUE, with null for DLIO's default"
            )
        path = key.split(".") if section == "workload" else ["hydra", *key.split(".")]
        path = ["reader", *path[1:]] if path[0] == "data_reader" else path
        path = ["model", "name"] if path == ["model"] else path
        body = body.set(path, _value(text.strip(), override))
    return body


def _value(text: str, where: str) -> Node:
    """Plain text as it stands; a quoted one, a list or a mapping as YAML."""
    if text in ("", "null", "~"):
        return Node(None, where)
    return parse_yaml(text, where, with_line=False) if text[0] in "'\"[{" else Node(text, where)


def _flat(section: Node, prefix: str) -> Iterator[tuple[str, Node]]:
    """Nodes by path; null is as if it was not written."""
    if section.value is not None and not isinstance(section.value, dict):
        raise SpecError(f"{section.where}: {prefix[:-1]} must be a mapping of keys to values")
    mapping: Mapping[str, Node] = section.value or {}
    for name, node in mapping.items():
        path = f"{prefix}{name}"
        if path in RULES:
            if isinstance(node.value, dict | list) and not RULES[path].whole:
                kind = "a mapping" if isinstance(node.value, dict) else "a list"
                raise SpecError(f"{node.where}: {path} is {kind}; must be a single value")
            _refuse_interpolation(path, node)
            if node.value is not None:
                yield path, node
        elif any(known.startswith(f"{path}.") for known in RULES):
            yield from _flat(node, f"{path}.")
        else:
            raise SpecError(f"{node.where}: {path}: DLIO has no such key; {_suggest(name, prefix)}")


def _refuse_interpolation(path: str, node: Node) -> None:
    children = (
        node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    )
    for child in children:
        _refuse_interpolation(path, child)
    if isinstance(node.value, str) and re.search(r"\$\{\w*[.:]", node.value):
        raise SpecError(f"{node.where}: {path} = {node.value[:80]}; Hydra's ${{…}} is not expanded: write the value")


def _suggest(name: str, prefix: str) -> str:
    here = list(dict.fromkeys(path.removeprefix(prefix).split(".")[0] for path in RULES if path.startswith(prefix)))
    if guess := closest(name, here):
        return f"did you mean {prefix}{guess}?"
    elsewhere = {path.rpartition(".")[2]: path for path in RULES}
    if guess := closest(name, elsewhere):
        return f"did you mean {elsewhere[guess]}?"
    return f"known {f'in {prefix[:-1]}' if prefix else 'here'}: {', '.join(here)}"


def _name(making: Making, source: str) -> str:
    """Of the model, or else of the file, in letters that may be in a path."""
    name = making.text("model.name") or os.path.splitext(os.path.basename(source))[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64] or "dlio"
