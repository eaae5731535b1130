"""What is known of logs that other profilers wrote, beside their sums: how they were read, what is missing in them, how storage was used.

Counts are as large as a log says; zero and empty mean that there is nothing to say.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tierscope.trace.limits import Count, Number, TierName

MOST_TALLIED = 2**63 - 1
Tallied = Annotated[int, Meta(ge=0, le=MOST_TALLIED)]  # importers write down what a log says
SizeLimit = Tallied | None  # of requests, in bytes; None: no limit


def tallied(count: int) -> int:
    """What a log says, as far as it is a number of 64 bits."""
    return min(max(count, 0), MOST_TALLIED)


class Habit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a tier is used. None: not known; a trace's sums tell less than logs that see single files."""

    reads: Tallied
    read_bytes: Tallied
    opens: Tallied | None = None
    files: Tallied | None = None
    read_files: Tallied | None = None
    again_files: Tallied | None = None  # read more than once
    stdio_reads: Tallied | None = None
    stdio_bytes: Tallied | None = None  # that they read; sizes are of the other reads
    random_reads: Tallied | None = None
    sizes: tuple[tuple[SizeLimit, Tallied], ...] | None = None  # (limit, reads up to it and above the one before)
    transfer_bytes: Tallied | None = None
    stripe_bytes: Tallied | None = None  # of most files
    servers: Tallied | None = None  # object servers that hold files
    striped_files: Tallied = 0
    striped_on_one: Tallied = 0
    striped_large_on_one: Tallied = 0


class KindSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: Number = 0.0
    ops: Tallied = 0
    bytes: Tallied = 0


class PathSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is below a path, or one file."""

    path: str
    ops: Tallied | None = None  # None: not known, as of results before schema version 4
    bytes: Tallied
    seconds: Number | None = None


class ApartSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operations that are in no class of I/O. `read`, `meta`, `write`: the same by class; None: not told apart (schema versions before 4)."""

    ops: Tallied = 0
    bytes: Tallied = 0
    seconds: Number = 0.0
    files: Tallied = 0
    read: KindSums | None = None
    meta: KindSums | None = None
    write: KindSums | None = None
    largest: tuple[PathSums, ...] = ()  # by seconds


class UnknownPaths(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files on no tier that is known. `prefixes`: paths that hold most of them."""

    ops: Tallied = 0
    bytes: Tallied = 0
    seconds: Number = 0.0
    files: Tallied = 0
    tier: TierName | None = None  # what they are shown as; None: they are not in the table (schema versions before 4)
    prefixes: tuple[PathSums, ...] = ()
    suggestion: str = ""  # a path for --tier


class LongMeta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log in which a process waited for metadata longer than it ran."""

    log: str
    meta_seconds: Number
    run_seconds: Number


class SharedFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Records of a tier that Darshan reduced over all ranks."""

    tier: TierName
    files: Tallied
    bytes: Tallied
    read_seconds: Number
    meta_seconds: Number
    fastest_seconds: Number
    slowest_seconds: Number
    write_seconds: Number = 0.0
    written_bytes: Tallied = 0


class SpawnedWorkers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Loader workers that are children of nobody who can be told: of a program by when they started, or alone."""

    by_start: Count = 0
    alone: Count = 0


class LogDoubts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why logs are not to be trusted, or tell less than all."""

    unreadable_logs: tuple[str, ...] = ()
    damaged_logs: tuple[str, ...] = ()
    negative_times: Count = 0
    impossible_ranks: Count = 0
    long_meta: tuple[LongMeta, ...] = ()
    partial_modules: Mapping[str, Count] = {}
    cut_files: tuple[str, ...] = ()
    broken_lines: Count = 0
    broken_last_lines: Count = 0
    no_names: Count = 0  # operations on files without a name


class LoggedProcess(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str
    pid: int
    parent: int | None = None
    rank: int | None = None


class DFTracerJob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only traces by DFTracer tell."""

    versions: tuple[str, ...] = ()
    formats: tuple[int, ...] = ()  # versions of its lines
    time_unit: str = ""
    processes: tuple[LoggedProcess, ...] = ()  # the first of them
    hosts: tuple[str, ...] = ()
    start_seconds: Number | None = None
    unended_processes: Tallied = 0
    empty_files: Tallied = 0
    nested_calls: Tallied = 0
    summed_events: Tallied = 0
    other_calls: Mapping[str, Tallied] = {}
    no_sizes: Tallied = 0
    epoch_span: str | None = None  # None: no epochs were marked
    compute_spans: tuple[str, ...] = ()


class LogFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it, of the logs of one job."""

    source: Literal["darshan", "dftracer"] | None
    logs: Tallied | None = None  # how many
    process_count: Tallied | None = None
    job_id: int | None = None
    doubts: LogDoubts = LogDoubts()
    program: ApartSums = ApartSums()  # its own libraries and scripts
    streams: ApartSums = ApartSums()  # standard input, output and error
    unknown: UnknownPaths = UnknownPaths()
    outside_epochs: ApartSums = ApartSums()
    shared: tuple[SharedFiles, ...] = ()
    shared_split: bool = False  # ranks have parts of them; else they are not in the table
    left_out: ApartSums = ApartSums()  # of shared records, where they are not in the table
    mpiio: ApartSums = ApartSums()  # of files that have records of POSIX too: the same bytes again
    traced_reads: bool = False  # reads come from extended tracing, and there is nothing else
    spawned: SpawnedWorkers = SpawnedWorkers()
    dftracer: DFTracerJob | None = None
    steps: tuple[str, ...] = ()  # commands of MPI programs that ran one after another on the same ranks
    own_files: bool = (
        False  # processes, or those that started together, read different files: their starts are no epochs
    )
