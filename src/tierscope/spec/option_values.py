"""What users ask `require` on the command line: batches, nodes, a sample's shape, compression."""

import re

from tierscope.errors import UserError
from tierscope.spec.kinds import Bandwidth, Dimensions
from tierscope.units import parse_bytes

MOST_BATCH = 2**20
MOST_NODES = 10**6
_MOST_VALUES = 64
_MOST_RATIO = 1e6


def read_batches(text: str) -> tuple[int, ...]:
    """`1,2,4,8`, as they stand."""
    return tuple(_whole("--batch", text, part, MOST_BATCH, "1,2,4,8") for part in _parts("--batch", text, "1,2,4,8"))


def read_counts(option: str, text: str) -> tuple[int, ...]:
    """`1,4` of any option, as they stand."""
    return tuple(_whole(option, text, part, MOST_NODES, "1,4") for part in _parts(option, text, "1,4"))


def read_nodes(text: str) -> tuple[int, ...]:
    """`1..64`: powers of two in between, and both ends; `1,2,3`: these. Ascending."""
    counts: set[int] = set()
    for part in _parts("--nodes", text, "1..64 or 1,2,4"):
        first, dots, last = part.partition("..")
        start = _whole("--nodes", text, first, MOST_NODES, "1..64 or 1,2,4")
        if not dots:
            counts.add(start)
            continue
        end = _whole("--nodes", text, last, MOST_NODES, "1..64 or 1,2,4")
        if end < start:
            raise UserError(f"--nodes {text}: {end} is below {start}; write it like 1..64")
        counts |= {start, *powers(start, end)}
    return tuple(sorted(counts))


def powers(start: int, end: int) -> list[int]:
    """Powers of two from start to end, and the end."""
    counts = [1 << place for place in range(end.bit_length()) if start <= 1 << place <= end]
    return counts if counts and counts[-1] == end else [*counts, end]


def read_shape(text: str) -> tuple[int, ...]:
    """`3x224x224`: channels, then sides."""
    try:
        return tuple(int(side) for side in Dimensions().parse(text.strip()).split("x"))
    except ValueError as error:
        raise UserError(f"--input {text}: {error}") from None


def read_compression(text: str) -> tuple[float, float | None]:
    """`4` or `4:2 GB/s`: how many times smaller, and how many bytes of samples a node unpacks per second."""
    ratio, colon, rate = text.partition(":")
    try:
        times = float(ratio)
    except ValueError:
        times = 0.0
    if not 1 <= times <= _MOST_RATIO:
        raise UserError(
            f"--compression {text}: the ratio must be a number, 1 or more, e.g. 4 or 4:2GB/s (ratio, then decompressed bytes per second and node)"
        )
    if not colon:
        return times, None
    try:
        return times, float(Bandwidth(1).parse(rate))
    except ValueError as error:
        raise UserError(f"--compression {text}: {rate or 'the rate'}: {error}; write it like 4:2GB/s") from None


def read_size(option: str, text: str) -> int:
    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None
    if not size > 0:
        raise UserError(f"{option} {text}: must be above 0, e.g. 17 MB")
    return int(size)


def _parts(option: str, text: str, example: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(parts) > _MOST_VALUES:
        raise UserError(f"{option} {text}: must be 1 to {_MOST_VALUES} numbers; write it like {example}")
    return parts


def _whole(option: str, text: str, part: str, most: int, example: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", part.strip()) or not 1 <= int(part) <= most:
        raise UserError(
            f"{option} {text}: {part or 'nothing'} is not a whole number from 1 to {most:,}; write it like {example}"
        )
    return int(part)
