"""What the kernel counts of a process and of the children that it waited for: /proc/self/io and its page faults. Imports nothing heavy: ranks ask too.

`rchar` is the bytes that calls like read returned, on any descriptor: files, pipes, sockets, devices; also those of sendfile and copy_file_range. It does not hold
splice, recv, io_uring and page faults of mapped files. What a child read is added when its parent has waited for it.
"""

import os
import resource
from dataclasses import dataclass

_FILE = "/proc/self/io"


@dataclass(frozen=True, slots=True)
class KernelIo:
    """`device_read_bytes`: that filesystems fetched from devices; some network filesystems do not count it."""

    read_bytes: int
    written_bytes: int
    device_read_bytes: int
    faults: int

    def since(self, before: "KernelIo") -> "KernelIo":
        return KernelIo(
            max(0, self.read_bytes - before.read_bytes),
            max(0, self.written_bytes - before.written_bytes),
            max(0, self.device_read_bytes - before.device_read_bytes),
            max(0, self.faults - before.faults),
        )


def kernel_io() -> KernelIo | None:
    """As of now; None: this kernel does not count, or does not tell. Costs a few microseconds."""
    try:
        fd = os.open(_FILE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, 4096).decode("ascii", "replace")
        finally:
            os.close(fd)
        counts = {name: int(value) for name, _, value in (line.partition(":") for line in text.splitlines())}
        used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        faults = sum(usage.ru_minflt + usage.ru_majflt for usage in used)
        return KernelIo(counts["rchar"], counts["wchar"], counts["read_bytes"], faults)
    except (OSError, ValueError, KeyError):
        return None


def counted_since(before: KernelIo | None) -> KernelIo | None:
    """What was counted since then; None: cannot be told."""
    now = kernel_io() if before is not None else None
    return now.since(before) if now is not None and before is not None else None
