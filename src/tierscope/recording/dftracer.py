"""DFTracer as a recorder: every call of a process as a line of JSON. Choose it for the order of operations; it costs a line for each."""

import glob
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence

from tierscope.errors import UserError
from tierscope.imports.dftracer_outline import outline
from tierscope.imports.logs import ImportOptions, import_logs
from tierscope.imports.paths import TierRules
from tierscope.jsonable import JsonObject
from tierscope.output.durable import write_file
from tierscope.recording.profilers import Profiler, Ran
from tierscope.recording.recorders import RecordingRequest
from tierscope.trace.trace import Trace

EPOCH_SPAN = "tierscope.epoch"
EPOCH_FILE = "tierscope-epochs.pfw"


class DFTracer(Profiler):
    name, variable, suffix = "dftracer", "DFTRACER_LOG_FILE", ".pfw*"
    adds = (EPOCH_FILE,)

    def library(self) -> str:
        spec = importlib.util.find_spec("dftracer")
        folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
        libraries = sorted(glob.glob(os.path.join(folder, "lib*", "libdftracer_preload.so"))) if folder else []
        if not libraries:
            raise UserError("DFTracer is not installed; pip install 'tierscope[dftracer]'")
        return libraries[0]

    def place(self, folder: str) -> str:
        return os.path.join(folder, "trace")

    def variables(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        return {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_TRACE_COMPRESSION": "1",
            self.variable: self.place(folder),
            "DFTRACER_DATA_DIR": ":".join(_recorded([prefix for traced in wanted.tiers for prefix in traced.prefixes])),
        }

    def trace_of(self, logs: Sequence[str], rules: TierRules, ran: Sequence[Ran]) -> Trace:
        """Epochs and ranks go into a trace of their own beside the others, so that whoever reads these knows them too."""
        beside = os.path.join(os.path.dirname(logs[0]), EPOCH_FILE)
        host = next((host for path in logs if (host := outline(path, EPOCH_SPAN).host)), "")
        write_file(beside, "".join(json.dumps(event) + "\n" for event in epoch_events(host, ran)).encode())
        return import_logs([*logs, beside], ImportOptions(rules, epoch_span=EPOCH_SPAN, force=True))


def _recorded(prefixes: Sequence[str]) -> list[str]:
    """DFTracer compares names as the program writes them, so each folder is there as it may be written from here too."""
    here = os.getcwd()
    written = list(prefixes)
    for prefix in prefixes:
        relative = os.path.relpath(prefix, here)
        if not relative.strip("./"):  # here is on the tier: so is any relative name
            return ["all"]
        written += [relative, f"./{relative}"]
    return written


def epoch_events(host: str, ran: Sequence[Ran]) -> Iterator[JsonObject]:
    """Lines of DFTracer, version 2: which rank a process is, and a span for every epoch. `host` as its own lines name it."""
    number = 0
    for process in ran:
        who = {"pid": process.pid, "tid": process.pid}
        for kind, name, value in (("CM", "time_metric", "US"), ("PR", "rank", str(process.rank))):
            args = {"hhash": host, "name": name, "value": value}
            yield {"name": kind, "cat": "dftracer", "type": 1, **who, "ph": 4, "args": args}
        for epoch, began, ended in process.epochs:
            number += 1
            start, end = (
                began // 1000,
                -(-ended // 1000),
            )  # its operations begin in whole microseconds too, rounded down
            times = {"ts": start, "dur": end - start, "ph": 1, "args": {"hhash": host, "epoch": epoch}}
            yield {"id": number, "name": EPOCH_SPAN, "cat": "tierscope", "type": 1, **who, **times}
