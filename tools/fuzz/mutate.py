"""Damage: of bytes, of lines, of trees (YAML, JSON), of sealed tables, and of what kind of file something is. Every choice is the dice's.

Each damager takes a file and changes it in place. `damage` chooses one that fits the file's form.
"""

import copy
import gzip
import io
import json
import random
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tools.fuzz.kinds import swap_kind

NUMBERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 1e308, -1e308, 5e-324, 1e-310, 0.1, float("nan"), float("inf"), float("-inf"))  # fmt: skip
SIZES = ("0", "1", "2", "3", "0.5", "1e-3", "1e-15", "1e-300", "5e-324", "7", "64", "1000", "1e6", "1e9", "1e12", "1e15", "1e18", "1e300", "-1")  # fmt: skip
# Nothing absolute, nothing with "..": what is written there must not leave the case's folder.
TEXTS = (
    *("", " ", "0", "-1", "1e999", "nan", "inf", "0x10", "1_000", "٣", "null", "true", "[]", "{}", "a", "a" * 5000),
    *("\x1b[2J\x1b]0;x\x07", "\u202egnp.exe", "\u2066x", "\x9b31m", "\x00", "\n", "a\r\nb", "\t", "é́", "\U0001d54f", "\ufeff", "\udcff"),
    *("~", "~root", "$HOME", "${NOWHERE}", "{out}", "{node}", "{rank}", "{", "%s%n", "a/b", "./", ".", "-", "--", "-x", "a=b=c", "=", ","),
    *("!!python/object/apply:os.getcwd []", "&a [*a, *a]", "*a", "<<: *a", "? x", "1 KiB", "1e30 TiB", "0%", "101%", "1..2..3", "1..1e9 step 1e-9"),
    *("5e-324/s", "1e308 s", "-1 s", "0 B/s", "1e-320 B/s", "10/s", "1 ms", "2:00:00", "raw", "gfs", "lfs", "GFS-READ=50", "gfs=gfs"),
)  # fmt: skip
_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
_BLOCKS = (1, 2, 8, 64, 512, 4096)


def odd_value(dice: random.Random) -> Any:
    kind = dice.randrange(10)
    if kind < 4:
        return dice.choice(NUMBERS)
    if kind < 8:
        return dice.choice(TEXTS)
    return dice.choice((None, True, False, [], {}, [None], {"": None}, [[]], {"a": {"b": [1]}}))


# ---- bytes and lines ----


def _bytes(content: bytes, dice: random.Random) -> bytes:  # noqa: PLR0911  (one for each kind of damage)
    at, block = dice.randrange(len(content) + 1), dice.choice(_BLOCKS)
    match dice.randrange(8):
        case 0:
            return content[:at]
        case 1:
            return content[at:]
        case 2:
            return content[: at + block] + content[at:]
        case 3:
            return content[:at] + dice.randbytes(block) + content[at:]
        case 4:
            return content[:at] + bytes(block) + content[at + block :]
        case 5:
            return content + content
        case _:
            flipped = bytearray(content or b"\0")
            for _ in range(dice.choice((1, 1, 3, 20))):
                flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
            return bytes(flipped)


def _lines(content: bytes, dice: random.Random) -> bytes:
    text = content.decode("utf-8", "surrogateescape")
    lines = text.splitlines(keepends=True) or [""]
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(10):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = lines[at].rstrip("\n") * dice.choice((2, 100)) + "\n"
        case 4:
            return text.replace("\n", dice.choice(("\r", "\r\n", "\x00\n", "\u2028"))).encode(
                "utf-8", "surrogateescape"
            )
        case 5:
            return text.encode(dice.choice(("utf-16", "utf-8-sig", "utf-32")), "replace")
        case 6:
            lines[at] = _stretched(lines[at], dice)
        case 7:
            lines = _widened(lines)
        case _:
            parts = lines[at].rstrip("\n").replace(":", ",").split(",")
            cut = lines[at].find(parts[part := dice.randrange(len(parts))])
            odd = str(odd_value(dice))
            lines[at] = lines[at][:cut] + odd + lines[at][cut + len(parts[part]) :]
    return "".join(lines).encode("utf-8", "surrogatepass")


def _stretched(line: str, dice: random.Random) -> str:
    """One of its blanks, or its end, is many: what patterns may take the square of."""
    blanks = dice.choice((" ", "\t", "\n", "\r")) * dice.choice((4_000, 100_000))
    places = [at for at, sign in enumerate(line) if sign.isspace()] or [len(line)]
    at = dice.choice(places)
    return line[:at] + blanks + line[at:]


