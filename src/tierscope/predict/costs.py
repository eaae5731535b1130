"""What an option costs beyond the study that it was made from.

Every price is for one key: how much more of it the option has, at all places of the system together (servers of a tier, nodes, gateways), of the number of
places that the option has. What comes with new places is in their own price. A latency costs for being less.
"""

import math
from collections.abc import Mapping

from tierscope.plan.room import devices_of
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.prices import CAPACITY, LIMITS, UnitPrice, study_value
from tierscope.spec.study import Study
from tierscope.spec.vary import value_at

_RATE = "placement.cache_rate"
_LESS_IS_MORE = ("latency", "metadata_latency", "process_overhead", "variation", "metadata_variation", "service_variation", "background", "open_bytes")  # fmt: skip

_LEAST, _MOST_DOUBLINGS = 1e-12, 64.0  # what is not there, and what has no limit: no logarithm has either
_SETTINGS = ("stripe_count", "stripe_size", "lustre_ost", "emulate")  # how storage is used, not what it is


def less_is_more(path: str) -> bool:
    return path.rpartition(".")[2] in _LESS_IS_MORE


def cost_of(base: Study, option: Study, held: Feasibility, prices: Mapping[str, UnitPrice]) -> float:
    """In the money that prices are in; below 0 where the option has less than the study."""
    varied = {axis.path for axis in base.sweep}
    return sum(_cost(base, option, held, path, price, path in varied) for path, price in prices.items())


def _cost(base: Study, option: Study, held: Feasibility, path: str, price: UnitPrice, varies: bool) -> float:
    parts = path.split(".")
    if parts[-1] == CAPACITY and not varies:  # what has to be bought is what is held
        room = held.on(parts[-2])
        return price.of(float(room.bytes_in_all) if room else 0.0, _whole(base, path))
    more = places(option, path) * (_amount(option, path) - study_value(base, path))
    if math.isinf(more):  # nobody sells that: see `unpriced`
        return 0.0
    return price.of(-more if less_is_more(path) else more, _whole(base, path))


def changed(base: Study, option: Study) -> tuple[str, ...]:
    """Full paths of varied keys that the option has otherwise than the study; how much is cached aside."""
    paths = (axis.path for axis in base.sweep if axis.path != _RATE)
    return tuple(path for path in paths if value_at(base, path) != value_at(option, path))


def unpriced(base: Study, option: Study, prices: Mapping[str, UnitPrice]) -> tuple[str, ...]:
    """Full paths of what the option has more of, or better, and that no price is for."""
    return tuple(
        path
        for path in changed(base, option)
        if _is_bought(path)
        and (better := _better(base, option, path)) > 0
        and (path not in prices or math.isinf(better))
    )


def lesser(base: Study, option: Study) -> tuple[str, ...]:
    """Full paths of what storage has less of, or worse, than in the study."""
    paths = (path for path in changed(base, option) if path.startswith("system.tiers.") and _is_bought(path))
    return tuple(path for path in paths if _better(base, option, path) < 0)


def increase(base: Study, option: Study) -> float:
    """How much more than the study an option asks for: doublings of its changed keys, added up. Halves count as −1, what is no number as 0."""
    return sum(_doublings(base, option, path) for path in changed(base, option))


def _doublings(base: Study, option: Study, path: str) -> float:
    if path.endswith("_shared_by") or isinstance(value_at(option, path), bool | str):
        return 0.0
    here, there = (max(places(study, path) * _amount(study, path), _LEAST) for study in (base, option))
    more = max(-_MOST_DOUBLINGS, min(_MOST_DOUBLINGS, math.log2(there) - math.log2(here)))
    return -more if less_is_more(path) else more


def _is_bought(path: str) -> bool:
    return path.startswith("system.") and path.rpartition(".")[2] not in _SETTINGS


def _better(base: Study, option: Study, path: str) -> float:
    """How much more of it the option has, all in all; of a limit that is gone: without end."""
    if path.endswith("_shared_by"):
        return 1.0  # other devices or gateways
    here, there = (places(study, path) * _amount(study, path) for study in (base, option))
    if here == there:
        return 0.0
    return here - there if less_is_more(path) else there - here


def _amount(study: Study, path: str) -> float:
    is_unlimited = path.rpartition(".")[2] in LIMITS and value_at(study, path) is None
    return math.inf if is_unlimited else study_value(study, path)


def _whole(base: Study, path: str) -> float:
    return places(base, path) * study_value(base, path)


def places(study: Study, path: str) -> int:
    """How often the system has what a key says of one."""
    parts, nodes = path.split("."), study.system.nodes
    if parts[:2] != ["system", "tiers"]:
        return nodes if parts[-1] == "ranks_per_node" else 1
    tier = next(known for known in study.system.tiers if known.name == parts[2])
    devices = devices_of(tier, nodes)
    counts = {
        "capacity": nodes if tier.visible_to == "node" else 1,
        "node_bandwidth": nodes,
        "gateway_bandwidth": -(-nodes // (tier.gateway_shared_by or nodes)),
        "metadata_ops": tier.metadata_servers * devices,
        **dict.fromkeys(("read_ops", "bandwidth"), tier.servers * devices),
        **dict.fromkeys(("servers", "metadata_servers", "device_bandwidth"), devices),
    }
    return counts.get(parts[-1], 1)
