"""A file of any format, written and read as its adapter says, without the rest of the program."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from tierscope.formats import EXTENTS, FORMATS, LIBRARY, NOTHING, Extent, Format, Opened, Shape

READ_BY_EXTENTS = [name for name in FORMATS if FORMATS.load(name).reading == EXTENTS]
WITH_FILES = [name for name in FORMATS if FORMATS.load(name).reading != NOTHING]


def shape_of(name: str, samples: int, record_bytes: int) -> Shape:
    """A picture is one sample."""
    return Shape(samples if FORMATS.load(name).indexed else 1, record_bytes)


def payloads_of(shape: Shape, seed: int = 1, file: int = 0) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(nbytes) for nbytes in shape.of_file(file).tolist()]


def encoded(format_: Format, payloads: Sequence[bytes]) -> bytes:
    return b"".join(format_.encode([[payload] for payload in payloads]))


def slot_of(content: bytes, extents: Sequence[Extent]) -> bytearray:
    """What is in memory after a sample's extents were read one after another."""
    return bytearray().join(content[extent.offset : extent.offset + extent.nbytes] for extent in extents)


def write(format_: Format, path: Path, payloads: Sequence[bytes]) -> None:
    if format_.reading == LIBRARY:
        format_.write(str(path), [[payload] for payload in payloads])
    else:
        path.write_bytes(encoded(format_, payloads))


def read(format_: Format, path: Path, file: int = 0) -> list[bytes]:
    """Every sample of a file, checked and decoded."""
    if format_.reading == LIBRARY:
        return _by_library(format_, path)
    content, found = path.read_bytes(), []
    for inside in range(format_.shape.samples_per_file):
        whole = format_.reading != EXTENTS
        slot = memoryview(content if whole else slot_of(content, format_.extents(inside, file)))
        assert slot.nbytes <= format_.slot_bytes
        format_.check(slot)
        found.append(bytes(format_.decode(slot if whole else slot[format_.payload(inside, file)])))
    return found


def _by_library(format_: Format, path: Path) -> list[bytes]:
    streams = []

    def stream() -> object:
        streams.append(open(path, "rb", buffering=0))  # noqa: SIM115
        return streams[-1]

    def timed(work: Callable[[], int]) -> int:
        return work()

    try:
        handle = format_.open(Opened(str(path), stream, timed))
        slot = memoryview(bytearray(format_.slot_bytes))
        try:
            return [bytes(slot[: handle.read(inside, slot)]) for inside in range(format_.shape.samples_per_file)]
        finally:
            handle.close()
    finally:
        for one in streams:
            one.close()
