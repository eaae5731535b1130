"""The file of what was seen on no tier: written as zeros, read without trust."""

import os
import struct
from pathlib import Path

import pytest

from tierscope.native.seen import NAME, SEEN_BYTES, SeenElsewhere, read_seen
from tierscope.native.setup import TierSetup, write_setup


def page(
    processes: int = 0, rings: int = 0, faults: int = 0, own: int = 0, writable: int = 0, **slots: tuple[int, int]
) -> bytes:
    """`slots`: s3=(read, written)."""
    content = bytearray(SEEN_BYTES)
    struct.pack_into("<QQQQQ", content, 0, processes, rings, faults, own, writable)
    for name, counts in slots.items():
        struct.pack_into("<qq", content, 64 * (1 + int(name[1:])), *counts)
    return bytes(content)


def test_a_new_one_is_empty(tmp_path: Path) -> None:
    write_setup(str(tmp_path), [TierSetup(("/gfs",))], 0, "")
    assert read_seen(str(tmp_path)) == SeenElsewhere(0, 0, 0, 0, 0, 0, 0)


def test_slots_are_added_up(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(page(3, 1, 7, 9, 8, s0=(10, 20), s63=(-4, 5)))
    assert read_seen(str(tmp_path)) == SeenElsewhere(6, 25, 3, 1, 7, 9, 8)


@pytest.mark.parametrize(
    "content", [b"", page()[:-1], page(processes=1 << 63), page(s1=(1 << 62, 0)), page(s1=(0, -(1 << 63)))]
)
def test_what_cannot_be_is_not_known(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert read_seen(str(tmp_path)) is None


def test_anything_else_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    assert read_seen(str(tmp_path)) is None
    os.mkfifo(tmp_path / NAME)
    assert read_seen(str(tmp_path)) is None
