"""`tierscope probe --from FILE…`: a system from what a site's own benchmarks left, with the source of every figure.

Files of one tier are taken together: an IOR run with one node and one with many tell more than either. What they mean: from_phases.py.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.errors import UserError, escaped
from tierscope.output.durable import writing_named
from tierscope.plain_files import read_plain
from tierscope.probe.from_phases import SourcedPhase, TierFigures, tier_figures
from tierscope.probe.readers.phase import BenchmarkReader, BenchmarkRun
from tierscope.probe.readers.registry import READERS
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem, dump_system, parse_system
from tierscope.spec.study import System, Tier
from tierscope.units import closest, counted

MOST_BYTES = 32 << 20
MOST_SYSTEMS = 2_000  # of a table, all at once
LAST_TIER = "gfs"
_MOST_NODES, _MOST_RANKS, _MOST_TEXT = 10**6, 1024, 900
_TIER = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FromRequest:
    """What the options ask: files as TIER=FILE or FILE, one row of a table, and what files may not say."""

    files: tuple[str, ...]
    row: str | None = None
    nodes: int | None = None
    ranks: int | None = None
    servers: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    tier: str
    path: str
    reader: BenchmarkReader
    runs: tuple[BenchmarkRun, ...]


@dataclass(frozen=True, slots=True)
class ImportedSystem:
    """A system made of files; or why none can be (`refused`). `notes`: what is not known of it."""

    name: str
    known: KnownSystem | None
    notes: tuple[str, ...] = ()
    refused: str = ""
    at_least: frozenset[str] = frozenset()


def systems_of(wanted: FromRequest) -> tuple[ImportedSystem, ...]:
    """One; or one for every row of a table, if none is chosen."""
    files = [_read_file(option) for option in wanted.files]
    tables = [file for file in files if len(file.runs) > 1 or (file.runs[:1] and file.runs[0].line is not None)]
    if not tables:
        if wanted.row is not None:
            raise UserError(f"--row {wanted.row}: {files[0].path} is not a table; remove --row")
        return (_system(files, {}, wanted, _name(files)),)
    if len(files) > 1:
        raise UserError(f"{tables[0].path}: a table of systems cannot be combined with other files; remove them")
    runs = tables[0].runs if wanted.row is None else (_row(tables[0], wanted.row),)
    if len(runs) > MOST_SYSTEMS:
        raise UserError(
            f"{tables[0].path}: has {len(runs):,} rows, of which {MOST_SYSTEMS:,} are shown at most; choose one with --row"
        )
    return tuple(_of_row(tables[0], run, wanted, alone=wanted.row is not None) for run in runs)


def _of_row(table: BenchmarkFile, run: BenchmarkRun, wanted: FromRequest, alone: bool) -> ImportedSystem:
    name = _word(f"io500-{run.name}")
    try:
        if run.refused:
            raise UserError(f"{table.path}: line {run.line}, {escaped(run.name)}: {run.refused}; choose another row")
        return _system([table], {table.path: run}, wanted, name, checked=alone)
    except UserError as error:
        if alone:
            raise
        return ImportedSystem(name, None, refused=str(error))


def _row(table: BenchmarkFile, row: str) -> BenchmarkRun:
    matches = [run for run in table.runs if run.name == row] or [run for run in table.runs if str(run.line) == row]
    if len(matches) == 1:
        return matches[0]
    if matches:
        lines = ", ".join(str(run.line) for run in matches[:5])
        raise UserError(f"--row {row}: {table.path} has {len(matches)} such rows; choose one by its line: {lines}")
    of_system = [run.name for run in table.runs if row.lower() in map(str.lower, run.labels)]
    if of_system:
        raise UserError(f"--row {row}: is a system, not a row, in {table.path}; its rows: {', '.join(of_system[:5])}")
    guess = closest(row, [run.name for run in table.runs])
    raise UserError(
        f"--row {row}: {table.path} has no such row; {f'did you mean {guess}?' if guess else 'name its submission or its line'}"
    )


def _read_file(option: str) -> BenchmarkFile:
    named = None if os.path.exists(option) else _TIER.fullmatch(option)
    tier, path = (named[1], named[2]) if named else (LAST_TIER, option)
    try:
        text = read_plain(path, MOST_BYTES, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; name a benchmark's own output") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name contains a NUL byte"
        raise UserError(f"{path}: cannot be read: {reason}; name a benchmark's output") from None
    reader = next((known_reader for known_reader in READERS if known_reader.recognises(text)), None)
    if reader is None:
        known = "; ".join(f"{known_reader.tool}: {known_reader.looked_for}" for known_reader in READERS)
        raise UserError(f"{path}: is not the output of a known benchmark; looked for {known}")
    try:
        runs = reader.read(text)
    except ValueError as problem:
        raise UserError(
            f"{path}: cannot be read as {reader.tool}: {problem}; copy it again from where it was written"
        ) from None
    if not any(run.phases or run.refused for run in runs):
        raise UserError(
            f"{path}: contains no rates of {reader.tool}; name the output of a run that finished without errors and printed rates, not times"
        )
    return BenchmarkFile(tier, path, reader, runs)


def _system(
    files: Sequence[BenchmarkFile],
    chosen: Mapping[str, BenchmarkRun],
    wanted: FromRequest,
    name: str,
    checked: bool = True,
) -> ImportedSystem:
    """All files' tiers, in the order in which they were first given: nearest first. `checked`: as it is going to be written, it can be read."""
    names = list(dict.fromkeys(file.tier for file in files))
    _refuse_servers(wanted, names)
    tiers, figures, notes, at_least = [], dict[str, KnownFigure](), list[str](), set[str]()
    phases = {tier: _phases([file for file in files if file.tier == tier], chosen) for tier in names}
    figures |= _shape(phases[names[-1]], wanted)
    for place, tier in enumerate(names):
        is_near = place < len(names) - 1
        servers = (wanted.servers or {}).get(tier, 1)
        try:
            of_tier = tier_figures(phases[tier], servers, is_near)
        except ValueError as problem:
            paths = ", ".join(file.path for file in files if file.tier == tier)
            raise UserError(f"{paths}: {problem}; add IOR's, fio's or elbencho's output of reads") from None
        tiers.append(_tier(tier, is_near, servers, of_tier))
        figures |= _figures(tier, servers, tier in (wanted.servers or {}), of_tier)
        notes += [f"{tier}: {text}" for text in _notes(of_tier)]
        at_least |= {f"tiers.{tier}.{key}" for key, rate in of_tier.rates.items() if rate.at_least}
    if figures["nodes"].kind == "assumed":
        notes.append(
            "nodes and ranks_per_node: not in the files, one process is assumed; add --nodes and --ranks, "
            "or '--set nodes=… --set ranks_per_node=…' to 'tierscope simulate'"
        )
    system = System(
        nodes=int(figures["nodes"].value), ranks_per_node=int(figures["ranks_per_node"].value), tiers=tuple(tiers)
    )
    known = KnownSystem(name, system, figures)
    if checked:
        parse_system(dump_system(known), name)
    return ImportedSystem(name, known, tuple(notes), at_least=frozenset(at_least))


