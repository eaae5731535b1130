"""Trace a stranger's command: run it with a recorder, keep its exit code, and make one trace of what all its processes did.

OUT/tierscope.json            marks the directory as a trace of ours
OUT/.scratch/trace.json       what is traced; gone when the trace is complete
OUT/.scratch/record           what processes record, while they run
OUT/runs/0000-r1.parquet      the trace, complete or absent
OUT/ops/                      with --ops: every operation, and files.parquet for their paths
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from msgspec import structs

from tierscope.errors import CommandError, ResultError, StoppedError, TierscopeError, UserError, shell_word
from tierscope.native.program import why_not_run
from tierscope.output import manifest
from tierscope.output.durable import write_file
from tierscope.output.folders import enter_directory
from tierscope.output.ours import MARK, SCRATCH, Rules
from tierscope.output.result import clear_scratch, locked, make_scratch
from tierscope.output.store import RunStore
from tierscope.output.typed_documents import DocumentKind, read_typed
from tierscope.output.walk import remove_ours
from tierscope.recording.command import find_program, launch
from tierscope.recording.recorders import RECORDERS, Recorder, RecordingRequest
from tierscope.trace.decode import decode_command, encode
from tierscope.trace.description import (
    DescribedTier,
    Description,
    Imported,
    RecordedCommand,
    Traced,
    TracedCommand,
)
from tierscope.trace.kernel_io import counted_since, kernel_io
from tierscope.trace.provenance import provenance
from tierscope.trace.trace import Trace
from tierscope.watch import Watch

KIND = "trace"
_RECORD = "record"
_DESCRIPTION = "trace.json"
_DEFAULT = "results"
_MOST_DEFAULTS = 10_000
_FIX = "trace the command again with another --out"
_IN_USE = "the command is still being traced, or another analyze is collecting it; wait for it to finish"


@dataclass(frozen=True, slots=True)
class EndedCommand:
    out: str
    exit_code: int


def run_traced(
    wanted: RecordingRequest, recorder: str, out: str | None, watch: Watch, output_to_stderr: bool = False
) -> EndedCommand:
    """Run the command and leave its records in the directory: `finish` makes the trace of them."""
    program = find_program(wanted.command[0])
    chosen = RECORDERS.load(recorder)()
    for line in chosen.check(program, wanted):
        watch.note(line)
    with _claimed(out, wanted.command) as target:
        about = _describe(wanted, recorder)
        try:
            folder = make_scratch(target, _RECORD)
            environment = {**os.environ, **chosen.prepare(folder, wanted)}
            _remember(target, about)
            before = kernel_io()
            code = launch(program, wanted.command, environment, output_to_stderr)
            kernel = counted_since(before)
        except (OSError, TierscopeError, KeyboardInterrupt) as error:
            clear_scratch(target)  # the command was not started
            if isinstance(error, OSError):
                raise UserError(f"{target}: cannot be used: {error.strerror}; choose another --out") from None
            if isinstance(error, CommandError) and (reason := why_not_run(program)):
                raise CommandError(f"{program}: {reason}") from None
            raise
        with suppress(OSError):  # a full disk must not hide that the command has run
            _remember(target, structs.replace(about, exit_code=code, kernel=kernel))
    return EndedCommand(target, code)


@contextmanager
def _claimed(out: str | None, command: tuple[str, ...]) -> Iterator[str]:
    """A directory for one trace, marked and locked; never one that holds a result."""
    if out == "":
        raise UserError("--out is empty; name a directory, or remove --out")
    if out:
        with _locked_for_one(os.path.abspath(out)) as target:
            yield target
        return
    first = not os.path.isdir(_DEFAULT)
    target = _default_out(command)
    try:
        with _locked_for_one(target):
            yield target
    except BaseException:
        _remove_unused(target, first)
        raise


@contextmanager
def _locked_for_one(target: str) -> Iterator[str]:
    manifest.claim(target, KIND)
    with locked(target):
        if RunStore(target).finished():
            raise UserError(f"{target}: contains a finished trace (see 'tierscope analyze'); choose another --out")
        if is_unfinished(target):
            raise UserError(
                f"{target}: contains records that were not collected yet (run 'tierscope analyze'); choose another --out"
            )
        yield target


def _default_out(command: tuple[str, ...]) -> str:
    """results/trace-COMMAND, with a number behind it where that is taken; made here, so that no other can take it too."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(command[0]))[:64] or "command"
    for number in range(1, _MOST_DEFAULTS):
        target = os.path.abspath(os.path.join(_DEFAULT, f"trace-{name}" + (f"-{number}" if number > 1 else "")))
        try:
            os.makedirs(target)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"{target}: cannot be created: {error.strerror}; choose a writable --out") from None
        return target
    raise UserError(f"{_DEFAULT} contains too many traces of this command; set --out")


