"""Simulated epochs as a Trace, like that of a measured run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tierscope.predict.outcome import SAVE_KINDS, Outcome
from tierscope.trace.columns import LATER_COLUMNS
from tierscope.trace.description import Simulated
from tierscope.trace.ops import BACKGROUND_LANE, CHECKPOINT_LANE
from tierscope.trace.rank_trace import MAX_STEPS
from tierscope.trace.trace import RunKey, Trace, completed

_KINDS = ("open", "read", "write", "close")
_SAVE_KINDS = (*SAVE_KINDS, "close")


def to_trace(
    key: RunKey, about: Simulated, tiers: Sequence[str], ranks_per_node: int, epochs: Sequence[Outcome]
) -> Trace:
    """Epochs are counted from 1."""
    parts: list[pl.DataFrame] = []
    for number, epoch in enumerate(epochs, start=1):
        parts += [_ranks(epoch, number, ranks_per_node), _io(epoch, number, tiers, ranks_per_node)]
        parts += _saved(epoch, number, tiers, ranks_per_node)
    table = pl.concat([completed(part, key) for part in parts])
    return Trace(key, about, table)


def _ranks(epoch: Outcome, number: int, ranks_per_node: int) -> pl.DataFrame:
    ranks = np.arange(len(epoch.seconds))
    columns: dict[str, Any] = {
        "record": ["rank"] * len(ranks),
        "epoch": np.full(len(ranks), number),
        "rank": ranks,
        "node": ranks // ranks_per_node,
        "epoch_seconds": epoch.seconds,
        "stall_seconds": epoch.stall,
        "compute_seconds": np.full(len(ranks), epoch.compute),
        **dict.fromkeys(("decode_seconds", *LATER_COLUMNS), np.zeros(len(ranks))),
        "checkpoint_seconds": np.zeros(len(ranks)) if epoch.saved is None else epoch.saved.standstill,
        "samples": _per_rank(epoch.samples, epoch.ops[:, :, 1].sum(axis=1)),
        "payload_bytes": _per_rank(epoch.payload_bytes, epoch.nbytes.sum(axis=(1, 2))),
    }
    if epoch.steps is not None:
        steps, per_entry = _coarse(epoch.steps)
        columns["steps_per_entry"] = np.full(len(ranks), per_entry)
        for place, name in enumerate(("read", "stall", "compute")):
            columns[f"step_{name}_seconds"] = pl.Series(steps[:, :, place]).arr.to_list()
    return pl.DataFrame(columns)


def _per_rank(known: int | None, read: Any) -> Any:
    """The same of every rank; or what each read, where that is not known."""
    return read if known is None else np.full(len(read), known)


def _coarse(steps: Any) -> tuple[Any, int]:
    """Neighbouring steps added up, until they are few enough, as the recorder does it."""
    per_entry = 1
    while -(-steps.shape[1] // per_entry) > MAX_STEPS:
        per_entry *= 2
    return np.add.reduceat(steps, np.arange(0, steps.shape[1], per_entry), axis=1), per_entry


def _io(epoch: Outcome, number: int, tiers: Sequence[str], ranks_per_node: int) -> pl.DataFrame:
    columns = (epoch.busy, epoch.wall, epoch.ops, epoch.nbytes)
    return _rows(columns, _KINDS, 0, number, tiers, ranks_per_node)


def _saved(epoch: Outcome, number: int, tiers: Sequence[str], ranks_per_node: int) -> list[pl.DataFrame]:
    """Checkpoints, in the lane of those who stand still or of those who write behind training, where drains are too."""
    saved = epoch.saved
    if saved is None:
        return []
    kinds = (saved.busy, saved.ops, saved.nbytes)
    writers, drains = ([some[who] for some in kinds] for who in (0, 1))
    behind = [some.sum(axis=0) for some in kinds] if saved.background else drains
    frames = [_rows((behind[0], *behind), _SAVE_KINDS, BACKGROUND_LANE, number, tiers, ranks_per_node)]
    if not saved.background:
        wall = writers[0] * epoch.saved_share[:, None, None]
        columns = (writers[0], wall, writers[1], writers[2])
        frames.append(_rows(columns, _SAVE_KINDS, CHECKPOINT_LANE, number, tiers, ranks_per_node))
    return frames


def _rows(
    columns: tuple[Any, Any, Any, Any],
    kinds: Sequence[str],
    lane: int,
    number: int,
    tiers: Sequence[str],
    ranks_per_node: int,
) -> pl.DataFrame:
    """Of busy and wall seconds, operations and bytes by (rank, tier, kind). A close takes no time, and there is one for every open."""
    busy, wall, counts, moved = columns

    def with_close(values: Any, close: Any) -> Any:
        return np.concatenate([values, close[:, :, None]], axis=2)

    opens = counts[:, :, 0]
    ops = with_close(counts, opens)
    rank, tier, kind = np.nonzero(ops)
    at = (rank, tier, kind)
    nothing = np.zeros_like(opens)
    return pl.DataFrame(
        {
            "record": ["io"] * len(rank),
            "epoch": np.full(len(rank), number),
            "rank": rank,
            "node": rank // ranks_per_node,
            "lane": np.full(len(rank), lane, np.int64),
            "tier": pl.Series(tier).replace_strict(dict(enumerate(tiers)), return_dtype=pl.String),
            "kind": pl.Series(kind).replace_strict(dict(enumerate(kinds)), return_dtype=pl.String),
            "busy_seconds": with_close(busy, nothing * 0.0)[at],
            "wall_seconds": with_close(wall, nothing * 0.0)[at],
            "ops": ops[at],
            "bytes": with_close(moved, nothing)[at],
        }
    )
