"""What a launcher is told and what it gives: tokens and lines, never a process.

Every script does the same: it starts the study on all nodes, passes on the signal that announces the time limit, and puts itself back
into the queue unless the study is done (exit code 0) or somebody has to mend something (2). Any other code is a stop: our own 3, or what
launchers say of ranks that were killed. Results are on a file system that outlives the job; a node's own storage does not, so what was
staged there is verified and staged again.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

USERS, RESUMABLE = 2, 3  # exit codes of ours: theirs to mend; stopped, the same command goes on
MOST_MARGIN_SECONDS = 120
MOST_RESTARTS = 100
FREE_RESTARTS = 3  # of them without a run that was finished meanwhile: staging may take longer than a job, a full disk does not pass


@dataclass(frozen=True, slots=True)
class Job:
    """`script`: its own path, for launchers that submit it again. `command`: what one rank runs. `out`: where finished runs are; `runs`: how many there shall be. `options`: more for the scheduler, as they are. `setup`: lines of shell before anything else."""

    name: str
    script: str
    nodes: int
    ranks_per_node: int
    seconds: int
    command: tuple[str, ...]
    out: str
    runs: int
    queue: str | None = None
    account: str | None = None
    options: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    mpi: str | None = None  # how srun starts MPI, where that must be said

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


class Launcher(Protocol):
    """`variables`: of the environment that name storage or the job; those of other launchers in a path are a mistake.

    `queues`: whether submitting returns at once; otherwise the script runs where it is started.
    `signals`: whether the scheduler sends SIGTERM before the time limit, and again to a job that is put back; otherwise the script's own clock does.
    `restarts`: how often this job was queued again, as an expression of the shell.
    `stopped`: what the shell finds true where an announced stop was not the time limit's but somebody's will.
    """

    variables: ClassVar[tuple[str, ...]]
    queues: ClassVar[bool]
    signals: ClassVar[bool]
    restarts: ClassVar[str]
    stopped: ClassVar[str]

    def directives(self, job: Job) -> list[str]:
        """Lines for the scheduler at the head of the script."""

    def start(self, job: Job) -> list[str]:
        """The tokens that start all ranks."""

    def again(self, job: Job) -> list[str]:
        """The tokens that put the job back into the queue, or go on at once where there is none."""

    def submit(self, script: str) -> list[str]:
        """The tokens that submit the script."""


def joined(tokens: Sequence[str]) -> str:
    """As a line of shell. What is `shell` text is left to it: variables of the scheduler."""
    return " ".join(token if isinstance(token, Shell) else shlex.quote(token) for token in tokens)


class Shell(str):
    """A token with variables that the shell fills in."""

    __slots__ = ()


def margin_seconds(job: Job) -> int:
    """Before the time limit: to end the run that is under way and to queue again."""
    return min(MOST_MARGIN_SECONDS, job.seconds // 2)


def script(launcher: Launcher, job: Job) -> str:
    """The whole script: start, pass SIGTERM on, wait, and queue again if the study was stopped, but not for ever where that leads nowhere."""
    start, restarts = launcher.start(job), launcher.restarts
    if not launcher.signals:
        margin = margin_seconds(job)
        start = ["timeout", "--signal=TERM", f"--kill-after={margin // 2}", str(job.seconds - margin), *start]
    again = joined(launcher.again(job))
    put_back = ["    trap '' TERM  # requeueing a job kills its processes"] if launcher.signals else []
    return "\n".join(
        [
            "#!/bin/bash",
            *launcher.directives(job),
            "",
            *job.setup,
            "export TERM=dumb COLUMNS=160  # some launchers treat the log as a terminal",
            f"finished() {{ ls {shlex.quote(job.out)}/runs/*.parquet 2>/dev/null | wc -l; }}",
            "told= study= before=$(finished)",
            """trap 'told=yes; [ -z "$study" ] || kill -TERM $study' TERM INT HUP""",
            f"{joined([*start, *job.command])} &",
            "study=$!",
            '[ -z "$told" ] || kill -TERM $study',
            "while kill -0 $study 2>/dev/null; do  # a signal ends the wait, not the study",
            "  wait $study",
            "done",
            "wait $study",
            "code=$?",
            f"[ $code -le {RESUMABLE} ] || code={RESUMABLE}  # killed, timed out, or a launcher's own code for it",
            f"[ $code -ne 0 ] || [ $(finished) -ge {job.runs} ] || code={RESUMABLE}  # launchers may return 0 for an aborted job",
            f"if [ $code -ne 0 ] && [ $code -ne {USERS} ] && ! {launcher.stopped}; then",
            f"  if [ {restarts} -lt {FREE_RESTARTS} ] || {{ [ {restarts} -lt {MOST_RESTARTS} ] && [ $(finished) -gt $before ]; }}; then",
            *put_back,
            f"    {again} && exit 0" if launcher.queues else f"    exec {again}",
            "  fi",
            f'  echo "tierscope: stopped after {restarts} restarts and not resubmitted; submit the script to continue" >&2',
            "fi",
            "exit $code",
            "",
        ]
    )
