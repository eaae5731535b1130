"""Coverage in a line: how much of what was read and written the recorder saw."""

from tierscope.analysis.coverage import CoverageShare, read_share, written_share
from tierscope.trace.coverage import Coverage
from tierscope.units import about_bytes

_BECAUSE = {
    "not_counted": "the kernel's counters could not be read",
    "elsewhere": "processes ran on another host, or are still running",
    "io_uring": "io_uring was used, which the kernel's counter excludes",
    "more_seen": "the kernel counted less than was recorded: reads by io_uring, of mapped files, from memory, or by processes without a waiting parent",
    "nothing": "nothing was read",
}


def coverage_line(coverage: Coverage) -> str:
    """Beside each other: what was seen, and what the kernel counted."""
    read, written = read_share(coverage), written_share(coverage)
    if read.value is None:
        return f"Coverage: what fraction of reads was recorded is unknown ({_BECAUSE[read.reason or 'not_counted']})."
    seen = _part(coverage.seen_read_bytes, read, "read")
    return f"Coverage: recorded {seen}{_also(coverage, written)}."


def _also(coverage: Coverage, written: CoverageShare) -> str:
    return "" if written.value is None else f" and {_part(coverage.seen_written_bytes, written, 'written')}"


def _part(seen: int, share: CoverageShare, what: str) -> str:
    least, most = ("at least ", "at most ") if share.bound else ("", "")
    whole = about_bytes(seen + share.unseen_bytes)
    return f"{least}{_percent(share.value or 0.0)} of {most}{whole} {what}"


def _percent(share: float) -> str:
    """Never rounded up to all of it."""
    return f"{int(1000 * share) / 10:g} %"