def _widened(lines: list[str]) -> list[str]:
    """Far more columns than cells: small as a file, and large in memory."""
    header = lines[0].rstrip("\n") + "".join(f",c{number}" for number in range(900)) + "\n"
    return [header, *lines[1:], *(["1,1\n"] * 50_000)]


# ---- trees ----


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def mutate_tree(tree: Any, dice: random.Random) -> Any:  # noqa: C901  (one case for each kind of damage)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            return odd_value(dice)
        holder, key = dice.choice(places)
        other, its_key = dice.choice(places)
        match dice.randrange(12):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[odd_key(key, dice)] = copy.deepcopy(holder[key])
            case 1:
                holder[key:key] = [copy.deepcopy(holder[key])] * dice.choice((1, 3, 1000))
            case 2:
                holder[key] = copy.deepcopy(other[its_key])
            case 3:
                holder[key] = dice.choice(([holder[key]], {"x": holder[key]}, str(holder[key])))
            case 4:
                for _ in range(dice.choice((5, 60, 400))):
                    holder[key] = [holder[key]] if dice.random() < 0.5 else {"x": holder[key]}
            case 5 if isinstance(holder[key], int | float):
                holder[key] = dice.choice(
                    (
                        holder[key] * dice.choice((-1, 0, 0.5, 1000, 1e15, 1e300)),
                        dice.randrange(10),
                        10 ** dice.randrange(12),
                    )
                )
            case 6 | 7 | 8 if isinstance(holder[key], str) and _NUMBER.search(holder[key]):
                holder[key] = _NUMBER.sub(str(dice.choice(SIZES)), holder[key], count=1)
            case _:
                holder[key] = odd_value(dice)
    return tree


def nudge_tree(tree: Any, dice: random.Random) -> Any:
    """Only other numbers, with their units: most are allowed, and what computes with them gets to see extremes."""
    leaves = [(holder, key) for holder, key in _places(tree) if _NUMBER.fullmatch(str(holder[key]).strip()[:1])]
    for holder, key in dice.sample(leaves, min(len(leaves), dice.choice((1, 1, 2)))):
        number, value = dice.choice(SIZES), holder[key]
        holder[key] = _NUMBER.sub(number, value, count=1) if isinstance(value, str) else float(number)
        if isinstance(value, int) and float(number).is_integer():
            holder[key] = int(float(number))
    return tree


def odd_key(key: Any, dice: random.Random) -> Any:
    return dice.choice((f"{key}2", str(key).upper(), f"{key} ", dice.choice(TEXTS), dice.choice(NUMBERS), f"x.{key}"))


def _yaml(content: bytes, dice: random.Random) -> bytes:
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # nests of ours are deep
    change = dice.choice((mutate_tree, nudge_tree))
    text = yaml.safe_dump(change(yaml.safe_load(content), dice), sort_keys=False, allow_unicode=True)
    sys.setrecursionlimit(usual)
    return str(text).encode("utf-8", "surrogatepass")


def _json(content: bytes, dice: random.Random) -> bytes:
    plain = json.dumps(_with_text_keys(mutate_tree(json.loads(content), dice)), ensure_ascii=dice.random() < 0.5)
    return plain.encode("utf-8", "surrogatepass")


def _with_text_keys(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(key): _with_text_keys(value) for key, value in tree.items()}
    return [_with_text_keys(value) for value in tree] if isinstance(tree, list) else tree


def _json_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = dice.randrange(len(lines))
    return b"\n".join([*lines[:at], _json(lines[at].strip().rstrip(b",") or b"{}", dice), *lines[at + 1 :]])


# ---- packed forms ----


