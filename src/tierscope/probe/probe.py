"""`tierscope probe`: what this host's storage can do, in minutes, as a system that can be simulated.

Files of several sizes are written to a folder of our own on every tier; processes of this host open, stat and read them, more and more of
them. Tiers are given nearest first, as in a study: the last one holds every file and is visible to all nodes, the others to
their node. One client sees no servers: each tier is one server with the rates of all, unless the user says how many there are.
"""

import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tierscope.bench.liveness import until_undisturbed
from tierscope.errors import UserError
from tierscope.mounts import filesystem_of
from tierscope.output.durable import sync_filesystem, writing_named
from tierscope.probe import files as probe_files
from tierscope.probe.crew import ProbeCrew
from tierscope.probe.measure import (
    LEAST_REPETITIONS,
    Repetition,
    Series,
    levels_up_to,
    measure_series,
    repetition_of,
)
from tierscope.probe.rates import ProbedRate, derive
from tierscope.probe.request import ProbeRequest
from tierscope.probe.work import ProbeJob, ProbeTimes
from tierscope.spec.figures import KnownFigure
from tierscope.spec.known import KnownSystem, dump_system
from tierscope.spec.study import System, Tier
from tierscope.units import counted, format_bytes
from tierscope.watch import Watch

_WRITING = 0.25  # of a tier's time
_FIRST_FILES = 8  # to see how fast it is
_SPARE = 1.3  # more files than can probably be read
_COLD_SHARE = 0.01  # of the checked bytes may be left in the page cache
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class ProbedTier:
    """`cold`: whether pages were evicted before reads; None: no way to tell. `left_out`: size → time or room."""

    name: str
    path: str
    filesystem: str
    device: int
    cold: bool | None
    files: Mapping[int, int]
    left_out: Mapping[int, str]
    series: tuple[Series, ...]
    derived: Mapping[str, ProbedRate]
    servers: int
    servers_told: bool
    own_seconds: float  # of our loop, per operation
    operations: Mapping[str, int]  # by kind, also those that are not counted
    left_behind: str | None = None  # somebody else's file in our folder


@dataclass(frozen=True, slots=True)
class Probed:
    tiers: tuple[ProbedTier, ...]
    processes: int
    seconds: float
    wanted_seconds: float


def run_probe(wanted: ProbeRequest, watch: Watch, clock: Callable[[], float] = time.monotonic) -> Probed:
    """Measure every tier, one after another, and leave nothing behind."""
    probed_tiers = []
    with ExitStack() as until:
        folders = {name: until.enter_context(probe_files.own_folder(path, name)) for name, path in wanted.tiers.items()}
        wishes = {name: _wishes(wanted, name, folder) for name, folder in folders.items()}
        crew = until.enter_context(ProbeCrew(wanted.processes))
        start = clock()
        for place, (name, folder) in enumerate(folders.items()):
            left = max(0.0, start + wanted.seconds - clock()) / (len(folders) - place)
            probed_tiers.append(_TierProbe(wanted, name, folder, crew, watch, clock).run(wishes[name], left))
    tiers = tuple(replace(tier, left_behind=probe_files.strangers(folders[tier.name])) for tier in probed_tiers)
    return Probed(tiers, wanted.processes, clock() - start, wanted.seconds)


def _wishes(wanted: ProbeRequest, name: str, folder: str) -> dict[int, int]:
    room = probe_files.room_in(folder)
    wishes = probe_files.files_wished(wanted.sizes, room, wanted.processes)
    probe_files.refuse_too_small(name, wanted.tiers[name], room, wishes)
    return wishes


