"""What the user says about tiers on the command line of `trace`: `--tier NAME=/path[,/path2…]` and `--emulate NAME.KEY=VALUE`."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.errors import SpecError, UserError
from tierscope.mounts import mounts
from tierscope.spec.build import read_value
from tierscope.spec.emulation import GIVE_RATES, has_rate, python_only, tier_key
from tierscope.spec.study import Tier
from tierscope.spec.tree import Node
from tierscope.units import closest

EMULATED_KEYS = (
    "metadata_ops",
    "metadata_latency",
    "read_ops",
    "bandwidth",
    "write_ops",
    "write_bandwidth",
    "servers",
    "node_bandwidth",
    "device_bandwidth",
    "gateway_bandwidth",
    "latency",
    "stream_bandwidth",
    "variation",
)
_STUDIES_ONLY = (
    "metadata_servers",
    "metadata_variation",
    "file_open_ops",
    "stripe_count",
    "stripe_size",
    "service_variation",
    "discipline",
    "background",
    "credit",
    "quota_period",
    "open_bytes",
    "layout",
)
_FAR = ("lustre", "gpfs", "beegfs", "ceph", "nfs", "nfs4", "wekafs", "pvfs2", "panfs", "fhgfs")
_MOST_SUGGESTED = 4


@dataclass(frozen=True, slots=True)
class TracedTier:
    """`prefixes`: files below any of these belong to it, as written and as symbolic links lead."""

    tier: Tier
    prefixes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.tier.name


def read_tiers(options: Sequence[str], emulate: Sequence[str] = ()) -> tuple[TracedTier, ...]:
    """The tiers in the order given: nearest first, as in a study."""
    if not options:
        raise UserError(f"--tier is missing; name the paths of the data, nearest tier first: {_example()}")
    tiers: list[TracedTier] = []
    for option in options:
        tiers.append(_read_tier(option, tiers))
    return _emulated(tiers, emulate)


def read_rules(options: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Tiers of logs: name → path prefixes, nearest first. The paths are those of the machine that was logged, so they need not exist here."""
    rules: dict[str, tuple[str, ...]] = {}
    for option in options:
        name, paths = _split_tier(option, rules)
        prefixes = tuple(dict.fromkeys(re.sub("^//+", "/", os.path.normpath(path)) for path in paths))
        for path in prefixes:
            if not path.startswith("/"):
                raise UserError(
                    f"--tier {option}: {path} is not an absolute path; write it as in the logs, e.g. /lustre"
                )
            if owner := next((other for other, theirs in rules.items() if path in theirs), None):
                raise UserError(f"--tier {option}: {path} already belongs to {owner}; use separate paths")
        rules[name] = prefixes
    return rules


def _split_tier(option: str, others: Collection[str]) -> tuple[str, list[str]]:
    name, given, paths = option.partition("=")
    if not given or not paths:
        raise UserError(f"--tier {option}: must be NAME=/path[,/path2…], e.g. gfs=/lustre")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,15}", name):
        raise UserError(f"--tier {option}: a tier name must be lower-case letters, digits and '_', at most 16")
    if name in others:
        raise UserError(f"--tier {option}: {name} is given twice; write all its paths in one: {name}=/path,/path2")
    if not all(paths.split(",")):
        raise UserError(f"--tier {option}: a path is empty; write it like {name}=/path,/path2")
    return name, paths.split(",")


def _read_tier(option: str, others: Sequence[TracedTier]) -> TracedTier:
    name, paths = _split_tier(option, [other.name for other in others])
    prefixes: dict[str, None] = {}
    for path in paths:
        absolute = os.path.abspath(os.path.expanduser(path))
        _refuse_missing(absolute, f"--tier {option}: {path}", len(paths) > 1)
        for prefix in (absolute, os.path.realpath(absolute)):
            owner = next((other.name for other in others if prefix in other.prefixes), None)
            if owner:
                raise UserError(f"--tier {option}: {prefix} already belongs to {owner}; use separate paths")
            prefixes[prefix] = None
    return TracedTier(Tier(name=name, path=next(iter(prefixes))), tuple(prefixes))


