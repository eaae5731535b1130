"""Which tier a logged path is on: what the user says first, then what Lustre said, then the longest mount point.

Files of the program itself (libraries, bytecode, devices) are kept apart from data, wherever they lie.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

PROGRAM = "\0program"  # no tier can be called that
UNKNOWN = "\0unknown"
LUSTRE = "lustre"

_PROGRAM_FOLDERS = ("/usr/", "/lib/", "/lib64/", "/etc/", "/proc/", "/sys/", "/dev/", "/bin/", "/sbin/", "/run/")
_PROGRAM_FILE = re.compile(
    r"\.(py[co]?|so(\.\d+)*|egg-link|dist-info|whl)$|/(site-packages|dist-packages|__pycache__|lib/python[\d.]+)(/|$)|^<.*>$|^(pipe|socket|anon_inode):"
)
_NOT_STORAGE = frozenset(
    (
        "overlay",
        "rootfs",
        "squashfs",
        "proc",
        "sysfs",
        "devtmpfs",
        "devpts",
        "cgroup",
        "cgroup2",
        "autofs",
        "tracefs",
        "debugfs",
        "",
    )
)
_NEAR = ("tmpfs", "ramfs", "ext4", "ext3", "xfs", "btrfs", "zfs", "f2fs")  # kinds of filesystem that are local


@dataclass(frozen=True)
class TierRules:
    """`given`: name → path prefixes, nearest first."""

    given: Mapping[str, tuple[str, ...]]

    @cached_property
    def _longest_first(self) -> list[tuple[str, str]]:
        pairs = [(prefix.rstrip("/") + "/", name) for name, prefixes in self.given.items() for prefix in prefixes]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def of_all(
        self, paths: Sequence[str], mounts: Sequence[tuple[str, str]], on_lustre: frozenset[int] | set[int]
    ) -> list[str]:
        """A tier's name for every path, or PROGRAM, or UNKNOWN. `on_lustre`: places of the paths that Lustre told about."""
        by_length = sorted(((mount.rstrip("/") + "/", kind) for mount, kind in mounts), key=lambda pair: -len(pair[0]))
        return [self._of(path, by_length, place in on_lustre) for place, path in enumerate(paths)]

    def _of(self, path: str, mounts: list[tuple[str, str]], on_lustre: bool) -> str:
        ruled = next((name for prefix, name in self._longest_first if _below(path, prefix)), None)
        if is_program(path, ruled is not None):
            return PROGRAM
        if ruled is not None:
            return ruled
        if on_lustre:
            return LUSTRE
        prefix, kind = next((pair for pair in mounts if _below(path, pair[0])), ("/", ""))
        name = re.sub(r"[^a-z0-9_]", "_", kind.lower())[:16]
        if prefix == "/" or kind in _NOT_STORAGE or not name:
            return UNKNOWN
        return name if name[0].isalpha() else f"fs_{name}"[:16]  # as a tier may be called

    def order(self, found: set[str]) -> list[str]:
        """Tiers nearest first: those that were given, with local filesystems before and others behind them."""
        others = sorted(found - {PROGRAM, UNKNOWN} - self.given.keys())
        near = [name for name in others if name in _NEAR]
        return [*near, *self.given, *(name for name in others if name not in near)]


def _below(path: str, prefix: str) -> bool:
    return path.startswith(prefix) or path + "/" == prefix


def is_program(path: str, ruled: bool) -> bool:
    """`ruled`: a rule of the user's covers it; then only what is plainly no data counts as the program's."""
    return bool(_PROGRAM_FILE.search(path)) or (not ruled and (path.startswith(_PROGRAM_FOLDERS) or not path))


def common_folder(folders: Sequence[str]) -> str:
    """The deepest folder that holds all of them; empty: there is none."""
    try:
        return os.path.commonpath(folders) if folders else ""
    except ValueError:
        return ""
