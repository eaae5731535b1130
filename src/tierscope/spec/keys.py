"""Full paths of a study's keys, and which one a shortened path means.

Any unambiguous suffix of a key's path is accepted in `--set` and `sweep`: `cache_rate`, `gfs.bandwidth`.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from tierscope.errors import SpecError
from tierscope.spec import schema
from tierscope.spec.schema import Key, NamedSections, Section
from tierscope.spec.tree import Node
from tierscope.units import closest


def leaf_keys(section_type: type, tiers: Iterable[str]) -> dict[str, Key]:
    """Every scalar key by its full path, for a study with these tiers."""
    return dict(_leaf_keys(section_type, tuple(tiers), ""))


@lru_cache(maxsize=256)
def _leaf_keys(section_type: type, tiers: tuple[str, ...], prefix: str) -> dict[str, Key]:
    leaves: dict[str, Key] = {}
    for field in schema.fields(section_type):
        path = f"{prefix}{field.yaml}"
        match field.meta:
            case Key():
                leaves[path] = field.meta
            case Section(type=inner):
                leaves |= _leaf_keys(inner, tiers, f"{path}.")
            case NamedSections(type=inner):
                for name in tiers:
                    leaves |= _leaf_keys(inner, tiers, f"{path}.{name}.")
    return leaves


def tier_names(system: Node | None) -> list[str]:
    """Of a system's section as it is written."""
    tiers = system.value.get("tiers") if system and isinstance(system.value, dict) else None
    return list(tiers.value) if tiers and isinstance(tiers.value, dict) else []


def resolve(short: str, paths: Sequence[str], where: str) -> str:
    """The full path that a suffix means."""
    if short in paths:
        return short
    matches = [path for path in paths if path.endswith(f".{short}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SpecError(f"{where}: {short} is ambiguous: {' or '.join(matches)}; write more of the path")
    suffixes = {".".join(path.split(".")[start:]) for path in paths for start in range(path.count(".") + 1)}
    guess = closest(short, suffixes)
    hint = f"did you mean {guess}?" if guess else "'tierscope presets demo' prints every key"
    raise SpecError(f"{where}: {short}: unknown key; {hint}")


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Full path → the shortest suffix that tells these paths apart (usually the last component)."""
    names: dict[str, str] = {}
    for path in paths:
        parts = path.split(".")
        for length in range(1, len(parts) + 1):
            suffix = ".".join(parts[-length:])
            if sum(other == suffix or other.endswith(f".{suffix}") for other in paths) == 1:
                names[path] = suffix
                break
        else:
            names[path] = path
    return names
