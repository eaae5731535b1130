"""When each rank reads the small file beside the samples, and where in it: a pure function of (study, rank, epoch, step)."""

from dataclasses import dataclass

import numpy as np

from tierscope.plan.order import Order
from tierscope.spec.study import Study

_STREAM = 0x51DE  # of the seed, so that other draws stay as they are


@dataclass(frozen=True, slots=True)
class SideReads:
    """`steps`: of a rank in an epoch. A read that is longer than `transfer` takes several requests."""

    file_bytes: int
    read_bytes: int
    reads: int
    when: str
    steps: int
    epochs: int
    transfer: int
    seed: int

    @classmethod
    def of(cls, study: Study) -> "SideReads | None":
        """None: there is no such file, or nobody reads it, because a device makes the samples."""
        workload = study.workload
        wanted = workload.dataset.statistics
        if wanted.file_bytes is None or workload.model.data == "synthetic":
            return None
        samples = Order.of(study).samples_per_rank
        return cls(
            file_bytes=wanted.file_bytes,
            read_bytes=wanted.read_bytes or wanted.file_bytes,
            reads=wanted.reads,
            when=wanted.when,
            steps=-(-samples // workload.reader.batch_size),
            epochs=workload.train.epochs,
            transfer=workload.reader.transfer_size,
            seed=study.seed,
        )

    @property
    def requests_per_read(self) -> int:
        return -(-self.read_bytes // self.transfer)

    def offsets(self, rank: int, epoch: int, step: int) -> list[int]:
        """Of the reads before a batch; epochs count from 1, steps from 0."""
        if step >= self.steps:
            return []
        if self.when == "random":
            steps, offsets = self._drawn(rank)
            at: list[int] = offsets[steps == (epoch - 1) * self.steps + step].tolist()
            return at
        if self.when == "start" and (epoch, step) != (1, 0):
            return []
        places = self.file_bytes // self.read_bytes
        first = 0 if self.when == "start" else ((epoch - 1) * self.steps + step) * self.reads
        return [number % places * self.read_bytes for number in range(first, first + self.reads)]

    def count(self, rank: int, epoch: int) -> int:
        """Reads of a rank in an epoch."""
        if self.when == "step":
            return self.reads * self.steps
        if self.when == "start":
            return self.reads if epoch == 1 else 0
        steps, _ = self._drawn(rank)
        return int((steps // self.steps == epoch - 1).sum())

    def _drawn(self, rank: int) -> tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", ...]:
        """Steps of the run, and offsets."""
        rng = np.random.default_rng((self.seed, _STREAM, rank))
        steps = np.sort(rng.integers(0, self.steps * self.epochs, self.reads))
        return steps, rng.integers(0, self.file_bytes - self.read_bytes + 1, self.reads)