def _phases(files: Sequence[BenchmarkFile], chosen: Mapping[str, BenchmarkRun]) -> list[SourcedPhase]:
    phases = []
    for file in files:
        source = f"{file.reader.tool}, {escaped(os.path.basename(file.path))[-80:]}"
        for run in (chosen[file.path],) if file.path in chosen else file.runs:
            where = f"{source}, {escaped(run.name)[:60]}" if run.line is not None else source
            phases += [SourcedPhase(replace(phase, name=escaped(phase.name)), where) for phase in run.phases]
    return phases


def _shape(phases: Sequence[SourcedPhase], wanted: FromRequest) -> dict[str, KnownFigure]:
    """Nodes and processes of the largest phase, unless they are told."""
    sized = [sourced for sourced in phases if sourced.phase.nodes and sourced.phase.processes]
    largest = max(sized, key=lambda sourced: sourced.phase.processes or 0, default=None)
    shape = {}
    nodes = largest.phase.nodes if largest else None
    per_node = -(-(largest.phase.processes or 1) // (nodes or 1)) if largest else None
    for key, told, read, most in (
        ("nodes", wanted.nodes, nodes, _MOST_NODES),
        ("ranks_per_node", wanted.ranks, per_node, _MOST_RANKS),
    ):
        if told:
            shape[key] = KnownFigure(told, "source", f"set by --{'nodes' if key == 'nodes' else 'ranks'}")
        elif read and largest:
            shape[key] = KnownFigure(min(read, most), "source", largest.text[:_MOST_TEXT])
        else:
            shape[key] = KnownFigure(1, "assumed", "not in the files", 1, 1)
    return shape


def _tier(name: str, is_near: bool, servers: int, figures: TierFigures) -> Tier:
    values = {key: rate.value for key, rate in figures.rates.items()}
    where = "{out}/tiers/%s/{node}" if is_near else "{out}/tiers/%s"
    return Tier(
        name=name,
        path=where % name,
        visible_to="node" if is_near else "global",
        servers=servers,
        **values,  # type: ignore[arg-type]  # all of them are floats
    )


def _figures(tier: str, servers: int, told: bool, measured: TierFigures) -> dict[str, KnownFigure]:
    why = "set by --servers" if told else "not in the output: one server with the total rates"
    figures = {f"tiers.{tier}.servers": KnownFigure(servers, "assumed", why, servers, servers)}
    for key, rate in measured.rates.items():
        figures[f"tiers.{tier}.{key}"] = KnownFigure(rate.value, "fitted", rate.text[:_MOST_TEXT], rate.low, rate.high)
    return figures


def _notes(figures: TierFigures) -> list[str]:
    notes = list(figures.unknown)
    if figures.unused:
        notes.append(
            f"not used, because they contain no reads: {', '.join(dict.fromkeys(figures.unused))}"[:_MOST_TEXT]
        )
    return notes


def _refuse_servers(wanted: FromRequest, tiers: Sequence[str]) -> None:
    for tier in wanted.servers or {}:
        if tier not in tiers:
            raise UserError(f"--servers {tier}=…: {tier} is not a tier of these files; tiers: {', '.join(tiers)}")


def _name(files: Sequence[BenchmarkFile]) -> str:
    return _word("-".join(dict.fromkeys(file.reader.tool.lower() for file in files)))


def _word(text: str) -> str:
    """As a system may be called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:64] or "imported"


def write_imported(imported: ImportedSystem, path: str, sources: Sequence[str]) -> None:
    assert imported.known is not None
    lines = [
        f"{imported.name}: created by 'tierscope probe --from' from {escaped(', '.join(os.path.basename(source) for source in sources))}",
        "A figure with 'high: null' is a lower bound. One server represents all, unless --servers was set.",
        *imported.notes,
    ]
    text = "".join(f"# {' '.join(escaped(line).split())}\n" for line in lines)
    try:
        with writing_named(path) as file:
            file.write((text + dump_system(imported.known)).encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another -o") from None


def summary(imported: ImportedSystem) -> str:
    """One line for a list of systems."""
    if imported.known is None:
        return f"{imported.name}: rejected: {imported.refused}"
    return f"{imported.name}: {counted(imported.known.system.nodes, 'node')}, {counted(len(imported.known.figures), 'figure')}"
