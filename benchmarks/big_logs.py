"""Large logs to import, all of them made up: Darshan's from a real one of the wheel of PyDarshan, DFTracer's from nothing.

A log of Darshan is a header, the job, the names of files and a region for every module, each compressed by itself. The real one (one process,
214 files, records of today's version) is taken apart; names and POSIX records are repeated under new numbers and paths, and other modules left out.
So every number in the large one is real, only far too often: a job whose files took longer than it ran.
"""

import gzip
import importlib.util
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

REAL_LOG = "dxt.darshan"
_NAMES, _MODULES, _POSIX, _MOST_MODULES = (
    24,
    40,
    1,
    16,
)  # where a header of version 3.10 tells of regions: start and length
_REGION = struct.Struct("<QQ")
_RECORD_BYTES = 704
_STEP = np.uint64(
    0x9E3779B97F4A7C15
)  # from a file's number to that of its next copy; odd, so that none comes again soon

HOST, PID = 9509357668201227806, 1028567
START_US = 1_744_611_912_000_000
READS, READ_BYTES = 6, 131_072
_CALLS = READS + 3


def real_log() -> Path | None:
    """None: PyDarshan is not installed, or without its examples."""
    spec = importlib.util.find_spec("darshan")
    if spec is None or not spec.origin:
        return None
    path = Path(os.path.dirname(spec.origin), "examples", "example_logs", REAL_LOG)
    return path if path.exists() else None


def write_darshan(path: Path, real: Path, copies: int) -> None:
    log = real.read_bytes()
    names = dict(_names(_region(log, _NAMES)))
    records = np.frombuffer(_region(log, _MODULES + _POSIX * _REGION.size), np.uint64).reshape(-1, _RECORD_BYTES // 8)
    names = {number: names[number] for number in records[:, 0].tolist()}
    head = bytearray(log[: _REGION.unpack_from(log, _NAMES)[0]])  # and the job
    for module in range(_MOST_MODULES):
        _REGION.pack_into(head, _MODULES + module * _REGION.size, 0, 0)
    packed_names = _packed(_copied_names(names, copies))
    packed_records = _packed(_copied_records(records, copies))
    _REGION.pack_into(head, _NAMES, len(head), len(packed_names))
    start = len(head) + len(packed_names)
    _REGION.pack_into(head, _MODULES + _POSIX * _REGION.size, start, len(packed_records))
    path.write_bytes(bytes(head) + packed_names + packed_records)


def _region(log: bytes, place: int) -> bytes:
    """Decompressed; every rank has compressed its part by itself."""
    start, length = _REGION.unpack_from(log, place)
    rest, data = log[start : start + length], b""
    while rest:
        inflater = zlib.decompressobj()
        data += inflater.decompress(rest)
        rest = inflater.unused_data
    return data


def _names(region: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(region):
        end = region.index(b"\0", place + 8)
        yield int.from_bytes(region[place : place + 8], "little"), region[place + 8 : end]
        place = end + 1


def _copied_names(names: dict[int, bytes], copies: int) -> Iterator[bytes]:
    numbers = np.array(list(names), np.uint64)
    for copy in range(copies):
        copied = _renumbered(numbers, copy).tolist()
        folder = b"/copy%04d" % copy
        yield b"".join(
            number.to_bytes(8, "little") + folder + name + b"\0"
            for number, name in zip(copied, names.values(), strict=True)
        )


def _copied_records(records: npt.NDArray[np.uint64], copies: int) -> Iterator[bytes]:
    for copy in range(copies):
        copied = records.copy()
        copied[:, 0] = _renumbered(records[:, 0], copy)
        yield copied.tobytes()


def _renumbered(numbers: npt.NDArray[np.uint64], copy: int) -> npt.NDArray[np.uint64]:
    return numbers + np.array(copy, np.uint64) * _STEP  # an array, as a scalar would warn that it wraps round


def _packed(parts: Iterator[bytes]) -> bytes:
    deflater = zlib.compressobj()
    return b"".join([*map(deflater.compress, parts), deflater.flush()])


@dataclass(frozen=True, slots=True)
class Job:
    """One process that reads all files in every epoch, as DFTracer 1 writes it; on each visit nine calls and the span around them."""

    epochs: int
    files: int

    @property
    def calls(self) -> int:
        return self.epochs * self.files * _CALLS

    @property
    def bytes_read(self) -> int:
        return self.epochs * self.files * READS * READ_BYTES

    @property
    def lines(self) -> int:
        return 2 + self.files + self.epochs * (self.files * (_CALLS + 1) + 1)


def write_dftracer(plain: Path, packed: Path, job: Job) -> None:
    """The same lines twice, plain (with brackets around them) and compressed."""
    with open(plain, "wb") as out:
        out.write(b"[\n")
        out.writelines(_lines(job))
        out.write(b"]")
    with open(plain, "rb") as lines, gzip.open(packed, "wb", compresslevel=6) as archive:
        shutil.copyfileobj(lines, archive, 1 << 20)


def _lines(job: Job) -> Iterator[bytes]:
    who, host = f'"pid":{PID},"tid":{PID}', f'"args":{{"hhash":{HOST}'
    yield f'{{"id":1,"name":"HH","cat":"dftracer",{who},"ph":"M",{host},"name":"node1","value":{HOST}}}}}\n'.encode()
    yield _line(2, "start", "dftracer", START_US, 0, '"level":1,"version":100008,"ppid":1028565')
    number, now = 3, START_US + 1000
    hashes = [(1 << 63) + file * 2_654_435_761 for file in range(job.files)]
    for file, hashed in enumerate(hashes):
        name = f"/p/lustre3/me/dataset/train/img_{file:06d}_of_{job.files:06d}.npz"
        yield f'{{"id":{number},"name":"FH","cat":"dftracer",{who},"ph":"M",{host},"name":"{name}","value":{hashed}}}}}\n'.encode()
        number += 1
    for epoch in range(1, job.epochs + 1):
        began = now
        for hashed in hashes:
            yield _visit(number, now, hashed)
            number, now = number + _CALLS + 1, now + 1500
        yield _line(number, "DLIOBenchmark._train", "dlio_benchmark", began - 5, now - began, f'"epoch":"{epoch}"')
        number += 1


def _visit(number: int, now: int, hashed: int) -> bytes:
    file = f'"p_idx":{number + _CALLS},"fd":21,"fhash":{hashed}'
    return b"".join(
        (
            _line(number, "open", "POSIX", now + 10, 442, f'"p_idx":{number},"level":11,"ret":21,"fhash":{hashed}'),
            _line(number + 1, "__fxstat", "POSIX", now + 460, 64, f'{file},"level":11'),
            *(
                _line(number + 2 + read, "pread", "POSIX", now + 530 + 90 * read, 80 + read, f"{file},{_READ % read}")
                for read in range(READS)
            ),
            _line(number + READS + 2, "close", "POSIX", now + 1100, 39, f'{file},"ret":0,"level":11'),
            _line(
                number + _CALLS, "NPZReader.read_index", "reader", now, 1200, '"level":9,"epoch":"-1","image_idx":"6"'
            ),
        )
    )


_READ = f'"ret":{READ_BYTES},"count":{READ_BYTES},"offset":%d,"level":11'


def _line(number: int, name: str, category: str, start: int, long: int, args: str) -> bytes:
    who = f'"pid":{PID},"tid":{PID},"ts":{start},"dur":{long},"ph":"X"'
    return f'{{"id":{number},"name":"{name}","cat":"{category}",{who},"args":{{"hhash":{HOST},{args}}}}}\n'.encode()
