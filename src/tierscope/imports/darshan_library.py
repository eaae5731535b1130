"""Darshan's own log library (libdarshan-util, inside the wheel of PyDarshan), called directly.

PyDarshan makes a Python object of every record; here records go from the library straight into NumPy arrays. Where a counter stands in a record is
asked of the library, so that this does not depend on its version. The library is C and believes what it reads: call it only in a
process that may die (`darshan_worker.py`).
"""

import ctypes
import glob
import importlib.util
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

INSTALL = "pip install 'tierscope[darshan]'"
COUNTERS = (  # of a file, whichever module saw it
    *("OPENS", "READS", "WRITES", "SEEKS", "STATS", "MMAPS", "FSYNCS", "FDSYNCS", "FLUSHES"),
    *("BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ", "CONSEC_READS", "SEQ_READS", "CONSEC_WRITES", "SEQ_WRITES"),
    *("FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES"),
    *("SIZE_READ_0_100", "SIZE_READ_100_1K", "SIZE_READ_1K_10K", "SIZE_READ_10K_100K", "SIZE_READ_100K_1M"),
    *("SIZE_READ_1M_4M", "SIZE_READ_4M_10M", "SIZE_READ_10M_100M", "SIZE_READ_100M_1G", "SIZE_READ_1G_PLUS"),
)
TIMES = (
    *("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "F_FASTEST_RANK_TIME", "F_SLOWEST_RANK_TIME"),
    *("F_OPEN_START_TIMESTAMP", "F_READ_START_TIMESTAMP", "F_READ_END_TIMESTAMP", "F_CLOSE_END_TIMESTAMP"),
)
MPI_IO = "MPI-IO"
FILE_MODULES = ("POSIX", "STDIO", MPI_IO)  # those whose records are files with COUNTERS and TIMES
_MPI_WAYS = ("INDEP", "COLL", "SPLIT", "NB")
_MPI_SUMS = {  # what MPI-IO counts by the way it was done
    "OPENS": ("INDEP_OPENS", "COLL_OPENS"),
    "READS": tuple(f"{way}_READS" for way in _MPI_WAYS),
    "WRITES": tuple(f"{way}_WRITES" for way in _MPI_WAYS),
    "FSYNCS": ("SYNCS",),
    **{name: (name.replace("READ_", "READ_AGG_"),) for name in COUNTERS if name.startswith("SIZE_READ_")},
}
_LONGEST_TEXT = 4096
_MOST_COUNTERS = 512
_MOST_STRIPES = 1 << 16
_MOST_SEGMENTS = 1 << 28
_DXT_COUNTS = 16 + 8 + 64  # behind number, rank, whether shared, and host
_DXT_HEAD = _DXT_COUNTS + 16
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
_MOST_SUMMED = 1 << 60  # of a counter that is added to others
_CHUNK = 2048  # records that are read before their columns are taken out

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class _Job(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("uid", "start_seconds", "start_nanoseconds", "end_seconds", "end_nanoseconds")
        ),
        *((name, ctypes.c_int64) for name in ("processes", "job_id")),
        ("metadata", ctypes.c_char * 1024),
    )


class _Mount(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_char * 3015), ("path", ctypes.c_char * 3015))


class _Module(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_int) for name in ("length", "version", "index", "partial")),
    )


class _Name(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint64), ("name", ctypes.c_void_p))  # both as wide


