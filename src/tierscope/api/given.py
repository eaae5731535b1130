"""What a caller gives, as the use cases take it: paths, settings, percentages. A slip that would give a wrong answer is refused here."""

import numbers
import os
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from tierscope.errors import UserError
from tierscope.spec.sweep import MAX_POINTS
from tierscope.spec.tree import MAX_DEPTH, MAX_NODES

Percent = float | int | str  # 50: half as much again; "0.5%" where less than one percent is meant
Percents = Iterable[float | int] | str  # [0, 50, 100], range(0, 201, 10), or "0:200:10"
StrPath = str | os.PathLike[str]
Settings = Mapping[str, object] | Sequence[str]  # {"cache_rate": 0.5} or ["cache_rate=0.5"]

_MOST_PERCENT = 1e12
_LEAST_SECONDS, _MOST_SECONDS = 1e-9, 1e6
_CATEGORY = re.compile(r"_(READ|META|WRITE)$", re.IGNORECASE)


def said(value: object) -> str:
    """What was given, as an error quotes it: in a few words, however large or deep it is."""
    return reprlib.repr(value)


def path_text(name: str, path: StrPath) -> str:
    """`name`: the argument, for the error about what is no path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise UserError(f"{name} = {said(path)}: must be a path, as text or pathlib.Path")
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeError:
        is_name = False
    if not is_name:
        raise UserError(f"{name} = {said(os.fspath(path))}: is not a name that a file can have")
    return os.fspath(path)


def listed(name: str, given: object, what: str) -> list[Any]:
    """What can be gone through, and comes to an end; `what`: what it must be."""
    if not isinstance(given, Iterable):
        raise UserError(f"{name} = {said(given)}: must be {what}")
    parts = list(islice(given, MAX_POINTS + 1))
    if len(parts) > MAX_POINTS:
        raise UserError(f"{name} = {said(given)}: has more than {MAX_POINTS:,} values; give fewer")
    return parts


def mapped(name: str, given: object, what: str) -> Mapping[Any, Any]:
    """Nothing is an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UserError(f"{name} = {said(given)}: must be {what}")
    return given


def text_of(name: str, given: str) -> str:
    if not isinstance(given, str):
        raise UserError(f"{name} = {said(given)}: must be text")
    return given


def texts_of(name: str, given: str | Iterable[str]) -> list[str]:
    """One text or several."""
    texts = [given] if isinstance(given, str) else listed(name, given, "text, or several of them")
    return [text_of(name, text) for text in texts]


def setting_texts(given: Settings | None) -> list[str]:
    """As `--set` has them."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [f"{key}={scalar_text(str(key), value)}" for key, value in given.items()]
    return texts_of("settings", given)


def scalar_text(name: str, value: object, deeper: int = 2) -> str:
    """A value as YAML has it. `deeper`: so many lists in one another are enough for any key."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and deeper:
        return f"[{', '.join(scalar_text(name, part, deeper - 1) for part in value)}]"
    if not isinstance(value, str | numbers.Number | os.PathLike):
        raise UserError(f"{name} = {said(value)}: must be text, a number or a list of them")
    return str(value)


def class_named(keyword: str, classes: Iterable[str]) -> str:
    """`GFS_META` → `GFS-META`; a tier's name may have underscores of its own."""
    matching = [name for name in classes if name.replace("-", "_").lower() == keyword.lower()]
    if len(matching) > 1:
        raise UserError(f"{keyword}: could be {' or '.join(matching)}; give it as {{'{matching[0]}': …}}")
    return matching[0] if matching else _CATEGORY.sub(r"-\1", keyword)


def improvement_texts(
    given: Mapping[str, Percent] | None, keywords: Mapping[str, Percent], classes: Sequence[str]
) -> list[str]:
    """As `--improve` has them."""
    if given is not None and not isinstance(given, Mapping):
        raise UserError(
            f"improvements = {said(given)}: must be percentages by class, like {{'GFS-META': 50}} or GFS_META=50"
        )
    named = [*(given or {}).items(), *((class_named(key, classes), value) for key, value in keywords.items())]
    return [f"{name}={_percent_text(name, value)}" for name, value in named]


