"""A trace file of DFTracer as blocks of whole lines, plain or compressed, in little memory whatever its size."""

import errno
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tierscope.errors import UserError
from tierscope.plain_files import open_plain

MOST_LEFT_OUT = 256 << 20  # of one line
MOST_PADDING = 64 << 20  # zeros behind a member of a gzip file
BLOCK_BYTES = 1 << 20
MOST_LINE_BYTES = 1 << 20  # DFTracer writes at most 16 KiB
_COMPRESSED_BYTES = 1 << 16  # that are read at once
MOST_INFLATED_BYTES = 128 << 20  # from however few, and from each byte of a larger file
MOST_INFLATED_PER_BYTE = 100
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class FileDamage:
    """What is wrong with a file as a whole; known when its last block was given."""

    cut: bool = False  # compressed, and its end is missing or damaged
    long_lines: int = 0
    unended: bool = False  # the last line, which is the last block, has no end


def blocks(path: str, damage: FileDamage) -> Iterator[bytes]:
    """Whole lines, each with its end. Lines beyond any sense are left out and counted."""
    rest = b""
    left_out = 0  # bytes of a long line that we are in
    for piece in pieces(path, damage):
        start = 0
        if left_out:
            start = piece.find(b"\n") + 1
            if not start:
                left_out += len(piece)
                if left_out > MOST_LEFT_OUT:
                    raise UserError(
                        f"{path}: has a line of more than {MOST_LEFT_OUT >> 20} MiB, so it is not a DFTracer trace; copy it again from where it was written"
                    )
                continue
            left_out = 0
        end = piece.rfind(b"\n") + 1
        if end > start:
            yield rest + piece[start:end]
            rest = piece[end:]
        else:
            rest += piece[start:]
        if len(rest) > MOST_LINE_BYTES:
            damage.long_lines += 1
            rest, left_out = b"", len(rest)
    if rest:
        damage.unended = True
        yield rest + b"\n"


def beginning(path: str) -> bytes:
    """The first block, decompressed; nothing of a file that cannot be read."""
    try:
        return next(pieces(path, FileDamage()), b"")
    except UserError:
        return b""


def pieces(path: str, damage: FileDamage) -> Iterator[bytes]:
    """A file's content, decompressed, as it comes."""
    try:
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size  # a file that grows is read up to here
            magic = file.read(len(GZIP))
            file.seek(0)
            if magic == GZIP:
                yield from _plausible(path, _inflated(_up_to(file, size, _COMPRESSED_BYTES), damage), size)
            else:
                yield from _up_to(file, size, BLOCK_BYTES)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _opened(path: str) -> BinaryIO:
    try:
        return open_plain(path, follow=True)
    except ValueError:  # a NUL in the name
        raise UserError(f"{path}: is not a valid file name") from None
    except OSError as error:
        if error.errno == errno.EINVAL and os.path.isdir(path):
            raise UserError(f"{path}: is a directory; name the traces in it: {os.path.join(path, '*.pfw*')}") from None
        raise


def _up_to(file: BinaryIO, size: int, at_once: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(size, at_once))):
        size -= len(piece)
        yield piece


def _plausible(path: str, inflated: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Unless there are more of them than lines of events can be compressed to: a few bytes can claim to be terabytes."""
    most = max(MOST_INFLATED_BYTES, MOST_INFLATED_PER_BYTE * size)
    for piece in inflated:
        most -= len(piece)
        if most < 0:
            raise UserError(
                f"{path}: unpacks to more than {MOST_INFLATED_PER_BYTE} times its size, so it is not a trace; copy it again from where it was written"
            )
        yield piece


def _inflated(compressed: Iterator[bytes], damage: FileDamage) -> Iterator[bytes]:
    """All members of a gzip file, one after another; up to where it is damaged."""
    inflater = zlib.decompressobj(wbits=31)
    pending, fresh = b"", True
    while True:
        if not pending:
            pending = next(compressed, b"")
            if not pending:
                damage.cut = not fresh
                return
        try:
            piece = inflater.decompress(pending, BLOCK_BYTES)
            fresh = False
            if piece:
                yield piece
            while len(piece) == BLOCK_BYTES and not inflater.eof:
                piece = inflater.decompress(inflater.unconsumed_tail, BLOCK_BYTES)
                if piece:
                    yield piece
        except zlib.error:
            damage.cut = True
            return
        pending = inflater.unconsumed_tail
        if inflater.eof:
            pending, padding = _unpadded(inflater.unused_data, compressed)
            if padding > MOST_PADDING:
                damage.cut = True
                return
            inflater, fresh = zlib.decompressobj(wbits=31), True


def _unpadded(rest: bytes, compressed: Iterator[bytes]) -> tuple[bytes, int]:
    """What comes behind the zeros that a member may end with, and how many they are, up to more than any tape pads with."""
    unpadded = rest.lstrip(b"\0")
    padding = len(rest) - len(unpadded)
    while not unpadded and padding <= MOST_PADDING:
        if not (piece := next(compressed, b"")):
            break
        unpadded = piece.lstrip(b"\0")
        padding += len(piece) - len(unpadded)
    return unpadded, padding
