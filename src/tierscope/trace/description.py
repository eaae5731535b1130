"""The description of a run: where a trace comes from, as one of four kinds. Decoded and checked when a run is read, never a dictionary after.

Choose by who recorded: `Measured` by ranks of ours, `Simulated` by nobody, `Traced` by our recorder in a stranger's command, `Imported` by another
profiler. What a type cannot say (names of tiers that differ, keys that can be swept) is checked in `__post_init__`. A field that
is added needs a new schema version: readers refuse what they do not know. None means: not known, or there is none.
"""

import math
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from tierscope.jsonable import SweepValue, SweepValues
from tierscope.trace.columns import COLUMNS
from tierscope.trace.coverage import Coverage
from tierscope.trace.described_logs import Habit, LogFacts
from tierscope.trace.described_stations import DrawnLayout, StationLoad
from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.limits import (
    MOST_TIERS,
    Count,
    EpochNumber,
    Number,
    Seconds,
    Share,
    Size,
    TierName,
)
from tierscope.trace.provenance import Provenance

RANK_WALL = (
    "rank_wall"  # wall seconds are the union over all processes of a rank; without it they may be sums over processes
)
_SWEPT = re.compile(r"[a-z0-9_]{1,64}(\.[a-z0-9_]{1,64}){0,8}")
_TAKEN = {*COLUMNS, "class", "seconds"} - {"tier"}  # columns that analyses meet beside swept ones


class DescribedTier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: TierName
    emulated: bool = False
    evictable: bool = True  # its storage can take files out of caches
    device: str | None = None  # what is behind it on the first node; None: not known
    prefixes: tuple[str, ...] = ()  # of paths on it, where a command was traced


class OwnCost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What measuring cost by itself. None: nobody measured it.

    Of a traced command, calls by path take longer beside that: `relative_stat`, `foreign_open` (of a file on no tier).
    """

    recorder_seconds_per_op: Seconds | None = None
    relative_stat_seconds: Seconds | None = None
    foreign_open_seconds: Seconds | None = None
    harness_seconds_per_sample: Seconds | None = None
    threads_seconds_per_op: Seconds | None = None


class CheckpointSummary(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Checkpoints of a run; seconds are those of the rank that took longest. None: nobody looked, or there was none."""

    tier: TierName
    count: Count | None = None
    bytes: Count | None = None
    writers: Count | None = None
    seconds_median: Seconds | None = None
    seconds_max: Seconds | None = None
    recovery_seconds: Seconds | None = None
    verified: bool | None = None
    verified_bytes: Count | None = None
    recovery_resident_bytes: Count | None = None


