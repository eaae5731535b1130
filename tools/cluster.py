#!/usr/bin/env python3
"""A cluster in a box: MooseFS with slow object servers as GFS, nodes with an LFS of their own, and Slurm over them.

    tools/cluster.py up --osts 4 --ost-mbit 200 --mds-mbit 2 --nodes 4
    tools/cluster.py run n1 -- df -h
    tools/cluster.py run login -- sbatch -N 4 --wrap 'srun hostname'
    tools/cluster.py down

The nodes n1, n2, … share the machine's files, as a cluster shares its homes. GFS, LFS, TMPDIR, /dev/shm, process numbers, host name
and network are each node's own. The place `login` has the GFS too; `sbatch` and the like run there. Nothing of it has a name or an
address outside: clusters cannot meet, and tests may run beside it.
"""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tools import cluster_moosefs as moosefs
from tools.cluster_box import LOGIN, MDS, STEP_SECONDS, Box, until
from tools.cluster_host import install, lacking
from tools.cluster_namespaces import undisturbed
from tools.cluster_record import ClusterError, Record, Wish

__all__ = ["Cluster", "ClusterError", "Wish", "install", "lacking"]
RATES = ("ost_mbit", "mds_mbit")
UNFINISHED = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")


class Cluster:
    """One cluster from `up` to `down`, also as a context manager; `attach` finds one that another process made.

    Takes about 3 s and 0.6 GB of memory to bring up, and 0.15 GB more for each object server.
    """

    def __init__(self, wish: Wish) -> None:
        state = wish.state or Path(tempfile.gettempdir()) / f"tsc-{secrets.token_hex(4)}"
        self.state = state.resolve()
        self._box = Box(self.state, replace(wish, state=self.state))

    @classmethod
    def attach(cls, state: Path) -> Self:
        """The cluster whose state is in a folder."""
        record = Record.load(state.resolve())
        if record is None:
            raise ClusterError(f"{state}: no cluster is up there")
        cluster = cls(record.wish)
        cluster._box = Box(cluster.state, record.wish, record)
        return cluster

    @property
    def wish(self) -> Wish:
        return self._box.wish

    @property
    def nodes(self) -> tuple[str, ...]:
        return self._box.nodes

    @property
    def gfs(self) -> Path:
        """Where every node, and `login`, has the global file system in its own mount namespace."""
        return self.state / "gfs"

    @property
    def lfs(self) -> Path:
        """Where every node has its local file system."""
        return self.state / "lfs"

    @property
    def environment(self) -> dict[str, str]:
        """What programs on the cluster are started with."""
        return self._box.environment

    @property
    def alive(self) -> bool:
        return self._box.record is not None and self._box.record.alive

    # ---- up and down

    def up(self, *, stay: bool = False) -> Self:
        """Everything started and seen working; where that fails or is interrupted, nothing.

        It ends with this process, however that ends, unless it is told to stay.
        """
        if reasons := lacking():
            raise ClusterError("; ".join(reasons))
        claimed = False
        try:
            with undisturbed():
                self._box.claim()
                claimed = True
            self._box.make(stay=stay)
        except BaseException as error:
            if claimed and (left := self.down()):
                raise ClusterError(f"{error}; left behind: {'; '.join(left)}") from error
            raise
        return self

    def down(self, *, only: str | None = None) -> list[str]:
        """Everything taken down, also what another process made, and half-made; what could not be, in words."""
        with undisturbed():
            return self._box.unmake(only)

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = self.down()
        if left and error is None:
            raise ClusterError(f"left behind: {'; '.join(left)}")

    # ---- programs on it

    def run(
        self,
        node: str,
        command: Sequence[str],
        *,
        timeout_seconds: float = 60,
        check: bool = True,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """A program on a node (or `login`) to its end; what it wrote is in the answer, and in the error where it fails."""
        with self.start(node, command, folder=folder, environment=environment) as process:
            try:
                out, err = process.communicate(timeout=timeout_seconds)
            except BaseException:
                process.kill()
                raise
        if check and process.returncode:
            raise ClusterError(f"{node}: {' '.join(command)}: ended with {process.returncode}: {(err or out).strip()}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def start(
        self,
        node: str,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[str]":
        """The same without waiting for it; the program dies with the process that is returned."""
        entered = self._box.at(node, command, folder or Path.cwd())
        pipe = subprocess.PIPE
        variables = {**self.environment, **(environment or {})}
        return subprocess.Popen(entered, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=variables)

    def become(self, node: str, command: Sequence[str]) -> NoReturn:
        """This process is that program on a node from now on, terminal and all."""
        entered = self._box.at(node, command, Path.cwd())
        os.execvpe(entered[0], entered, self.environment)

    def seen_from_outside(self, node: str, path: Path) -> Path:
        """A path within a node (or `login`) as a path for this process."""
        return Path(f"/proc/{self._box.pid(node)}/root{path}")

    def sbatch(self, *arguments: str, folder: Path | None = None) -> int:
        """Submit a job; its number."""
        return int(self.run(LOGIN, ["sbatch", "--parsable", *arguments], folder=folder).stdout.split(";")[0])

    def squeue(self, *arguments: str) -> str:
        return self.run(LOGIN, ["squeue", *arguments]).stdout

    def scontrol(self, *arguments: str) -> str:
        return self.run(LOGIN, ["scontrol", *arguments]).stdout

    def job(self, number: int) -> dict[str, str]:
        """What Slurm knows of a job: `JobState`, `Restarts`, `ExitCode`, …"""
        words = self.scontrol("--oneliner", "show", "job", str(number)).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def finished(self, number: int, *, timeout_seconds: float = 60) -> dict[str, str]:
        """The same once the job has ended, well or badly. (`sbatch --wait` asks so seldom that it costs up to 10 s.)"""
        over = until(
            lambda: self.job(number)["JobState"] not in UNFINISHED,
            seconds=timeout_seconds,
            pause_seconds=0.2,  # asking takes time of a core, from the job too
        )
        if not over:
            raise ClusterError(f"job {number} is {self.job(number)['JobState']} after {timeout_seconds:.0f} s")
        return self.job(number)

    def end_time_limit(self, number: int) -> None:
        """A running job's time is over: Slurm ends it as TIMEOUT when it looks next, which it does every 30 s."""
        self.scontrol(
            "update", f"JobId={number}", "EndTime=now+2seconds"
        )  # the controller refuses what is past when it gets there

    # ---- its storage, and what may go wrong with it

    def retune(self, **rates: float | None) -> None:
        """Other rates from now on: `ost_mbit`, `mds_mbit` or both; None means no limit."""
        if unknown := set(rates) - set(RATES):
            raise ClusterError(f"{', '.join(sorted(unknown))}: no rate of a cluster; there are {', '.join(RATES)}")
        ost_mbit, mds_mbit = (rates.get(name, getattr(self.wish, name)) for name in RATES)
        self._box.wish = replace(self.wish, ost_mbit=ost_mbit, mds_mbit=mds_mbit)
        self._box.limit()
        assert self._box.record
        self._box.record.wish = self.wish
        self._box.record.save(self.state)

    def place(self, folder: Path, ost: int) -> None:
        """Files made in a folder of the GFS from now on lie on one object server (counted from 1)."""
        self._check_ost(ost)
        self.run(LOGIN, ["mfssetsclass", f"ost{ost}", str(folder)])

    def stop_ost(self, ost: int) -> None:
        """An object server dies at once; clients that need it try again and again, for minutes, before they fail."""
        self._tell_ost(ost, "kill")

    def start_ost(self, ost: int) -> None:
        """It comes back with all that it held, and the metadata server knows; a client that waits for it may wait on for 10 s."""
        self._tell_ost(ost, "start")
        ask = ["mfsfileinfo", str(moosefs.witness(self.gfs, ost))]
        if not until(lambda: "copy 1:" in self.run(LOGIN, ask).stdout, seconds=STEP_SECONDS):
            raise ClusterError(f"ost {ost} did not come back")

    def link(self, node: str, *, up: bool) -> None:
        """Pull a node's network cable, or plug it in again."""
        self._box.pid(node)
        self.run(LOGIN, ["ip", "link", "set", f"to-{node}", "up" if up else "down"])

    def read_only(self, yes: bool) -> None:
        """The servers refuse writes, or take them again; files open for writing fail with EIO from then on."""
        moosefs.write_exports(self.state / MDS, read_only=yes)
        self._box.together({MDS: self._box.at(MDS, moosefs.master(self.state / MDS, "reload"))})
        probe = ["sh", "-c", f": > {self.gfs}/.probe && rm {self.gfs}/.probe"]
        if not until(lambda: (self.run(LOGIN, probe, check=False).returncode != 0) == yes, seconds=STEP_SECONDS):
            raise ClusterError(f"the GFS did not become {'read-only' if yes else 'writable'}")

    def stats(self, node: str) -> dict[str, int]:
        """How many operations of each kind a node's mount has done so far: `{'fuse_ops.open': 12, …}`."""
        return moosefs.parse_stats(self.run(node, ["cat", f"{self.gfs}/.stats"]).stdout)

    def _tell_ost(self, ost: int, action: str) -> None:
        self._check_ost(ost)
        name = f"ost{ost}"
        self._box.together({name: self._box.at(name, moosefs.chunk_server(self.state / name, action))})

    def _check_ost(self, ost: int) -> None:
        if ost not in self._box.osts:
            raise ClusterError(f"ost {ost}: must be within 1–{self.wish.osts}")


# ---- by hand


def _rate(text: str) -> float | None:
    return None if text == "none" else float(text)


def _parser() -> argparse.ArgumentParser:
    usual = Wish()
    parser = argparse.ArgumentParser(description="A cluster in a box: MooseFS, nodes and Slurm on one machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring a cluster up; it stays until `down`")
    up.add_argument("--osts", type=int, default=usual.osts, help="object servers (%(default)s)")
    up.add_argument("--ost-mbit", type=_rate, default=usual.ost_mbit, help="rate of each, or none (%(default)s)")
    up.add_argument("--mds-mbit", type=_rate, default=usual.mds_mbit, help="rate of the metadata server (none)")
    up.add_argument("--nodes", type=int, default=usual.nodes, help="(%(default)s)")
    up.add_argument("--lfs-mib", type=int, default=usual.lfs_mib, help="size of each node's LFS (%(default)s)")
    up.add_argument("--ost-mib", type=int, default=usual.ost_mib, help="size of each object server (%(default)s)")
    up.add_argument("--cpus-per-node", type=int, default=usual.cpus_per_node, help="as Slurm is told (%(default)s)")
    up.add_argument("--mount-options", default=usual.mount_options, help="of mfsmount, as mfscachemode=DIRECT")
    down = commands.add_parser("down", help="take it down, however far it was made")
    down.add_argument("--only", metavar="ID", help="only if it is this one, by the id in its record")
    status = commands.add_parser("status", help="what is up, and where")
    run = commands.add_parser("run", help="a program on a node or on login: run n1 -- df -h")
    run.add_argument("node")
    run.add_argument("program", nargs="+")
    commands.add_parser("install", help="apt-get what is missing, by name")
    usual_state = Path(tempfile.gettempdir()) / f"tierscope-cluster-{os.getuid()}"
    for command in (up, down, status, run):
        command.add_argument("--state", type=Path, default=usual_state, help="folder of everything (%(default)s)")
    return parser


def _describe(cluster: Cluster) -> str:
    wish = cluster.wish
    lines = [
        f"{wish.osts} object servers at {wish.ost_mbit or 'unlimited'} Mbit/s, metadata server at {wish.mds_mbit or 'unlimited'} Mbit/s",
        f"nodes {' '.join(cluster.nodes)} with GFS {cluster.gfs}, LFS {cluster.lfs}",
        f"SLURM_CONF={cluster.environment['SLURM_CONF']} (within); logs in {cluster.state / 'log'}",
    ]
    return "\n".join(lines) + "\n"


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)


def _obey(options: argparse.Namespace) -> int:
    if options.command == "install":
        install()
        return 0
    if options.command == "up":
        wish = Wish(**{key: value for key, value in vars(options).items() if key != "command"})
        sys.stdout.write(_describe(Cluster(wish).up(stay=True)))
        return 0
    if options.command == "down":
        left = Cluster(Wish(state=options.state)).down(only=options.only)
        sys.stderr.writelines(f"left behind: {line}\n" for line in left)
        return 1 if left else 0
    cluster = Cluster.attach(options.state)
    if options.command == "status":
        sys.stdout.write(
            _describe(cluster) if cluster.alive else f"{options.state}: half made, or dead: take it down\n"
        )
        return 0 if cluster.alive else 1
    return cluster.become(options.node, options.program)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminated)
    try:
        return _obey(_parser().parse_args())
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
