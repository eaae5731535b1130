"""Damage to what kind of file something is."""

import os
import random
import socket
from collections.abc import Callable
from pathlib import Path


def swap_kind(path: Path, dice: random.Random) -> str:
    """Something else at its place: what must be refused, and never waited for."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name("was-" + path.name))
    else:
        path.rename(path.with_name("was-" + path.name)) if dice.random() < 0.5 else path.unlink()
    kinds: dict[str, Callable[[], object]] = {
        "a FIFO": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
        "a full folder": lambda: (path / "x").mkdir(parents=True),
        "a link to itself": lambda: path.symlink_to(path.name),
        "a dangling link": lambda: path.symlink_to("nowhere"),
        "a link to an endless device": lambda: path.symlink_to("/dev/zero"),
        "a link to an empty device": lambda: path.symlink_to("/dev/null"),
        "a link to a file of someone's": lambda: path.symlink_to(os.path.relpath("precious.txt", path.parent)),
        "an empty file": path.touch,
        "an unreadable file": lambda: path.touch(0),
        "a sparse terabyte": lambda: path.open("wb").truncate(1 << 40),
        "a socket": lambda: socket.socket(socket.AF_UNIX).bind(os.path.relpath(path)),
        "nothing": lambda: None,
    }
    kind = dice.choice(list(kinds))
    kinds[kind]()
    return kind
