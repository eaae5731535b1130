"""Whether the recorder saw all that was read and written: its bytes beside the kernel's own count, and whether reads came from memory.

Choose no other source for this: a count that lacks something (processes on other hosts, io_uring) gives no share, because a wrong one would be believed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from tierscope.analysis.times import DescribedRun
from tierscope.analysis.wording import Finding
from tierscope.jsonable import JsonObject
from tierscope.trace.coverage import Coverage
from tierscope.trace.description import Description, Measured, Traced

LEAST_SHARE = 0.95
LEAST_UNSEEN_BYTES = 1 << 20  # less is what libraries read while they are loaded
MORE_SEEN = 1.02  # seen ÷ counted, from where on the count lacks something
DEVICE_SHARE = 0.5  # of bytes read, below which memory served most of them
COUNTING = {
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "overlay",
    "tmpfs",
}  # filesystems whose fetches from devices are counted
CACHE_BYTES_PER_SECOND = (
    256 << 20
)  # of a reading thread: slower than this, and than the next, it may have been a device
CACHE_SECONDS_PER_READ = 20e-6
ELSEWHERE_SHARE = 0.05  # of all bytes that were moved, on no tier
LEAST_ELSEWHERE_BYTES = 16 << 20  # less is what an interpreter and its libraries read while they start
LEAST_CACHED_BYTES = 16 << 20
_EITHER = "read or written"


@dataclass(frozen=True, slots=True)
class CoverageShare:
    """`value`: seen ÷ all; None: cannot be told, for `reason`. `bound`: all is an upper bound, because files were mapped."""

    value: float | None
    unseen_bytes: int = 0
    bound: bool = False
    reason: str | None = None


def read_share(coverage: Coverage) -> CoverageShare:
    if coverage.mapped_fault_bytes is None:
        return CoverageShare(None, reason="not_counted")
    return _share(coverage, coverage.seen_read_bytes, coverage.kernel_read_bytes, coverage.mapped_fault_bytes)


def written_share(coverage: Coverage) -> CoverageShare:
    if coverage.mapped_writable_bytes and coverage.mapped_fault_bytes is None:
        return CoverageShare(None, reason="not_counted")
    mapped = min(coverage.mapped_writable_bytes, coverage.mapped_fault_bytes or 0)
    return _share(coverage, coverage.seen_written_bytes, coverage.kernel_written_bytes, mapped)


def moved_share(coverage: Coverage) -> CoverageShare:
    """Of reads and writes together: which of both page faults did is not known where a mapping can be written."""
    counts = coverage.kernel_read_bytes, coverage.kernel_written_bytes
    if None in counts or coverage.mapped_fault_bytes is None:
        return CoverageShare(None, reason="not_counted")
    seen = coverage.seen_read_bytes + coverage.seen_written_bytes
    return _share(coverage, seen, sum(filter(None, counts)), coverage.mapped_fault_bytes)


def _share(coverage: Coverage, seen: int, counted: int | None, mapped: int) -> CoverageShare:
    if counted is None:
        return CoverageShare(None, reason="not_counted")
    if coverage.unknown_processes:
        return CoverageShare(None, reason="elsewhere")
    if coverage.ring_processes:
        return CoverageShare(None, reason="io_uring")
    if seen > MORE_SEEN * counted + LEAST_UNSEEN_BYTES:
        return CoverageShare(None, reason="more_seen")
    whole = counted + mapped
    if not whole or (not seen and whole < LEAST_UNSEEN_BYTES):
        return CoverageShare(None, reason="nothing")
    return CoverageShare(min(1.0, seen / whole), max(0, whole - seen), bool(mapped))


def merged(parts: Sequence[Coverage]) -> Coverage | None:
    """Of all runs; a count that one of them lacks is not known."""
    if not parts:
        return None
    columns: dict[str, int | float | None] = {}
    for name in Coverage.__struct_fields__:
        values = [getattr(coverage, name) for coverage in parts]
        columns[name] = None if any(value is None for value in values) else sum(values)
    return Coverage(**columns)  # type: ignore[arg-type]


def coverages(abouts: Sequence[Description]) -> list[Coverage]:
    return [about.coverage for about in abouts if isinstance(about, Measured | Traced) and about.coverage is not None]


def coverage_json(coverage: Coverage | None) -> JsonObject | None:
    if coverage is None:
        return None
    read, written = read_share(coverage), written_share(coverage)
    return {
        **structs.asdict(coverage),
        "share": read.value,
        "share_is_lower_bound": read.bound,
        "written_share": written.value,
        "unknown_because": read.reason,
    }


def about_coverage(abouts: Sequence[Description]) -> Iterator[Finding]:
    """Of the run where least was seen. Nothing where operations were lost: that is said already, with its reason."""
    runs = [about for about in abouts if isinstance(about, Measured | Traced) and about.coverage is not None]
    whole = [about for about in runs if not (isinstance(about, Traced) and _lost(about))]
    for what, share_of in (("read", read_share), ("written", written_share), (_EITHER, moved_share)):
        shares = [
            (share_of(about.coverage), about)
            for about in whole
            if about.coverage is not None and (what == _EITHER) == bool(about.coverage.mapped_writable_bytes)
        ]
        low = [pair for pair in shares if _is_low(pair[0])]
        if low:
            share, about = min(low, key=lambda pair: pair[0].value or 0.0)
            yield _low(what, share, about)
    rings = max((about.coverage.ring_processes for about in whole if about.coverage is not None), default=0)
    if rings:
        yield Finding("coverage_unknown", {"processes": rings})


def _is_low(share: CoverageShare) -> bool:
    return share.value is not None and share.value < LEAST_SHARE and share.unseen_bytes > LEAST_UNSEEN_BYTES


def _lost(about: Traced) -> bool:
    records = about.records
    return bool(records.lost_ops or records.unrecorded_processes or records.damaged_file_count or about.running)


def _low(what: str, share: CoverageShare, about: Measured | Traced) -> Finding:
    coverage = about.coverage
    assert coverage is not None
    assert share.value is not None
    parts = {"read": coverage.seen_read_bytes, "written": coverage.seen_written_bytes}
    seen = parts.get(what, sum(parts.values()))
    by_maps = what != "written" and 2 * (coverage.mapped_fault_bytes or 0) > share.unseen_bytes
    cause = (
        ("writable_mmap" if what == _EITHER else "mmap")
        if by_maps
        else "process"
        if isinstance(about, Traced)
        else "library"
    )
    numbers = {"percent": 100 * share.value, "seen_bytes": seen, "all_bytes": seen + share.unseen_bytes}
    return Finding("low_coverage", {"what": what, "is_bound": share.bound, **numbers, "cause": cause})


def about_elsewhere(runs: Sequence[DescribedRun]) -> Iterator[Finding]:
    """Of traced commands: what they moved on no tier, by bytes, because nobody timed it. Without this, little I/O on tiers would read as little I/O."""
    for run in runs:
        if not isinstance(run.about, Traced) or run.about.coverage is None:
            continue
        coverage = run.about.coverage
        seen = coverage.seen_read_bytes + coverage.seen_written_bytes
        elsewhere = seen - run.moved_bytes
        if elsewhere > max(LEAST_ELSEWHERE_BYTES, ELSEWHERE_SHARE * seen):
            numbers = {"percent": 100 * elsewhere / seen, "bytes": elsewhere, "all_bytes": seen}
            yield Finding("elsewhere", numbers)


def untiered_bytes(coverage: Coverage | None, moved: tuple[int, int]) -> tuple[int, int]:
    """Bytes that calls read and wrote on no tier; `moved`: on tiers. Nothing where it is next to nothing, or not known."""
    if coverage is None:
        return 0, 0
    seen = (coverage.seen_read_bytes, coverage.seen_written_bytes)
    rest = (whole - part for whole, part in zip(seen, moved, strict=True))
    read, written = (amount if amount > LEAST_UNSEEN_BYTES else 0 for amount in rest)  # less may be our own records
    return (read, written) if read + written > ELSEWHERE_SHARE * sum(seen) else (0, 0)


def about_page_cache(abouts: Sequence[Description], said: frozenset[str]) -> Iterator[Finding]:
    """Reads that memory served, by two signs that must agree: devices delivered little, and reads were too fast for one. `said`: tiers that are known to be warm."""
    for about in abouts:
        if not isinstance(about, Measured | Traced) or about.coverage is None:
            continue
        coverage, tiers = about.coverage, [tier.name for tier in about.tiers if not tier.emulated]
        kinds = about.provenance.filesystems if about.provenance else {}
        device, moved = coverage.device_read_bytes, coverage.real_read_bytes
        if device is None or moved < LEAST_CACHED_BYTES or coverage.unknown_processes or said & set(tiers):
            continue
        if not all(kinds.get(tier) in COUNTING for tier in tiers):
            continue  # cannot be told
        rate = moved / max(coverage.real_read_seconds, 1e-9)
        seconds_per_read = coverage.real_read_seconds / max(1, coverage.real_read_ops)
        if device < DEVICE_SHARE * moved and (
            rate > CACHE_BYTES_PER_SECOND or seconds_per_read < CACHE_SECONDS_PER_READ
        ):
            numbers = {"read_bytes": moved, "device_bytes": device, "bytes_per_second": rate}
            yield Finding("page_cache_speed", {"tiers": tiers, **numbers})
            return
