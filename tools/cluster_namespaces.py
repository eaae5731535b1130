"""Processes and namespaces of a cluster in a box: who is who, how to get in, and what is left of it.

A process is known by its number and its start time, so that a recycled number is never taken for it.
"""

import os
import signal
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

KINDS = ("mnt", "net", "pid", "uts", "ipc")
DEAD = ("Z", "X")
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Process:
    """One process for as long as it lives; `start_ticks` as in field 22 of /proc/PID/stat."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The living process of that number; None where there is none, or only its zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in DEAD else cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        return Process.of(self.pid) == self

    @property
    def name(self) -> str:
        """What `ps` calls it; nothing where it is gone."""
        try:
            return Path(f"/proc/{self.pid}/comm").read_text().strip() if self.alive else ""
        except (FileNotFoundError, ProcessLookupError):
            return ""

    def kill(self) -> None:
        """SIGKILL to this very process, or to none."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive:  # asked with the handle in hand: it cannot become another process's any more
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)

    def namespaces(self) -> set[str]:
        """Its namespaces of the kinds a cluster makes, as `net:[4026532201]`."""
        return {os.readlink(f"/proc/{self.pid}/ns/{kind}") for kind in KINDS}


def named(name: str) -> Process | None:
    """The process whose command is called so (at most 15 characters)."""
    for pid in _pids():
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n":
                return Process.of(pid)
    return None


def only_child(pid: int) -> Process | None:
    """The child of a process that has one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process.of(int(children[0])) if children else None


def inside(pid: int, command: Sequence[str], *, net: str | None = None, folder: Path = Path("/")) -> list[str]:
    """The command line that runs a command in all namespaces of a process, or in another network than its own.

    The command dies with whoever waits for it, so that a timeout leaves nothing running; daemons part from it by themselves.
    """
    network = f"--net={net}" if net else "--net"
    enter = ["nsenter", f"--target={pid}", "--mount", network, "--pid", "--uts", "--ipc", f"--wdns={folder}", "--"]
    return [*enter, "setpriv", "--pdeathsig", "KILL", "--", *command]


def inhabitants(namespaces: Collection[str]) -> list[str]:
    """Living processes within any of these namespaces, as `812 mfsmount`; also those of which only a thread still lives."""
    tasks = set()
    for task in _tasks():
        with suppress(OSError):  # gone meanwhile, or not for us to look into
            if any(os.readlink(f"{task}/ns/{kind}") in namespaces for kind in KINDS):
                tasks.add(f"{task.parts[2]} {(task / 'comm').read_text().strip()}")
    return sorted(tasks)


def mounts_below(folder: Path) -> list[str]:
    """Mount points at or below a folder, in any mount namespace that a process lives in."""
    return sorted({point for point, _, _ in _mounts(folder)})


def fuse_below(folder: Path) -> set[int]:
    """The kernel's numbers of the FUSE connections that are mounted at or below a folder, in any mount namespace."""
    return {int(device.partition(":")[2]) for _, device, kind in _mounts(folder) if kind.split(".")[0] == "fuse"}


def abort_fuse(connections: Collection[int]) -> None:
    """End FUSE connections whatever their servers do.

    A server that is killed while one of its threads asks for a file of its own mount would wait for itself for ever.
    """
    if connections:
        place = "/sys/fs/fuse/connections"
        lines = [f"mount -t fusectl none {place}", *(f"echo 1 > {place}/{number}/abort" for number in connections)]
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", "\n".join(lines)], capture_output=True, timeout=10, check=False
        )


@contextmanager
def undisturbed() -> Iterator[None]:
    """Interrupts wait until the block is through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _tasks() -> Iterator[Path]:
    """Every thread of every process: a namespace is a thread's, and outlives the first of them."""
    for pid in _pids():
        with suppress(OSError):
            yield from [Path(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task")]


def _mounts(folder: Path) -> set[tuple[str, str, str]]:
    """Mount point, device and kind of all that is mounted at or below a folder."""
    seen: set[str] = set()
    mounts: set[tuple[str, str, str]] = set()
    for task in _tasks():
        with suppress(OSError):
            namespace = os.readlink(task / "ns" / "mnt")
            if namespace in seen:
                continue
            seen.add(namespace)
            for line in (task / "mountinfo").read_text().splitlines():
                words = line.split()
                if f"{words[4]}/".startswith(f"{folder}/"):
                    mounts.add((words[4], words[2], words[words.index("-") + 1]))
    return mounts
