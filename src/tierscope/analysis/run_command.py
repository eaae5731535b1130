"""The command that measures or simulates a point, for whoever is told to: it can be pasted as it is."""

import shlex
from dataclasses import dataclass
from typing import Any

from tierscope.jsonable import SweepValues
from tierscope.spec import keys
from tierscope.spec.shown import shown_value
from tierscope.spec.study import Axis, Study

_CASE = "case"


@dataclass(frozen=True, slots=True)
class GivenStudy:
    """A study as somebody gave it. `settings`: `KEY=VALUE`; `swept`: what its points have values of, by short names."""

    name: str = "STUDY"
    settings: tuple[str, ...] = ()
    system: str | None = None
    swept: tuple[Axis, ...] = ()


def run_command(sweep: SweepValues, given: GivenStudy = GivenStudy(), verb: str = "run") -> str:  # noqa: B008  (frozen)
    """Like `tierscope run study.yaml --set placement.cache_rate=50% --out OUT`: what is set is not swept."""
    system = f" --system {shlex.quote(given.system)}" if given.system else ""
    paths = {short: path for path, short in keys.short_names([axis.path for axis in given.swept]).items()}
    by_path = {paths.get(name, name): value for name, value in sweep.items()}  # what is there twice, once
    zips = ["sweep={}"] if any(axis.zipped for axis in given.swept) else []
    point = (_setting(path, value) for path, value in by_path.items())
    settings = "".join(f" --set {shlex.quote(setting)}" for setting in (*given.settings, *zips, *point))
    return f"tierscope {verb} {shlex.quote(given.name)}{system}{settings} --out OUT"


def _setting(path: str, value: Any) -> str:
    """With all its digits, and in the units of its key."""
    if path == _CASE:
        return f"{_CASE}={value}"
    parts = path.split(".")
    tiers = [parts[2]] if parts[:2] == ["system", "tiers"] else []
    key = keys.leaf_keys(Study, tiers).get(path)
    return f"{path}={shown_value(path, value) if key is None or value is None else key.kind.format(value)}"
