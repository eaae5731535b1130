"""CRC-32C of bytes: by the `crc32c` package; in Python where nothing can be installed (a machine lent for its accelerator), a thousand times slower."""

from functools import cache

__all__ = ["crc32c"]


@cache
def _table() -> tuple[int, ...]:
    def entry(value: int) -> int:
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        return value

    return tuple(map(entry, range(256)))


def _in_python(data: bytes | memoryview, value: int = 0) -> int:
    table, value = _table(), value ^ 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        value = value >> 8 ^ table[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


try:
    from crc32c import crc32c
except ModuleNotFoundError:
    crc32c = _in_python  # type: ignore[assignment]
