"""Whether wall seconds of a trace are what the clock says: the union over all threads and processes of a rank.

The processes of a rank on a host share one clock (native/c/clock.h). One that could not (all seats taken, another PID namespace, an older
library) shares time only within itself, and every host has its own clock: such seconds are sums over processes, an upper bound.
"""

from collections.abc import Iterable

from tierscope.trace.description import RANK_WALL


def rank_wall(processes: Iterable[tuple[int | None, bool]]) -> tuple[str, ...]:
    """What a trace provides, from the rank of each process that had operations and whether it shared its rank's clock.

    A rank with one such process needs no other clock than that one's own.
    """
    by_rank: dict[int, list[bool]] = {}
    for rank, shares in processes:
        if rank is not None:
            by_rank.setdefault(rank, []).append(shares)
    return (RANK_WALL,) if all(len(shares) == 1 or all(shares) for shares in by_rank.values()) else ()
