"""The same training with samples from elsewhere, by difference: what storage costs, and what the loader costs apart from it.

Loaders of frameworks take samples from memory in worker processes or threads of their own, as they do from the tiers, so that memory less synthetic is all of their
work: decoding, collating, hand-over and copying to the device. Our own loaders hand out what is in memory directly: there it is decoding and copying.
Where loader and network share a CPU, what the loader takes from compute is part of its cost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tierscope.analysis.statistics import Mean
from tierscope.jsonable import JsonObject, SweepValues

MATTERS = 0.05  # of an epoch: waiting less than that is not worth money
YES, NO, UNCLEAR = "yes", "no", "unclear"


def matters(cost: Mean | None, whole: float) -> str:
    """Whether it is 5 % of the whole or more; unclear where its interval does not say."""
    if cost is None or cost.limits is None:
        return UNCLEAR
    low, high = cost.limits
    if high < MATTERS * whole:
        return NO
    return YES if low > 0 and cost.value >= MATTERS * whole else UNCLEAR


@dataclass(frozen=True, slots=True)
class StorageStall:
    """`storage` and `input` are seconds of an epoch, None where there is no run to tell.

    `storage`: from the tiers less from memory. `input`: from memory (else from the tiers) less made on the device.
    """

    sweep: SweepValues  # that all of them have in common
    seconds: float  # of an epoch from the tiers
    storage: Mean | None
    input: Mean | None
    loader: str | None = None  # None: of a result that does not say
    workers: int | None = None
    checkpoints: float = 0.0  # their share of an epoch from the tiers
    ranks: int = 1

    @property
    def answer(self) -> str:
        return matters(self.storage, self.seconds)

    @property
    def loader_cost(self) -> Mean | None:
        """Apart from storage; None: cannot be determined from it, or was not measured."""
        return self.input if self.storage is not None else None

    @property
    def loader_answer(self) -> str:
        return matters(self.loader_cost, self.seconds)

    @property
    def largest_seconds(self) -> float:
        """That storage or the loader costs."""
        return max((cost.value for cost in (self.storage, self.loader_cost) if cost is not None), default=0.0)


def stall_json(stall: StorageStall) -> JsonObject:
    return {
        "sweep": stall.sweep,
        "answer": stall.answer,
        "epoch_seconds": stall.seconds,
        "storage": _difference_json(stall.storage, stall.seconds),
        "input": _difference_json(stall.input, stall.seconds),
        "loader": _difference_json(stall.loader_cost, stall.seconds),
    }


def _difference_json(mean: Mean | None, whole: float) -> JsonObject | None:
    if mean is None:
        return None

    def share(value: float) -> float:
        return value / whole if whole else 0.0

    limits = mean.limits
    return {
        "seconds": mean.value,
        "interval": None if limits is None else list(limits),
        "share": share(mean.value),
        "share_interval": None if limits is None else _all(share, limits),
        "n": mean.n,
    }


def _all(of: Callable[[float], float], values: Iterable[float]) -> list[float]:
    return [of(value) for value in values]
