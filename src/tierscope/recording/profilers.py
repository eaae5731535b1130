"""The profilers of a site as recorders (`trace --with`, `run --profiler`): found, configured, preloaded; their logs are then read like any others."""

import glob
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec import structs

from tierscope.bench.profiled import make_days
from tierscope.errors import UserError
from tierscope.imports.darshan_library import INSTALL, library_path
from tierscope.imports.dftracer_outline import outline
from tierscope.imports.logs import ImportOptions as Reading
from tierscope.imports.logs import import_logs
from tierscope.imports.paths import TierRules
from tierscope.jsonable import JsonObject
from tierscope.native.program import processes_with, why_unseen
from tierscope.recording.recorders import RecordingRequest
from tierscope.spec.study import Study
from tierscope.trace.description import RecordedCommand, TracedCommand
from tierscope.trace.trace import Trace

EPOCH_SPAN = "tierscope.epoch"
EPOCH_FILE = "tierscope-epochs.pfw"
MOST_RECORDS = 100_000
MEMORY_MIB = 512
_DARSHAN_LIBRARY = "libdarshan.so"
_DARSHAN_ROOTS = ("DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT", "DARSHAN_PREFIX", "DARSHAN_PATH")
_DARSHAN_PLACES = (
    *("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/local/lib64"),
    *("/opt/cray/pe/darshan*/lib", "/opt/darshan*/lib", "/soft/perftools/darshan/*/lib"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A rank of ours that was profiled: its process, and (epoch, begin, end) by the calendar's clock in nanoseconds."""

    rank: int
    pid: int
    epochs: Sequence[tuple[int, int, int]]


class Profiler:
    """What both have in common: `name` as in --with, and the variable by which their processes are known."""

    name = ""
    variable = ""
    suffix = ""

    def library(self) -> str:
        raise NotImplementedError

    def variables(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        raise NotImplementedError

    def check_study(self, studies: Sequence[Study]) -> list[str]:
        """Refuse studies that it cannot measure; lines worth saying about others."""
        del studies
        self.library()
        return []

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        """Its logs of a run of ours, with our numbers of ranks and epochs."""
        raise NotImplementedError

    def check(self, program: str, wanted: RecordingRequest) -> list[str]:
        self.library()
        if wanted.ops or wanted.epochs != "marks":
            raise UserError(f"--ops and --epochs rereads are for --with builtin; {self.name} records in its own way")
        if any(traced.tier.emulate for traced in wanted.tiers):
            raise UserError(f"--emulate is for --with builtin; {self.name} only looks")
        reason = why_unseen(program)
        return [] if reason is None else [f"{reason}: no library can be preloaded into it, so it is not seen"]

    def prepare(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        found = self.library()
        others = [path for path in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if path != found]
        return {"LD_PRELOAD": ":".join([found, *others]), **self.variables(folder, wanted)}

    def running(self, folder: str, about: TracedCommand) -> list[int]:
        """`about` is not needed: every process of the command has the variable that says where its log goes."""
        del about
        return processes_with(self.variable, self.place(folder))

    def place(self, folder: str) -> str:
        """What the variable says."""
        return folder

    def written(self, folder: str) -> list[str]:
        """Logs that hold something."""
        logs = sorted(glob.glob(os.path.join(glob.escape(folder), "**", f"*{self.suffix}"), recursive=True))
        return [path for path in logs if os.path.getsize(path)]

    def collect(self, folder: str, out: str, about: TracedCommand) -> Trace:
        """Logs stay below `out` as they are: other tools read them too."""
        written = self.written(folder)
        if not written:
            raise UserError(f"{self.name} wrote no log; look at what the command printed, or use --with builtin")
        paths = [_keep(path, os.path.join(out, "logs")) for path in written]
        rules = TierRules({tier.name: tier.prefixes for tier in about.tiers})
        trace = import_logs(paths, Reading(rules, force=True))
        ran = RecordedCommand(recorder=about.recorder, exit_code=about.exit_code)
        described = structs.replace(
            trace.about, command=shlex.join(about.command), recorded=ran, provenance=about.provenance
        )
        return Trace(trace.key, described, trace.table)


def _keep(path: str, folder: str) -> str:
    """Also there, under the same name; the command may still be writing to it."""
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, os.path.basename(path))
    with suppress(FileExistsError):
        os.link(path, target)
    return target


class DFTracer(Profiler):
    name, variable, suffix = "dftracer", "DFTRACER_LOG_FILE", ".pfw*"

    def library(self) -> str:
        spec = importlib.util.find_spec("dftracer")
        folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
        found = sorted(glob.glob(os.path.join(folder, "lib*", "libdftracer_preload.so"))) if folder else []
        if not found:
            raise UserError("DFTracer is not installed; pip install 'tierscope[dftracer]'")
        return found[0]

    def place(self, folder: str) -> str:
        return os.path.join(folder, "trace")

    def variables(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        return {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_TRACE_COMPRESSION": "1",
            self.variable: self.place(folder),
            "DFTRACER_DATA_DIR": ":".join(prefix for traced in wanted.tiers for prefix in traced.prefixes),
        }

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        """Epochs and ranks go into a trace of their own beside the others, so that whoever reads these knows them too."""
        beside = os.path.join(os.path.dirname(logs[0]), EPOCH_FILE)
        host = next((host for path in logs if (host := outline(path, EPOCH_SPAN).host)), "")
        with open(beside, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(event) + "\n" for event in epoch_events(host, ran))
        return import_logs([*logs, beside], Reading(rules, epoch_span=EPOCH_SPAN, force=True))


def epoch_events(host: str, ran: Sequence[Ran]) -> Iterator[JsonObject]:
    """Lines of DFTracer, version 2: which rank a process is, and a span for every epoch. `host` as its own lines name it."""
    number = 0
    for one in ran:
        who = {"pid": one.pid, "tid": one.pid}
        for kind, name, value in (("CM", "time_metric", "US"), ("PR", "rank", str(one.rank))):
            args = {"hhash": host, "name": name, "value": value}
            yield {"name": kind, "cat": "dftracer", "type": 1, **who, "ph": 4, "args": args}
        for epoch, began, ended in one.epochs:
            number += 1
            start, end = (
                began // 1000,
                -(-ended // 1000),
            )  # its operations begin in whole microseconds too, rounded down
            times = {"ts": start, "dur": end - start, "ph": 1, "args": {"hhash": host, "epoch": epoch}}
            yield {"id": number, "name": EPOCH_SPAN, "cat": "tierscope", "type": 1, **who, **times}


class Darshan(Profiler):
    name, variable, suffix = "darshan", "DARSHAN_LOGPATH", ".darshan"

    def library(self) -> str:
        if given := os.environ.get("DARSHAN_LIB"):
            if not os.path.isfile(given):
                raise UserError(f"DARSHAN_LIB = {given}; there is no such file: name Darshan's {_DARSHAN_LIBRARY}")
            return os.path.abspath(given)
        roots = [os.path.join(os.environ[name], "lib*") for name in _DARSHAN_ROOTS if os.environ.get(name)]
        loaded = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        for folder in (*roots, *loaded, *_DARSHAN_PLACES):
            if found := sorted(glob.glob(os.path.join(folder, _DARSHAN_LIBRARY))):
                return found[-1]
        raise UserError(
            f"Darshan's runtime library is not found; load its module, or name {_DARSHAN_LIBRARY} in DARSHAN_LIB (no package index has it)"
        )

    def check_study(self, studies: Sequence[Study]) -> list[str]:
        if library_path() is None:
            raise UserError(f"reading Darshan's logs needs PyDarshan's library; {INSTALL}")
        if self.begins_anew():
            return []
        for study in studies:
            epochs, evict = study.workload.train.epochs, study.workload.reader.evict
            if epochs > 1 or evict:
                told = f"workload.train.epochs = {epochs}" if epochs > 1 else "workload.reader.evict = true"
                fix = "train.epochs: 1 and reader.evict: false"
                raise UserError(
                    f"{told}, but {self.library()} cannot begin a log anew (no darshan_core_initialize), so epochs are not told apart; "
                    f"set {fix}, or use --profiler dftracer"
                )
        return ["this Darshan cannot begin a log anew: one log for all that a rank does"]

    def begins_anew(self) -> bool:
        """Whether a process can end its log and begin another. Asked elsewhere: loading the library may start it."""
        found = self.library()
        wanted = "lib.darshan_core_initialize, lib.darshan_core_shutdown"
        code = (
            f"import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); print('loaded', flush=True); {wanted}; print('both')"
        )
        asked = subprocess.run(
            [sys.executable, "-c", code, found],
            env={**os.environ, "DARSHAN_DISABLE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if "loaded" not in asked.stdout:
            reason = asked.stderr.strip().rpartition("\n")[2].removeprefix("OSError: ")[:200]
            raise UserError(f"{found}: cannot be loaded ({reason}); name another in DARSHAN_LIB")
        return "both" in asked.stdout

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        return import_logs(logs, Reading(rules, ranks={one.pid: one.rank for one in ran}, force=True))

    def variables(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        """Logs of every process, with room for all files, also of places that Darshan leaves out by itself."""
        make_days(folder)
        config = os.path.join(folder, "darshan.conf")
        with open(config, "w", encoding="utf-8") as out:
            out.write("\n".join(config_lines(wanted)) + "\n")
        return {
            "DARSHAN_ENABLE_NONMPI": "1",
            "DARSHAN_DISABLE_SHARED_REDUCTION": "1",
            self.variable: self.place(folder),
            "DARSHAN_CONFIG_PATH": config,
        }


def config_lines(wanted: RecordingRequest) -> list[str]:
    """What a configuration of Darshan must say for these tiers."""
    prefixes = [prefix for traced in wanted.tiers for prefix in traced.prefixes]
    return [
        f"MAX_RECORDS {MOST_RECORDS} POSIX,STDIO",
        f"MODMEM {MEMORY_MIB}",
        *(f"NAME_INCLUDE ^{re.escape(prefix)} POSIX,STDIO" for prefix in prefixes),
    ]
