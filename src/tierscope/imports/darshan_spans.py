"""When the ranks of a job read, by Darshan's extended tracing (DXT), which has no metadata operations; and where they read a mark."""

import os
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tierscope.analysis.merged_timeline import SAME_HOST_NS, WHOLE_SECONDS_NS, RankOperations
from tierscope.analysis.time_spans import Nanoseconds, SpanUnion
from tierscope.clock_marks import FILE_NAME
from tierscope.imports.darshan_job import Placed, place_logs
from tierscope.imports.darshan_reader import MOST_SECONDS, DarshanLog, processes_of
from tierscope.imports.darshan_rows import LogTiers
from tierscope.imports.paths import TierRules


def rank_operations(logs: Sequence[DarshanLog], rules: TierRules) -> tuple[RankOperations, ...]:
    """Only of ranks that were traced."""
    unions: dict[int, SpanUnion] = defaultdict(SpanUnion)
    marks: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    whole_seconds = False
    for placed in place_logs(logs, None):
        whole_seconds |= float(placed.log.job["start_seconds"]).is_integer()
        _add(placed, rules, unions, marks)
    clock = WHOLE_SECONDS_NS if whole_seconds else SAME_HOST_NS
    return tuple(RankOperations(rank, union.spans(), marks[rank], clock) for rank, union in sorted(unions.items()))


def _add(
    placed: Placed, rules: TierRules, unions: dict[int, SpanUnion], marks: dict[int, dict[str, tuple[int, int]]]
) -> None:
    segments, log = placed.log.segments, placed.log
    if segments is None or not len(segments.files):
        return
    known = LogTiers.of(rules, log)
    start, end = segments.reads["start"], segments.reads["end"]
    good = (end >= start) & (end - start <= MOST_SECONDS) & (np.abs(start) <= MOST_SECONDS)
    good &= (segments.ranks >= 0) & (segments.ranks < processes_of(log))
    zero = round(float(log.job["start_seconds"]) * 1e9)
    starts, ends = (zero + _nanoseconds(times, good) for times in (start, end))
    data = good & ~known.apart[known.codes[segments.files]]
    for rank in np.unique(segments.ranks[data]).tolist():
        of_rank = data & (segments.ranks == rank)
        unions[placed.first_rank + rank].add_all(starts[of_rank], ends[of_rank])
    named = {file: os.path.basename(path) for file, path in enumerate(log.paths)}
    tokens = {file: name.removeprefix(FILE_NAME) for file, name in named.items() if name.startswith(FILE_NAME)}
    for place in np.flatnonzero(good & np.isin(segments.files, list(tokens))).tolist():
        rank = placed.first_rank + int(segments.ranks[place])
        marks[rank].setdefault(tokens[int(segments.files[place])], (int(starts[place]), int(ends[place])))


def _nanoseconds(
    seconds: np.ndarray[tuple[int], np.dtype[np.float64]], good: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Nanoseconds:
    return np.round(np.where(good, seconds, 0.0) * 1e9).astype(np.int64)