def _remove_unused(target: str, parent_too: bool) -> None:
    """The directory that was made for a command which then could not be started. Records are never removed."""
    ours = Rules(rf"{MARK}|lock")
    with suppress(OSError):
        if all(ours.owns(name) for name in os.listdir(target)):
            remove_ours(enter_directory(target), ours)
            os.rmdir(target)
            if parent_too:
                os.rmdir(os.path.dirname(target))


def _describe(wanted: RecordingRequest, recorder: str) -> TracedCommand:
    return TracedCommand(
        recorder=recorder,
        command=wanted.command,
        tiers=tuple(
            DescribedTier(name=traced.name, emulated=traced.tier.emulate, prefixes=traced.prefixes)
            for traced in wanted.tiers
        ),
        epochs=wanted.epochs,
        ops=wanted.ops,
        provenance=provenance("none", {traced.name: traced.prefixes[0] for traced in wanted.tiers}),
    )


def _remember(out: str, about: TracedCommand) -> None:
    path = os.path.join(out, SCRATCH, _DESCRIPTION)
    write_file(path, (json.dumps(encode(about), indent=1) + "\n").encode(), out)


def is_trace(out: str) -> bool:
    """Whether the directory is one of a traced command."""
    return manifest.kind_of(out) == KIND


def is_unfinished(out: str) -> bool:
    return not RunStore(out).finished() and os.path.isdir(_record(out))


def finish(out: str, exit_code: int | None = None) -> None:
    """Collect what was recorded, if that has not been done. Records go away only when the trace is safely on disk."""
    if not is_unfinished(out):
        if RunStore(out).finished():  # killed just before its end
            clear_scratch(out)
        return
    with locked(out, _IN_USE):
        about = read_description(out)
        if exit_code is not None:
            about = structs.replace(about, exit_code=exit_code)
        try:
            trace = _recorder(out, about).collect(_record(out), out, about)
            RunStore(out).save(trace)
        except StoppedError as error:
            reason = str(error).rpartition("; ")[0]
            raise type(error)(
                f"{reason}; the records are kept: fix this, then run 'tierscope analyze {shell_word(out)}'"
            ) from None
        clear_scratch(out)


def finish_or_look(out: str) -> Trace | None:
    """`finish`, unless a process of the command still runs: then what it did so far, and its records stay."""
    if is_unfinished(out):
        with locked(out, _IN_USE):
            about = read_description(out)
            recorder = _recorder(out, about)
            running = recorder.running(_record(out), about)
            if running:
                trace = recorder.collect(_record(out), out, structs.replace(about, ops=False))
                return replace(trace, about=_still_running(trace.about, tuple(running)))
    finish(out)
    return None


def _still_running(about: Description, pids: tuple[int, ...]) -> Description:
    match about:
        case Traced(records=records):
            return structs.replace(about, running=pids, records=structs.replace(records, still_running=0))
        case Imported(recorded=recorded):
            return structs.replace(about, recorded=structs.replace(recorded or RecordedCommand(), running=pids))
        case _:
            return about


def _recorder(out: str, about: TracedCommand) -> Recorder:
    if about.recorder not in RECORDERS.entries:
        path = os.path.join(out, SCRATCH, _DESCRIPTION)
        raise ResultError(f"{path}: recorder = {about.recorder!r} is unknown; {_FIX}")
    return RECORDERS.load(about.recorder)()


def _record(out: str) -> str:
    return os.path.join(out, SCRATCH, _RECORD)


def read_description(out: str) -> TracedCommand:
    path = os.path.join(out, SCRATCH, _DESCRIPTION)
    try:
        return read_typed(path, _COMMAND)
    except FileNotFoundError:
        raise ResultError(f"{out}: the command was never started; {_FIX}") from None


def _decoded(plain: object) -> TracedCommand:
    if not isinstance(plain, dict):
        raise ResultError(f"is not a Tierscope description; {_FIX}")
    return decode_command(plain, _FIX)


_COMMAND = DocumentKind(TracedCommand, _FIX, most_bytes=16 << 20, decode=_decoded)
