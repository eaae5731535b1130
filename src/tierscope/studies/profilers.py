"""The profilers of a site as recorders (`tierscope trace --with`): found, configured, preloaded; their logs are then read like any others."""

import glob
import importlib.util
import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from tierscope.errors import UserError
from tierscope.native.program import processes_with, why_unseen
from tierscope.studies.imports import Wanted as Reading
from tierscope.studies.imports import import_logs
from tierscope.studies.recorders import Wanted
from tierscope.trace.imports.paths import TierRules
from tierscope.trace.trace import Trace

MOST_RECORDS = 100_000
MEMORY_MIB = 512
_DARSHAN_LIBRARY = "libdarshan.so"
_DARSHAN_ROOTS = ("DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT", "DARSHAN_PREFIX", "DARSHAN_PATH")
_DARSHAN_PLACES = (
    *("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/local/lib64"),
    *("/opt/cray/pe/darshan*/lib", "/opt/darshan*/lib", "/soft/perftools/darshan/*/lib"),
)


class Profiler:
    """What both have in common: `name` as in --with, and the variable by which their processes are known."""

    name = ""
    variable = ""
    suffix = ""

    def library(self) -> str:
        raise NotImplementedError

    def variables(self, folder: str, wanted: Wanted) -> dict[str, str]:
        raise NotImplementedError

    def check(self, program: str, wanted: Wanted) -> list[str]:
        self.library()
        if wanted.ops or wanted.epochs != "marks":
            raise UserError(f"--ops and --epochs rereads are for --with builtin; {self.name} records in its own way")
        if any(traced.tier.emulate for traced in wanted.tiers):
            raise UserError(f"--emulate is for --with builtin; {self.name} only looks")
        reason = why_unseen(program)
        return [] if reason is None else [f"{reason}: no library can be preloaded into it, so it is not seen"]

    def prepare(self, folder: str, wanted: Wanted) -> dict[str, str]:
        found = self.library()
        others = [path for path in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if path != found]
        return {"LD_PRELOAD": ":".join([found, *others]), **self.variables(folder, wanted)}

    def running(self, folder: str, about: dict[str, Any]) -> list[int]:
        """`about` is not needed: every process of the command has the variable that says where its log goes."""
        del about
        return processes_with(self.variable, self.place(folder))

    def place(self, folder: str) -> str:
        """What the variable says."""
        return folder

    def collect(self, folder: str, out: str, about: dict[str, Any]) -> Trace:
        """Logs stay below `out` as they are: other tools read them too."""
        logs = sorted(glob.glob(os.path.join(glob.escape(folder), "**", f"*{self.suffix}"), recursive=True))
        written = [path for path in logs if os.path.getsize(path)]
        if not written:
            raise UserError(f"{self.name} wrote no log; look at what the command printed, or use --with builtin")
        paths = [_keep(path, os.path.join(out, "logs")) for path in written]
        rules = TierRules({tier["name"]: tuple(tier["prefixes"]) for tier in about["tiers"]})
        trace = import_logs(paths, Reading(rules, force=True))
        tiers = trace.about["tiers"]
        return Trace(trace.key, {**about, **trace.about, "command": about["command"], "tiers": tiers}, trace.table)


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

    def variables(self, folder: str, wanted: Wanted) -> dict[str, str]:
        return {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_TRACE_COMPRESSION": "1",
            self.variable: self.place(folder),
            "DFTRACER_DATA_DIR": ":".join(prefix for traced in wanted.tiers for prefix in traced.prefixes),
        }


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

    def variables(self, folder: str, wanted: Wanted) -> dict[str, str]:
        """Logs of every process, with room for all files, also of places that Darshan leaves out by itself."""
        for day in (datetime.now(), datetime.now() + timedelta(days=1)):
            os.makedirs(os.path.join(folder, str(day.year), str(day.month), str(day.day)), exist_ok=True)
        config = os.path.join(folder, "darshan.conf")
        with open(config, "w", encoding="utf-8") as out:
            out.write("\n".join(config_lines(wanted)) + "\n")
        return {
            "DARSHAN_ENABLE_NONMPI": "1",
            "DARSHAN_DISABLE_SHARED_REDUCTION": "1",
            self.variable: self.place(folder),
            "DARSHAN_CONFIG_PATH": config,
        }


def config_lines(wanted: Wanted) -> list[str]:
    """What a configuration of Darshan must say for these tiers."""
    prefixes = [prefix for traced in wanted.tiers for prefix in traced.prefixes]
    return [
        f"MAX_RECORDS {MOST_RECORDS} POSIX,STDIO",
        f"MODMEM {MEMORY_MIB}",
        *(f"NAME_INCLUDE ^{re.escape(prefix)} POSIX,STDIO" for prefix in prefixes),
    ]
