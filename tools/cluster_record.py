"""What a cluster shall be, and what has been made of it: all that `down` must know, on disk before it is true."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.cluster_namespaces import Process

SCHEMA = 1
NAME = "record.json"
MAX_OSTS = 26  # one label, a letter, for each


class ClusterError(Exception):
    """What could not be brought up, reached or taken down, in words for a person."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a cluster shall be. Rates are those of the servers' replies (reads, not writes); None means no limit.

    Files of the object servers lie in memory: at most osts × ost_mib of it, and nodes × lfs_mib for the nodes' own.
    """

    osts: int = 4
    ost_mbit: float | None = 200
    mds_mbit: float | None = None
    nodes: int = 4
    lfs_mib: int = 512
    ost_mib: int = 2048
    cpus_per_node: int = 8  # as Slurm is told
    mount_options: str = ""  # of mfsmount, as mfscachemode=DIRECT
    state: Path | None = None  # the folder that holds everything; a fresh one where None

    def __post_init__(self) -> None:
        least_most = {"osts": (1, MAX_OSTS), "nodes": (1, 99), "lfs_mib": (1, 2**20), "ost_mib": (64, 2**20)}
        for name, (least, most) in {**least_most, "cpus_per_node": (1, 1024)}.items():
            if not least <= getattr(self, name) <= most:
                raise ClusterError(f"{name} = {getattr(self, name)}; must be within {least}–{most}")
        for name in ("ost_mbit", "mds_mbit"):
            rate = getattr(self, name)
            if rate is not None and not 0.1 <= rate <= 100_000:
                raise ClusterError(f"{name} = {rate}; must be within 0.1–100000, or none")


@dataclass(slots=True)
class Record:
    """One cluster: who makes it, the process that everything lives below, and the namespaces that must end up empty."""

    id: str
    wish: Wish
    maker: Process
    keeper: Process | None = None
    nodes: dict[str, Process] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)

    @property
    def alive(self) -> bool:
        return self.keeper is not None and self.keeper.alive

    def save(self, folder: Path) -> None:
        """Whole or not at all; fails where somebody has taken the folder away."""
        draft = folder / f"{NAME}.draft"
        said = {"schema": SCHEMA, **asdict(self), "namespaces": sorted(self.namespaces)}
        with draft.open("w") as file:
            json.dump(said, file, default=str, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(folder / NAME)

    @classmethod
    def load(cls, folder: Path) -> "Record | None":
        """The record in a folder; None where there is none."""
        try:
            said = json.loads((folder / NAME).read_text())
            if said.pop("schema") != SCHEMA:
                raise ClusterError(f"{folder / NAME}: was written by another version of this tool")
            return cls(
                id=said["id"],
                wish=Wish(**{**said["wish"], "state": folder}),
                maker=Process(**said["maker"]),
                keeper=Process(**said["keeper"]) if said["keeper"] else None,
                nodes={name: Process(**process) for name, process in said["nodes"].items()},
                namespaces=set(said["namespaces"]),
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ClusterError(f"{folder / NAME}: is no record of a cluster: {error!r}") from error
