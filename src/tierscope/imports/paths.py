"""Which tier a logged path is on: what the user says first, then what Lustre said, then the longest mount point.

Files of the program itself (libraries, bytecode, devices) are kept apart from data, wherever they lie, and so are its standard streams. What no
rule and no mount point tells is UNKNOWN: importers show it as a tier of its own (`TierRules.other`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

PROGRAM = "\0program"  # no tier can be called that
STREAMS = "\0streams"
UNKNOWN = "\0unknown"
APART = (PROGRAM, STREAMS)  # in no class of I/O
LUSTRE = "lustre"

_PROGRAM_FOLDERS = ("/usr/", "/lib/", "/lib64/", "/etc/", "/proc/", "/sys/", "/dev/", "/bin/", "/sbin/", "/run/")
_PROGRAM_INSIDE = re.compile(r"/(site-packages|dist-packages|__pycache__|lib/python[\d.]+)/")
_PROGRAM_SUFFIXES = (".py", ".pyc", ".pyo", ".so", ".egg-link", ".dist-info", ".whl")
_ODD_ENDS = (*_PROGRAM_SUFFIXES, ">", "]")  # other names of files need no closer look
_LIBRARY_VERSION = re.compile(r"\.so(\.\d+)+$")
_STREAM = re.compile(r"<STD(IN|OUT|ERR)>")
_NO_FILE = re.compile(r"<.*>|(pipe|socket|anon_inode):.*")
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
        return sorted(pairs, key=_longest)

    def of_all(
        self, paths: Sequence[str], mounts: Sequence[tuple[str, str]], on_lustre: frozenset[int] | set[int]
    ) -> list[str]:
        """A tier's name for every path, or PROGRAM, STREAMS or UNKNOWN. `on_lustre`: places of the paths that Lustre told about."""
        folders_mounted = ((mount.rstrip("/") + "/", kind) for mount, kind in mounts)
        by_length = sorted(((mount, _mount_tier(mount, kind)) for mount, kind in folders_mounted), key=_longest)
        places = {mount.rstrip("/"): tier for mount, tier in by_length}
        single_files = self._single_files
        folders: dict[str, _Folder] = {}
        tiers = []
        for place, path in enumerate(paths):
            head, _, name = path.rpartition("/")
            folder = folders.get(head)
            if folder is None:
                folder = folders[head] = self._folder(head + "/", by_length)
            ruled = single_files.get(path) or folder.ruled
            odd = folder.packages or folder.system or name.endswith(_ODD_ENDS) or ".so." in name or not name
            if odd and (not path or _is_program(name, folder, ruled is not None)):
                tiers.append(STREAMS if _STREAM.fullmatch(path) else PROGRAM)
            else:
                tiers.append(ruled or (LUSTRE if place in on_lustre else places.get(path, folder.mounted)))
        return tiers

    @cached_property
    def _single_files(self) -> dict[str, str]:
        """Rules that may name a file rather than a folder."""
        return {prefix.rstrip("/"): name for prefix, name in self._longest_first}

    def _folder(self, folder: str, mounts: list[tuple[str, str]]) -> "_Folder":
        """`mounts`: with their tiers, longest first."""
        ruled = next((name for prefix, name in self._longest_first if folder.startswith(prefix)), None)
        mounted = next((tier for mount, tier in mounts if folder.startswith(mount)), UNKNOWN)
        return _Folder(ruled, mounted, bool(_PROGRAM_INSIDE.search(folder)), folder.startswith(_PROGRAM_FOLDERS))

    def order(self, tiers: set[str]) -> list[str]:
        """Tiers nearest first: those that were given, with local filesystems before and others behind them; first of all what is on no tier."""
        others = sorted(tiers - {*APART, UNKNOWN, self.other} - self.given.keys())
        near = [name for name in others if name in _NEAR]
        unknown = [self.other] if self.other in tiers else []
        return [*unknown, *near, *self.given, *(name for name in others if name not in near)]

    def free_name(self, wanted: str) -> str:
        """For a tier that nobody gave: another name where a given one has it."""
        return f"{wanted[:14]}_2" if wanted in self.given else wanted

    @property
    def other(self) -> str:
        """The tier of what matches none."""
        return self.free_name("other")


def _longest(pair: tuple[str, str]) -> int:
    return -len(pair[0])


def _mount_tier(mount: str, kind: str) -> str:
    """What a mount point tells: the root, and what is no storage, nothing."""
    name = re.sub(r"[^a-z0-9_]", "_", kind.lower())[:16]
    if mount == "/" or kind in _NOT_STORAGE or not name:
        return UNKNOWN
    return name if name[0].isalpha() else f"fs_{name}"[:16]  # as a tier may be called


@dataclass(frozen=True, slots=True)
class _Folder:
    """What all files of a folder share: the tier by rule and by mount, and whether programs live there."""

    ruled: str | None
    mounted: str
    packages: bool
    system: bool


def _is_program(name: str, folder: _Folder, ruled: bool) -> bool:
    """`ruled`: a rule of the user's covers it; then only what is plainly no data counts as the program's."""
    if folder.packages or (folder.system and not ruled) or name.endswith(_PROGRAM_SUFFIXES):
        return True
    return bool((".so." in name and _LIBRARY_VERSION.search(name)) or (name[-1:] in ">]" and _NO_FILE.fullmatch(name)))


def common_folder(folders: Sequence[str]) -> str:
    """The deepest folder that holds all of them; empty: there is none."""
    try:
        return os.path.commonpath(folders) if folders else ""
    except ValueError:
        return ""
