"""The inner loop of an epoch: ask for a batch, take note of it, compute, wait for the others if asked to, ask for the next."""

import hashlib
import time
from collections.abc import Callable, Iterator

import numpy as np

from tierscope.bench.group import Group
from tierscope.bench.live import COMPUTING, MEETING, SAVING, WAITING, Pulse
from tierscope.bench.work import Work
from tierscope.loaders import Batch
from tierscope.trace.rank_trace import StepTimes, Tally

_now = time.monotonic_ns


def pull(
    batches: Iterator[Batch],
    work: Work,
    group: Group,
    meet: bool = False,
    after_step: Callable[[int], None] | None = None,
    pulse: Pulse | None = None,
    settle: Callable[[], None] | None = None,
) -> Tally:
    """All batches of an epoch; the clock starts now.

    `work`: what is done with each. `meet`: with all ranks, after every step. `after_step`: told how many steps are done (a checkpoint may be due). `pulse`: says what the rank does now. `settle`: until all steps are done, where a device may be behind.
    """
    pulse = pulse or Pulse()
    pulse.doing = WAITING
    steps, digest = StepTimes(), hashlib.blake2b(digest_size=16)
    samples = payload_bytes = stall_ns = decode_ns = compute_ns = preprocess_ns = sync_ns = after_ns = 0
    start = asked = _now()
    for done, batch in enumerate(batches, start=1):
        got = _now()
        samples += len(batch.samples)
        payload_bytes += sum(payload.nbytes for payload in batch.payloads)
        digest.update(np.asarray(batch.samples, dtype="<i8").tobytes())
        decode_ns += batch.decode_ns
        preprocess_ns += batch.preprocess_ns
        stalled = got - asked
        stall_ns += stalled
        computed = 0
        pulse.doing = COMPUTING
        started = _now()
        if work(batch):
            computed = _now() - started
            compute_ns += computed
        if meet:
            pulse.doing = MEETING
            started = _now()
            group.meet()
            sync_ns += _now() - started
        if after_step:
            pulse.doing = SAVING
            started = _now()
            after_step(done)
            after_ns += _now() - started
        steps.add(batch.read_ns / 1e9, stalled / 1e9, computed / 1e9)
        pulse.samples += len(batch.samples)
        pulse.doing = WAITING
        group.progress(len(batch.samples))
        asked = _now()
    if settle:
        told = _now()
        settle()
        compute_ns += _now() - told
    return Tally(
        seconds=(_now() - start) / 1e9,
        samples=samples,
        payload_bytes=payload_bytes,
        stall_seconds=stall_ns / 1e9,
        compute_seconds=compute_ns / 1e9,
        decode_seconds=decode_ns / 1e9,
        preprocess_seconds=preprocess_ns / 1e9,
        sync_seconds=sync_ns / 1e9,
        checkpoint_seconds=after_ns / 1e9,
        order_digest=digest.hexdigest(),
        steps=steps.finish(),
        steps_per_entry=steps.steps_per_entry,
    )