def _zip(content: bytes, dice: random.Random) -> bytes:
    """One member changed, and all packed again with right checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = dice.choice(list(members))
    if members[name][:6] != b"\x93NUMPY":
        members[name] = dice.choice((_json, _bytes))(members[name], dice)
    else:
        members[name] = _array(members[name], dice)
    if dice.random() < 0.2:
        members[dice.choice(TEXTS[-20:])] = members.pop(name)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, data in members.items():
            archive.writestr(member or "x", data)
    return packed.getvalue()


def _array(content: bytes, dice: random.Random) -> bytes:
    """Text in an array (a tree of JSON) keeps being an array of bytes; numbers become odd ones, of another type or shape."""
    import numpy as np  # noqa: PLC0415

    array = np.load(io.BytesIO(content))
    if array.dtype == np.uint8 and array.ndim == 1 and array[:1].tobytes() == b"{":
        array = np.frombuffer(_json(array.tobytes(), dice), np.uint8)
    else:
        with np.errstate(all="ignore"):
            array = dice.choice(
                (
                    lambda: array.astype(dice.choice(("f4", "i1", "U8", "c16", "?"))),
                    lambda: array.reshape(-1)[: array.size // 2],
                    lambda: np.repeat(array, 2),
                    lambda: np.full_like(array, dice.choice((-1, 0, np.inf, 1e300)) if array.dtype.kind == "f" else dice.choice((-1, 2**62))),
                    lambda: np.broadcast_to(array[None], (3, *array.shape)),
                )
            )()  # fmt: skip
    target = io.BytesIO()
    np.save(target, array, allow_pickle=False)
    return target.getvalue()


def _gzip(content: bytes, dice: random.Random) -> bytes:
    return gzip.compress(dice.choice((_bytes, _lines, _json_lines))(gzip.decompress(content), dice))


def _darshan(content: bytes, dice: random.Random) -> bytes:
    """Numbers inside a compressed part."""
    from tests.integration.test_darshan_fuzz import change_numbers  # noqa: PLC0415

    return change_numbers(content, dice)


def _table(path: Path, dice: random.Random) -> None:
    """A sealed table with other columns, rows or values, or another description, and a right seal."""
    import polars as pl  # noqa: PLC0415

    from tierscope.output.store import read_about, write_parquet  # noqa: PLC0415

    about, table = read_about(str(path)), pl.read_parquet(path)
    name = dice.choice(table.columns)
    column = table[name]
    match dice.randrange(12):
        case 0 | 1 | 2 | 3:
            about = _with_text_keys(mutate_tree(about, dice))
        case 4:
            table = table.drop(name)
        case 5:
            table = table.rename({name: dice.choice((f"{name}2", dice.choice(TEXTS)))})
        case 6:
            table = dice.choice(
                (
                    table.clear(),
                    pl.concat([table, table]),
                    table.reverse(),
                    table.head(1),
                    table.sample(fraction=0.5, seed=1),
                )
            )
        case 7:
            table = table.with_columns(
                column.cast(dice.choice((pl.String, pl.Int8, pl.Float32, pl.UInt64, pl.Boolean)), strict=False)
            )
        case 8:
            table = table.with_columns(pl.lit(dice.choice(NUMBERS[:6])).alias(dice.choice(TEXTS)))
        case _:
            odd = _odd_in(column, dice)
            some = dice.random() < 0.5
            values = [odd if not some or at == 0 else value for at, value in enumerate(column.to_list())]
            table = table.with_columns(pl.Series(name, values, column.dtype, strict=False))
    path.unlink()
    write_parquet(str(path), table, about if isinstance(about, dict) else {"about": about})


def _odd_in(column: Any, dice: random.Random) -> Any:
    if column.dtype.is_float():
        return dice.choice((None, *NUMBERS))
    if column.dtype.is_integer():
        return dice.choice((None, 0, -1, 1, 2**31 - 1, 2**62, -(2**62)))
    if column.dtype.is_nested():
        return dice.choice((None, [], [1], [-1], [2**40] * 100))
    return dice.choice((None, *(text for text in TEXTS if "\udcff" not in text)))


FORMS: dict[str, tuple[Callable[[bytes, random.Random], bytes], ...]] = {
    "yaml": (_yaml, _yaml, _yaml, _lines, _bytes),
    "json": (_json, _json, _json, _lines, _bytes),
    "csv": (_lines, _lines, _bytes),
    "table": (_bytes,),
    "npz": (_zip, _zip, _zip, _bytes),
    "log": (_json_lines, _json_lines, _lines, _bytes),
    "packed log": (_gzip, _gzip, _bytes),
    "darshan": (_darshan, _darshan, _bytes),
}


def damage(path: Path, form: str, dice: random.Random) -> str:
    """What was done, in a word."""
    chance = dice.random()
    if chance < 0.08:
        return swap_kind(path, dice)
    whole = path.read_bytes()
    if form == "table" and chance < 0.8:
        with suppress(Exception):  # what no table can hold
            _table(path, dice)
            return "resealed table"
    try:
        how = dice.choice(FORMS[form])
        content = how(whole, dice)
    except Exception:  # noqa: BLE001  (what cannot be written in this form)
        how, content = _bytes, _bytes(whole, dice)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    return how.__name__.strip("_")
