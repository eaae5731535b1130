"""A study from a file, a preset's name or text; with `--set` overrides; resolved and checked."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tierscope.errors import SpecError, UserError
from tierscope.spec import keys, presets, sweep
from tierscope.spec.build import build_section
from tierscope.spec.check import find_problem
from tierscope.spec.study import Study
from tierscope.spec.tree import Node, parse_yaml
from tierscope.units import closest


def load_study(name: str, settings: Sequence[str] = ()) -> Study:
    """`name` is a YAML file or a preset; each setting is `key=value` with any unambiguous key suffix."""
    return parse_study(*_read(name), settings)


def _read(name: str) -> tuple[str, str]:
    path = Path(name)
    if not name:
        raise UserError("no study is named; give a YAML file or a preset")
    if os.path.isdir(name) and name not in presets.names():
        raise UserError(f"{path}: is a directory; give the YAML file of a study, or a preset")
    if path.suffix not in (".yaml", ".yml") and not os.path.isfile(path):
        if name in presets.names():
            return presets.text(name), f"preset {name}"
        guess = closest(name, presets.names())
        hint = f"did you mean the preset {guess}?" if guess else f"presets: {', '.join(presets.names())}"
        raise UserError(f"{name}: no such file or preset; {hint}")
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; 'tierscope presets demo > {path}' gives one to start from") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; a study is a YAML file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def parse_study(text: str, source: str, settings: Sequence[str] = ()) -> Study:
    """The study in a YAML text; `source` is what error messages call it."""
    root = _override(parse_yaml(text, source), settings)
    if not isinstance(root.value, dict):
        raise SpecError(f"{source}: a study must be a mapping of keys to values, starting with 'study: NAME'")
    swept = root.value.get("sweep")
    body = Node({name: node for name, node in root.value.items() if name != "sweep"}, root.where)
    study = build_section(Study, body, also=["sweep"])
    leaves = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])
    study = replace(study, sweep=sweep.read_axes(swept, leaves))
    _check_points(study, body)
    return study


def _check_points(study: Study, root: Node) -> None:
    """Each point of the sweep must work as a study of its own."""
    for point in sweep.points(study):
        problem = find_problem(point.study)
        if problem is None:
            continue
        at = ""
        if point.sweep and problem != find_problem(study):
            at = " (at " + ", ".join(f"{name} = {value}" for name, value in point.sweep.items()) + ")"
        raise SpecError(f"{_place(root, problem.path)}: {problem.text}{at}")


def _place(root: Node, path: str) -> str:
    """Where a key is written, or the nearest section around it."""
    node = root
    for part in path.split("."):
        if not isinstance(node.value, dict) or part not in node.value:
            break
        node = node.value[part]
    return node.where


def _override(root: Node, settings: Sequence[str]) -> Node:
    for setting in settings:
        where = f"--set {setting}"
        short, equals, text = setting.partition("=")
        if not equals or not short:
            raise SpecError(f"{where}: must be key=value")
        swept = short.startswith("sweep.")
        child = _setting(text, where, is_text=short != "sweep" and not swept)
        if short == "sweep":
            root = root.set(["sweep"], child)
            continue
        path = keys.resolve(short.removeprefix("sweep."), list(keys.leaf_keys(Study, _tier_names(root))), where)
        root = _without_sweep(root, path)  # what is set by hand is no longer swept, or swept differently
        root = root.set(["sweep", path] if swept else path.split("."), child)
    return root


def _setting(text: str, where: str, is_text: bool) -> Node:
    """The value of a setting: plain text as it stands (`{out}/x` needs no quotes), a quoted or swept one as YAML."""
    if not text.strip() or text.strip() in ("null", "~"):
        return Node(None, where)
    if is_text and text.strip()[0] not in "'\"[":
        return Node(text.strip(), where)
    return parse_yaml(text, where, with_line=False)


def _without_sweep(root: Node, path: str) -> Node:
    swept = root.value.get("sweep") if isinstance(root.value, dict) else None
    if swept is None or not isinstance(swept.value, dict):
        return root
    kept = {name: node for name, node in swept.value.items() if path != name and not path.endswith(f".{name}")}
    return root.set(["sweep"], Node(kept, swept.where))


def _tier_names(root: Node) -> list[str]:
    node: Node | None = root
    for part in ("system", "tiers"):
        node = node.value.get(part) if node and isinstance(node.value, dict) else None
    return list(node.value) if node and isinstance(node.value, dict) else []
