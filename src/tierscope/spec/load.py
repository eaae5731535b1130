"""A study from a file, a preset's name or text; its system written out; with `--set` overrides; resolved and checked."""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tierscope.errors import SpecError, UserError, shell_word
from tierscope.plain_files import open_plain
from tierscope.spec import cases, dlio, keys, known, presets, schema, sweep
from tierscope.spec.build import build_section
from tierscope.spec.check import find_problem
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import Study, Tier
from tierscope.spec.tree import MAX_BYTES, Node, parse_yaml
from tierscope.units import closest

_WHOLE = ("sweep", "sweep.zip", cases.CASES)  # sections that --set replaces as a whole
_ONE_CASE = "case="


@dataclass(frozen=True, slots=True)
class Loaded:
    """A study, and what is known of the system that it names; of a file of DLIO, also what must be said about it, and what its metrics are wanted like."""

    study: Study
    notes: tuple[str, ...] = ()
    wanted: MetricOptions | None = None
    known: KnownSystem | None = None
    generates_only: bool = False  # a file of DLIO that trains nothing and writes no checkpoint


@dataclass(frozen=True, slots=True)
class StudyText:
    """A study as it is written. `source`: what errors call it; `folder`: from where files that it names are seen; `has_lines`: errors name them."""

    text: str
    source: str
    folder: str = "."
    has_lines: bool = True


def read_named(name: str, is_dlio: bool = False) -> StudyText:
    """The text of a YAML file or a preset."""
    text, source = _read(name, "a DLIO workload file (YAML)" if is_dlio else "the YAML file of a study, or a preset")
    return StudyText(text, source, os.path.dirname(name))


def default_out(study: Study, out: str | None, suffix: str = "") -> str:
    """Where the result of a study goes."""
    if out == "":
        raise UserError("--out is empty; name a directory, or remove --out")
    return os.path.abspath(out or os.path.join("results", study.study + suffix))


def load_study(name: str, settings: Sequence[str] = (), system: str | None = None) -> Study:
    """`name` is a YAML file (ours or DLIO's) or a preset; each setting is `key=value` with any unambiguous key suffix.

    `system` (a name or a file) stands in for the study's whole system section, paths and all; settings come on top. Those that
    begin with `++` are for DLIO's keys.
    """
    return load(name, settings, system).study


def load(
    name: str,
    settings: Sequence[str] = (),
    system: str | None = None,
    is_dlio: bool = False,
    vary: Sequence[str] = (),
) -> Loaded:
    """`is_dlio`: whatever the file looks like. `vary`: what is swept as well, as `explore --vary` has it."""
    return load_text(read_named(name, is_dlio), settings, system, is_dlio, vary)


def load_text(
    written: StudyText,
    settings: Sequence[str] = (),
    system: str | None = None,
    is_dlio: bool = False,
    vary: Sequence[str] = (),
) -> Loaded:
    """As `load`, of a text that is at hand."""
    source, folder = written.source, written.folder
    root = _parse_mapping(written.text, source, written.has_lines)
    overrides = [setting for setting in settings if setting.startswith("++")]
    own = [setting for setting in settings if not setting.startswith("++")]
    if is_dlio or dlio.is_dlio(root):
        made = dlio.convert(root, source, overrides, own_system=system is None)
        study = _build(made.root, own, system, folder, vary)
        notes = (*made.notes, *dlio.notes_of(study))
        return Loaded(study, notes, made.wanted, _known(made.root, system, folder), made.generates_only)
    if overrides:
        raise SpecError(f"{overrides[0]}: works only with DLIO files, but {source} is a study; use --set KEY=VALUE")
    return Loaded(_build(root, own, system, folder, vary), known=_known(root, system, folder))


def _known(root: Node, given: str | None, folder: str | os.PathLike[str]) -> KnownSystem | None:
    own = root.value.get("system") if isinstance(root.value, dict) else None
    if given is not None:
        return known.load_system(given)
    return None if own is None else known.named_by(own, folder)


