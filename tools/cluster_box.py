"""How a cluster is made and reached: the keeper, the nodes within it, the network between them, the daemons on it.

The keeper is the first process of its own process, mount and network namespaces. When it dies the kernel ends every process below
it, and with the last of them go all mounts and networks, whatever state they are in: `unmake` needs to know of nothing else. It
does nothing before it stands in the record, and ends by itself when its maker dies before that. A guard takes all of it down when
its maker dies later, until it is told that the cluster shall stay.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from tools import cluster_moosefs as moosefs
from tools import cluster_slurm as slurm
from tools.cluster_host import PATH
from tools.cluster_namespaces import (
    Process,
    abort_fuse,
    fuse_below,
    inhabitants,
    inside,
    mounts_below,
    named,
    only_child,
)
from tools.cluster_record import ClusterError, Record, Wish

LOGIN, MDS = "login", "mds"
STEP_SECONDS = 30.0
END_TRIES = 5  # of a second each
TMP_MIB, SHM_MIB = 512, 1024
Answer = TypeVar("Answer")


def until(ask: Callable[[], Answer], *, seconds: float, pause_seconds: float = 0.01) -> Answer:
    """The first answer that is true, or the last one before the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < deadline:
        time.sleep(pause_seconds)
    return answer


class Box:
    """One folder, and the namespaces and daemons whose record and files are in it."""

    def __init__(self, state: Path, wish: Wish, record: Record | None = None) -> None:
        self.state = state
        self.wish = wish
        self.record = record
        self._unshare: subprocess.Popen[bytes] | None = None
        self._guard: tuple[subprocess.Popen[bytes], int] | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.wish.nodes + 1))

    @property
    def osts(self) -> range:
        return range(1, self.wish.osts + 1)

    @property
    def servers(self) -> tuple[str, ...]:
        return (MDS, *(f"ost{ost}" for ost in self.osts))

    @property
    def addresses(self) -> dict[str, str]:
        """Every name on the cluster's network, which no other network meets."""
        osts = {f"ost{ost}": f"10.77.1.{ost}" for ost in self.osts}
        nodes = {node: f"10.77.2.{number}" for number, node in enumerate(self.nodes, 1)}
        return {"localhost": "127.0.0.1", LOGIN: "10.77.0.1", MDS: "10.77.0.2", **osts, **nodes}

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, as a program on the cluster needs it: nothing of another Slurm, a TMPDIR that is the node's own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_", "PMI"))}
        return {**kept, "PATH": PATH, "SLURM_CONF": f"{self.state}/slurm.conf", "TMPDIR": f"{self.state}/tmp"}

    # ---- from nothing to a cluster, and back

    def claim(self) -> None:
        """The folder is ours and says so, before anything else is made."""
        if not re.fullmatch(r"[\w./+-]{1,70}", str(self.state), re.ASCII):
            raise ClusterError(
                f"{self.state}: at most 70 plain characters, for scripts and sockets: choose another folder"
            )
        before = Record.load(self.state)
        if before and (before.maker.alive or before.alive):
            raise ClusterError(f"{self.state}: a cluster is up there: tools/cluster.py down --state {self.state}")
        if before:
            self.unmake()
        self.state.mkdir(mode=0o755, parents=True, exist_ok=True)
        if any(self.state.iterdir()):
            raise ClusterError(f"{self.state}: is neither empty nor a cluster's: choose another folder")
        maker = Process.of(os.getpid())
        assert maker
        self.record = Record(secrets.token_hex(3), self.wish, maker)
        self.record.save(self.state)

    def make(self, *, stay: bool) -> None:
        """All of it; without `stay` it ends when this process does, however that comes about."""
        self._set_guard()
        self._make_keeper()
        self._make_nodes()
        self._wire()
        self.limit()
        self._start_daemons()
        self._see_it_work()
        if stay:
            self._dismiss_guard()

    def unmake(self, only: str | None = None) -> list[str]:
        """End everything, by whomever and however far it was made; what could not be ended, in words.

        `only` says of which cluster: a guard must not take down the next one in the same folder.
        """
        record = Record.load(self.state)
        self.record = None
        if record is None and self.state.is_dir() and not any(self.state.iterdir()):
            self.state.rmdir()
        left = self._end(record) if record and only in (None, record.id) else []
        self._dismiss_guard()
        return left

    def _end(self, record: Record) -> list[str]:
        for _ in range(END_TRIES):
            abort_fuse(fuse_below(self.state))
            if record.keeper:
                record.keeper.kill()
            if until(lambda: not record.alive and not inhabitants(record.namespaces), seconds=1):
                break
        if self._unshare:
            with suppress(subprocess.TimeoutExpired):  # what is left is told below
                self._unshare.wait(1)
            self._unshare = None
        left = [f"process {process}" for process in inhabitants(record.namespaces)]
        left += [f"mount {point}" for point in mounts_below(self.state)]
        if not left:
            shutil.rmtree(self.state, ignore_errors=True)  # a guard may be at it too
            left = [f"file {path}" for path in self.state.rglob("*")]
        return left

    def _set_guard(self) -> None:
        """A process that waits for the end of this one, and then takes the cluster down."""
        read, write = os.pipe()
        assert self.record
        tool = [sys.executable, str(Path(__file__).with_name("cluster.py"))]
        tool += ["down", "--state", str(self.state), "--only", self.record.id]
        try:
            guard = subprocess.Popen(
                ["sh", "-c", 'cat; exec "$@"', self._title("guard"), *tool],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            self._guard = guard, write
        finally:
            os.close(read)
            if not self._guard:
                os.close(write)

    def _dismiss_guard(self) -> None:
        if self._guard:
            guard, leash = self._guard
            os.killpg(guard.pid, signal.SIGKILL)  # the guard is the first of its session, and not yet waited for
            guard.wait()
            os.close(leash)
            self._guard = None

    def _make_keeper(self) -> None:
        """It waits to be told to go on, and is in the record before it is told; without a word it ends."""
        for folder in ("bin", "log", "net", "gfs", "lfs", "tmp"):
            (self.state / folder).mkdir()
        self._write_files()
        hosts = f"mount --bind {self.state}/hosts /etc/hosts"
        script = ["read -r word", f"hostname {LOGIN}", "ip link set lo up", hosts]
        for ost in self.osts:
            script.append(_tmpfs(f"tsc-ost{ost}", f"{self.state}/ost{ost}/disk", self.wish.ost_mib))
        for net in (f"{self.state}/net/{server}" for server in self.servers):
            script.append(f"touch {net} && unshare --net={net} true")
        command = self._anchor("keeper", script)
        read, write = os.pipe()
        try:
            with self._log("keeper").open("ab") as log:
                self._unshare = subprocess.Popen(
                    command, stdin=read, stdout=log, stderr=log, env=self.environment, cwd="/", start_new_session=True
                )
            keeper = until(partial(only_child, self._unshare.pid), seconds=STEP_SECONDS)
            if not keeper:
                raise ClusterError(f"the keeper did not start{self.tail('keeper')}")
            assert self.record
            self.record.keeper = keeper
            self.record.save(self.state)
            os.write(write, b"go\n")
        finally:
            os.close(read)
            os.close(write)
        self._anchored("keeper", keeper)
        nets = [os.stat(self._net(server)).st_ino for server in self.servers]
        self.record.namespaces |= {f"net:[{number}]" for number in nets}
        self.record.save(self.state)

    def _make_nodes(self) -> None:
        """Each in namespaces of its own within the keeper's; they do not need the command that made them."""
        commands = {}
        for node in self.nodes:
            script = [
                f"hostname {node}",
                "ip link set lo up",
                _tmpfs("tsc-lfs", f"{self.state}/lfs", self.wish.lfs_mib),
                _tmpfs("tsc-tmp", f"{self.state}/tmp", TMP_MIB),
                _tmpfs("tsc-shm", "/dev/shm", SHM_MIB),
            ]
            commands[node] = self.at(LOGIN, ["setsid", "--fork", *self._anchor(node, script)])
        self.together(commands)
        assert self.record
        for node in self.nodes:
            process = until(partial(named, self._title(node)), seconds=STEP_SECONDS)
            if not process:
                raise ClusterError(f"{node} did not start{self.tail(node)}")
            self._anchored(node, process)
            self.record.nodes[node] = process
        self.record.save(self.state)

    def _title(self, name: str) -> str:
        """What `ps` calls a place's first process: at most 15 characters."""
        assert self.record
        return f"tsc-{self.record.id}" if name == "keeper" else f"tsc-{self.record.id}-{name}"

    def _anchor(self, name: str, script: Sequence[str]) -> list[str]:
        """A first process of new namespaces: it prepares them, then sleeps under a name of its own and reaps what dies there."""
        title = self.state / "bin" / self._title(name)
        title.symlink_to(shutil.which("sleep", path=PATH) or "/bin/sleep")
        lines = [*script, f"exec env --ignore-signal=CHLD {title} infinity"]
        namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--mount-proc"]
        return ["unshare", *namespaces, "--fork", "sh", "-ec", "\n".join(lines)]

    def _anchored(self, name: str, process: Process) -> None:
        """It has prepared its namespaces, and they are to be recorded."""
        title = self._title(name)
        until(lambda: process.name == title or not process.alive, seconds=STEP_SECONDS)
        if process.name != title:
            raise ClusterError(f"{name} did not start{self.tail(name)}")
        assert self.record
        self.record.namespaces |= process.namespaces()

    def _write_files(self) -> None:
        (self.state / "hosts").write_text("".join(f"{address} {name}\n" for name, address in self.addresses.items()))
        moosefs.write_master(self.state / MDS)
        for ost in self.osts:
            moosefs.write_chunk_server(self.state / f"ost{ost}", ost, self.addresses[MDS])
        slurm.write_munge(self.state / "munge")
        nodes = {node: self.addresses[node] for node in self.nodes}
        slurm.write_settings(self.state, (LOGIN, self.addresses[LOGIN]), nodes, self.wish.cpus_per_node)

    def _wire(self) -> None:
        """One bridge, which is `login`'s own address, and a cable from it to every server and node."""
        ends = {name: self._net(name) for name in (*self.servers, *self.nodes)}
        lines = ["link add br0 type bridge", f"address add {self.addresses[LOGIN]}/16 dev br0", "link set br0 up"]
        for name, net in ends.items():
            lines.append(f"link add to-{name} type veth peer name eth0 netns {net}")
            lines.append(f"link set to-{name} master br0 up")
        self.together({"network": _ip(self._net(LOGIN))}, said="\n".join(lines))
        for name, net in ends.items():
            lines = [f"address add {self.addresses[name]}/16 dev eth0", "link set eth0 up", "link set lo up"]
            self.together({name: _ip(net)}, said="\n".join(lines))

    def limit(self) -> None:
        """The servers' replies go at the rates of the wish; what they are sent is not limited."""
        commands = {}
        for server in self.servers:
            mbit = self.wish.mds_mbit if server == MDS else self.wish.ost_mbit
            rate = f"rate {(mbit or 0) * 1000:.0f}kbit burst 64kb latency 50ms"
            queue = "pfifo" if mbit is None else f"tbf {rate}"
            commands[server] = self.at(server, ["tc", "qdisc", "replace", "dev", "eth0", "root", *queue.split()])
        self.together(commands)

    def _start_daemons(self) -> None:
        """The two that others ask at once when they start, then all others together."""
        settings = self.state / "slurm.conf"
        master = moosefs.master(self.state / MDS, "start")
        self.together({MDS: self.at(MDS, master), "munged": self.at(LOGIN, slurm.munged(self.state / "munge"))})
        commands = {"slurmctld": self.at(LOGIN, slurm.slurmctld(settings))}
        for ost in self.osts:
            commands[f"ost{ost}"] = self.at(f"ost{ost}", moosefs.chunk_server(self.state / f"ost{ost}", "start"))
        for place in (LOGIN, *self.nodes):
            mount = moosefs.mount(self.state / "gfs", self.addresses[MDS], self.wish.mount_options)
            commands[f"mount-{place}"] = self.at(place, mount)
        for node in self.nodes:
            commands[f"slurmd-{node}"] = self.at(node, slurm.slurmd(settings, node))
        self.together(commands)

    def _see_it_work(self) -> None:
        """Every object server takes a file, every node is idle."""
        script = moosefs.first_use(self.state / "gfs", self.osts)
        self.together({"first-use": self.at(LOGIN, ["sh", "-ec", script])})
        if not until(self._nodes_are_idle, seconds=STEP_SECONDS):
            raise ClusterError(f"Slurm's nodes are not idle{self.tail('slurmctld')}")

    def _nodes_are_idle(self) -> bool:
        command = self.at(LOGIN, ["sinfo", "--noheader", "--Node", "--format=%T"])
        told = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, timeout=STEP_SECONDS, check=False
        )
        return told.stdout.split() == ["idle"] * self.wish.nodes

    # ---- how it is reached

    def pid(self, place: str) -> int:
        """The first process of a node, or of `login`, by its number here."""
        if self.record is None or self.record.keeper is None or not self.record.alive:
            raise ClusterError(f"{self.state}: no cluster is up there")
        if place == LOGIN:
            return self.record.keeper.pid
        if place not in self.record.nodes:
            raise ClusterError(f"{place}: no such place; there are {LOGIN} {' '.join(self.record.nodes)}")
        return self.record.nodes[place].pid

    def at(self, place: str, command: Sequence[str], folder: Path = Path("/")) -> list[str]:
        """The command line that runs a command at a node, a server or `login`."""
        if place in self.servers:
            return inside(self.pid(LOGIN), command, net=self._net(place), folder=folder)
        return inside(self.pid(place), command, folder=folder)

    def _net(self, place: str) -> str:
        """A file, as seen from here, that stands for a place's network."""
        if place in self.servers:
            return f"/proc/{self.pid(LOGIN)}/root{self.state}/net/{place}"
        return f"/proc/{self.pid(place)}/ns/net"

    def together(self, commands: Mapping[str, Sequence[str]], *, said: str = "") -> None:
        """Commands at the same time, each with a log of its own; one that fails is told with the end of its log."""
        started: dict[str, subprocess.Popen[bytes]] = {}
        deadline = time.monotonic() + STEP_SECONDS
        try:
            for name, command in commands.items():
                with self._log(name).open("ab") as log:  # not a pipe, which daemons would hold open
                    started[name] = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=log,
                        stderr=log,
                        env=self.environment,
                        start_new_session=True,
                    )
            for name, process in started.items():
                process.communicate(said.encode(), timeout=max(0.0, deadline - time.monotonic()))
                if process.returncode:
                    raise ClusterError(f"{name} failed ({process.returncode}){self.tail(name)}")
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{name} did not answer for {STEP_SECONDS:.0f} s{self.tail(name)}") from error
        finally:
            for process in started.values():
                process.kill()
                process.communicate()

    def tail(self, name: str) -> str:
        """The last lines of a log, to stand behind a message."""
        lines = self._log(name).read_text(errors="replace").splitlines() if self._log(name).exists() else []
        return "".join(f"\n  {line}" for line in lines[-8:])

    def _log(self, name: str) -> Path:
        return self.state / "log" / f"{name}.log"


def _ip(net: str) -> list[str]:
    return ["nsenter", f"--net={net}", "ip", "-batch", "-"]


def _tmpfs(name: str, where: str, mib: int) -> str:
    return f"mount -t tmpfs -o size={mib}m {name} {where}"