def library_path() -> str | None:
    """Of the wheel, found without importing it (it brings pandas and more along)."""
    spec = importlib.util.find_spec("darshan")
    if spec is not None and spec.origin:
        libraries = glob.glob(os.path.join(os.path.dirname(spec.origin), "..", "darshan.libs", "libdarshan-util*.so*"))
        if libraries:
            return libraries[0]
    return None


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("darshan_log_open", pointer, [text]),
        ("darshan_log_close", None, [pointer]),
        ("darshan_log_get_job", number, [pointer, pointer]),
        ("darshan_log_get_exe", number, [pointer, text]),
        ("darshan_log_get_mounts", number, [pointer, pointer, pointer]),
        ("darshan_log_get_modules", None, [pointer, pointer, pointer]),
        ("darshan_log_get_record", number, [pointer, number, pointer]),
        ("darshan_log_get_name_records", None, [pointer, pointer, pointer]),
        ("darshan_free", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Log:
    """One open log. Everything in it may be wrong; what the library cannot read, it says on standard error."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self._library = library
        self._handle = library.darshan_log_open(os.fsencode(path))
        if not self._handle:
            raise ValueError("the log cannot be opened")

    def close(self) -> None:
        if self._handle:
            self._library.darshan_log_close(self._handle)

    def job(self) -> dict[str, Any]:
        job = _Job()
        if self._library.darshan_log_get_job(self._handle, ctypes.byref(job)) < 0:
            raise ValueError("its job description cannot be read")
        pairs = (line.partition("=") for line in _text(job.metadata).splitlines())
        return {
            "start_seconds": job.start_seconds + job.start_nanoseconds / 1e9,
            "end_seconds": job.end_seconds + job.end_nanoseconds / 1e9,
            "processes": job.processes,
            "job_id": job.job_id,
            "metadata": {name: value for name, _, value in pairs},
            "command": self._command(),
        }

    def _command(self) -> str:
        buffer = ctypes.create_string_buffer(_LONGEST_TEXT + 1)
        return "" if self._library.darshan_log_get_exe(self._handle, buffer) < 0 else _text(buffer.value)

    def mounts(self) -> list[tuple[str, str]]:
        """Path and kind of filesystem."""
        first, count = ctypes.POINTER(_Mount)(), ctypes.c_int()
        if self._library.darshan_log_get_mounts(self._handle, ctypes.byref(first), ctypes.byref(count)) < 0:
            return []
        mounts = [(_text(first[index].path), _text(first[index].kind)) for index in range(count.value)]
        self._library.darshan_free(first)
        return mounts

    def modules(self) -> dict[str, dict[str, Any]]:
        first, count = ctypes.POINTER(_Module)(), ctypes.c_int()
        self._library.darshan_log_get_modules(self._handle, ctypes.byref(first), ctypes.byref(count))
        modules = {}
        for index in range(count.value):
            module = first[index]
            facts = {"index": module.index, "version": module.version, "partial": bool(module.partial)}
            modules[_text(module.name)] = facts
        self._library.darshan_free(first)
        return modules

    def names(self) -> tuple[npt.NDArray[np.uint64], bytes]:
        """The numbers that records know files by, and the paths in the same order with a zero byte between them."""
        first, count = ctypes.POINTER(_Name)(), ctypes.c_int()
        self._library.darshan_log_get_name_records(self._handle, ctypes.byref(first), ctypes.byref(count))
        if not first:
            self._handle = None  # the library has closed it
            raise ValueError("its file names cannot be read")
        table = np.ctypeslib.as_array(ctypes.cast(first, ctypes.POINTER(ctypes.c_uint64)), (count.value, 2))
        numbers, addresses = table[:, 0].copy(), table[:, 1].tolist()
        # A slice of an array makes all names in C; one by one they took longer than to read.
        names: list[Any] = (ctypes.c_char_p * table.size).from_address(table.ctypes.data)[1::2]
        joined = b"\0".join(names)
        deque(map(self._library.darshan_free, addresses), maxlen=0)
        self._library.darshan_free(first)
        return numbers, joined

    def files(self, module: str, index: int) -> tuple[Ints, Ints, Floats]:
        """Of a module's records: number and rank; a row for each of COUNTERS; a row for each of TIMES. Zero where the module has no such counter."""
        layout = _Layout(self._library, module)
        chunk = np.zeros(_CHUNK, layout.dtype)
        heads, counters, times = [], [], []
        read = _CHUNK
        while read == _CHUNK:
            read = self._fill(chunk, index)
            heads.append(chunk["head"][:read].copy())
            counters.append(layout.counters(chunk[:read]))
            times.append(layout.times(chunk[:read]))
        return np.concatenate(heads), np.concatenate(counters, axis=1), np.concatenate(times, axis=1)

    def _fill(self, chunk: npt.NDArray[Any], index: int) -> int:
        """Records straight into the array; how many there were."""
        places = chunk.ctypes.data + np.arange(len(chunk), dtype=np.uint64) * np.uint64(chunk.dtype.itemsize)
        get, handle, first, step = (
            self._library.darshan_log_get_record,
            self._handle,
            places.ctypes.data,
            places.itemsize,
        )
        for number, target in enumerate(range(first, first + places.nbytes, step)):
            if get(handle, index, target) < 1:
                return number
        return len(chunk)

    def allocated(self, index: int) -> Iterator[int]:
        """Records of a size that differs, each at an address that is good until the next."""
        while True:
            place = ctypes.c_void_p()
            if self._library.darshan_log_get_record(self._handle, index, ctypes.byref(place)) < 1 or not place.value:
                return
            yield place.value
            self._library.darshan_free(place)


def stripes(log: Log, index: int) -> dict[int, tuple[int, list[int]]]:
    """Of every file that Lustre told about, its stripe size and its object servers (OSTs)."""
    by_file = {}
    for address in log.allocated(index):
        number, _, components, count = (ctypes.c_int64 * 4).from_address(address)
        pointers = (ctypes.c_void_p * 2).from_address(address + 32)
        if components > 0 and 0 < count <= _MOST_STRIPES and pointers[0] and pointers[1]:
            (size,) = (ctypes.c_int64 * 1).from_address(pointers[0])  # the first counter of the first component
            by_file[number & (2**64 - 1)] = size, list((ctypes.c_int64 * count).from_address(pointers[1]))
    return by_file


def read_segments(log: Log, index: int) -> tuple[npt.NDArray[np.uint64], Ints, npt.NDArray[Any]]:
    """Of extended tracing (DXT): every read, with the number of its file and its rank. There are no metadata operations in it."""
    numbers: list[int] = []
    ranks: list[int] = []
    pieces: list[npt.NDArray[Any]] = []
    for address in log.allocated(index):
        number, rank = (ctypes.c_int64 * 2).from_address(address)
        writes, reads = (ctypes.c_int64 * 2).from_address(address + _DXT_COUNTS)
        if 0 <= writes <= _MOST_SEGMENTS and 0 < reads <= _MOST_SEGMENTS:
            place = address + _DXT_HEAD + writes * SEGMENT.itemsize
            content = ctypes.string_at(place, reads * SEGMENT.itemsize)
            pieces.append(np.frombuffer(content, SEGMENT))
            numbers += [number & (2**64 - 1)] * reads
            ranks += [rank] * reads
    segments = np.concatenate(pieces) if pieces else np.zeros(0, SEGMENT)
    return np.array(numbers, np.uint64), np.array(ranks, np.int64), segments


class _Layout:
    """Where COUNTERS and TIMES stand in a module's records."""

    def __init__(self, library: ctypes.CDLL, module: str) -> None:
        prefix = module.replace("-", "")
        ints = _counter_names(library, f"{prefix.lower()}_counter_names")
        floats = _counter_names(library, f"{prefix.lower()}_f_counter_names")
        self.dtype = np.dtype(
            [("head", np.int64, 2), ("counters", np.int64, len(ints)), ("times", np.float64, len(floats))]
        )
        summed = _MPI_SUMS if module == MPI_IO else {}
        self._ints = [_columns(ints, prefix, summed.get(name, (name,))) for name in COUNTERS]
        self._floats = [_columns(floats, prefix, (name,)) for name in TIMES]

    def counters(self, records: npt.NDArray[Any]) -> Ints:
        return _rows(records["counters"], self._ints)

    def times(self, records: npt.NDArray[Any]) -> Floats:
        return _rows(records["times"], self._floats)


def _columns(names: list[str], prefix: str, wanted: tuple[str, ...]) -> list[int]:
    return [names.index(f"{prefix}_{name}") for name in wanted if f"{prefix}_{name}" in names]


def _rows(values: npt.NDArray[Any], places: list[list[int]]) -> npt.NDArray[Any]:
    """Columns as rows: what is used together lies together. Several become their sum, without those that were not counted (below zero)."""
    taken = np.zeros((len(places), len(values)), values.dtype)
    for row, columns in enumerate(places):
        if len(columns) == 1:
            taken[row] = values[:, columns[0]]
        elif columns:
            taken[row] = values[:, columns].clip(0, _MOST_SUMMED).sum(axis=1)
    return taken


def _counter_names(library: ctypes.CDLL, symbol: str) -> list[str]:
    names = (ctypes.c_char_p * _MOST_COUNTERS).in_dll(library, symbol)
    known: list[str] = []
    for name in names:
        if name is None or name.endswith(b"_NUM_INDICES"):
            return known
        known.append(name.decode())
    raise ValueError(f"{symbol} of libdarshan-util has no end")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