def _read(name: str, wanted: str) -> tuple[str, str]:
    path = Path(name)
    if not name:
        raise UserError("no study; name a YAML file or a preset")
    if os.path.exists(name) and not os.path.isfile(name) and name not in presets.names():
        what = "a directory" if os.path.isdir(name) else "not a regular file"
        raise UserError(f"{path}: is {what}; name {wanted}")
    if path.suffix not in (".yaml", ".yml") and not os.path.isfile(path):
        if name in presets.names():
            return presets.text(name), f"preset {name}"
        if name in known.names():
            raise UserError(f"{name}: is a system, not a study; use it in a study as 'system: {name}'")
        guess = closest(name, presets.names())
        hint = f"did you mean the preset {guess}?" if guess else f"presets: {', '.join(presets.names())}"
        raise UserError(f"{name}: no such file or preset; {hint}")
    try:
        with io.TextIOWrapper(open_plain(path, follow=True), encoding="utf-8") as file:
            return file.read(MAX_BYTES + 1), str(path)
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; 'tierscope presets demo > {shell_word(str(path))}' creates one to start from"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; a study is a YAML file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def parse_study(
    text: str,
    source: str,
    settings: Sequence[str] = (),
    system: str | None = None,
    folder: str | os.PathLike[str] = ".",
) -> Study:
    """The study in a YAML text; `source` is what error messages call it. Files that it names are seen from the folder."""
    return _build(_parse_mapping(text, source), settings, system, folder)


def _parse_mapping(text: str, source: str, with_line: bool = True) -> Node:
    root = parse_yaml(text, source, with_line)
    if not isinstance(root.value, dict):
        raise SpecError(f"{source}: a study must be a mapping of keys to values, starting with 'study: NAME'")
    return root


def _build(
    root: Node, settings: Sequence[str], system: str | None, folder: str | os.PathLike[str], vary: Sequence[str] = ()
) -> Study:
    typed = [(f"--set {text}", text) for text in settings] + [(f"--vary {text}", _swept(text)) for text in vary]
    root = _override(_with_system(root, system, folder), typed, system)
    assert isinstance(root.value, dict)
    leaves = keys.leaf_keys(Study, _tier_names(root))
    written = cases.written_cases(root.value.get(cases.CASES), list(leaves))
    body = cases.with_common_keys(
        Node({name: node for name, node in root.value.items() if name not in ("sweep", cases.CASES)}, root.where),
        written,
    )
    study = build_section(Study, body, also=["sweep", cases.CASES])
    study = replace(study, sweep=sweep.read_axes(root.value.get("sweep"), leaves))
    study = replace(study, cases=cases.read_cases(study, written, leaves, root.place(cases.CASES)))
    _check_points(study, body, written)
    return study


def _check_points(study: Study, root: Node, written: cases.Written) -> None:
    """Each point of the sweep must work as a study of its own."""
    for point in sweep.points(study):
        problem = find_problem(point.study)
        if problem is None:
            continue
        at = ""
        if point.sweep and problem != find_problem(study):
            at = " (at " + ", ".join(f"{name} = {value}" for name, value in point.sweep.items()) + ")"
        in_case = written.get(str(point.sweep.get(sweep.CASE)), {}).get(problem.path)
        raise SpecError(f"{in_case.where if in_case else root.place(problem.path)}: {problem.text}{at}")


def _with_system(root: Node, given: str | None, folder: str | os.PathLike[str]) -> Node:
    """The tree with every key of its system in it."""
    own = root.value.get("system") if isinstance(root.value, dict) else None
    if given is not None:
        return root.set(["system"], known.given_instead(given))
    return root if own is None else root.set(["system"], known.written_out(own, folder))


