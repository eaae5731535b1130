"""Studies as a plan needs them, without YAML."""

from collections.abc import Sequence

import numpy as np

from tierscope.plan.order import Order
from tierscope.plan.permutation import IndexArray
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload


def near_tier(name: str = "lfs", capacity: int | None = None, visible_to: str = "node") -> Tier:
    return Tier(name=name, path=f"/{name}", visible_to=visible_to, capacity=capacity)


def make_study(  # noqa: PLR0917
    files: int = 64,
    per_file: int = 1,
    nodes: int = 1,
    ranks_per_node: int = 1,
    shuffle: str = "global",
    shuffle_nodes: int = 1,
    seed: int = 42,
    cache_rate: float = 0.0,
    batch_size: int = 4,
    near: Sequence[Tier] | None = None,
) -> Study:
    tiers = (*(near if near is not None else [near_tier()]), Tier(name="gfs", path="/gfs", visible_to="global"))
    return Study(
        study="planned",
        seed=seed,
        workload=Workload(
            dataset=Dataset(num_files_train=files, num_samples_per_file=per_file, record_length_bytes=1),
            reader=Reader(batch_size=batch_size, shuffle=shuffle, shuffle_nodes=shuffle_nodes),
            train=Train(),
        ),
        system=System(nodes=nodes, ranks_per_node=ranks_per_node, tiers=tiers),
        placement=Placement(cache_rate=cache_rate),
    )


def sequence(order: Order, rank: int, epoch: int) -> IndexArray:
    """All that a rank reads in an epoch."""
    return np.concatenate([np.empty(0, dtype=np.int64), *order.indices(rank, epoch)])


def dealt(order: Order, ranks: range, epoch: int) -> IndexArray:
    """The common order of some ranks: what each reads first, then what each reads second, …"""
    return np.stack([sequence(order, rank, epoch) for rank in ranks]).T.ravel()
