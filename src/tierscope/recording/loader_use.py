"""What a framework's loader spent in a traced command, as far as it can be seen from outside: CPU, waiting and I/O of its worker processes."""

from collections.abc import Iterable

from tierscope.native.state import StateHead
from tierscope.trace.description import LoaderUse


def loader_use(processes: Iterable[tuple[StateHead, int]]) -> LoaderUse | None:
    """Of processes that did I/O on tiers, each with the nanoseconds of it; None: none of them had loaded a framework."""
    known = [(head, head.usage, busy_ns) for head, busy_ns in processes if head.usage is not None]
    frameworks = sorted({usage.framework for _, usage, _ in known if usage.framework})
    if not frameworks:
        return None
    workers = [(head, usage, busy_ns) for head, usage, busy_ns in known if usage.is_worker]
    parents = {(head.host, head.parent) for head, _, _ in workers}
    training = [usage for head, usage, _ in known if (head.host, head.pid) in parents and not usage.is_worker]
    delays = [usage.delay_ns for _, usage, _ in workers]
    passed = sum(usage.nanoseconds for usage in training)
    return LoaderUse(
        frameworks=tuple(frameworks),
        workers=len(workers),
        other_readers=sum(not usage.is_worker for _, usage, _ in known),
        window_seconds=sum(usage.nanoseconds for _, usage, _ in workers) / 1e9,
        io_seconds=sum(min(busy_ns, usage.nanoseconds) for _, usage, busy_ns in workers) / 1e9,
        user_seconds=sum(usage.user_ns for _, usage, _ in workers) / 1e9,
        system_seconds=sum(usage.system_ns for _, usage, _ in workers) / 1e9,
        delay_seconds=None if None in delays else sum(delay or 0 for delay in delays) / 1e9,
        training_cpu_share=sum(usage.user_ns + usage.system_ns for usage in training) / passed if passed else None,
    )
