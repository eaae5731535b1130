"""The read engine (c/engine.h), bound with ctypes: batches of samples in, filled memory out, without the interpreter's lock."""

import ctypes
import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.errors import TierscopeError, UserError
from tierscope.native import library
from tierscope.native.lanes import NativeLane, lane_bytes, lane_cells, read_lane
from tierscope.native.stations import TierStations, pack

STORAGES = ("files", "nothing", "null device")  # what stands behind the tiers, in the order of c/engine.h
IO_ENGINES = ("pread", "uring")
DIRECT_ALIGN = 4096  # of offset, length and memory with O_DIRECT
OPEN, READ, CLOSE = range(3)  # operations that can fail; others:
FINE, SKIPPED, TRUNCATED = -1, -2, -3

_AT_BOARD, _AT_RING = 2, 3  # where the making of an engine can fail
_SLICE_MS = 100  # between two looks of the interpreter at its signals


class _Folder(Structure):
    _fields_ = (
        ("prefix", c_char_p),
        ("suffix", c_char_p),
        ("subfolders", c_uint64),
        ("looks", c_uint32),
        ("evicts", c_uint32),
    )


class SeenPages(Structure):
    """Of a tier's files when their reading began: how many were looked at, their bytes, those in the page cache; of how many the kernel could not tell.
    `nanoseconds`: of evicting and looking."""

    _fields_ = tuple(
        (name, c_uint64) for name in ("files", "checked_bytes", "resident_bytes", "unknown", "nanoseconds")
    )
    files: int
    checked_bytes: int
    resident_bytes: int
    unknown: int
    nanoseconds: int


class _Extent(Structure):
    _fields_ = (("first", c_uint64), ("step", c_uint64), ("nbytes", c_uint64))


class _Config(Structure):
    _fields_ = (
        *((name, c_uint32) for name in ("threads", "batches", "batch_size", "tiers", "extents")),
        *((name, c_uint32) for name in ("storage", "io", "direct", "buffered")),
        *((name, c_int32) for name in ("epoch", "ops_fd")),
        *((name, c_uint64) for name in ("transfer_bytes", "slot_bytes", "stride")),
        ("folders", POINTER(_Folder)),
        ("extent", POINTER(_Extent)),
        ("stations", c_void_p),
        ("servers", c_void_p),
        ("all_servers", c_uint64),
        ("board", c_char_p),
        ("memory", POINTER(c_void_p)),
        ("left", c_void_p),
        ("file_bytes", c_uint64),
        ("most_checked", c_uint64),
    )


class BatchOutcome(Structure):
    """How a batch was read: from when to when, and the first sample that could not be (`failed` is -1 if all could)."""

    _fields_ = (
        ("began", c_uint64),
        ("ended", c_uint64),
        ("failed", c_int64),
        ("operation", c_int32),
        ("error", c_int32),
        ("offset", c_uint64),
        ("wanted", c_uint64),
        ("got", c_uint64),
    )
    began: int
    ended: int
    failed: int
    operation: int
    error: int
    offset: int
    wanted: int
    got: int


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a tier's files lie: prefix, subfolder if there are any, number, suffix; whether the page cache is asked about them, and they are evicted."""

    prefix: bytes
    suffix: bytes
    subfolders: int
    looks: bool = False
    evicts: bool = False


