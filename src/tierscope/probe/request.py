"""What the user asks of a probe: tiers, sizes of files, processes, seconds."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tierscope.errors import SpecError, UserError
from tierscope.mounts import filesystem_of
from tierscope.spec.traced import read_tiers
from tierscope.units import closest, format_bytes, parse_bytes

DEFAULT_SIZES = (4 << 10, 128 << 10, 1 << 20, 16 << 20)


MOST_PROCESSES = 256


_MOST_BY_DEFAULT = 16


_MOST_SIZES = 12


_LARGEST = 1 << 30


_MOST_SERVERS = 10**5


_OF_MANY = ("lustre", "gpfs", "beegfs", "ceph", "nfs", "nfs4", "wekafs", "pvfs2", "panfs")


_OF_ONE = ("ext4", "xfs", "btrfs", "f2fs", "tmpfs", "ramfs")


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """`tiers`: name → directory, nearest first. `servers`: of those tiers whose number of object servers the user told."""

    tiers: Mapping[str, str]
    sizes: tuple[int, ...] = DEFAULT_SIZES
    processes: int = 2
    seconds: float = 600.0
    servers: Mapping[str, int] = field(default_factory=dict)


def read_wanted(
    tiers: Sequence[str], sizes: Sequence[str], processes: int | None, seconds: float, servers: Sequence[str]
) -> ProbeRequest:
    """What the options mean."""
    folders = {}
    for option, traced in zip(tiers, read_tiers(tiers), strict=True):
        if "," in option:
            raise UserError(f"--tier {option}: a tier is probed in one directory; use one path")
        if "{" in traced.tier.path or "$" in traced.tier.path:
            raise UserError(
                f"--tier {option}: a path with '{{' or '$' has a special meaning in a system file; choose another"
            )
        folders[traced.name] = traced.tier.path
    _refuse_wrong_order(folders)
    return ProbeRequest(
        folders,
        _read_sizes(sizes) or DEFAULT_SIZES,
        processes or min(_MOST_BY_DEFAULT, max(2, len(os.sched_getaffinity(0)))),
        seconds,
        dict(_read_servers(option, folders) for option in servers),
    )


def _refuse_wrong_order(tiers: Mapping[str, str]) -> None:
    """A node's own disk cannot be where every node finds every file."""
    *nearer, (last, path) = tiers.items()
    shared = next((name for name, place in nearer if filesystem_of(place) in _OF_MANY), None)
    if shared and filesystem_of(path) in _OF_ONE:
        raise UserError(
            f"--tier {last}={path}: is last, but {filesystem_of(path)} is local to a host, and {shared} before it is shared; "
            f"name the nearest tier first: {last}, then {shared}"
        )


def _read_sizes(options: Sequence[str]) -> tuple[int, ...]:
    numbers = set()
    for option in options:
        try:
            size = parse_bytes(option)
        except ValueError as problem:
            raise SpecError(f"--size {option}: {problem}") from None
        if not 1 <= size <= _LARGEST:
            raise SpecError(f"--size {option}: must be within 1 B – {format_bytes(_LARGEST)}")
        numbers.add(size)
    if len(numbers) > _MOST_SIZES:
        raise SpecError(f"--size: {len(numbers)} sizes; at most {_MOST_SIZES}")
    return tuple(sorted(numbers))


def read_servers(options: Sequence[str]) -> dict[str, int]:
    """`--servers TIER=COUNT`, whatever tiers there are."""
    return dict(_read_server(option, "gfs") for option in options)


def _read_servers(option: str, tiers: Mapping[str, str]) -> tuple[str, int]:
    name, count = _read_server(option, list(tiers)[-1])
    if name not in tiers:
        guess = closest(name, tiers)
        hint = f"did you mean {guess}?" if guess else f"tiers: {', '.join(tiers)}"
        raise SpecError(f"--servers {option}: {name} is not a tier of this command; {hint}")
    return name, count


def _read_server(option: str, example: str) -> tuple[str, int]:
    name, given, count = option.partition("=")
    if not given:
        raise SpecError(f"--servers {option}: must be TIER=COUNT, e.g. {example}=60")
    if not (count.isascii() and count.isdigit() and 1 <= int(count) <= _MOST_SERVERS):
        raise SpecError(f"--servers {option}: must be a whole number within 1 – {_MOST_SERVERS}")
    return name, int(count)
