"""Own threads that read ahead: `read_threads` of them, at most `prefetch_size` batches beyond the one in use.

The consumer hands out work and collects it, so that two queues are all the synchronisation there is. Threads share every
batch (each reads its part), so that the next batch in order is always the one being read; memory is
prefetch_size + 1 batches. Nothing is read ahead of the end of an epoch.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import ClassVar

from tierscope.loaders.base import Batch, Slots, Source, Work, split_steps
from tierscope.loaders.reader import SampleReader
from tierscope.plan.plan import Block
from tierscope.tiers.access import Punctuality
from tierscope.trace.recorder import LaneTable, Recording


@dataclass(frozen=True, slots=True)
class _Done:
    step: int
    start: int = 0
    read: int = 0
    checked: int = 0
    error: BaseException | None = None


@dataclass(slots=True)
class _Flight:
    """A batch that is being read."""

    work: Work
    slots: Slots
    parts_left: int
    began: int = 1 << 62
    ended: int = 0
    decode_ns: int = 0


class ThreadLoader:
    records: ClassVar[bool] = True

    def __init__(self, source: Source, batch_size: int, threads: int, prefetch: int, recording: Recording) -> None:
        self._batch_size = batch_size
        self._todo: SimpleQueue[tuple[Work, list[memoryview]] | None] = SimpleQueue()
        self._done: SimpleQueue[_Done] = SimpleQueue()
        form = source.format
        self._free = [Slots(batch_size, form.slot_bytes, form.payload) for _ in range(prefetch + 1)]
        self._readers = [SampleReader(source, lane) for lane in recording.lanes(max(1, threads))]
        self._threads = [
            threading.Thread(target=self._serve, args=(reader,), name=f"reader-{number}", daemon=True)
            for number, reader in enumerate(self._readers)
        ]

    def _serve(self, reader: SampleReader) -> None:
        """A reading thread."""
        while (task := self._todo.get()) is not None:
            work, slots = task
            try:
                self._done.put(_Done(work.step, *reader.read(work, slots)))
            except BaseException as error:  # noqa: BLE001  (raised again by the consumer)
                self._done.put(_Done(work.step, error=error))
                return

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        for thread in self._threads:
            thread.start()
        try:
            yield from self._in_order(split_steps(blocks, self._batch_size))
        finally:
            with contextlib.suppress(Empty):  # after an error or an early end nobody wants what is still to be read
                while True:
                    self._todo.get_nowait()
            for _ in self._threads:
                self._todo.put(None)
            for thread in self._threads:
                thread.join()

    def _in_order(self, steps: Iterator[Work]) -> Iterator[Batch]:
        flights: dict[int, _Flight] = {}
        in_use: Slots | None = None
        step = 0
        while True:
            if in_use is not None:
                self._free.append(in_use)
            while self._free and (work := next(steps, None)) is not None:
                flights[work.step] = self._launch(work, self._free.pop())
            if not flights:
                return
            flight = self._await(step, flights)
            in_use = flight.slots
            payloads = flight.slots.payloads[: len(flight.work.samples)]
            yield Batch(step, flight.work.samples, payloads, flight.ended - flight.began, flight.decode_ns)
            step += 1

    def _launch(self, work: Work, slots: Slots) -> _Flight:
        share = -(-len(work.samples) // len(self._threads))
        starts = range(0, len(work.samples), share)
        for start in starts:
            self._todo.put((work.part(start, start + share), slots.slots[start : start + share]))
        return _Flight(work, slots, len(starts))

    def _await(self, step: int, flights: dict[int, _Flight]) -> _Flight:
        while flights[step].parts_left:
            done = self._done.get()
            if done.error is not None:
                raise done.error
            flight = flights[done.step]
            flight.parts_left -= 1
            flight.began = min(flight.began, done.start)
            flight.ended = max(flight.ended, done.read)
            flight.decode_ns += done.checked - done.read
        return flights.pop(step)

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        punctuality = Punctuality()
        for reader in self._readers:
            punctuality.add(reader.close())
        return [reader.lane.finish() for reader in self._readers], punctuality
