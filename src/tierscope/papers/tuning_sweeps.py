"""What is measured for DLIO's figures 9 to 12: sweeps of one key at a time on the emulated tier (`tuned_studies.py`)."""

from dataclasses import dataclass

from tierscope.papers.tuned_studies import SLOWER, Pipeline, SweepRequest, TunedSweep, measure

KIB, MIB = 1 << 10, 1 << 20
CHUNKS = (
    "4 KiB",
    "8 KiB",
    "16 KiB",
    "32 KiB",
    "64 KiB",
    "128 KiB",
    "256 KiB",
    "512 KiB",
    "1 MiB",
)  # of both applications: even steps
THREADS = ("1", "8", "16")
READING_THREADS = (
    8  # while preprocessing is tuned: with one thread, reading takes longer than preprocessing, whatever its threads
)
_RANKS = 4  # of the node
_IN_ORDER = "sample_shuffle: off, file_access: multi"
_SIZES = ("256 KiB", "1 MiB", "1536 KiB", "4 MiB")
_BATCH_BYTES = 4 * MIB  # or the largest transfer size could change nothing


def records(nbytes: int, per_file: int) -> str:
    return f"{{format: tfrecord, num_files_train: {_RANKS}, num_samples_per_file: {per_file}, record_length_bytes: {nbytes - 16}}}"


def arrays(kib: int, per_file: int, layout: str, files: int = _RANKS) -> str:
    half = "compressibility: 50%"
    return f"{{format: hdf5, num_files_train: {files}, num_samples_per_file: {per_file}, record_length_bytes: {kib} KiB, {half}, hdf5: {{{layout}}}}}"


@dataclass(frozen=True, slots=True)
class RecordTuning:
    """ImageNet's or CosmoFlow's: TFRecord."""

    transfer: TunedSweep
    threads: TunedSweep
    preprocessing: TunedSweep

    @classmethod
    def of(cls, sample_bytes: int, pipeline: Pipeline, repetitions: int, batches: int) -> "RecordTuning":
        """One key at a time, from one thread of each kind and DLIO's own transfer size on; preprocessing where reading is not in its way."""
        batch = _BATCH_BYTES // sample_bytes
        dataset = records(sample_bytes, batches * batch)
        work = f"preprocess: sleep, preprocess_time: {SLOWER * pipeline.preprocess_time(sample_bytes):.6f}"

        def reader(threads: int) -> str:
            return f"{{batch_size: {batch}, read_threads: {threads}, computation_threads: 1, {work}, {_IN_ORDER}}}"

        requests = (
            SweepRequest(dataset, reader(1), "transfer_size", _SIZES),
            SweepRequest(dataset, reader(1), "read_threads", THREADS),
            SweepRequest(dataset, reader(READING_THREADS), "computation_threads", THREADS),
        )
        return cls(*(measure(request, repetitions) for request in requests))


@dataclass(frozen=True, slots=True)
class ArrayTuning:
    """Cosmic Tagger's or DFFN's: HDF5."""

    chunks: TunedSweep
    compressions: TunedSweep
    levels: TunedSweep

    @classmethod
    def of(cls, kib: int, batch: int, repetitions: int) -> "ArrayTuning":
        reader = f"{{batch_size: {batch}, {_IN_ORDER}}}"
        requests = (
            SweepRequest(arrays(kib, 48, ""), reader, "hdf5.chunk_size", CHUNKS),
            SweepRequest(arrays(kib, 48, "chunk_size: 64 KiB"), reader, "hdf5.compression", ("none", "lzf", "gzip")),
            SweepRequest(
                arrays(kib, 48, "chunk_size: 64 KiB, compression: gzip"),
                reader,
                "hdf5.compression_level",
                ("1", "4", "9"),
            ),
        )
        return cls(*(measure(request, repetitions) for request in requests))


@dataclass(frozen=True, slots=True)
class ShuffledChunks:
    """Cosmic Tagger's chunks with samples in random order: as they are, and compressed, when all of a chunk has to be read for any part of it."""

    plain: TunedSweep
    compressed: TunedSweep

    @classmethod
    def of(cls, cached: bool, repetitions: int) -> "ShuffledChunks":
        reader = "{batch_size: 32, file_access: multi}"
        sweeps = (
            measure(
                SweepRequest(arrays(50, 96, layout, files=2), reader, "hdf5.chunk_size", chunks, cached), repetitions
            )
            for layout, chunks in (("", ("64 KiB", "1 MiB", "4 MiB")), ("compression: gzip", ("64 KiB", "4 MiB")))
        )
        return cls(*sweeps)

    @property
    def text(self) -> str:
        plain, compressed = (sweep.gain_text(64 * KIB, 4 * MIB) for sweep in (self.plain, self.compressed))
        return f"4 MiB instead of 64 KiB: {plain}, with gzip {compressed}; 1 MiB {self.plain.gain_text(64 * KIB, MIB)}"
