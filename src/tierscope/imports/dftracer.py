"""A job's traces by DFTracer as one import: which process belongs to which rank, and which operation to which epoch.

DFTracer (llnl/dftracer) writes a file for every process, an event per line, plain or compressed; lines of versions 1 and 2 are read. Calls of its
categories POSIX and STDIO become operations, spans of a name that you may choose become epochs and compute time.

Assumed: all processes share one clock (on several nodes a synchronised one), since when a loader worker's operation began tells which of its
rank's epochs it belongs to. A process that says it is the child of another traced process counts for that one's rank,
unless it has epochs or an MPI rank of its own. A call within a call (fread and the read that it makes) is counted once, as the
outer one, where a thread's lines are in order. DFTracer leaves out names of files and sizes of calls unless DFTRACER_INC_METADATA=1.
"""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from tierscope.analysis.merged_timeline import SAME_HOST_NS, RankOperations
from tierscope.analysis.time_spans import together
from tierscope.clock_marks import FILE_NAME
from tierscope.errors import UserError
from tierscope.imports.apart import PathNotes, SortedSums, apart_sums, sort_sums
from tierscope.imports.dftracer_events import LINE, Process
from tierscope.imports.dftracer_files import beginning
from tierscope.imports.dftracer_job import TracedJob
from tierscope.imports.dftracer_outline import Outline
from tierscope.imports.dftracer_readers import readers
from tierscope.imports.dftracer_spans import ProcessSpans, SpanTask
from tierscope.imports.dftracer_sums import OUTSIDE, FileSums, Task
from tierscope.imports.gathered import GatheredLogs, ImportedEpoch, sums_of
from tierscope.imports.paths import APART, STREAMS, UNKNOWN, TierRules
from tierscope.trace.described_logs import DFTracerJob, LogDoubts, LogFacts, LoggedProcess
from tierscope.trace.ops import KINDS, MOVES_BYTES
from tierscope.units import closest

DLIO_EPOCH = "DLIOBenchmark._train"
MOST_NAMED = 5
MOST_LISTED = 64
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DFTracerOptions:
    epoch_span: str | None = None  # None: DLIO's, if there are such
    compute_span: str | None = None  # None: all that are called compute, or something.compute
    spans: bool = False  # also when ranks did I/O and computed, for which files are read once more


def import_traces(paths: Sequence[str], rules: TierRules, options: DFTracerOptions) -> GatheredLogs:
    if not paths:
        raise UserError("no traces; name all traces of the job: *.pfw*")
    paths = _distinct(paths)
    with readers(paths) as read:
        wanted = options.epoch_span or DLIO_EPOCH
        outlines: list[Outline] = read("outline", [(path, (path, wanted)) for path in paths])
        job = TracedJob(outlines)
        if options.epoch_span and not job.has_epochs:
            raise UserError(_no_such_span(options.epoch_span, "epoch", _span_names(paths)))
        sums: list[FileSums] = read("sum_up", [(outline.path, (_task(outline, job, options),)) for outline in outlines])
        _check(sums, options)
        gathering = _Gathering(job, sums, rules, wanted)
        gathered = gathering.gathered()
        if not options.spans:
            return gathered
        asked = [(outline.path, (gathering.span_task(outline, options),)) for outline in outlines]
        spans: list[dict[Process, ProcessSpans]] = read("spans_of", asked)
    return replace(gathered, operations=gathering.operations(spans))


def _distinct(paths: Sequence[str]) -> list[str]:
    """No file twice, by whichever name."""
    return list({path if "\0" in path else os.path.realpath(path): path for path in paths}.values())


def _task(outline: Outline, job: TracedJob, options: DFTracerOptions) -> Task:
    task = Task(
        outline.path, outline.unit_ns, outline.host, options.compute_span, job.all_epochs if job.has_epochs else None
    )
    with_epochs = [process for process in outline.spans if process in job.epochs]
    if job.numbered and len(with_epochs) == 1:
        task.others_epochs = job.epochs[with_epochs[0]]
    return task


def _span_names(paths: Sequence[str]) -> set[str]:
    """Of what programs themselves marked, as far as the beginnings of files tell."""
    names = set()
    for path in paths[:MOST_LISTED]:
        for match in LINE.finditer(beginning(path)):
            if match[1] is not None and match[2] not in (b"POSIX", b"STDIO", b"dftracer"):
                names.add(match[1].decode("utf-8", "replace"))
    return names


def _no_such_span(name: str, what: str, known: set[str]) -> str:
    guess = closest(name, known)
    hint = f"did you mean {guess}?" if guess else f"spans: {', '.join(sorted(known)[:MOST_NAMED]) or 'none'}"
    return f"no span is named {name!r} (for the {what}); {hint}"