def variation_texts(given: Mapping[str, Percents] | None, classes: Sequence[str]) -> list[str]:
    """As `--vary` has them; `GFS_META` is fine as a key too."""
    texts = []
    for key, values in mapped("vary", given, "improvements by class, like {'GFS-META': [0, 50, 100]}").items():
        text_of("vary", key)
        name = key if key in classes else class_named(key, classes)
        if isinstance(values, str):
            texts.append(f"{name}={values}")
            continue
        percents = listed(name, values, "the percentages to try, like [0, 50, 100]")
        for value in percents:
            _refuse_no_number(name, value)
        if percents and all(-1 < float(value) < 1 or value == 1 for value in percents) and any(percents):
            raise UserError(
                f"{name} = {percents}: improvements are in percent, so these are fractions of one percent; "
                f"write {[round(100 * float(value), 6) for value in percents]}, or '0.5,1' as text if that is meant"
            )
        texts.append(f"{name}={','.join(repr(float(value)) for value in percents)}")
    return texts


def key_variation_texts(given: Mapping[str, object] | None) -> list[str]:
    """Keys of a study with the values to try: a sequence, or text like `1,4,16` or `64:256:64`."""
    texts = []
    for key, values in mapped("vary", given, "keys with the values to try, like {'gfs.servers': [1, 4, 16]}").items():
        wanted = "the values to try, like [1, 4, 16] or '1,4,16'"
        parts = [values] if isinstance(values, str) else listed(key, values, wanted)
        texts.append(f"{key}={','.join(scalar_text(key, part, 0) for part in parts)}")
    return texts


def _percent_text(name: str, value: Percent) -> str:
    if isinstance(value, str):
        return value
    _refuse_no_number(name, value)
    if 0 < abs(value) < 1:
        raise UserError(
            f"{name} = {value}: improvements are in percent, so this is {value} % more throughput; "
            f"write {100 * value:g} for {100 * value:g} %, or '{value}%' if that is meant"
        )
    return repr(float(value))


def _refuse_no_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UserError(f"{name} = {said(value)}: must be a percentage, like 50")
    if isinstance(value, int | float) and not -_MOST_PERCENT <= value <= _MOST_PERCENT:
        raise UserError(f"{name} = {said(value)}: must be a percentage of at most {_MOST_PERCENT:g}")


def goal_text(goal: str | None) -> str | None:
    """A bare number is refused: 0.9 could be seconds or a share."""
    if goal is None or isinstance(goal, str):
        return goal
    raise UserError(f"goal = {said(goal)}: must be text with its unit, like 'io=4s', 'epoch=10min' or 'au=90%'")


def price_texts(given: Mapping[str, str] | Sequence[str] | None) -> list[str]:
    """As `--cost` has them."""
    if isinstance(given, Mapping):
        return [f"{what}={scalar_text(str(what), price, 0)}" for what, price in given.items()]
    return texts_of("cost", () if given is None else given)


def limit_text(max_price: str | float | None) -> str | None:
    """As `--max-price` has it; a number is as good."""
    return None if max_price is None else scalar_text("max_price", max_price, 0)


def chosen(name: str, value: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise UserError(f"{name} = {said(value)}: must be one of {', '.join(choices)}")
    return value


def whole(name: str, value: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= value <= most:
        raise UserError(f"{name} = {said(value)}: must be a whole number within 1 – {most:g}")
    return int(value)


def seconds_of(name: str, value: float) -> float:
    """As `--step-seconds` takes them."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not _LEAST_SECONDS <= value <= _MOST_SECONDS:
        raise UserError(f"{name} = {said(value)}: must be seconds, within {_LEAST_SECONDS:g} – {_MOST_SECONDS:g}")
    return float(value)


def yaml_tree(value: object, where: str, depth: int = 0) -> Any:
    """Only what YAML has, and no deeper than a study may be."""
    if depth > MAX_DEPTH:
        raise UserError(f"{where[:80]}…: is nested too deeply for a study")
    if hasattr(value, "tolist") and not isinstance(value, Mapping | Sequence):
        value = value.tolist()  # NumPy's numbers and arrays
    if isinstance(value, Mapping):
        return {
            str(key): yaml_tree(item, f"{where}.{key}" if where else str(key), depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple | range):
        if len(value[: MAX_NODES + 1]) > MAX_NODES:
            raise UserError(f"{where or 'the study'} = {said(value)}: has more than {MAX_NODES:,} values; give fewer")
        return [yaml_tree(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return path_text(where, value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UserError(
        f"{where or 'the study'} = {said(value)}: must be text, a number, a list or a mapping, not {type(value).__name__}"
    )
