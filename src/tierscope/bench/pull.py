"""The inner loop of an epoch: ask for a batch, take note of it, compute, ask for the next."""

import hashlib
import time
from collections.abc import Callable, Iterator

import numpy as np

from tierscope.bench.group import Group
from tierscope.loaders import Batch
from tierscope.trace.rank_trace import StepTimes, Tally

_now = time.monotonic_ns


def pull(batches: Iterator[Batch], compute: Callable[[float], None], step_seconds: float, group: Group) -> Tally:
    """All batches of an epoch; the clock starts now."""
    steps, digest = StepTimes(), hashlib.blake2b(digest_size=16)
    samples = payload_bytes = stall_ns = decode_ns = compute_ns = 0
    start = asked = _now()
    for batch in batches:
        got = _now()
        samples += len(batch.samples)
        payload_bytes += sum(payload.nbytes for payload in batch.payloads)
        digest.update(np.asarray(batch.samples, dtype="<i8").tobytes())
        decode_ns += batch.decode_ns
        stalled = got - asked
        stall_ns += stalled
        computed = 0
        if step_seconds:
            begin = _now()
            compute(step_seconds)
            computed = _now() - begin
            compute_ns += computed
        steps.add(batch.read_ns / 1e9, stalled / 1e9, computed / 1e9)
        group.progress(len(batch.samples))
        asked = _now()
    return Tally(
        seconds=(_now() - start) / 1e9,
        samples=samples,
        payload_bytes=payload_bytes,
        stall_seconds=stall_ns / 1e9,
        compute_seconds=compute_ns / 1e9,
        decode_seconds=decode_ns / 1e9,
        order_digest=digest.hexdigest(),
        steps=steps.finish(),
        steps_per_entry=steps.steps_per_entry,
    )
