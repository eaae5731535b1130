"""What a checkpoint consists of: which rank writes which files, how large they are, and what is written down about them. Pure.

METHOD: replicas of data parallelism are written once. Without ZeRO, or with its stage 3, every rank writes its part of the weights and of
the optimizer's state; with stages 1 and 2 the first rank writes the weights. Weights in bf16 have an fp32 master copy in the
optimizer's state, fp32 ones are their own: Adam has 14 and 12 bytes of a checkpoint for a parameter. A model that is split over ranks
(tensor, pipeline) is laid out by `plan/shards.py`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tierscope.plan.shards import Shard, is_split, optimizer_bytes, shards_of, weight_bytes
from tierscope.spec.study import Checkpoint, Study

LARGEST_PIECE = 8 << 20  # of a file that is written at once
_PAPER = (1 << 10, 1 << 10, 4 << 10, 64 << 10, 4 << 20)  # DLIO (CCGrid 2021)


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
    """The files that a rank writes; none that is empty.

    Those of one kind have numbers in turn: servers that files are dealt over by number get as many of each.
    """
    files = []
    for place, state in enumerate(_shards(checkpoint, rank, ranks)):
        number = place * ranks + rank if checkpoint.mode == "all_ranks" else place
        if state.nbytes:
            files.append(CheckpointFile(number, f"{state.name}-{number:06d}.bin", state.nbytes))
    return tuple(files)


def checkpoint_bytes(checkpoint: Checkpoint, ranks: Iterable[int], of: int) -> int:
    """What these ranks, of so many, write in one checkpoint."""
    return sum(shard.nbytes for rank in ranks for shard in _shards(checkpoint, rank, of))


def _shards(checkpoint: Checkpoint, rank: int, ranks: int) -> Sequence[Shard]:
    """As many of every rank: some may be empty."""
    if is_split(checkpoint):
        return shards_of(checkpoint, rank, ranks)
    return [Shard(state.name, state.bytes_of(rank, ranks)) for state in _states(checkpoint)]


def _states(checkpoint: Checkpoint) -> list[_State]:
    everybody, parameters = checkpoint.mode == "all_ranks", checkpoint.model_parameters
    if parameters is None:
        return [_State("part", nbytes, 1, everybody) for nbytes in _PAPER]
    spread_weights = everybody and checkpoint.zero_stage not in (1, 2)
    states = [_State("weights", parameters, weight_bytes(checkpoint), spread_weights)]
    if checkpoint.optimizer != "none":
        states.append(_State("optimizer", parameters, optimizer_bytes(checkpoint), everybody))
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


def meets(study: Study) -> bool:
    """Whether ranks wait for one another before a checkpoint counts: where several write."""
    return study.workload.checkpoint.mode == "all_ranks" and study.system.ranks > 1


def leads(study: Study, rank: int) -> bool:
    """Whether this rank makes the checkpoint count: of the tier, or of its node where the tier is a node's."""
    node = rank // study.system.ranks_per_node
    return rank == ranks_together(study, node)[0] and (meets(study) or rank == 0)


def is_due(checkpoint: Checkpoint, step: int) -> bool:
    """After so many steps of all epochs."""
    every = checkpoint.steps_between_checkpoints
    return bool(every) and step % every == 0


def is_due_after(checkpoint: Checkpoint, epoch: int) -> bool:
    """After an epoch, unless one was written with its last step."""
    every = checkpoint.epochs_between_checkpoints
    return bool(every) and epoch % every == 0


def receipt_document(step: int, parts: Sequence[CheckpointFile], sums: Mapping[int, int]) -> bytes:
    """What a rank that does not lead says about its files. `sums`: checksums by a file's number."""
    return _document({"step": step, **_described(parts, sums)})


def manifest_document(
    study: Study, together: range, step: int, parts: Sequence[CheckpointFile], sums: Mapping[int, int]
) -> bytes:
    """What whoever leads says about all files of a folder, and about its own."""
    ranks, wanted = study.system.ranks, study.workload.checkpoint
    sizes = {part.name: part.nbytes for rank in together for part in parts_of(wanted, rank, ranks)}
    whole = {"ranks": ranks, "of_ranks": [together[0], together[-1]], "sizes": sizes}
    return _document({"step": step, **whole, **_described(parts, sums)})


def _described(parts: Sequence[CheckpointFile], sums: Mapping[int, int]) -> dict[str, object]:
    return {"files": {part.name: {"bytes": part.nbytes, "crc32": f"{sums[part.number]:08x}"} for part in parts}}


def _document(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
