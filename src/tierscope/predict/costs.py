"""What an option costs beyond the study that it was made from.

Every price is for one key: how much more of it the option has, at all places of the system together (servers of a tier, nodes, gateways), of the number of
places that the option has. What comes with new places is in their own price. A latency costs for being less.
"""

from collections.abc import Mapping

from tierscope.plan.room import devices_of
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.prices import CAPACITY, UnitPrice, study_value
from tierscope.spec.study import Study

_LESS_IS_MORE = ("latency", "metadata_latency", "process_overhead", "variation", "metadata_variation", "service_variation", "background", "open_bytes")  # fmt: skip


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
    more = places(option, path) * (study_value(option, path) - study_value(base, path))
    return price.of(-more if less_is_more(path) else more, _whole(base, path))


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
