"""MooseFS in a folder: the files of a metadata server and its chunk servers, and the commands that start them.

Every chunk server has a label of its own and every label a storage class (`ost1`, `ost2`, …), so that a file's place can be chosen.
"""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_master(folder: Path) -> None:
    """An empty file system; anyone may mount it, and root stays root."""
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "metadata.mfs").write_text("MFSM NEW")
    write_exports(folder, read_only=False)
    (folder / "topology").touch()
    settings = {"EXPORTS_FILENAME": folder / "exports", "TOPOLOGY_FILENAME": folder / "topology"}
    _write_settings(folder, settings)


def write_exports(folder: Path, *, read_only: bool) -> None:
    """Who may mount what; taken up by `reload`, also for mounts that are there."""
    (folder / "exports").write_text(f"* / {'ro' if read_only else 'rw'},alldirs,admin,maproot=0:0\n")


def write_chunk_server(folder: Path, ost: int, master: str) -> None:
    """One object server (counted from 1) with one disk; it neither tests nor moves what it holds, and rejoins quickly."""
    (folder / "data").mkdir(parents=True)
    (folder / "disk").mkdir(exist_ok=True)
    (folder / "disks").write_text(f"{folder / 'disk'}\n")
    settings = {
        "HDD_CONF_FILENAME": folder / "disks",
        "HDD_LEAVE_SPACE_DEFAULT": "16MiB",
        "HDD_TEST_FREQ": 0,
        "HDD_REBALANCE_UTILIZATION": 0,
        "LABELS": label(ost),
        "MASTER_HOST": master,
        "MASTER_RECONNECTION_DELAY": 1,
    }
    _write_settings(folder, settings)


def label(ost: int) -> str:
    return string.ascii_uppercase[ost - 1]


def master(folder: Path, action: str) -> list[str]:
    return ["mfsmaster", "-c", f"{folder}/settings", action]


def chunk_server(folder: Path, action: str) -> list[str]:
    return ["mfschunkserver", "-c", f"{folder}/settings", action]


def mount(folder: Path, server: str, options: str) -> list[str]:
    return ["mfsmount", str(folder), "-H", server, *(["-o", options] if options else [])]


def first_use(folder: Path, osts: Sequence[int]) -> str:
    """A script that waits until every chunk server takes a file: one copy of each file, and a storage class for each server.

    A strict class (mode `s`) never lets a file lie elsewhere. One file on each server stays, as its `witness`.
    """
    lines = [f"mfssetgoal 1 {folder}"]
    for ost in osts:
        file = witness(folder, ost)
        lines.append(f"mfsscadmin {folder} create -m s {label(ost)} ost{ost}")
        lines.append(f"mkdir -p {file.parent} && mfssetsclass ost{ost} {file.parent}")
        lines.append(f"until dd if=/dev/zero of={file} bs=1 count=1 conv=fsync status=none; do sleep 0.1; done")
    return "\n".join(lines)


def witness(folder: Path, ost: int) -> Path:
    """A small file that lies on one chunk server and is there when the server is."""
    return folder / ".osts" / str(ost) / "witness"


def parse_stats(text: str) -> dict[str, int]:
    """`.stats` of a mount as numbers: `{'fuse_ops.open': 12, …}`."""
    pairs = (line.rpartition(":") for line in text.splitlines())
    return {name.strip(): int(value) for name, colon, value in pairs if colon and value.strip().isdigit()}


def _write_settings(folder: Path, settings: Mapping[str, object]) -> None:
    common = {"WORKING_USER": "root", "WORKING_GROUP": "root", "DATA_PATH": folder / "data", "NICE_LEVEL": 0}
    lines = [f"{key} = {value}" for key, value in {**common, **settings}.items()]
    (folder / "settings").write_text("\n".join(lines) + "\n")
