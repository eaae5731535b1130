"""Prices as people write them, always with their unit: `gfs.servers=20000/server`, `lfs.capacity=90/TiB`, `gfs.bandwidth=1500/GB/s`, `GFS-META=3/%`.

A price is for more than the study has: of a rate, a bandwidth or a number of pieces over the whole system, of a latency for less of it. A percent is one of
what the study has in all; of a share (a cache rate) it is a percentage point. `TIER.capacity` is for what near tiers hold over all nodes, or, where the
capacity itself varies, for capacity beyond the study's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tierscope.errors import BarePriceError, UserError
from tierscope.spec import keys
from tierscope.spec.figures import is_number
from tierscope.spec.kinds import Bandwidth, Bytes, Flops, Fraction, Integer, Kind, Optional, Rate, Seconds
from tierscope.spec.study import Study
from tierscope.spec.vary import value_at
from tierscope.units import BYTE_UNITS, FLOP_UNITS, SECOND_UNITS, closest

PERCENT = "%"
CAPACITY = "capacity"
LIMITS = ("node_bandwidth", "device_bandwidth", "gateway_bandwidth", "stream_bandwidth")  # what has none has no limit
_OLD_ROOM = "-gib"  # how a tier's room was priced before units were written
MOST_PRICE = 1e15
LEAST_PRICE = 1e-9  # above zero: what is less is a slip
_PIECES = {"servers": "server", "metadata_servers": "server", "nodes": "node", "ranks_per_node": "rank"}
_RATES = {"op/s": 1.0, "kop/s": 1e3, "Mop/s": 1e6}


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """`size`: how much a unit is, in base units (bytes, seconds, operations per second, pieces); None: a percent of the whole."""

    amount: float
    unit: str
    size: float | None

    def of(self, more: float, whole: float) -> float:
        """What so much more costs, where the study has `whole`."""
        return self.amount * (100 * more / whole if self.size is None else more / self.size)

    @property
    def text(self) -> str:
        amount = int(self.amount) if self.amount.is_integer() else self.amount
        return f"{amount}/{self.unit}"


def bare_prices(fixes: Mapping[str, str], command: str = "") -> BarePriceError:
    """`command`: the whole one with the units in it, where it is known."""
    first, fixed = next(iter(fixes.items()))
    todo = f"run: {command}" if command else f"write --cost {fixed}"
    return BarePriceError(f"--cost {first}: a price needs its unit; {todo}", fixes)


def read_key_prices(study: Study, texts: Iterable[str], varied: Iterable[str]) -> dict[str, UnitPrice]:
    """Of keys of a study that vary, by full path; also of what its near tiers hold (`lfs.capacity`)."""
    leaves = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])
    near = [f"system.tiers.{tier.name}.{CAPACITY}" for tier in study.system.tiers[:-1]]
    written = [_split(text) for text in texts]
    prices: dict[str, UnitPrice] = {}
    bare: dict[str, str] = {}
    for text, name, number, unit in written:
        old = _old_room(name, [tier.name for tier in study.system.tiers])
        path = keys.resolve(f"{old}.{CAPACITY}" if old else name, list(leaves), f"--cost {text}")
        if not is_number(leaves[path]):
            raise UserError(f"--cost {text}: {path} is not a number, so it cannot have a price; remove it")
        if path not in varied and path not in near:
            raise UserError(f"--cost {text}: {path} does not vary; remove it, or add --vary {name}=…")
        if path in prices:
            raise UserError(f"--cost {text}: {path} is given twice; remove one")
        sizes = _sizes(path, leaves[path].kind)
        usual = _usual(path, leaves[path].kind, has_any=bool(study_value(study, path)))
        if old or not unit:
            bare[text] = f"{old}.{CAPACITY}={number}/GiB" if old else f"{name}={number}/{usual}"
        prices[path] = UnitPrice(_number(text, number), unit or usual, _size(text, name, number, unit or usual, sizes))
        if path.rpartition(".")[2] in LIMITS and not study_value(study, path):
            raise UserError(
                f"--cost {text}: the study does not set {path}, so nothing limits it there and every value is less; set it too, e.g. --set {path}=10GB/s"
            )
        if prices[path].size is None and not study_value(study, path):
            raise UserError(
                f"--cost {text}: the study does not set {path}, so % is undefined; write {name}={number}/{usual}"
            )
    if bare:
        raise bare_prices(bare)
    return prices


def read_class_prices(
    texts: Iterable[str], classes: Sequence[str], tiers: Sequence[str]
) -> tuple[dict[str, UnitPrice], dict[str, UnitPrice]]:
    """Of measured classes (`GFS-META=3/%`), and of what near tiers hold (`lfs.capacity=0.1/GiB`): by class, and by tier."""
    rooms = {f"{tier}.{CAPACITY}": tier for tier in tiers}
    known = {name.lower(): name for name in (*classes, *rooms)}
    by_class: dict[str, UnitPrice] = {}
    by_tier: dict[str, UnitPrice] = {}
    bare: dict[str, str] = {}
    for text, name, number, unit in [_split(text) for text in texts]:
        old = _old_room(name, tiers)
        resolved = f"{old}.{CAPACITY}" if old else known.get(name.lower())
        if resolved is None:
            guess = closest(name.lower(), known)
            hint = f"did you mean {known[guess]}? " if guess else ""
            raise UserError(f"--cost {text}: is not varied; {hint}choose from {', '.join(known.values())}")
        if resolved in by_class or rooms.get(resolved) in by_tier:
            raise UserError(f"--cost {text}: {resolved} is given twice; remove one")
        sizes: dict[str, float | None] = dict(BYTE_UNITS) if resolved in rooms else {PERCENT: None}
        usual = "GiB" if resolved in rooms else PERCENT
        if old or not unit:
            bare[text] = f"{resolved}={number}/{usual}"
        price = UnitPrice(_number(text, number), unit or usual, _size(text, resolved, number, unit or usual, sizes))
        if resolved in rooms:
            by_tier[rooms[resolved]] = price
        else:
            by_class[resolved] = price
    if bare:
        raise bare_prices(bare)
    return by_class, by_tier


def read_limit(text: str) -> float:
    """`--max-price`: in the money that prices are in."""
    try:
        limit = float(text.replace("_", ""))
    except ValueError:
        raise UserError(f"--max-price {text}: is not a number; write it like 250000") from None
    if not (math.isfinite(limit) and 0 <= limit <= MOST_PRICE):
        raise UserError(f"--max-price {text}: must be within 0 and {MOST_PRICE:g}")
    return limit


def study_value(study: Study, path: str) -> float:
    """A key's number by its full path; 0 where it is not given."""
    value = value_at(study, path)
    return float(value) if isinstance(value, int | float) else 0.0


