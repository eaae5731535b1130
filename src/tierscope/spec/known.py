"""Systems as data: a name that studies may use, the System, and what is known of its numbers.

A file has `system: NAME`, the keys of a System, `figures:` (key path → where the number comes from) and, where a fit left them,
`draws:` (values of the fitted keys that go together) and `calibrated:` (what was measured for it). Those that ship are in `spec/systems`.
"""

import io
import math
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tierscope.errors import SpecError, UserError
from tierscope.plain_files import open_plain
from tierscope.spec import dump, keys, systems
from tierscope.spec.build import build_section, read_value
from tierscope.spec.calibrated import AT_LEAST_FACTOR, CalibratedRange, range_lines, read_range
from tierscope.spec.check import find_problem
from tierscope.spec.figures import (
    Draw,
    KnownFigure,
    Number,
    draw_lines,
    figure_lines,
    nearest,
    number_keys,
    numbers,
    read_draws,
    read_figures,
)
from tierscope.spec.kinds import Name
from tierscope.spec.schema import Key
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Train, Workload
from tierscope.spec.tree import MAX_BYTES, Node, parse_yaml
from tierscope.units import closest

_NAME = Key(Name(), "names the system")
_OWN_KEYS = ("system", "figures", "draws", "calibrated")
_DRAWS = 24  # of figures within their intervals


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system's file: figures by key path (`tiers.gfs.metadata_ops`), draws of those that are fitted."""

    name: str
    system: System
    figures: Mapping[str, KnownFigure] = field(default_factory=dict)
    draws: tuple[Draw, ...] = ()
    measured: CalibratedRange | None = None  # None: it was not calibrated

    @property
    def is_calibrated(self) -> bool:
        return self.measured is not None


def names() -> list[str]:
    """Those that ship."""
    return systems.names()


def load_system(name: str, folder: str | os.PathLike[str] = ".") -> KnownSystem:
    """`name` is one that ships, or a file (it ends in .yaml or has a slash) seen from the folder."""
    try:
        text, source = _find(name, folder)
    except ValueError as problem:
        raise UserError(f"{name}: {problem}") from None
    return parse_system(text, source)


def parse_system(text: str, source: str) -> KnownSystem:
    """The system in a YAML text; `source` is what error messages call it."""
    return _parse(text, source)[0]


def dump_system(known: KnownSystem) -> str:
    """YAML that `parse_system` reads as the same, every key written out."""
    lines = [
        f"system: {dump.scalar(known.name)}",
        *dump.section_lines(known.system),
        *figure_lines(known.figures, known.system),
        *draw_lines(known.draws, known.system),
        *range_lines(known.measured),
    ]
    return "\n".join(lines) + "\n"


def within_limits(known: KnownSystem) -> KnownSystem:
    """What was computed, as near as a file may have it: every number within the limits of its key."""
    declared, tree = number_keys(known.system), dump.to_tree(known.system, known.name)
    for path, value in numbers(known.system).items():
        if value is not None and (kept := nearest(declared[path], value)) != value:
            tree = tree.set(path.split("."), Node(declared[path].kind.format(kept), known.name))
    system = build_section(System, tree)
    values = numbers(system)
    figures = {}
    for path, figure in known.figures.items():
        low, high = (None if end is None else nearest(declared[path], end) for end in (figure.low, figure.high))
        value = values[path]
        figures[path] = replace(figure, value=figure.value if value is None else value, low=low, high=high)
    draws = tuple(
        {path: None if value is None else nearest(declared[path], value) for path, value in draw.items()}
        for draw in known.draws
    )
    return KnownSystem(known.name, system, figures, draws, known.measured)