def _check(sums: Sequence[FileSums], options: DFTracerOptions) -> None:
    for of_file in sums:
        if not of_file.events and (of_file.broken_lines or of_file.broken_last_line or of_file.cut):
            raise UserError(f"{of_file.path}: contains no events; name traces written by DFTracer (*.pfw, *.pfw.gz)")
    if not any(of_file.events for of_file in sums):
        raise UserError(f"{sums[0].path}: no events in any trace; was the job killed, or tracing disabled?")
    if options.compute_span and not any(of_file.compute_spans for of_file in sums):
        known = {name for of_file in sums for name in of_file.spans}
        raise UserError(_no_such_span(options.compute_span, "compute time", known))


class _Gathering:
    """Sums by rank and tier, and what is worth saying about them."""

    def __init__(self, job: TracedJob, sums: Sequence[FileSums], rules: TierRules, epoch_span: str) -> None:
        self._job, self._sums, self._rules, self._epoch_span = job, sums, rules, epoch_span
        self._ranks = job.ranks(sums)
        self._names = {file: name for of_file in sums for file, name in of_file.names.items()}
        folders = {self._names.get(start.folder, "") for start in job.started.values()}
        self._folder = folders.pop() if len(folders) == 1 else ""  # what relative names are below
        self._cells: dict[tuple[int, int, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        self._outside: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])  # of no rank, or in no epoch
        self._notes, self._no_names = PathNotes(), 0
        self._noted: set[bytes] = set()
        self._tiers: dict[bytes, str] = {}
        for of_file in sums:
            for (process, epoch, kind, file), values in of_file.cells.items():
                self._add(process, epoch, KINDS[kind], file, values)

    def _add(self, process: Process, epoch: int, kind: str, file: bytes, values: list[int]) -> None:
        tier = self._tier(file)
        self._note(UNKNOWN if tier == self._rules.other else tier, file, kind, values)
        if epoch == OUTSIDE or process not in self._ranks:
            into = self._outside[tier if tier in APART else "", kind]
        else:
            into = self._cells[epoch, self._ranks[process], tier, kind]
        for place, value in enumerate(values):
            into[place] += value

    def _note(self, name: str, file: bytes, kind: str, values: list[int]) -> None:
        """Paths on no tier; what was done without a path."""
        if name not in self._notes.weights:
            return
        path = self._path(file)
        self._no_names += values[0] * (name == UNKNOWN and not path)
        ops, nanoseconds, size = values
        moved = size if kind in MOVES_BYTES else 0
        self._notes.weights[name].add(path if name == STREAMS else os.path.dirname(path), ops, moved, nanoseconds / 1e9)
        if file not in self._noted:
            self._noted.add(file)
            self._notes.files[name] += 1

    def _tier(self, file: bytes) -> str:
        if file not in self._tiers:
            path = self._path(file)
            name = self._rules.of_all([path], [], set())[0] if path else UNKNOWN
            self._tiers[file] = self._rules.other if name == UNKNOWN else name
        return self._tiers[file]

    def _path(self, file: bytes) -> str:
        name = file[1:].decode("utf-8", "replace") if file[:1] == b"\0" else self._names.get(file, "")
        relative = name and name[0] not in "/<" and ":" not in name
        return os.path.normpath(os.path.join(self._folder, name)) if relative and self._folder else name

    def gathered(self) -> GatheredLogs:
        rows = [
            (epoch, rank, tier, kind, nanoseconds / 1e9, ops, min(size, _MOST))
            for (epoch, rank, tier, kind), (ops, nanoseconds, size) in sorted(self._cells.items())
            if ops
        ]
        on_tiers = {tier for tier in self._tiers.values() if tier not in APART}
        unranked = {name: self._rows_outside(name) for name in APART}
        sorted_sums = sort_sums(sums_of(rows), self._rules, on_tiers, self._notes, unranked)
        return GatheredLogs(
            sorted_sums.sums, self._rank_epochs(), sorted_sums.tiers, self._facts(sorted_sums), command=self._command()
        )

    def span_task(self, outline: Outline, options: DFTracerOptions) -> SpanTask:
        left_out = frozenset(file for file, tier in self._tiers.items() if tier in APART)
        marks = {
            file: name.removeprefix(FILE_NAME)
            for file in self._tiers
            if (name := os.path.basename(self._path(file))).startswith(FILE_NAME)
        }
        return SpanTask(outline.path, outline.unit_ns, outline.host, options.compute_span, left_out, marks)

    def operations(self, spans: Sequence[Mapping[Process, ProcessSpans]]) -> tuple[RankOperations, ...]:
        """By rank, with all its processes."""
        known = [
            (self._ranks[process], of_process)
            for of_file in spans
            for process, of_process in of_file.items()
            if process in self._ranks
        ]
        return tuple(
            RankOperations(
                rank,
                together(part.io for number, part in known if number == rank),
                {token: mark for number, part in known if number == rank for token, mark in part.marks.items()},
                SAME_HOST_NS,
                together(part.compute for number, part in known if number == rank),
            )
            for rank in sorted({number for number, _ in known})
        )

    def _rows_outside(self, name: str) -> pl.DataFrame:
        """Of one of APART, or of all tiers (no name)."""
        return sums_of(
            (OUTSIDE, 0, name, kind, nanoseconds / 1e9, ops, min(size, _MOST))
            for (tier, kind), (ops, nanoseconds, size) in sorted(self._outside.items())
            if tier == name
        )

    def _rank_epochs(self) -> list[ImportedEpoch]:
        computed: dict[tuple[int, int], int] = defaultdict(int)
        known = False
        for of_file in self._sums:
            for (process, epoch), (_, nanoseconds) in of_file.compute.items():
                if process in self._ranks:
                    computed[self._ranks[process], epoch] += nanoseconds
                known = True
        nodes = self._job.nodes(self._ranks)
        seconds: dict[tuple[int, int], float | None] = {}
        for process, rank in self._ranks.items():
            if not self._job.has_epochs:
                seconds[rank, 1] = None
            for start, end, epoch in self._job.epochs.get(process, []):
                seconds[rank, epoch] = max(seconds.get((rank, epoch)) or 0.0, (end - start) / 1e9)
        return [
            ImportedEpoch(rank, epoch, nodes[rank], long, computed[rank, epoch] / 1e9 if known else None)
            for (rank, epoch), long in sorted(seconds.items())
        ]

    def _command(self) -> str:
        """Of the process that started first."""
        started = self._job.started
        if not started:
            return ""
        strings = {key: text for outline in self._job.outlines for key, text in outline.strings.items()}
        first = min((start.at_ns, process) for process, start in started.items())[1]
        return strings.get(started[first].command, "").replace(";", " ")

    def _facts(self, sorted_sums: SortedSums) -> LogFacts:
        job, sums = self._job, self._sums
        processes = {
            *self._ranks,
            *job.started,
            *(process for outline in job.outlines for process in outline.processes),
        }
        return LogFacts(
            source="dftracer",
            logs=len(sums),
            process_count=len(processes),
            doubts=LogDoubts(
                broken_lines=sum(of_file.broken_lines for of_file in sums),
                broken_last_lines=sum(of_file.broken_last_line for of_file in sums),
                cut_files=tuple(os.path.basename(of_file.path) for of_file in sums if of_file.cut)[:MOST_LISTED],
                no_names=self._no_names,
            ),
            program=sorted_sums.program,
            streams=sorted_sums.streams,
            unknown=sorted_sums.unknown,
            outside_epochs=apart_sums(self._rows_outside("")),
            dftracer=self._described(processes),
        )

    def _described(self, processes: set[Process]) -> DFTracerJob:
        job, sums, started = self._job, self._sums, self._job.started
        other_calls: dict[str, int] = defaultdict(int)
        for of_file in sums:
            for name, count in of_file.other_calls.items():
                other_calls[name] += count
        return DFTracerJob(
            versions=tuple(sorted({start.version for start in started.values() if start.version})),
            formats=tuple(sorted({version for outline in job.outlines for version in outline.versions})),
            time_unit="/".join(sorted({outline.unit for outline in job.outlines})),
            processes=tuple(map(self._process, sorted(processes, key=job.order)[:MOST_LISTED])),
            hosts=tuple(sorted({job.hosts.get(host, host) for host, _ in processes} - {""})[:MOST_LISTED]),
            start_seconds=min((start.at_ns for start in started.values()), default=0) / 1e9 if started else None,
            unended_processes=len(started.keys() - {process for outline in job.outlines for process in outline.ended}),
            empty_files=sum(not of_file.events for of_file in sums),
            nested_calls=sum(of_file.nested for of_file in sums),
            summed_events=sum(of_file.summed for of_file in sums),
            other_calls=dict(sorted(other_calls.items(), key=lambda pair: -pair[1])),
            no_sizes=sum(of_file.no_sizes for of_file in sums),
            epoch_span=self._epoch_span if job.has_epochs else None,
            compute_spans=tuple(sorted({name for of_file in sums for name in of_file.compute_spans})),
        )

    def _process(self, process: Process) -> LoggedProcess:
        host, pid = process
        parent = self._job.started[process].parent if process in self._job.started else None
        return LoggedProcess(
            host=self._job.hosts.get(host, host), pid=pid, parent=parent, rank=self._ranks.get(process)
        )
