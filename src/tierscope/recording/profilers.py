"""The profilers of a site as recorders (`trace --with`, `run --profiler`): found, configured, preloaded; their logs are then read like any others."""

import glob
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from tierscope.errors import UserError
from tierscope.imports.logs import ImportOptions as Reading
from tierscope.imports.logs import import_logs
from tierscope.imports.paths import TierRules
from tierscope.native.program import processes_with, why_unseen
from tierscope.output import manifest
from tierscope.output.durable import link_file
from tierscope.recording.recorders import RecordingRequest
from tierscope.spec.study import Study
from tierscope.trace.description import RecordedCommand, TracedCommand
from tierscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Ran:
    """A rank of ours that was profiled: its process, and (epoch, begin, end) by the calendar's clock in nanoseconds."""

    rank: int
    pid: int
    epochs: Sequence[tuple[int, int, int]]


class Profiler:
    """What they have in common: `name` as in --with, and the variable by which their processes are known."""

    name = ""
    variable = ""
    suffix = ""
    adds: tuple[str, ...] = ()  # logs that `trace_of` puts beside the others

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
            raise UserError(f"--ops and --epochs rereads require --with builtin; remove them, or --with {self.name}")
        if any(traced.tier.emulate for traced in wanted.tiers):
            raise UserError(f"--emulate requires --with builtin; remove it, or --with {self.name}")
        reason = why_unseen(program)
        return [] if reason is None else [f"{reason}: the recorder cannot be preloaded, so nothing is recorded"]

    def prepare(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        library = self.library()
        others = [path for path in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if path != library]
        return {"LD_PRELOAD": ":".join([library, *others]), **self.variables(folder, wanted)}

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
            raise UserError(f"{self.name} wrote no log; check the command's output, or use --with builtin")
        manifest.record_logs(out, [os.path.basename(path) for path in written])
        paths = [_keep(path, out) for path in written]
        rules = TierRules({tier.name: tier.prefixes for tier in about.tiers})
        trace = import_logs(paths, Reading(rules, force=True))
        ran = RecordedCommand(recorder=about.recorder, exit_code=about.exit_code)
        described = structs.replace(
            trace.about, command=shlex.join(about.command), recorded=ran, provenance=about.provenance
        )
        return Trace(trace.key, described, trace.table)


def _keep(path: str, out: str) -> str:
    """Also there, under the same name; the command may still be writing to it."""
    target = os.path.join(out, "logs", os.path.basename(path))
    link_file(path, target, out)
    return target