def _swept(text: str) -> str:
    """`gfs.servers=1,4,16` as a setting of the sweep."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise UserError(f"--vary {text}: must be KEY=VALUES, e.g. gfs.servers=1,4,16,60 or nodes=64:256:64")
    listed = f"[{values}]" if "," in values and not values.strip().startswith("[") else values
    return f"sweep.{key.strip()}={listed}"


def _override(root: Node, settings: Sequence[tuple[str, str]], given_system: str | None) -> Node:
    """`settings`: what the user typed, and the setting that it means."""
    by_hand: list[tuple[str, str]] = []
    for where, setting in sorted(settings, key=lambda pair: not pair[1].startswith(_ONE_CASE)):
        short, equals, text = setting.partition("=")
        if not equals or not short:
            raise SpecError(f"{where}: must be key=value")
        if setting.startswith(_ONE_CASE):
            root = cases.with_one_case(root, _written_cases(root), text.strip(), where)
            continue
        swept = short.startswith("sweep.")
        child = _setting(text, where, is_text=short not in _WHOLE and not swept)
        if short in _WHOLE:
            root = root.set(short.split("."), child)
            continue
        short = short.removeprefix("sweep.")
        _refuse_other_tier(short, where, root, given_system)
        path = keys.resolve(short, list(keys.leaf_keys(Study, _tier_names(root))), where)
        root = _without_sweep(root, path)  # what is set by hand is no longer swept, or swept differently
        root = root.set(["sweep", path] if swept else path.split("."), child)
        by_hand += [] if swept else [(where, path)]
    for section, short, node in _named_keys(root):
        _refuse_other_tier(short, f"{node.where}: {section}.{short}", root, given_system)
    _refuse_overruled(root, by_hand)
    return root


def _refuse_overruled(root: Node, by_hand: Sequence[tuple[str, str]]) -> None:
    """What is set by hand must count at every point: a case or a zip that sets it too would silently win."""
    zipped = [short for section, short, _ in _named_keys(root) if section == "sweep.zip"]
    for where, path in by_hand:
        if any(path == short or path.endswith(f".{short}") for short in zipped):
            raise SpecError(
                f"{where}: {path} is part of a zip in the study's sweep; add --set 'sweep={{}}', or edit the zip"
            )
        if setting := [name for name, nodes in _written_cases(root).items() if path in nodes]:
            raise SpecError(
                f"{where}: {path} is set by {'cases' if len(setting) > 1 else 'case'} {', '.join(setting)}; edit the cases, "
                "or choose one with --set case=NAME"
            )


def _refuse_other_tier(short: str, place: str, root: Node, given_system: str | None) -> None:
    """A key of a tier that the study's own system may have, and the one given instead has not; a section (`checkpoint`) is no tier."""
    tier, _, key = short.rpartition(".")
    tier = tier.rpartition(".")[2]
    tiers = _tier_names(root)
    if any(f".{path}".endswith(f".{short}") for path in keys.leaf_keys(Study, tiers)):
        return
    if given_system and tier and tier not in tiers and key in (field.yaml for field in schema.fields(Tier)):
        raise SpecError(f"{place}: the system {given_system} has no tier {tier}; its tiers: {', '.join(tiers)}")


def _setting(text: str, where: str, is_text: bool) -> Node:
    """The value of a setting: plain text as it stands (`{out}/x` needs no quotes), a quoted or swept one as YAML."""
    if not text.strip() or text.strip() in ("null", "~"):
        return Node(None, where)
    if is_text and text.strip()[0] not in "'\"[":
        return Node(text.strip(), where)
    return parse_yaml(text, where, with_line=False)


def _axes(root: Node) -> dict[str, Node]:
    """What is swept, as it is written."""
    swept = root.value.get("sweep") if isinstance(root.value, dict) else None
    return swept.value if swept is not None and isinstance(swept.value, dict) else {}


def _named_keys(root: Node) -> Iterator[tuple[str, str, Node]]:
    """Section, key and values of all that is swept, zipped or set by a case, as they are written."""
    for short, node in _axes(root).items():
        if short != sweep.ZIP:
            yield "sweep", short, node
            continue
        for zipped in sweep.zips(node):
            assert isinstance(zipped.value, dict)
            yield from (("sweep.zip", inner, child) for inner, child in zipped.value.items())
    named = root.value.get(cases.CASES) if isinstance(root.value, dict) else None
    for name, case in named.value.items() if named is not None and isinstance(named.value, dict) else ():
        if isinstance(case.value, dict):
            yield from ((f"cases.{name}", short, node) for short, node in case.value.items())


def _written_cases(root: Node) -> cases.Written:
    assert isinstance(root.value, dict)
    return cases.written_cases(root.value.get(cases.CASES), list(keys.leaf_keys(Study, _tier_names(root))))


def _without_sweep(root: Node, path: str) -> Node:
    axes = _axes(root)
    kept = {name: node for name, node in axes.items() if path != name and not path.endswith(f".{name}")}
    return root.set(["sweep"], Node(kept, root.place("sweep"))) if len(kept) < len(axes) else root


def _tier_names(root: Node) -> list[str]:
    return keys.tier_names(root.value.get("system")) if isinstance(root.value, dict) else []
