"""A checksum inside a file: its place is written blank, the whole file is summed up, then the sum is put into its place."""

import mmap
import re
from typing import BinaryIO

from tierscope.checksum import crc32c

_MARK = "tierscope-crc32c="
BLANK = f"{_MARK}00000000"
_PLACE = re.compile(rb"tierscope-crc32c=([0-9a-f]{8})")


def stamp(file: BinaryIO) -> None:
    """Fill in the checksum of an open file that holds BLANK exactly once; all of it was written."""
    with mmap.mmap(file.fileno(), 0) as content:
        (place,) = _PLACE.finditer(content)
        content[place.start(1) : place.end(1)] = b"%08x" % crc32c(content)


def intact(file: BinaryIO) -> bool:
    """Whether a stamped file is what it was; False also for a file without a stamp."""
    try:
        content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except ValueError:  # an empty file
        return False
    with content, memoryview(content) as view:
        places = [(place.start(1), place.end(1)) for place in _PLACE.finditer(view)]
        if len(places) != 1:
            return False
        start, end = places[0]
        with view[:start] as before, view[end:] as after, view[start:end] as stored:
            return int(bytes(stored), 16) == crc32c(after, crc32c(b"0" * 8, crc32c(before)))
