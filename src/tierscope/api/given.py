"""What a caller gives, as the use cases take it: paths, settings, percentages. A slip that would give a wrong answer is refused here."""

import numbers
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from tierscope.errors import UserError

Percent = float | int | str  # 50: half as much again; "0.5%" where less than one percent is meant
Percents = Iterable[float | int] | str  # [0, 50, 100], range(0, 201, 10), or "0:200:10"
StrPath = str | os.PathLike[str]
Settings = Mapping[str, object] | Sequence[str]  # {"cache_rate": 0.5} or ["cache_rate=0.5"]

_CATEGORY = re.compile(r"_(READ|META|WRITE)$", re.IGNORECASE)


def path_text(name: str, path: StrPath) -> str:
    """`name`: the argument, for the error about what is no path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise UserError(f"{name} = {path!r}: must be a path, as text or pathlib.Path")
    return os.fspath(path)


def texts_of(name: str, given: str | Iterable[str]) -> list[str]:
    """One text or several."""
    texts = [given] if isinstance(given, str) else list(given)
    for text in texts:
        if not isinstance(text, str):
            raise UserError(f"{name} = {text!r}: must be text")
    return texts


def setting_texts(given: Settings | None) -> list[str]:
    """As `--set` has them."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [f"{key}={_setting_value(value)}" for key, value in given.items()]
    return texts_of("settings", given)


def _setting_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_setting_value, value))}]"
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
            f"improvements = {given!r}: must be percentages by class, like {{'GFS-META': 50}} or GFS_META=50"
        )
    named = [*(given or {}).items(), *((class_named(key, classes), value) for key, value in keywords.items())]
    return [f"{name}={_percent_text(name, value)}" for name, value in named]


def variation_texts(given: Mapping[str, Percents] | None, classes: Sequence[str]) -> list[str]:
    """As `--vary` has them; `GFS_META` is fine as a key too."""
    texts = []
    for key, values in (given or {}).items():
        name = key if key in classes else class_named(key, classes)
        if isinstance(values, str):
            texts.append(f"{name}={values}")
            continue
        listed = list(values)
        for value in listed:
            _refuse_no_number(name, value)
        if listed and all(-1 < float(value) < 1 or value == 1 for value in listed) and any(listed):
            raise UserError(
                f"{name} = {listed}: improvements are in percent, so these are fractions of one percent; "
                f"write {[round(100 * float(value), 6) for value in listed]}, or '0.5,1' as text if that is meant"
            )
        texts.append(f"{name}={','.join(repr(float(value)) for value in listed)}")
    return texts


def key_variation_texts(given: Mapping[str, object] | None) -> list[str]:
    """Keys of a study with the values to try: a sequence, or text like `1,4,16` or `64:256:64`."""
    return [
        f"{key}={values if isinstance(values, str) else ','.join(map(str, _listed(key, values)))}"
        for key, values in (given or {}).items()
    ]


def _listed(key: str, values: object) -> list[object]:
    if not isinstance(values, Iterable):
        raise UserError(f"{key} = {values!r}: must be the values to try, like [1, 4, 16] or '1,4,16'")
    return list(values)


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
        raise UserError(f"{name} = {value!r}: must be a percentage, like 50")


def goal_text(goal: str | None) -> str | None:
    """A bare number is refused: 0.9 could be seconds or a share."""
    if goal is None or isinstance(goal, str):
        return goal
    raise UserError(f"goal = {goal!r}: must be text with its unit, like 'io=4s', 'epoch=10min' or 'au=90%'")


def price_texts(given: Mapping[str, str] | Sequence[str] | None) -> list[str]:
    """As `--cost` has them."""
    if isinstance(given, Mapping):
        return [f"{what}={price}" for what, price in given.items()]
    return texts_of("cost", given or ())


def chosen(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UserError(f"{name} = {value!r}: must be one of {', '.join(choices)}")
    return value


def whole(name: str, value: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= value <= most:
        raise UserError(f"{name} = {value!r}: must be a whole number within 1 – {most:g}")
    return int(value)