def priced_as(study: Study, path: str) -> str:
    """How to write a price of a key by its full path, e.g. `gfs.servers=PRICE/server`."""
    kind = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])[path].kind
    return f"{path.removeprefix('system.tiers.')}=PRICE/{_usual(path, kind, has_any=bool(study_value(study, path)))}"


def _split(text: str) -> tuple[str, str, str, str]:
    """What was written, the name, the price and its unit, which may be missing."""
    name, equals, value = (part.strip() for part in text.partition("="))
    number, _, unit = (part.strip() for part in value.partition("/"))
    if not equals or not name or not number:
        raise UserError(f"--cost {text}: has no price; write it like gfs.servers=20000/server or GFS-META=3/%")
    return text, name, number, unit


def _old_room(name: str, tiers: Iterable[str]) -> str | None:
    """The tier of `lfs-gib`."""
    return next((tier for tier in tiers if name.lower() == f"{tier}{_OLD_ROOM}".lower()), None)


def _number(text: str, number: str) -> float:
    try:
        price = float(number.replace("_", ""))
    except ValueError:
        raise UserError(f"--cost {text}: {number} is not a number; write it like gfs.servers=20000/server") from None
    if not (math.isfinite(price) and 0 <= price <= MOST_PRICE) or 0 < price < LEAST_PRICE:
        raise UserError(f"--cost {text}: a price must be 0 or within {LEAST_PRICE:g} and {MOST_PRICE:g}")
    return price


def _size(text: str, name: str, number: str, unit: str, sizes: Mapping[str, float | None]) -> float | None:
    singular = unit.removesuffix("s") if unit not in sizes and unit.removesuffix("s") in sizes else unit
    if singular not in sizes:
        usual = [known for known in ("TiB", "GB/s", "kop/s", "ms") if known in sizes] or [next(iter(sizes))]
        also = f" or {name}={number}/{PERCENT}" if PERCENT in sizes and PERCENT not in usual else ""
        raise UserError(f"--cost {text}: '{unit}' is not a unit of {name}; write {name}={number}/{usual[0]}{also}")
    return sizes[singular]


def _sizes(path: str, kind: Kind) -> dict[str, float | None]:
    """Every unit that a key's price may be for, in base units; None: a percent of the whole."""
    kind = kind.kind if isinstance(kind, Optional) else kind
    if isinstance(kind, Fraction):
        return {PERCENT: 0.01}
    by_kind: dict[type, Mapping[str, float]] = {
        Integer: {_PIECES.get(path.rpartition(".")[2], "piece"): 1.0},
        Bytes: BYTE_UNITS,
        Bandwidth: {f"{unit}/s": float(size) for unit, size in BYTE_UNITS.items()},
        Flops: {f"{unit}/s": float(size) for unit, size in FLOP_UNITS.items()},
        Rate: _RATES,
        Seconds: SECOND_UNITS,
    }
    return {**by_kind.get(type(kind), {}), PERCENT: None}


def _usual(path: str, kind: Kind, has_any: bool) -> str:
    """What a bare price meant: a piece of what is counted, a TiB of room, else a percent; of what the study has none of (`has_any`), a unit."""
    kind = kind.kind if isinstance(kind, Optional) else kind
    if isinstance(kind, Integer):
        return _PIECES.get(path.rpartition(".")[2], "piece")
    if isinstance(kind, Bytes):
        return "TiB"
    others: dict[type, str] = {Rate: "kop/s", Bandwidth: "GB/s", Seconds: "ms", Flops: "TFLOP/s"}
    return PERCENT if has_any else others.get(type(kind), PERCENT)