class TrainingSummary(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was trained, where, and how it went. A loss may be infinite or not a number: that is news, and no damage."""

    network: str
    device: str
    software: str
    arithmetic: str
    solver: str
    data: str  # where samples come from: tiers, memory, synthetic
    first_loss: float
    last_loss: float
    parameters: Count | None = None
    device_memory_bytes: Count | None = None  # None: it does not say, or nobody asked it
    peak_memory_bytes: Count | None = None  # None: the device does not say
    predicted_memory_bytes: Count | None = None
    repeated: Count | None = None  # times that a stored sample fills the network's input
    loader_name: str | None = None  # None: of a result that does not say
    loader_workers: Count | None = None  # processes or threads of the loader, per rank


class ProfiledLogs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another profiler's logs of a run of ours were like, and how much less they saw than ranks did."""

    facts: LogFacts
    missed_ops: Count = 0
    missed_bytes: Count = 0


class RunDescription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all four have."""

    tiers: tuple[DescribedTier, ...]
    provides: tuple[str, ...] = ()  # what its table tells: epochs, lanes, busy, wall, RANK_WALL, steps, cold, compute
    provenance: Provenance | None = None
    own_cost: OwnCost | None = None
    checkpoint: CheckpointSummary | None = None  # None: none were asked for
    training: TrainingSummary | None = None  # None: nothing was trained for real

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_tiers(self.tiers)

    @property
    def tier_names(self) -> list[str]:
        return [tier.name for tier in self.tiers]


class StudyRun(RunDescription, frozen=True, kw_only=True):
    """A run of a study of ours, measured or simulated."""

    study: str | None  # the resolved study at this point, as YAML
    point: Count
    sweep: SweepValues
    trimmed_samples: Count = 0
    ranks: Size | None = None
    nodes: Size | None = None
    policy: str | None = None  # of placement, where it matters
    hit_rate: Mapping[EpochNumber, Number | None] | None = None  # share of reads not from the last tier

    def __post_init__(self) -> None:
        check_tiers(self.tiers)
        for name, value in self.sweep.items():
            if reason := _why_not_swept(name, value):
                raise ValueError(f"sweep.{name[:64]} {reason}")


class Measured(StudyRun, frozen=True, kw_only=True, tag="measured"):
    kind: ClassVar[str] = "measured"

    compute: str | None  # none, sleep, spin, real
    loader: str | None
    metadata_cache: str | None  # cold, warm, unused, unknown
    profiler: str | None = None  # that measured in place of our recorder
    recorder: str | None = None  # None: the ranks' own
    logs: ProfiledLogs | None = None  # of that profiler
    coverage: Coverage | None = None  # None: nobody counted


class Simulated(StudyRun, frozen=True, kw_only=True, tag="simulated"):
    kind: ClassVar[str] = "simulated"

    method: str | None
    spread: Mapping[EpochNumber, tuple[Seconds, Seconds]]  # epoch → what low and high are of its time
    epoch_spread: Mapping[EpochNumber, tuple[Seconds, Seconds]] | None = None  # the same of the epoch's seconds
    upper_bound: bool = False
    sampled_share: Share | None = None  # of an epoch's operations that stand for all; None: all were simulated
    checkpoints_left_out: bool = False  # the study has some, which are not simulated
    writes_as_reads: tuple[TierName, ...] = ()  # tiers that are written to and have no rates of writing
    staging_seconds: Seconds | None = None
    stations: tuple[StationLoad, ...] = ()  # busiest first
    first_batch: Mapping[EpochNumber, tuple[Seconds, Seconds]] | None = None  # mean and max over ranks, from the start
    unidentified: tuple[str, ...] = ()  # why the calibration of its system says nothing of this point
    calibrated: bool = False  # its system was fitted to whole times, of which opens are a part
    drawn_layouts: tuple[DrawnLayout, ...] = ()  # of tiers where nobody knows the real one


class RecordedProcess(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lanes: int
    rank: int | None = None  # None: a process beside the ranks
    pid: int | None = None
    parent: int | None = None
    command: str | None = None
    host: str | None = None
    start: Number | None = None  # seconds since 1970


class MappedSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that were mapped into memory: what is read there is not seen."""

    ops: Count
    bytes: Count


class PhaseSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seconds: Seconds
    count: Count


Doubt = Literal[
    "few",
    "mapped",
    "uneven",
    "partial",
    "ranks_differ",
    "exchanged",
    "scattered",
    "too_many",
    "interrupted",
    "no_page",
]


class Rereads(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What re-reads tell of a program that marks no epochs: how often it read its data, or (`doubt`) why that cannot be told."""

    passes: Size
    doubt: Doubt | None
    late_reads: Count  # until the next pass was noticed, at most


class LoaderUse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What worker processes of torch's DataLoader spent from their first to their last operation on tiers, added up; no workers: files are read by other processes."""

    frameworks: tuple[str, ...]  # that processes had loaded
    workers: Count  # all that there were, also one after another
    other_readers: Count  # processes that did I/O on tiers beside them
    window_seconds: Seconds
    io_seconds: Seconds
    user_seconds: Seconds
    system_seconds: Seconds  # in I/O too, and in handing batches over
    delay_seconds: Seconds | None  # ready to run without a core; None: the kernel does not say
    training_cpu_share: (
        Number | None
    )  # of the process that started them, from its first to its last operation; None: not seen


class Records(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What processes of a traced command left behind, beside their sums, and what of it is missing."""

    marked: bool = False  # the program marked its epochs
    span_seconds: Seconds | None = None  # from the first to the last operation of the longest rank
    ranks: Size | None = None
    nodes: Size | None = None
    processes: tuple[RecordedProcess, ...] = ()  # the first of them
    process_count: Count | None = None
    phases: Mapping[str, PhaseSums] = {}
    mapped: Mapping[str, MappedSums] = {}
    mapped_ops: Count = 0
    outside_ops: Count = 0  # of processes beside the ranks
    outside_seconds: Seconds = 0.0
    under_way_ops: Count = 0  # that had not ended
    under_way_seconds: Seconds = 0.0
    lost_ops: Count = 0
    lost_rows: Count = 0
    cut_lanes: Count = 0
    still_running: Count = 0
    unemulated_processes: Count = 0
    scattered_processes: Count = 0  # on other hosts than their rank
    unrecorded_processes: Count = 0
    unrecorded_ops: Count = 0
    damaged_files: tuple[str, ...] = ()  # the first of them
    damaged_file_count: Count = 0
    rereads: Rereads | None = None  # None: nobody asked, or the program marked its epochs
    loader_use: LoaderUse | None = None  # None: no framework was loaded, or nobody looked


class TracedCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that is being traced, before anything is collected. `exit_code` is None while it runs."""

    recorder: str
    command: tuple[str, ...]
    tiers: tuple[DescribedTier, ...]
    epochs: str = "marks"  # what tells them apart
    ops: bool = False  # every operation is listed
    exit_code: int | None = None
    provenance: Provenance | None = None
    kernel: KernelIo | None = None  # counted while it ran, of all its processes that were waited for

    def __post_init__(self) -> None:
        check_tiers(self.tiers)


class Traced(RunDescription, frozen=True, kw_only=True, tag="traced"):
    """A stranger's command that our recorder saw. `running`: its processes, where it was looked at before its end."""

    kind: ClassVar[str] = "traced"

    command: tuple[str, ...]
    records: Records
    recorder: str | None = None
    epochs: str | None = None
    ops: bool = False
    exit_code: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    running: tuple[Size, ...] = ()
    coverage: Coverage | None = None  # None: nobody counted

    @property
    def sweep(self) -> SweepValues:
        return {}


class RecordedCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that we ran under another profiler."""

    recorder: str | None = None
    exit_code: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    running: tuple[Size, ...] = ()


class Imported(RunDescription, frozen=True, kw_only=True, tag="imported"):
    """Logs that others recorded. `habits` by tier; None: they are counted from the table."""

    kind: ClassVar[str] = "imported"

    command: str
    facts: LogFacts
    habits: Mapping[str, Habit] | None = None
    recorded: RecordedCommand | None = None  # None: we did not run it

    @property
    def sweep(self) -> SweepValues:
        return {}


Description = Measured | Simulated | Traced | Imported


def check_tiers(tiers: tuple[DescribedTier, ...]) -> None:
    names = {tier.name for tier in tiers}
    if len(names) < len(tiers):
        raise ValueError("tiers has a name twice")
    if len(tiers) > MOST_TIERS:
        raise ValueError(f"tiers has more than {MOST_TIERS} entries")


def _why_not_swept(name: str, value: SweepValue) -> str | None:
    """Why a sweep cannot have this key, or this value of it."""
    if not _SWEPT.fullmatch(name) or name in _TAKEN:
        return "is not a key that can be swept"
    if name == "cache_rate" and not isinstance(value, float | int):
        return "must be a number"
    if isinstance(value, str):
        return None if value.isprintable() else "has an unprintable value"
    if value is not None and not (abs(value) < 2**63 and math.isfinite(value)):
        return "has a number that is too large or not finite"
    return None
