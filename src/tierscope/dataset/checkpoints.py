"""What a checkpoint consists of: which rank writes which files, and how large they are. Pure.

METHOD: replicas of data parallelism are written once. Without ZeRO, or with its stage 3, every rank writes its part of the weights and of
the optimizer's state; with stages 1 and 2 the first rank writes the weights. Weights in bf16 have an fp32 master copy in the
optimizer's state, fp32 ones are their own: Adam has 14 and 12 bytes of a checkpoint for a parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tierscope.spec.study import Checkpoint, Study

_PAPER = (1 << 10, 1 << 10, 4 << 10, 64 << 10, 4 << 20)  # DLIO (CCGrid 2021)
_WEIGHT_BYTES = {"fp32": 4, "bf16": 2}
_MOMENTS = {"sgd": 1, "adam": 2}
_FP32 = 4


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of a checkpoint; `number` is its own among all ranks' files."""

    number: int
    name: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class _State:
    """Something to be kept, in units that are not cut apart."""

    name: str
    units: int
    unit_bytes: int
    spread: bool  # over ranks; else the first has all

    def bytes_of(self, rank: int, ranks: int) -> int:
        if not self.spread:
            return 0 if rank else self.units * self.unit_bytes
        return (self.units * (rank + 1) // ranks - self.units * rank // ranks) * self.unit_bytes


def parts_of(checkpoint: Checkpoint, rank: int, ranks: int) -> tuple[CheckpointFile, ...]:
    """The files that a rank writes; none that is empty."""
    states = _states(checkpoint)
    found = []
    for number, state in enumerate(states, start=rank * len(states)):
        if nbytes := state.bytes_of(rank, ranks):
            found.append(CheckpointFile(number, f"{state.name}-{number:06d}.bin", nbytes))
    return tuple(found)


def checkpoint_bytes(checkpoint: Checkpoint, ranks: Iterable[int], of: int) -> int:
    """What these ranks, of so many, write in one checkpoint."""
    states = _states(checkpoint)
    return sum(state.bytes_of(rank, of) for rank in ranks for state in states)


def _states(checkpoint: Checkpoint) -> list[_State]:
    everybody, parameters = checkpoint.mode == "all_ranks", checkpoint.model_parameters
    if parameters is None:
        return [_State("part", nbytes, 1, everybody) for nbytes in _PAPER]
    spread_weights = everybody and checkpoint.zero_stage not in (1, 2)
    states = [_State("weights", parameters, _WEIGHT_BYTES[checkpoint.precision], spread_weights)]
    if checkpoint.optimizer != "none":
        copies = _MOMENTS[checkpoint.optimizer] + (checkpoint.precision != "fp32")
        states.append(_State("optimizer", parameters, copies * _FP32, everybody))
    return states


def tier_of(study: Study) -> int:
    """The number of the tier that checkpoints go to."""
    names = [tier.name for tier in study.system.tiers]
    wanted = study.workload.checkpoint.tier
    return len(names) - 1 if wanted is None else names.index(wanted)


def ranks_together(study: Study, node: int) -> range:
    """Those whose files lie in one folder, as this node sees it."""
    per_node = study.system.ranks_per_node
    if study.system.tiers[tier_of(study)].visible_to == "node":
        return range(node * per_node, (node + 1) * per_node)
    return range(study.system.ranks)
