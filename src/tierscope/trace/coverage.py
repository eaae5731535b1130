"""Coverage: what the kernel counted of a run beside what the recorder saw of it."""

from typing import NamedTuple

from msgspec import Struct

from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.limits import MOST_COUNTED, Count, Seconds

FAULT_BYTES = (
    2 << 20
)  # that a page fault maps at most: the kernel maps what is in memory around it too, up to a huge page


class Coverage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of all calls that read or write, on any descriptor. None: cannot be told.

    `mapped_fault_bytes`: of a tier's mapped files, at most this much was read through page faults, or written; `mapped_writable_bytes`: of files whose mapping
    lets that be.
    """

    seen_read_bytes: Count
    seen_written_bytes: Count
    kernel_read_bytes: Count | None = None
    kernel_written_bytes: Count | None = None
    device_read_bytes: Count | None = None  # that filesystems fetched from devices
    mapped_fault_bytes: Count | None = None
    mapped_writable_bytes: Count = 0
    real_read_bytes: Count = 0  # of tiers that are not emulated; so are the next two
    real_read_ops: Count = 0
    real_read_seconds: Seconds = 0.0  # busy: from the beginning of each read to its end
    processes: Count = 0  # ranks, or processes that our library was loaded into
    unknown_processes: Count = 0  # that the kernel's count lacks: on other hosts, or still running
    ring_processes: Count = 0  # that had an io_uring, whose reads neither the kernel's counter nor the recorder holds


class RealReads(NamedTuple):
    """Of tiers that are not emulated."""

    nbytes: int = 0
    ops: int = 0
    seconds: float = 0.0


def coverage(
    kernel: KernelIo | None,
    seen: tuple[int, int],
    reads: RealReads,
    processes: int,
    mapped_bytes: int = 0,
    unknown: int = 0,
    rings: int = 0,
    writes: bool = True,
) -> Coverage:
    """`seen`: bytes that were read and written; `mapped_bytes`: the length of all mappings of a tier's files; `writes`: they can be compared."""
    most = 0 if not mapped_bytes else None if kernel is None else min(mapped_bytes, kernel.faults * FAULT_BYTES)
    return Coverage(
        seen_read_bytes=_possible(seen[0]),
        seen_written_bytes=_possible(seen[1]),
        kernel_read_bytes=None if kernel is None else _possible(kernel.read_bytes),
        kernel_written_bytes=None if kernel is None or not writes else _possible(kernel.written_bytes),
        device_read_bytes=None if kernel is None else _possible(kernel.device_read_bytes),
        mapped_fault_bytes=None if most is None else _possible(most),
        real_read_bytes=_possible(reads.nbytes),
        real_read_ops=_possible(reads.ops),
        real_read_seconds=reads.seconds,
        processes=processes,
        unknown_processes=unknown,
        ring_processes=rings,
    )


def _possible(count: int) -> int:
    return min(max(0, count), MOST_COUNTED)
