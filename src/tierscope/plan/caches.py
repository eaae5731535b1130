"""What a cache of files holds as it is read through: the rules, one read after another, compiled where numba is installed.

Every cache is worked off by itself, with one array over all files as its memory. Without numba the same functions run in Python,
about a hundred times slower.
"""

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from numba import njit
except ModuleNotFoundError:  # numba is an extra
    njit = None  # type: ignore[assignment]


def _jit(function: Callable[..., Any]) -> Any:
    """Compiled once for all, where there is a compiler and a place to keep that."""
    if njit is None:
        return function
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


@_jit
def read_through(reads, held, counts, room, evicts, files):  # type: ignore[no-untyped-def]  # noqa: C901
    """Reads of an epoch, of each cache in order: which find their file, and which leave it there.

    `held[cache, :counts[cache]]` are files from the one touched longest ago to the last one; the new ones are returned. With
    `evicts` the file touched longest ago makes room (LRU), without it nothing is taken into a full cache (first touch).
    """
    caches, length = reads.shape
    hits = np.zeros((caches, length), np.bool_)
    fills = np.zeros((caches, length), np.bool_)
    after = np.zeros((caches, min(room, held.shape[1] + length)), held.dtype)
    after_counts = np.zeros(caches, np.int64)
    place = np.full(files, -1, np.int64)  # where a held file stands in the queue
    queue = np.zeros(held.shape[1] + length, np.int64)
    for cache in range(caches):
        head, tail = 0, counts[cache]
        size = tail
        for position in range(tail):
            queue[position] = held[cache, position]
            place[queue[position]] = position
        for number in range(length):
            file = reads[cache, number]
            if place[file] >= 0:
                hits[cache, number] = True
                if not evicts:
                    continue
            elif size < room:
                size += 1
                fills[cache, number] = True
            elif evicts and room > 0:
                while place[queue[head]] != head:  # touched again since
                    head += 1
                place[queue[head]] = -1
                head += 1
                fills[cache, number] = True
            else:
                continue
            queue[tail] = file
            place[file] = tail
            tail += 1
        kept = 0
        for position in range(head, tail):
            if place[queue[position]] == position:
                after[cache, kept] = queue[position]
                kept += 1
        after_counts[cache] = kept
        for position in range(head, tail):
            place[queue[position]] = -1
    return hits, fills, after, after_counts


@_jit
def foresee(reads, room, epochs, files):  # type: ignore[no-untyped-def]  # noqa: C901
    """Belady's rule with bypass, over a whole training: what is read soonest again is kept, also before what was just read.

    Returns hits, fills and, by (cache, epoch), the most files that were held at once.
    """
    caches, length = reads.shape
    hits = np.zeros((caches, length), np.bool_)
    fills = np.zeros((caches, length), np.bool_)
    peaks = np.zeros((caches, epochs), np.int64)
    per_epoch = length // epochs
    coming = np.full(files, length, np.int64)
    held = np.zeros(files, np.bool_)
    again = np.zeros(length, np.int64)  # when the file of a read is read again; `length`: never
    for cache in range(caches):
        for number in range(length - 1, -1, -1):
            again[number] = coming[reads[cache, number]]
            coming[reads[cache, number]] = number
        for number in range(length):
            coming[reads[cache, number]] = length
        # Next reads of held files, latest first. Those that are past stay at the bottom.
        latest = [-0]
        latest.pop()
        size = 0
        for number in range(length):
            file, following = reads[cache, number], again[number]
            if number % per_epoch == 0:
                peaks[cache, number // per_epoch] = size
            if held[file]:
                hits[cache, number] = True
                if following == length:
                    held[file] = False
                    size -= 1
                else:
                    heapq.heappush(latest, -following)
            elif following < length and room > 0:
                if size == room:
                    if -latest[0] <= following:
                        continue
                    held[reads[cache, -heapq.heappop(latest)]] = False
                    size -= 1
                held[file] = True
                fills[cache, number] = True
                heapq.heappush(latest, -following)
                size += 1
                peaks[cache, number // per_epoch] = max(peaks[cache, number // per_epoch], size)
    return hits, fills, peaks