def drawn_systems(system: System, known: KnownSystem) -> tuple[System, ...]:
    """The system once for every draw: each fitted rate as much more or less than the known one; so what was changed since stays changed. What was
    assumed or published and is another number here is known: somebody set it. Nodes and ranks are always the system's own: they are what is asked.

    Where no fit left draws that go together, each figure is drawn by itself within its interval, alike in logarithms; from 0 on, evenly.
    """
    declared, values, ours = number_keys(system), numbers(known.system), numbers(system)
    drawn = []
    for index, draw in enumerate(known.draws or _within_intervals(known)):
        where = f"draws[{index}]"
        tree = dump.to_tree(system, where)
        for path, value in draw.items():
            if path not in declared:
                continue
            moved = _moved(values.get(path), ours.get(path), value, _is_fitted(known, path))
            kept = None if moved is None else nearest(declared[path], moved)
            tree = tree.set(path.split("."), Node(None if kept is None else declared[path].kind.format(kept), where))
        built = build_section(System, tree)
        drawn.append(replace(built, nodes=system.nodes, ranks_per_node=system.ranks_per_node))
    return tuple(drawn)


def _is_fitted(known: KnownSystem, path: str) -> bool:
    figure = known.figures.get(path)
    return figure is not None and figure.kind == "fitted"


def _moved(base: Number | None, current: Number | None, drawn: Number | None, fitted: bool) -> Number | None:
    """What becomes of a number of ours, where the known system has `base` and the draw `drawn`."""
    if current == base:
        moved = drawn
    elif fitted and base and current and drawn is not None:
        moved = current * drawn / base
    else:
        return current
    return round(moved) if isinstance(current, int) and moved is not None else moved


def _within_intervals(known: KnownSystem) -> list[Draw]:
    """Of figures with ends; what is only known to be at least something may be so many times more. None: nothing is uncertain."""
    ends = {
        path: (float(figure.low), float(figure.low * AT_LEAST_FACTOR if figure.high is None else figure.high))
        for path, figure in known.figures.items()
        if figure.low is not None
        and (figure.high or (figure.kind == "fitted" and figure.high is None and figure.low > 0))
    }
    draws: list[Draw] = []
    for number in range(_DRAWS if ends else 0):
        dice = random.Random(f"{known.name}/{number}")
        draws.append({path: _between(low, high, dice.random()) for path, (low, high) in ends.items()})
    return draws


def _between(low: float, high: float, share: float) -> float:
    if not low:  # what is at most something
        return share * high
    return min(high, max(low, math.exp((1 - share) * math.log(low) + share * math.log(high))))


def named_by(system: Node, folder: str | os.PathLike[str] = ".") -> KnownSystem | None:
    """The system that a study names, by itself or under changes of its own; None: it is written out."""
    preset = system.value.get("preset") if isinstance(system.value, dict) else system
    return load_system(preset.value, folder) if preset is not None and isinstance(preset.value, str) else None


def written_out(node: Node, folder: str | os.PathLike[str] = ".") -> Node:
    """A study's `system:` with all keys: of a name, or of a preset under what is written beside it. Anything else as it is."""
    if isinstance(node.value, str):
        return _named(node, "system", folder)
    if not isinstance(node.value, dict) or "preset" not in node.value:
        return node
    preset = node.value["preset"]
    if not isinstance(preset.value, str):
        raise SpecError(f"{preset.where}: system.preset must be a system's name or file")
    base = _named(preset, "system.preset", folder)
    changes = Node({name: child for name, child in node.value.items() if name != "preset"}, node.where)
    _refuse_new_tiers(base, changes, preset.value)
    return Node(_merged(base, changes).value, node.where)


def given_instead(name: str) -> Node:
    """What `--system` gives in place of a study's own."""
    where = f"--system {name}"
    try:
        text, source = _find(name, ".")
    except ValueError as problem:
        raise UserError(f"{where}: {problem}") from None
    return Node(_parse(text, source)[1].value, where)