def _refuse_missing(path: str, where: str, several: bool) -> None:
    try:
        os.stat(path)
    except PermissionError:
        raise UserError(f"{where}: permission denied; change the mode of the directories above it") from None
    except OSError:
        hint = " (a comma separates paths, it cannot be part of one)" if several else ""
        raise UserError(f"{where}: no such file or directory; name an existing one{hint}") from None


def _emulated(tiers: list[TracedTier], settings: Sequence[str]) -> tuple[TracedTier, ...]:
    values: dict[str, dict[str, Any]] = {}
    for setting in settings:
        tier, key, value = _read_setting(setting, [tier.name for tier in tiers])
        values.setdefault(tier, {})[key] = value
    emulated = tuple(
        replace(traced, tier=replace(traced.tier, emulate=True, **values[traced.name]))
        if traced.name in values
        else traced
        for traced in tiers
    )
    for spec in (traced.tier for traced in emulated):
        if spec.emulate and not has_rate(spec):
            raise SpecError(f"--emulate: {spec.name} has no limiting rate; {GIVE_RATES}")
        if name := python_only(spec):  # all else of that kind is no key here
            raise SpecError(
                f"--emulate: {spec.name}.{name}: only one link per tier can be emulated for a traced command; use the slowest"
            )
    return emulated


def emulation_lines(tiers: Sequence[TracedTier]) -> list[str]:
    """What was understood of --emulate, a line per tier: `emulating gfs: bandwidth 20 MB/s`."""
    lines = []
    for spec in (traced.tier for traced in tiers if traced.tier.emulate):
        parts = [
            f"{name} {tier_key(name).kind.format(value)}"
            for name in EMULATED_KEYS
            if (value := getattr(spec, name)) != getattr(Tier(name=spec.name, path=spec.path), name)
        ]
        lines.append(f"emulating {spec.name}: {', '.join(parts)}")
    return lines


def _read_setting(setting: str, tiers: list[str]) -> tuple[str, str, Any]:
    path, given, value = setting.partition("=")
    tier, dot, name = path.strip().partition(".")
    where = f"--emulate {setting}"
    if not given or not dot:
        raise SpecError(f"{where}: must be TIER.KEY=VALUE, e.g. {tiers[-1]}.bandwidth=20MB/s")
    if tier not in tiers:
        guess = closest(tier, tiers)
        hint = f"did you mean {guess}?" if guess else f"tiers: {', '.join(tiers)}"
        raise SpecError(f"{where}: {tier} is not a tier of this command; {hint}")
    if name in _STUDIES_ONLY:
        raise SpecError(
            f"{where}: {tier}.{name} can only be emulated by 'tierscope run'; here: {', '.join(EMULATED_KEYS)}"
        )
    if name not in EMULATED_KEYS:
        guess = closest(name, EMULATED_KEYS)
        hint = f"did you mean {tier}.{guess}?" if guess else f"known here: {', '.join(EMULATED_KEYS)}"
        raise SpecError(f"{where}: {tier}.{name}: unknown key; {hint}")
    if not value.strip():
        raise SpecError(f"{where}: has no value; set {tier}.{name} ({tier_key(name).help}), or remove it")
    return tier, name, read_value(tier_key(name), Node(value.strip(), where), f"{tier}.{name}")


def _example() -> str:
    """With what is mounted here, if that tells anything."""
    mounted = _storage_mounts()
    text = "--tier lfs=/local --tier gfs=/lustre"
    return f"{text} (mounted here: {', '.join(mounted)})" if mounted else text


def _storage_mounts() -> list[str]:
    """Mount points of parallel filesystems and of fast local disks."""
    kinds: dict[str, str] = {}
    for mount in mounts():
        place = mount.place
        nvme = mount.source.startswith("/dev/nvme")
        fast = nvme and os.path.isdir(place) and not place.startswith(("/boot", "/etc"))
        if (mount.kind in _FAR or fast) and place != "/":
            kinds.setdefault(place, mount.kind if mount.kind in _FAR else "NVMe")
    return [f"{place} ({kind})" for place, kind in sorted(kinds.items())][:_MOST_SUGGESTED]