@dataclass(frozen=True, slots=True)
class StridedExtent:
    """What sample number `inside` of a file needs: bytes at first + inside × step."""

    first: int
    step: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What an engine is to do. Memory is an address per batch, with `stride` bytes for every sample."""

    threads: int  # 0: the caller reads by itself while it waits
    batch_size: int
    memory: Sequence[int]
    slot_bytes: int
    stride: int
    transfer_bytes: int
    folders: Sequence[Folder]
    extents: Sequence[StridedExtent]
    stations: Sequence[TierStations | None]  # None: a tier that is not emulated
    board: str | None
    storage: str = "files"
    io_engine: str = "pread"
    odirect: bool = False
    buffered: bool = False  # one extent per sample, which follow one another: cut from reads of transfer_bytes
    epoch: int = 1
    ops_fd: int = -1  # opened for appending; below 0: no list of operations
    uses: npt.NDArray[np.uint32] | None = None  # of files that are read again (plan/uses.py); C counts down in it
    file_bytes: int = 0
    most_checked: int = 0  # files of a tier that the page cache is asked about


@functools.cache
def _library() -> ctypes.CDLL:
    """The library with its signatures; who comes here knows that there is one."""
    lib = library.need()
    engine, column = c_void_p, c_void_p
    lib.ts_engine_create.argtypes, lib.ts_engine_create.restype = (POINTER(_Config), POINTER(c_int32)), c_void_p
    lib.ts_engine_start.argtypes, lib.ts_engine_start.restype = (engine,), c_int
    submit = (engine, c_uint32, c_int64, c_uint32, column, column, column)
    lib.ts_engine_submit.argtypes, lib.ts_engine_submit.restype = submit, None
    lib.ts_engine_wait.argtypes, lib.ts_engine_wait.restype = (engine, c_uint32, c_uint32, POINTER(BatchOutcome)), c_int
    lib.ts_engine_stop.argtypes, lib.ts_engine_stop.restype = (engine,), None
    lib.ts_engine_flush.argtypes, lib.ts_engine_flush.restype = (engine,), c_int
    lib.ts_engine_lane.argtypes, lib.ts_engine_lane.restype = (engine, c_uint32), c_void_p
    lib.ts_engine_cold.argtypes, lib.ts_engine_cold.restype = (engine, c_uint32), POINTER(SeenPages)
    lib.ts_engine_destroy.argtypes, lib.ts_engine_destroy.restype = (engine,), None
    lib.ts_api_record_cost.argtypes, lib.ts_api_record_cost.restype = (c_uint64,), c_uint64
    lib.ts_api_path_costs.argtypes, lib.ts_api_path_costs.restype = (POINTER(c_double),), c_bool
    return lib


class Engine:
    """Submit batches in the order in which they are wanted, wait for each, then `close` and look at the lanes.

    The memory must outlive the engine's threads: they end in `close`, or at the latest when the engine is forgotten.
    """

    def __init__(self, setup: Setup) -> None:
        lib = _library()
        self._tiers, self._lanes = len(setup.folders), max(1, setup.threads)
        self._uses = setup.uses  # C has only its address
        self.seen_pages: list[SeenPages] = []  # of each tier, when it is finished
        self._outcomes = [BatchOutcome() for _ in setup.memory]
        at = c_int32(0)
        tiers, servers = pack(setup.stations)  # C copies them
        config = _config(setup)
        config.stations, config.servers, config.all_servers = tiers.ctypes.data, servers.ctypes.data, len(servers)
        handle = lib.ts_engine_create(byref(config), byref(at))
        if handle is None:
            raise _refusal(at.value, ctypes.get_errno(), setup)
        self._handle: int = handle
        self._destroy = weakref.finalize(self, lib.ts_engine_destroy, handle)
        self._submit: Callable[..., object] = lib.ts_engine_submit
        self._wait: Callable[..., object] = lib.ts_engine_wait
        self._ending = threading.Lock()

    def start(self) -> None:
        """Start the threads: from here on `close` is needed."""
        error = _library().ts_engine_start(self._handle)
        if error:
            raise UserError(f"cannot start a read thread: {os.strerror(error)}; lower workload.reader.read_threads")

    def submit(self, number: int, step: int, count: int, columns: tuple[int, int, int]) -> None:
        """Have a batch read into memory `number`: addresses of int64 files, numbers inside them, and tiers. They are copied."""
        self._submit(self._handle, number, step, count, *columns)

    def wait(self, number: int) -> BatchOutcome:
        """Until the batch is read; what is returned holds until that memory is waited for again. Any thread may wait."""
        outcome = self._outcomes[number]
        while not self._wait(self._handle, number, _SLICE_MS, byref(outcome)):
            pass  # the interpreter looks after its signals
        return outcome

    def close(self) -> None:
        """End the threads; what was not begun is not read. May be called again."""
        if self._destroy.alive:
            _library().ts_engine_stop(self._handle)

    def cells(self) -> list[npt.NDArray[np.void]] | None:
        """What each lane holds now, while threads write to it; any thread may ask. None: the engine is gone."""
        with self._ending:
            if not self._destroy.alive:
                return None
            nbytes = lane_bytes(self._tiers)
            memory = [_library().ts_engine_lane(self._handle, number) for number in range(self._lanes)]
            return [lane_cells(ctypes.string_at(address, nbytes), self._tiers) for address in memory]

    def finish(self) -> list[NativeLane]:
        """What each thread recorded; the list of operations is written out. The engine is gone then, so that nobody may wait meanwhile."""
        if not self._destroy.alive:
            raise TierscopeError("the epoch is finished already")
        lib = _library()
        lib.ts_engine_stop(self._handle)
        error = lib.ts_engine_flush(self._handle)
        lanes = []
        for number in range(self._lanes):
            memory = ctypes.string_at(lib.ts_engine_lane(self._handle, number), lane_bytes(self._tiers))
            lane = read_lane(memory, 0, self._tiers)
            if lane is None or not lane.whole:
                raise TierscopeError(f"lane {number} of the native recorder is damaged")
            lanes.append(lane)
        self.seen_pages = [
            SeenPages.from_buffer_copy(lib.ts_engine_cold(self._handle, tier).contents) for tier in range(self._tiers)
        ]
        self._submit = self._wait = _gone
        with self._ending:
            self._destroy()
        if error:
            raise OSError(error, os.strerror(error))
        return lanes


def _gone(*_arguments: object) -> int:
    raise TierscopeError("the epoch is finished: no more batches can be read")


def recorder_cost_seconds(repeats: int = 100_000) -> float:
    """What the native recorder itself adds to one operation."""
    return int(_library().ts_api_record_cost(repeats)) / repeats / 1e9


def path_costs_seconds() -> tuple[float, float] | None:
    """What preloading the recorder adds to a stat of a relative path, and to an open of a file on no tier; None: cannot be measured here."""
    costs = (c_double * 2)()
    if not _library().ts_api_path_costs(costs):
        return None
    return costs[0] / 1e9, costs[1] / 1e9


def _refusal(at: int, error: int, setup: Setup) -> Exception:
    reason = os.strerror(error)
    if at == _AT_RING:
        return UserError(
            f"workload.reader.io_engine = uring, but the kernel does not provide io_uring ({reason}); set io_engine: pread"
        )
    return OSError(error, reason, setup.board if at == _AT_BOARD else None)


def _config(setup: Setup) -> _Config:
    """The same in C, but for the stations; ctypes keeps alive what it points to, as long as it lives itself."""
    folders = [
        _Folder(folder.prefix, folder.suffix, folder.subfolders, folder.looks, folder.evicts)
        for folder in setup.folders
    ]
    extents = [_Extent(extent.first, extent.step, extent.nbytes) for extent in setup.extents]
    return _Config(
        threads=setup.threads,
        batches=len(setup.memory),
        batch_size=setup.batch_size,
        tiers=len(folders),
        extents=len(extents),
        storage=STORAGES.index(setup.storage),
        io=IO_ENGINES.index(setup.io_engine),
        direct=setup.odirect,
        buffered=setup.buffered,
        epoch=setup.epoch,
        ops_fd=setup.ops_fd,
        transfer_bytes=setup.transfer_bytes,
        slot_bytes=setup.slot_bytes,
        stride=setup.stride,
        folders=(_Folder * len(folders))(*folders),
        extent=(_Extent * len(extents))(*extents),
        board=os.fsencode(setup.board) if setup.board else None,
        memory=(c_void_p * len(setup.memory))(*setup.memory),
        left=None if setup.uses is None else setup.uses.ctypes.data,
        file_bytes=setup.file_bytes,
        most_checked=setup.most_checked,
    )