def _find(name: str, folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Text, and what to call it. ValueError says why there is none."""
    if "/" not in name and not name.endswith((".yaml", ".yml")):
        if name in systems.names():
            return systems.text(name), f"system {name}"
        guess = closest(name, systems.names())
        known = f"known: {', '.join(systems.names())}; a file's name ends in .yaml"
        raise ValueError(f"no such system; {f'did you mean {guess}?' if guess else known}")
    path = Path(folder, name)
    if os.path.isdir(path):
        raise ValueError("is a directory; name the YAML file of a system")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("is not a regular file; name the YAML file of a system")
    if not os.path.isfile(path):
        raise ValueError(f"no such file; built-in systems: {', '.join(systems.names())}")
    try:
        with io.TextIOWrapper(open_plain(path, follow=True), encoding="utf-8") as file:
            return file.read(MAX_BYTES + 1), str(path)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text; a system is a YAML file") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _named(node: Node, key: str, folder: str | os.PathLike[str]) -> Node:
    assert isinstance(node.value, str)
    try:
        text, source = _find(node.value, folder)
    except ValueError as problem:
        raise SpecError(f"{node.where}: {key} = {node.value}; {problem}") from None
    return Node(_parse(text, source)[1].value, node.where)


def _parse(text: str, source: str) -> tuple[KnownSystem, Node]:
    """The system, and the tree of its keys without what is ours."""
    root = parse_yaml(text, source, noun="a system")
    if isinstance(root.value, dict) and "study" in root.value:
        where = root.value["study"].where
        raise SpecError(f"{where}: study: this is a study, not a system; a system file starts with 'system: NAME'")
    if isinstance(root.value, dict) and "kind" in root.value and root.value["kind"].value == "device":
        where = root.value["kind"].where
        raise SpecError(
            f"{where}: kind: device: this is a measured accelerator, not a system; use it with 'tierscope require --device-file'"
        )
    if not isinstance(root.value, dict) or "system" not in root.value:
        raise SpecError(f"{root.where}: system is missing; a system file has 'system: NAME', then nodes and tiers")
    name = read_value(_NAME, root.value["system"], "system")
    body = Node({key: node for key, node in root.value.items() if key not in _OWN_KEYS}, root.where)
    system = build_section(System, body, also=_OWN_KEYS)
    _refuse_contradictions(system, body)
    figures = read_figures(root.value.get("figures"), system)
    draws = read_draws(root.value.get("draws"), system, figures)
    return KnownSystem(name, system, figures, draws, read_range(root.value.get("calibrated"))), body


def _refuse_contradictions(system: System, body: Node) -> None:
    """What no study could run on: what is wrong with the smallest is wrong with the system."""
    dataset = Dataset(num_files_train=system.ranks, record_length_bytes=1)
    workload = Workload(dataset=dataset, reader=Reader(), train=Train())
    problem = find_problem(Study(study="smallest", workload=workload, system=system, placement=Placement()))
    if problem:
        path = problem.path.removeprefix("system.")
        raise SpecError(f"{body.place(path)}: {problem.text.replace('system.tiers.', 'tiers.')}")


def _refuse_new_tiers(base: Node, changes: Node, name: str) -> None:
    """A tier that the preset does not have would have no place in its order."""
    tiers = keys.tier_names(base)
    assert isinstance(changes.value, dict)
    changed = changes.value.get("tiers")
    for tier, child in changed.value.items() if changed and isinstance(changed.value, dict) else ():
        if tier not in tiers:
            guess = closest(tier, tiers)
            hint = f"did you mean {guess}?" if guess else f"its tiers: {', '.join(tiers)}"
            raise SpecError(f"{child.where}: system.tiers.{tier}: the system {name} has no such tier; {hint}")


def _merged(base: Node, changes: Node) -> Node:
    """Deep, by key, in the order of the base; where nothing is written nothing changes."""
    if not isinstance(base.value, dict) or (changes.value is not None and not isinstance(changes.value, dict)):
        return changes
    mapping = dict(base.value)
    for name, child in (changes.value or {}).items():
        mapping[name] = _merged(mapping[name], child) if name in mapping else child
    return Node(mapping, base.where)
