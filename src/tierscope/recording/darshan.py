"""A site's Darshan as a recorder: a log of sums for every process. Choose it where others will read the logs too; it costs least of all."""

import glob
import os
import re
import subprocess
from collections.abc import Sequence

from tierscope.bench.profiled import make_days
from tierscope.errors import UserError
from tierscope.helper_process import Helper
from tierscope.imports.darshan_library import INSTALL, library_path
from tierscope.imports.logs import ImportOptions, import_logs
from tierscope.imports.paths import TierRules
from tierscope.output.durable import write_file
from tierscope.recording.darshan_question import LOADED, RESTARTS_LOG
from tierscope.recording.profilers import Profiler, Ran
from tierscope.recording.recorders import RecordingRequest
from tierscope.spec.study import Study
from tierscope.trace.trace import Trace

MOST_RECORDS = 100_000
MEMORY_MIB = 512
QUESTION = "tierscope.recording.darshan_question"
_LOAD_SECONDS = 60
_LIBRARY = "libdarshan.so"
_ROOTS = ("DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT", "DARSHAN_PREFIX", "DARSHAN_PATH")
_PLACES = (
    *("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/local/lib64"),
    *("/opt/cray/pe/darshan*/lib", "/opt/darshan*/lib", "/soft/perftools/darshan/*/lib"),
)


class Darshan(Profiler):
    name, variable, suffix = "darshan", "DARSHAN_LOGPATH", ".darshan"

    def library(self) -> str:
        if given := os.environ.get("DARSHAN_LIB"):
            if not os.path.isfile(given):
                raise UserError(f"DARSHAN_LIB = {given}; no such file: set it to Darshan's {_LIBRARY}")
            return os.path.abspath(given)
        roots = [os.path.join(os.environ[name], "lib*") for name in _ROOTS if os.environ.get(name)]
        loaded = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        for folder in (*roots, *loaded, *_PLACES):
            if libraries := sorted(glob.glob(os.path.join(folder, _LIBRARY))):
                return libraries[-1]
        raise UserError(
            f"Darshan's runtime library was not found; load its module, or set DARSHAN_LIB to {_LIBRARY} (not available from PyPI)"
        )

    def check_study(self, studies: Sequence[Study]) -> list[str]:
        if library_path() is None:
            raise UserError(f"reading Darshan's logs needs PyDarshan's library; {INSTALL}")
        if self.can_restart_log():
            return []
        for study in studies:
            epochs, evict = study.workload.train.epochs, study.workload.reader.evict
            if epochs > 1 or evict:
                told = f"workload.train.epochs = {epochs}" if epochs > 1 else "workload.reader.evict = true"
                fix = "train.epochs: 1 and reader.evict: false"
                raise UserError(
                    f"{told}, but {self.library()} cannot start a new log (no darshan_core_initialize), so epochs cannot be separated; "
                    f"set {fix}, or use --profiler dftracer"
                )
        return ["this Darshan cannot start a new log: one log per rank for all epochs"]

    def can_restart_log(self) -> bool:
        """Whether a process can end its log and begin another. Asked elsewhere: loading the library may start it."""
        library = self.library()
        environment = {"DARSHAN_DISABLE": "1"}
        with Helper(QUESTION, needed_for="checking Darshan's library", variables=environment) as asked:
            asked.expect_greeting()
            try:
                answer, _ = asked.process.communicate(os.fsencode(library) + b"\n", timeout=_LOAD_SECONDS)
            except subprocess.TimeoutExpired:
                raise UserError(
                    f"{library}: was not loaded within {_LOAD_SECONDS} s; set DARSHAN_LIB to another"
                ) from None
            reason = asked.said().strip().rpartition("\n")[2][:200]
        if LOADED not in answer:
            raise UserError(f"{library}: cannot be loaded ({reason}); set DARSHAN_LIB to another")
        return RESTARTS_LOG in answer

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        return import_logs(logs, ImportOptions(rules, ranks={process.pid: process.rank for process in ran}, force=True))

    def variables(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        """Logs of every process, with room for all files, also of places that Darshan leaves out by itself."""
        make_days(folder)
        config = os.path.join(folder, "darshan.conf")
        write_file(config, os.fsencode("\n".join(config_lines(wanted)) + "\n"))
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