class _TierProbe:
    """One tier, from writing the files to its rates."""

    def __init__(
        self,
        wanted: ProbeRequest,
        name: str,
        folder: str,
        crew: ProbeCrew,
        watch: Watch,
        clock: Callable[[], float],
    ) -> None:
        self._wanted, self._name, self._folder = wanted, name, folder
        self._crew, self._watch, self._clock = crew, watch, clock
        self._levels = levels_up_to(wanted.processes)
        self._random = random.Random(name)
        self._rates: dict[tuple[str, int], float] = {}  # the last throughput of a process
        self._operations: Counter[str] = Counter()
        self._checked = self._cached = 0
        self._can_tell = True

    def run(self, wishes: Mapping[int, int], seconds: float) -> ProbedTier:
        deadline = self._clock() + seconds
        files, left_out = self._write(wishes, seconds * _WRITING)
        smallest = min(files)
        kinds = [("open", smallest), ("stat", smallest), *(("read", size) for size in sorted(files))]
        self._watch.phase(f"probing {self._name}", len(kinds), "series")
        nothing = ProbeJob("nothing", self._folder, 0, (), 0.02)
        own = repetition_of(
            until_undisturbed(f"{self._name}: overhead", lambda: self._crew.run([nothing]), self._watch.note)
        )
        series = []
        for place, (kind, size) in enumerate(kinds):
            left = max(0.0, deadline - self._clock()) / (len(kinds) - place)
            series.append(self._series(kind, size, files[size], left))
            self._watch.advance(1)
        servers = self._wanted.servers.get(self._name, 1)
        path = self._wanted.tiers[self._name]
        return ProbedTier(
            name=self._name,
            path=path,
            filesystem=filesystem_of(path),
            device=os.stat(path).st_dev,
            cold=self._cached <= _COLD_SHARE * self._checked if self._can_tell else None,
            files={size: len(numbers) for size, numbers in files.items()},
            left_out=left_out,
            series=tuple(series),
            derived=derive(series, servers),
            servers=servers,
            servers_told=self._name in self._wanted.servers,
            own_seconds=1 / own.ops_per_second,
            operations=dict(self._operations),
        )

    def _write(self, wishes: Mapping[int, int], seconds: float) -> tuple[dict[int, list[int]], dict[int, str]]:
        """The files that are there, by size; and the sizes that are left out."""
        deadline = self._clock() + seconds
        self._watch.phase(f"writing to {self._name}", len(wishes), "sizes")
        written: dict[int, list[int]] = {}
        left_out: dict[int, str] = {}
        for place, (size, count) in enumerate(wishes.items()):
            self._watch.advance(1)
            if count < probe_files.LEAST_FILES:
                left_out[size] = "room"
                continue
            left = max(0.0, deadline - self._clock()) / (len(wishes) - place)
            if place and not left:
                left_out[size] = "time"
                continue
            numbers, full = self._write_size(size, count, left)
            if len(numbers) < probe_files.LEAST_FILES:
                left_out[size] = "room" if full else "time"  # one process writes one file at least
            else:
                written[size] = numbers
        if not written:
            problem = (
                "not enough space for its files"
                if "room" in left_out.values()
                else "not enough time to write its files"
            )
            raise UserError(
                f"--tier {self._name}={self._wanted.tiers[self._name]}: {problem}; "
                "choose another directory, more --seconds or a smaller --size"
            )
        return written, left_out

    def _write_size(self, size: int, count: int, seconds: float) -> tuple[list[int], bool]:
        """Numbers of whole files, and whether room ran out."""
        probe_files.make_size_folder(self._folder, size)
        processes = min(self._wanted.processes, count)
        shares = [tuple(range(count))[part::processes] for part in range(processes)]
        done = self._crew.run([ProbeJob("write", self._folder, size, share, seconds) for share in shares])
        sync_filesystem(self._folder)  # pages that are not on the device yet cannot be evicted
        numbers = [
            number
            for share, probe_times in zip(shares, done, strict=True)
            for number in share[: len(probe_times.starts)]
        ]
        return sorted(numbers), any(probe_times.full for probe_times in done)

    def _series(self, kind: str, size: int, files: list[int], seconds: float) -> Series:
        levels = [level for level in self._levels if level <= len(files)]
        series = measure_series(
            kind,
            size,
            levels,
            lambda count, limit: self._attempt(kind, size, files, count, limit),
            seconds,
            self._clock,
        )
        most = series.most
        what = f"read of {format_bytes(size)}" if kind == "read" else kind
        self._watch.note(
            f"{self._name}: {what}: {most.ops_per_second:,.0f}/s with {most.processes} of {counted(levels[-1], 'process')}, n={most.n}"
        )
        return series

    def _attempt(self, kind: str, size: int, files: list[int], processes: int, seconds: float) -> Repetition:
        """Every process has files of its own, in a new random order."""
        chosen = self._random.sample(files, len(files))
        per_process = max(1, len(files) // processes)
        if kind == "read":
            per_process = min(per_process, self._crew.files_each, self._readable(kind, size, seconds))
        jobs = [
            ProbeJob(kind, self._folder, size, tuple(chosen[part * per_process : (part + 1) * per_process]), seconds)
            for part in range(processes)
        ]
        done = until_undisturbed(f"{self._name}: {kind}", lambda: self._crew.run(jobs), self._watch.note)
        repetition = repetition_of(done)
        self._operations[kind] += repetition.operations
        self._rates[kind, size] = repetition.ops_per_second / processes
        self._look(done)
        return repetition

    def _readable(self, kind: str, size: int, seconds: float) -> int:
        """As many files as one process can probably read in the time: more need not be evicted and opened."""
        rate = self._rates.get((kind, size))
        return _FIRST_FILES if rate is None else max(2, math.ceil(rate * seconds * _SPARE))

    def _look(self, done: Sequence[ProbeTimes]) -> None:
        for probe_times in done:
            if probe_times.cached_bytes is None:
                self._can_tell = False
            else:
                self._checked += probe_times.checked_bytes
                self._cached += probe_times.cached_bytes


def known_system(probed: Probed, name: str = "probed") -> KnownSystem:
    """The system that was measured, every number with its range."""
    tiers, figures = (
        [],
        {
            "nodes": KnownFigure(1, "assumed", "one host was probed", 1, 1),
            "ranks_per_node": KnownFigure(
                probed.processes,
                "assumed",
                "the largest number of processes probed",
                probed.processes,
                probed.processes,
            ),
        },
    )
    for place, tier in enumerate(probed.tiers):
        rates = {key: _rounded(key, rate) for key, rate in tier.derived.items()}
        values = {key: rate.value for key, rate in rates.items()}
        last = place == len(probed.tiers) - 1
        tiers.append(
            Tier(
                name=tier.name,
                path=os.path.join(tier.path, "tierscope"),
                visible_to="global" if last else "node",
                servers=tier.servers,
                **values,  # type: ignore[arg-type]  # all of them are floats
            )
        )
        servers = (
            f"set by --servers; the total of {counted(tier.servers, 'server')} is divided evenly"
            if tier.servers_told
            else "a client cannot see servers: one server with the total rates"
        )
        figures[f"tiers.{tier.name}.servers"] = KnownFigure(
            tier.servers, "assumed", servers, tier.servers, tier.servers
        )
        for key, rate in rates.items():
            figures[f"tiers.{tier.name}.{key}"] = KnownFigure(rate.value, "fitted", rate.text, rate.low, rate.high)
    system = System(nodes=1, ranks_per_node=probed.processes, tiers=tuple(tiers))
    return KnownSystem(name, system, figures)


def _rounded(key: str, rate: ProbedRate) -> ProbedRate:
    """A file for people: no more digits than were measured."""

    def short(value: float) -> float:
        shortened = float(f"{value:.{_DIGITS}g}")
        return float(round(shortened)) if key.endswith("bandwidth") else shortened

    low, high = (None if end is None else short(end) for end in (rate.low, rate.high))
    return replace(rate, value=short(rate.value), low=low, high=high)


def write_system(probed: Probed, path: str) -> None:
    try:
        with writing_named(path) as file:
            file.write(dump_system(known_system(probed)).encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another -o") from None


def few_repetitions(tier: ProbedTier) -> int:
    """How many points have fewer than they should."""
    return sum(point.n < LEAST_REPETITIONS for series in tier.series for point in series.points)
