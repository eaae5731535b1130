"""Traces of a framework's profiler set beside the logs of the same job: which is of which rank, and what of the ranks' I/O compute hid."""

import re
from collections.abc import Iterator, Sequence

from tierscope.analysis.merged_timeline import (
    MergedRank,
    ProfiledCompute,
    RankOperations,
    UnalignedError,
    merge,
    merge_own,
)
from tierscope.errors import UserError
from tierscope.imports.profiler_trace import read_profile

_RANKED = re.compile(r"(\d{1,9})=(.+)", re.DOTALL)
_MARKED = "call tierscope.mark_clock(FOLDER) in the profiled run, with a folder that the I/O profiler records"


def merged_with(
    timelines: Sequence[str], operations: Sequence[RankOperations], source: str | None, compute_span: str | None
) -> tuple[MergedRank, ...]:
    """`timelines`: as the user gives them, [RANK=]FILE; none: compute spans that the logs have themselves."""
    if not timelines:
        own = (merge_own(of_rank, "compute spans of the logs") for of_rank in operations)
        return tuple(merged for merged in own if merged is not None)
    if not operations:
        why = "no log has reads in extended tracing (DXT)" if source == "darshan" else "the logs have no operations"
        raise UserError(
            f"--timeline: {why}, so it is not known when reads took place; record them with MOD_ENABLE DXT_POSIX"
        )
    by_rank: dict[int, MergedRank] = {}
    for timeline in timelines:
        merged = _merged(timeline, operations, compute_span)
        if merged.rank in by_rank:
            raise UserError(
                f"--timeline {timeline}: is of rank {merged.rank}, like another one; name one trace for each rank"
            )
        by_rank[merged.rank] = merged
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def _merged(timeline: str, operations: Sequence[RankOperations], compute_span: str | None) -> MergedRank:
    match = _RANKED.fullmatch(timeline)
    path = match[2] if match else timeline
    profile = read_profile(path, compute_span)
    chosen = _rank_of(profile, int(match[1]) if match else None, operations)
    try:
        return merge(profile, chosen)
    except UnalignedError as error:
        raise UserError(f"{path}: its clock cannot be aligned with the logs: {error}; {_MARKED}") from None


def _rank_of(profile: ProfiledCompute, given: int | None, operations: Sequence[RankOperations]) -> RankOperations:
    """The rank that the user says, that read its marks, that the trace itself says, or the only one."""
    wanted = given if given is not None else next(_marked(profile, operations), profile.rank)
    if wanted is None and len(operations) == 1:
        return operations[0]
    chosen = next((of_rank for of_rank in operations if of_rank.rank == wanted), None)
    if chosen is None:
        ranks = ", ".join(str(of_rank.rank) for of_rank in operations[:8]) + (" …" if len(operations) > 8 else "")
        what = "it does not say which rank it is of" if wanted is None else f"the logs have no I/O of rank {wanted}"
        raise UserError(f"{profile.path}: {what}; give it as --timeline RANK={profile.path}, with a rank of {ranks}")
    return chosen


def _marked(profile: ProfiledCompute, operations: Sequence[RankOperations]) -> Iterator[int]:
    return (of_rank.rank for of_rank in operations if profile.marks.keys() & of_rank.marks.keys())
