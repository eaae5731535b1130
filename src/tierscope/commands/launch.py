"""A study as a job of a scheduler: its script, checked before it waits in a queue."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tierscope.errors import StoppedError, UserError
from tierscope.launch import LAUNCHERS
from tierscope.launch.base import Job, script
from tierscope.launch.slurm import MPIRUN, STEP_VARIABLES
from tierscope.measure.storages import check_hosts, check_known
from tierscope.output import durable
from tierscope.output.result import check_result
from tierscope.spec import sweep
from tierscope.spec.dump import in_case
from tierscope.spec.study import Study, System

LEAST_SECONDS = 120
MOST_SECONDS = 365 * 86400
_VARIABLE = re.compile(r"\$\{?(\w+)")
_WORD = re.compile(r"[\w.@:=/+-]+")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What the user asks of the scheduler."""

    launcher: str
    seconds: float
    queue: str | None = None
    account: str | None = None
    options: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    mpi: str | None = None


def write_job(study: Study, wanted: JobRequest, command: Sequence[str], out: str, path: str) -> list[str]:
    """The script at `path`, which runs `command` for the results in `out`; the tokens that submit it. An `out` that the job could not use is refused now."""
    _check(study, wanted)
    check_result(out, study)
    system = one_layout(study)
    launcher = LAUNCHERS.load(wanted.launcher)()
    job = Job(
        name=study.study,
        script=os.path.abspath(path),
        nodes=system.nodes,
        ranks_per_node=system.ranks_per_node,
        seconds=int(wanted.seconds),
        command=tuple(command),
        out=out,
        runs=sweep.runs(study),
        queue=wanted.queue,
        account=wanted.account,
        options=wanted.options,
        setup=wanted.setup,
        mpi=wanted.mpi,
    )
    _refuse_foreign(path)
    try:
        text = script(launcher, job).encode()
        with durable.writing_named(path) as file:
            file.write(text)
    except UnicodeEncodeError:
        raise UserError("a path or option contains characters that cannot be used in a script; rename it") from None
    except OSError as error:
        raise UserError(f"--script = {path} cannot be written: {error.strerror}; choose another") from None
    return launcher.submit(f"./{path}" if path.startswith("-") else path)


def one_layout(study: Study) -> System:
    """A job has as many nodes from beginning to end: that of all cases."""
    systems = [in_case(study, case).system for case in study.cases] or [study.system]
    if len({(system.nodes, system.ranks_per_node) for system in systems}) > 1:
        raise UserError(
            "cases of the study use different nodes or ranks_per_node, but a job has only one of each; submit one case at a "
            f"time, each with its own --out: --set case={study.cases[0].name}"
        )
    return systems[0]


def submit(launcher: str, tokens: Sequence[str]) -> str:
    """What the scheduler answered. Where there is none this process becomes the script, and never comes back."""
    if not LAUNCHERS.load(launcher).queues:
        os.execvp(tokens[0], list(tokens))
    try:
        done = subprocess.run(tokens, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise UserError(
            f"{tokens[0]} is not in PATH; submit the script on a host that has it: {shlex.join(tokens)}"
        ) from None
    except subprocess.TimeoutExpired:
        raise StoppedError(
            f"{tokens[0]} did not respond within 60 s; submit the script yourself: {shlex.join(tokens)}"
        ) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"{tokens[0]} refused the script: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout.strip()


def _check(study: Study, wanted: JobRequest) -> None:
    if wanted.seconds < LEAST_SECONDS:
        raise UserError(
            f"--time = {wanted.seconds:g} s is too short to run and resubmit; use at least {LEAST_SECONDS} s"
        )
    if wanted.seconds > MOST_SECONDS:
        raise UserError(f"--time = {wanted.seconds:g} s is more than a year; use the time limit of one job")
    for name, text in (("--queue", wanted.queue), ("--account", wanted.account), ("--mpi", wanted.mpi)):
        if text is not None and not _WORD.fullmatch(text):
            raise UserError(f"{name} = {text!r} cannot be used in a script; use letters, digits and . @ : = / + -")
    for line in (*wanted.options, *wanted.setup):
        if "\n" in line or "\r" in line:
            raise UserError(f"{line.splitlines()[0]!r} has more than one line; use one option per line")
    if wanted.mpi and not LAUNCHERS[wanted.launcher].mpi_kinds:
        theirs = " and ".join(entry.title for entry in LAUNCHERS.entries.values() if entry.mpi_kinds)
        raise UserError(f"--mpi = {wanted.mpi} works only with {theirs}; remove it, or change --with {wanted.launcher}")
    for case_study in [in_case(study, case) for case in study.cases] or [study]:
        _check_tiers(case_study, wanted.launcher)
        if wanted.mpi == MPIRUN:
            _check_step_variables(case_study)


def _check_tiers(study: Study, launcher: str) -> None:
    """Emulated queues are in one host's memory, and variables of one scheduler are nothing to another."""
    check_known(study)
    theirs = {variable: name for name in LAUNCHERS for variable in LAUNCHERS.load(name).variables}
    for tier in study.system.tiers:
        if study.system.nodes > 1 and not LAUNCHERS[launcher].one_host:
            check_hosts(tier)
        for variable in _VARIABLE.findall(tier.path):
            if theirs.get(variable, launcher) != launcher:
                raise UserError(
                    f"system.tiers.{tier.name}.path = {tier.path}; ${variable} is set by {theirs[variable]}, not by {launcher}: write the "
                    "real path of the node-local storage"
                )


def _check_step_variables(study: Study) -> None:
    """Two nodes would have the same number, and so the same directory."""
    for tier in study.system.tiers:
        for variable in _VARIABLE.findall(tier.path):
            if variable in STEP_VARIABLES:
                raise UserError(
                    f"system.tiers.{tier.name}.path = {tier.path}; under mpirun ${variable} is not set per node: use $SLURMD_NODENAME"
                )


def _refuse_foreign(path: str) -> None:
    """A script that somebody else wrote, or changed by hand, is not written over."""
    if os.path.exists(path):
        raise UserError(f"{path}: already exists; remove it, or choose another --script")
