#!/usr/bin/env python3
"""Real file systems with speed limits, in namespaces of their own: storage to try predictions on.

    tokens   a folder behind a token bucket, through FUSE (token_fs.c)
    loop     ext4 on a loop device whose reads the block layer throttles (cgroup v1 blkio)
    bricks   GlusterFS that distributes files over bricks, each behind a link of its own

All of it lives below one keeper, the first process of its own process, mount and network namespaces, which dies with whoever made it:
then the kernel ends every process, mount, network and loop device in it, whatever state they are in. Files lie in memory. Outside there are an
empty folder and a control group; a guard removes them however the maker ends.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tools.cluster_box import STEP_SECONDS, until
from tools.cluster_host import PATH, install_packages, missing_packages
from tools.cluster_namespaces import inhabitants, inside, only_child, undisturbed
from tools.cluster_record import ClusterError
from tools.gluster import brick_text, client_text

_BASE = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux"}
PACKAGES: dict[str, dict[str, str]] = {
    "tokens": {"cc": "gcc", "/usr/include/fuse3/fuse.h": "libfuse3-dev"},
    "loop": {"losetup": "mount", "mkfs.ext4": "e2fsprogs"},
    "bricks": {"glusterfs": "glusterfs-client", "glusterfsd": "glusterfs-common"},
}
_BLKIO = Path("/sys/fs/cgroup/blkio")
_DEVICES = {"tokens": "/dev/fuse", "loop": "/dev/loop-control", "bricks": "/dev/fuse"}
_SOURCE = Path(__file__).with_name("token_fs.c")
_COMPILE = ["-std=gnu11", "-O2", "-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3"]
_NICE = "-10"  # storage and its readers: what else runs on the machine shall not be measured


@dataclass(frozen=True, slots=True)
class Tokens:
    """Bytes per second for reads, and for so many bytes of every open; what opens and requests take besides; what one open file gets at most (0: all)."""

    rate: float
    burst: float
    open_bytes: float = 0.0
    open_seconds: float = 0.0
    trip_seconds: float = 0.0
    stream_rate: float = 0.0

    @property
    def words(self) -> list[str]:
        values = (self.rate, self.burst, self.open_bytes, self.open_seconds, self.trip_seconds, self.stream_rate)
        return [f"{value:.9g}" for value in values]


def lacking(*kinds: str) -> list[str]:
    """Why there can be no such file systems here; nothing where there can."""
    if os.geteuid() != 0:
        return ["file systems with limits need root"]
    wanted = {**_BASE, **{tool: package for kind in kinds for tool, package in PACKAGES[kind].items()}}
    reasons = []
    if packages := missing_packages(wanted):
        reasons.append(f"not installed: {' '.join(packages)} (tools/storage_box.py install)")
    reasons += [f"no {_DEVICES[kind]}" for kind in kinds if kind in _DEVICES and not os.path.exists(_DEVICES[kind])]
    if "loop" in kinds and not (_BLKIO / "blkio.throttle.read_bps_device").exists():
        reasons.append("no throttle of the block layer in control groups of version 1")
    return reasons


class StorageBox:
    """From `with` to its end. Paths are those within: only `run` sees them."""

    def __init__(self, mib: int = 2048) -> None:
        self._mib, self._pid = mib, 0
        self._unshare: subprocess.Popen[bytes] | None = None
        self._guard: tuple[subprocess.Popen[bytes], int] | None = None
        self._namespaces: set[str] = set()
        self._servers: dict[str, tuple[Tokens, subprocess.Popen[bytes]]] = {}

    def __enter__(self) -> Self:
        try:
            with undisturbed():
                self.state = Path(tempfile.mkdtemp(prefix="tsb-"))
                self._group = _BLKIO / self.state.name
                self._set_guard()
            self._keep()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.close()
        if left and error is None:
            raise ClusterError(f"left behind: {'; '.join(left)}")

    def close(self) -> list[str]:
        """Everything ended; what could not be, in words."""
        with undisturbed():
            if self._unshare is not None:
                self._unshare.kill()  # and the kernel the keeper, and with it all others
                self._unshare.wait()
            until(lambda: not inhabitants(self._namespaces), seconds=10)
            for _, server in self._servers.values():
                server.wait()
            left = [f"process {process}" for process in inhabitants(self._namespaces)]
            for folder in (getattr(self, "_group", None), getattr(self, "state", None)):
                if folder is not None and folder.is_dir() and not until(partial(_removed, folder), seconds=5):
                    left.append(f"folder {folder}")
            self._dismiss_guard()
            return left

    def _set_guard(self) -> None:
        """Waits for the end of this process and of all that sees the mounts; then removes the two folders.

        Before that the kernel would take mounts off the folder together: the one on the loop device would hold the file that the device holds.
        """
        read, write = os.pipe()
        lines = ["cat", f"while grep -qs {self.state} /proc/[0-9]*/mountinfo; do sleep 0.1; done", "sleep 0.2"]
        lines += [f"until [ ! -d {path} ] || rmdir {path}; do sleep 0.2; done" for path in (self._group, self.state)]
        quiet = subprocess.DEVNULL
        try:
            guard = subprocess.Popen(
                ["sh", "-c", "\n".join(lines)], stdin=read, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True
            )
            self._guard = guard, write
        finally:
            os.close(read)

    def _dismiss_guard(self) -> None:
        if self._guard:
            guard, leash = self._guard
            os.killpg(guard.pid, signal.SIGKILL)  # the first of its session, and not yet waited for
            guard.wait()
            os.close(leash)
            self._guard = None

    def _keep(self) -> None:
        script = f"ip link set lo up\nmount -t tmpfs -o size={self._mib}m tsb {self.state}\n"
        script += f"mkdir {self.state}/log\ntouch {self.state}/ready\nexec sleep infinity"
        enter = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--mount-proc", "--fork", "--kill-child"]
        command = ["setpriv", "--pdeathsig", "KILL", "--", *enter, "sh", "-ec", script]
        self._unshare = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=self._environment, cwd="/")
        keeper = until(partial(only_child, self._unshare.pid), seconds=STEP_SECONDS)
        ready = f"root{self.state}/ready"
        if not keeper or not until(lambda: Path(f"/proc/{keeper.pid}/{ready}").exists(), seconds=STEP_SECONDS):
            raise ClusterError("no namespaces of our own")
        self._pid, self._namespaces = keeper.pid, keeper.namespaces()

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": PATH}

    # ---- file systems

    def memory(self, name: str) -> Path:
        """A folder in memory, with no limit."""
        self._script(f"mkdir {self.state}/{name}")
        return self.state / name

    def tokens(self, name: str, limits: Tokens) -> Path:
        """A folder behind a token bucket; the same name again: the same files, with other limits."""
        program, folder, point = (self.state / leaf for leaf in ("token_fs", f"{name}.files", name))
        if name in self._servers:
            if self._servers[name][0] == limits:
                return point
            self._script(f"umount {point}")
            self._servers.pop(name)[1].wait(STEP_SECONDS)
        self._script(f"[ -e {program} ] || cc {' '.join(_COMPILE)} -o {program} {_SOURCE} -lfuse3 -pthread")
        self._script(f"mkdir -p {folder} {point}")
        command = inside(self._pid, ["nice", "-n", _NICE, str(program), str(folder), str(point), *limits.words])
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=self._environment, cwd="/")
        self._servers[name] = limits, server
        if not until(lambda: self._mounted(point), seconds=STEP_SECONDS):
            raise ClusterError(f"{point} was not mounted")
        return point

    def loop(self, name: str, mib: int, read_rate: float) -> Path:
        """ext4 on a loop device; what `run` starts reads so many bytes per second of it at most."""
        image, point = self.state / f"{name}.image", self.state / name
        self._script(
            f"truncate -s {mib}M {image}\nmkfs.ext4 -q -O ^has_journal {image}\nmkdir {point}\nmount -o loop,noatime {image} {point}"
        )
        with undisturbed():
            self._group.mkdir(exist_ok=True)
        device = self._script(f"stat -c %Hd:%Ld {point}").strip()
        (self._group / "blkio.throttle.read_bps_device").write_text(f"{device} {read_rate:.0f}\n")
        return point

    def bricks(self, name: str, mbit: float, count: int = 2) -> Path:
        """GlusterFS without a daemon of its own: bricks and client are told each other by files."""
        state, point = self.state, self.state / name
        lines = [f"mkdir {point} {state}/net", "mount -t tmpfs tsb-run /run", "mkdir /run/gluster"]
        lines.append("[ ! -d /var/log/glusterfs ] || mount -t tmpfs tsb-log /var/log/glusterfs")
        for brick in range(1, count + 1):
            net, folder, volume = f"{state}/net/{brick}", f"{state}/brick{brick}", f"{state}/brick{brick}.vol"
            limit = f"tc qdisc replace dev eth0 root tbf rate {mbit * 1000:.0f}kbit burst 64kb latency 50ms"
            lines += [
                f"mkdir {folder} && touch {net} && unshare --net={net} true",
                f"cat > {volume} <<'END'\n{brick_text(folder)}END",
                f"ip link add name brick{brick} type veth peer name eth0 netns {net}",
                f"ip address add 10.78.{brick}.1/24 dev brick{brick} && ip link set brick{brick} up",
                f"nsenter --net={net} sh -ec 'ip link set lo up; ip address add 10.78.{brick}.2/24 dev eth0; ip link set eth0 up; {limit}'",
                f"nsenter --net={net} nice -n {_NICE} glusterfsd -f {volume} --volfile-id brick{brick} -l {state}/log/brick{brick}.log -L WARNING",
            ]
        lines.append(
            f"cat > {state}/client.vol <<'END'\n{client_text([f'10.78.{brick}.2' for brick in range(1, count + 1)])}END"
        )
        lines.append(f"nice -n {_NICE} glusterfs -f {state}/client.vol -l {state}/log/client.log -L WARNING {point}")
        self._script("\n".join(lines))
        probe = f"mountpoint -q {point} && mkdir -p {point}/probe && rmdir {point}/probe"
        if not until(lambda: self._run(["sh", "-c", probe]).returncode == 0, seconds=STEP_SECONDS, pause_seconds=0.2):
            raise ClusterError(
                f"{point} takes no files: {self._run(['tail', '-n3', f'{state}/log/client.log']).stdout}"
            )
        return point

    def limit_bricks(self, mbit: float, count: int = 2) -> None:
        """Other rates of the bricks' links from now on."""
        limit = f"tc qdisc replace dev eth0 root tbf rate {mbit * 1000:.0f}kbit burst 64kb latency 50ms"
        self._script("\n".join(f"nsenter --net={self.state}/net/{brick} {limit}" for brick in range(1, count + 1)))

    def _mounted(self, point: Path) -> bool:
        return self._run(["mountpoint", "-q", str(point)]).returncode == 0

    # ---- programs on them

    def run(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout_seconds: float = 600) -> str:  # fmt: skip
        """A program that sees the file systems, to its end; what it printed."""
        joined = f'[ ! -d {self._group} ] || echo $$ > {self._group}/cgroup.procs\nexec nice -n {_NICE} "$@"'
        done = self._run(["sh", "-c", joined, "sh", *command], environment, timeout_seconds)
        if done.returncode:
            raise ClusterError(f"{' '.join(command)}: ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")  # fmt: skip
        return done.stdout

    def _script(self, text: str) -> str:
        done = self._run(["sh", "-ec", text])
        if done.returncode:
            raise ClusterError(f"{text.splitlines()[0]} …: {done.stderr.strip()[-500:]}")
        return done.stdout

    def _run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float = STEP_SECONDS,
    ) -> "subprocess.CompletedProcess[str]":
        variables = {**self._environment, **(environment or {})}
        entered = inside(self._pid, command, folder=Path.cwd())
        quiet = subprocess.DEVNULL
        return subprocess.run(entered, stdin=quiet, capture_output=True, text=True, env=variables, timeout=timeout_seconds, check=False)  # fmt: skip


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def main() -> int:
    """`install`: what is missing, by name, from the distribution's own archive."""
    if sys.argv[1:] != ["install"]:
        sys.stderr.write(f"usage: {sys.argv[0]} install\n")
        return 2
    wanted = {**_BASE, **{tool: package for by_tool in PACKAGES.values() for tool, package in by_tool.items()}}
    try:
        install_packages(wanted)
    except (OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
