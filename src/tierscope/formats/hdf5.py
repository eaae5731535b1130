"""HDF5 by h5py: all samples of a file one behind the other in one array of bytes, `x`, and where each of them ends, `ends`.

`x` may lie in chunks of `chunk_size` bytes, compressed or not: a sample then costs all chunks that it touches.
"""

import os
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from tierscope.formats import LIBRARY
from tierscope.formats.base import Buffer, Format, Handle, Opened, Shape

_USUAL_CHUNK = 256 * 1024  # of a compressed file whose study says nothing
_OWN_BYTES = 4096  # of the library in a file, about


class Hdf5(Format):
    suffix = ".h5"
    reading = LIBRARY
    ragged = True
    has_checks = False

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        options = shape.options
        chunk = options.chunk_size if options else None
        compression = options.compression if options else "none"
        data = shape.samples_per_file * (shape.record_bytes if shape.alike else 1)
        if chunk is not None and chunk > data and shape.alike:
            raise ValueError(
                f"workload.dataset.hdf5.chunk_size = {chunk}, but a file holds {data} bytes of samples; lower it, or raise num_samples_per_file"
            )
        self._chunk = chunk or (_USUAL_CHUNK if compression != "none" else None)
        self._filters: dict[str, Any] = {} if compression == "none" else {"compression": compression}
        if compression == "gzip":
            self._filters["compression_opts"] = options.compression_level

    @property
    def file_bytes(self) -> int:
        return _OWN_BYTES + self.shape.samples_per_file * (self.shape.record_bytes + 8)

    def file_bytes_of(self, file: int) -> None:  # noqa: ARG002
        return None

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def write(self, path: str, payloads: Sequence[Sequence[Buffer]]) -> None:
        ends = np.cumsum([sum(len(piece) for piece in payload) for payload in payloads])
        total = int(ends[-1])
        layout: dict[str, Any] = dict(self._filters)
        if self._chunk:
            layout["chunks"] = (min(self._chunk, total),)
        with h5py.File(_created(path)) as file:
            data = file.create_dataset("x", shape=(total,), dtype=np.uint8, **layout)
            for payload, end in zip(payloads, ends.tolist(), strict=True):
                whole = np.frombuffer(b"".join(payload), np.uint8)
                data[end - len(whole) : end] = whole
            file.create_dataset("ends", data=ends.astype(np.int64))

    def open(self, opened: Opened) -> Handle:
        return _Handle(h5py.File(opened.stream(), "r"), self.shape.samples_per_file)

    def open_together(self, path: str, communicator: Any) -> Handle:
        return _Together(h5py.File(path, "r", driver="mpio", comm=communicator), self.shape.samples_per_file)

    def check_together(self) -> None:
        if not reads_together():
            raise ValueError(
                "needs h5py with MPI, but this one was built without; build it on a parallel HDF5: "
                "CC=mpicc HDF5_MPI=ON pip install --no-binary=h5py h5py, or set format: raw"
            )


def reads_together() -> bool:
    """Whether this h5py has the driver for MPI."""
    return bool(h5py.get_config().mpi)


def _created(path: str) -> Any:
    """A new file that does not say when it was made: the same samples give the same bytes."""
    creation, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    creation.set_obj_track_times(False)
    access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    return h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, creation, access)


class _Handle:
    def __init__(self, file: Any, samples: int) -> None:
        self._file = file
        try:
            self._data, self._ends = self._file["x"], np.asarray(self._file["ends"])
            whole = self._ends.dtype == np.int64 and self._ends.shape == (samples,) and self._data.ndim == 1
            if not whole or self._data.dtype != np.uint8 or self._data.shape[0] != self._ends[-1]:
                raise ValueError("its arrays are not those of a Tierscope dataset")
        except (KeyError, ValueError, AttributeError) as error:
            self._file.close()
            raise ValueError(f"not a complete HDF5 file of this dataset: {error}") from None

    def read(self, inside: int, slot: memoryview) -> int:
        start = int(self._ends[inside - 1]) if inside else 0
        end = int(self._ends[inside])
        if not 0 <= end - start <= slot.nbytes:
            raise ValueError(f"sample {inside} has {end - start} bytes")
        into = np.frombuffer(slot, np.uint8)[: end - start]
        self._data.read_direct(into, np.s_[start:end])
        return end - start

    def close(self) -> None:
        self._file.close()


class _Together(_Handle):
    def read(self, inside: int, slot: memoryview) -> int:
        with self._data.collective:
            return super().read(inside, slot)
