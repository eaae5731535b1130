"""Own threads that read ahead: `read_threads` of them, at most `prefetch_size` batches beyond the one in use.

The consumer hands out work and collects it, so that two queues are all the synchronisation there is. Threads share every
batch (each reads its part), so that the next batch in order is always the one being read; memory is
prefetch_size + 1 batches. Nothing is read ahead of the end of an epoch.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import ClassVar

from tierscope.errors import TierscopeError
from tierscope.loaders.base import Batch, SampleSource, Slots, StepSamples, split_steps
from tierscope.loaders.preprocess import Floats
from tierscope.loaders.reader import ReadSamples, SampleReader
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable, Recording


@dataclass(frozen=True, slots=True)
class _Task:
    """A part of a batch, from its sample `first` on."""

    work: StepSamples
    first: int
    slots: list[memoryview]
    payloads: list[memoryview]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a batch that is read; or why it is not."""

    step: int
    first: int = 0
    done: ReadSamples | None = None
    arrays: list[Floats] = field(default_factory=list)
    preprocess_ns: int = 0
    error: BaseException | None = None


@dataclass(slots=True)
class _Flight:
    """A batch that is being read."""

    work: StepSamples
    slots: Slots
    parts_left: int
    payloads: list[memoryview]
    arrays: list[Floats | None]
    began: int = 1 << 62
    ended: int = 0
    decode_ns: int = 0
    preprocess_ns: int = 0


class ThreadLoader:
    records: ClassVar[bool] = True

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        self._batch_size, self._checks = batch_size, source.checks
        self._todo: SimpleQueue[_Task | None] = SimpleQueue()
        self._raw: SimpleQueue[tuple[SampleReader, _Task, ReadSamples] | None] = SimpleQueue()  # read, not preprocessed
        self._done: SimpleQueue[_Part] = SimpleQueue()
        self._at_last: TierscopeError | None = None  # what went wrong when all was read
        form = source.format
        self._free = [
            Slots(batch_size, form.slot_bytes, source.usual_payload, pin=source.pin) for _ in range(prefetch + 1)
        ]
        self._readers = [SampleReader(source, lane) for lane in recording.lanes(max(1, threads))]
        self._threads = [
            threading.Thread(target=self._serve, args=(reader,), name=f"reader-{number}", daemon=True)
            for number, reader in enumerate(self._readers)
        ]
        behind = source.preprocess_threads if source.preprocess else 0
        self._behind = [
            threading.Thread(target=self._preprocess, name=f"preprocess-{number}", daemon=True)
            for number in range(behind)
        ]

    def _serve(self, reader: SampleReader) -> None:
        """A reading thread."""
        while (task := self._todo.get()) is not None:
            try:
                done = reader.read(task.work, task.slots, task.payloads)
                if self._behind:
                    self._raw.put((reader, task, done))
                else:
                    self._done.put(_finished(reader, task, done))
            except BaseException as error:  # noqa: BLE001  (raised again by the consumer)
                self._done.put(_Part(task.work.step, error=error))
                break
        try:
            reader.rest()
        except TierscopeError as error:
            self._at_last = error

    def _preprocess(self) -> None:
        """A thread behind the reading ones."""
        while (read := self._raw.get()) is not None:
            try:
                self._done.put(_finished(*read))
            except BaseException as error:  # noqa: BLE001  (raised again by the consumer)
                self._done.put(_Part(read[1].work.step, error=error))

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        for thread in [*self._threads, *self._behind]:
            thread.start()
        try:
            yield from self._in_order(split_steps(blocks, self._batch_size, self._checks))
        finally:
            with contextlib.suppress(Empty):  # after an error or an early end nobody wants what is still to be read
                while True:
                    self._todo.get_nowait()
            for _ in self._threads:
                self._todo.put(None)
            for thread in self._threads:
                thread.join()
            for _ in self._behind:
                self._raw.put(None)
            for thread in self._behind:
                thread.join()
        if self._at_last:
            raise self._at_last

    def _in_order(self, steps: Iterator[StepSamples]) -> Iterator[Batch]:
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
            arrays = [array for array in flight.arrays if array is not None]
            yield Batch(
                step,
                flight.work.samples,
                flight.payloads,
                flight.ended - flight.began,
                flight.decode_ns,
                flight.preprocess_ns,
                arrays,
            )
            step += 1

    def _launch(self, work: StepSamples, slots: Slots) -> _Flight:
        count = len(work.samples)
        share = -(-count // len(self._threads))
        starts = range(0, count, share)
        for start in starts:
            part = slice(start, min(start + share, count))
            self._todo.put(_Task(work.part(part.start, part.stop), start, slots.slots[part], slots.payloads[part]))
        return _Flight(work, slots, len(starts), slots.payloads[:count], [None] * count)

    def _await(self, step: int, flights: dict[int, _Flight]) -> _Flight:
        while flights[step].parts_left:
            part = self._done.get()
            if part.error is not None:
                raise part.error
            flight, done = flights[part.step], part.done
            assert done is not None
            flight.parts_left -= 1
            flight.began = min(flight.began, done.start)
            flight.ended = max(flight.ended, done.read)
            flight.decode_ns += done.check_ns
            flight.preprocess_ns += part.preprocess_ns
            flight.payloads[part.first : part.first + len(done.payloads)] = done.payloads
            flight.arrays[part.first : part.first + len(part.arrays)] = part.arrays
        return flights.pop(step)

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        punctuality = Punctuality()
        for reader in self._readers:
            punctuality.add(reader.close())
        return [reader.lane.finish() for reader in self._readers], punctuality


def _finished(reader: SampleReader, task: _Task, done: ReadSamples) -> _Part:
    arrays, nanoseconds = reader.preprocess(task.work, done.payloads)
    return _Part(task.work.step, task.first, done, arrays, nanoseconds)
