"""`data_loader: tensorflow`: a pipeline of tf.data reads, with TensorFlow's own threads and its own file system code.

TFRecord files that are read from beginning to end go through TFRecordDataset, with `transfer_size` as its buffer; files of one sample
through `read_file`, `read_threads` of them at a time, in order. Nothing else can be read by tf.data without Python (`spec/check.py`). What it reads passes none of our
recorders in Python: ranks are started with the preload library (`measure/preloaded.py`). Samples that are held in memory are picked from a tensor.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from tierscope.errors import DamagedDataError, TierscopeError
from tierscope.formats import EXTENTS
from tierscope.loaders.base import Batch, SampleSource, StepSamples, split_steps
from tierscope.loaders.problems import Place, check_samples, explain, preprocess_samples, verify_samples
from tierscope.plan.plan import Block
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable, Recording

_now = time.monotonic_ns


class TfDataLoader:
    records: ClassVar[bool] = False

    def __init__(
        self, source: SampleSource, batch_size: int, threads: int, prefetch: int, recording: Recording
    ) -> None:
        del recording
        self._checks = source.checks
        self._source, self._batch_size, self._threads, self._prefetch = source, batch_size, threads, prefetch
        self._records = source.format.suffix == ".tfrecord" and source.samples_per_file > 1
        self._held: dict[int, bytes] = {}
        self._memory: Any = None  # a tensor of all that it holds
        self._row_of: dict[int, int] = {}  # a sample's place in it
        with contextlib.suppress(RuntimeError):  # somebody else has set up its devices
            tf.config.set_visible_devices([], "GPU")  # or it takes all memory of the accelerator that trains

    def batches(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        yield from self._read(blocks)
        self._checks = self._checks and self._checks.next()

    def _read(self, blocks: Iterator[Block]) -> Iterator[Batch]:
        """The pipeline asks for paths ahead of what it hands out: the work of those steps is kept until then."""
        waiting: list[StepSamples] = []
        source = self._from_files if self._memory is None else self._from_memory
        pipeline = source(blocks, waiting).batch(self._batch_size)
        if self._threads:
            pipeline = pipeline.prefetch(max(1, self._prefetch))
        asked = _now()
        try:
            for values in pipeline.as_numpy_iterator():
                yield self._batch(waiting.pop(0), values, _now() - asked)
                asked = _now()
        except tf.errors.NotFoundError as error:
            raise _vanished(error) from None
        except tf.errors.OpError as error:
            raise DamagedDataError(f"{error.message.splitlines()[0]}; delete the file and rerun") from None

    def _from_files(self, blocks: Iterator[Block], waiting: list[StepSamples]) -> Any:
        def paths() -> Iterator[str]:
            for work in split_steps(blocks, self._batch_size, self._checks):
                waiting.append(work)
                for file, inside, tier in zip(work.files, work.inside, work.tiers, strict=True):
                    if not self._records or inside == 0:
                        yield self._source.files[tier].path(file)

        pipeline = tf.data.Dataset.from_generator(paths, output_signature=tf.TensorSpec((), tf.string))
        if self._records:
            return tf.data.TFRecordDataset(pipeline, buffer_size=self._source.transfer_bytes)
        return pipeline.map(tf.io.read_file, num_parallel_calls=max(1, self._threads), deterministic=True)

    def _from_memory(self, blocks: Iterator[Block], waiting: list[StepSamples]) -> Any:
        def rows() -> Iterator[int]:
            for work in split_steps(blocks, self._batch_size):
                waiting.append(work)
                yield from (self._row_of[sample] for sample in work.samples)

        memory, threads = self._memory, max(1, self._threads)
        pipeline = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
        return pipeline.map(lambda row: tf.gather(memory, row), num_parallel_calls=threads, deterministic=True)

    def hold(self, batch: Batch) -> None:
        for sample, payload in zip(batch.samples, batch.payloads, strict=True):
            self._held[int(sample)] = bytes(payload)

    def read_memory(self) -> None:
        self._row_of = {sample: row for row, sample in enumerate(self._held)}
        self._memory = tf.constant(list(self._held.values()))
        self._held = {}

    def _batch(self, work: StepSamples, values: Any, read_ns: int) -> Batch:
        form = self._source.format
        stored = [memoryview(value) for value in values]
        places = list(zip(work.files, work.inside, work.tiers, strict=True))
        start = _now()
        payloads: list[memoryview] = stored
        if not self._records and self._memory is None:
            if self._source.check and form.has_checks:
                check_samples(self._source, places, stored)
            if self._source.uniform:
                payloads = [value[self._source.usual_payload] for value in stored]
        if work.compared:
            self._compare(work, places, payloads)
        checked = _now() - start
        arrays, preprocess_ns = preprocess_samples(self._source, lambda: places, payloads)
        return Batch(work.step, np.array(work.samples, np.int64), payloads, read_ns, checked, preprocess_ns, arrays)

    def _compare(self, work: StepSamples, places: list[Place], payloads: list[memoryview]) -> None:
        """With their checksums. Files of other sizes each are handed over whole."""
        form, chosen = self._source.format, work.compared
        read = [payloads[at] for at in chosen]
        if form.reading == EXTENTS and not self._source.uniform and not self._records:
            read = [
                payload[form.payload(places[at][1], places[at][0])] for at, payload in zip(chosen, read, strict=True)
            ]
        verify_samples(self._source, [work.samples[at] for at in chosen], [places[at] for at in chosen], read)

    def finish(self) -> tuple[list[LaneTable], Punctuality]:
        return [], Punctuality()


def _vanished(error: Any) -> TierscopeError:
    return explain(FileNotFoundError(2, "No such file or directory"), str(error.message).split(";")[0])
