"""The checksum inside a file: any changed byte is noticed before the file is parsed."""

import random
from pathlib import Path

import pytest

from tests.traces import trace_of
from tierscope.errors import ResultError
from tierscope.output import seal
from tierscope.output.store import RunStore
from tierscope.trace.trace import RunKey


def intact(path: Path) -> bool:
    with path.open("rb") as file:
        return seal.intact(file)


def test_a_stamped_file_is_intact_until_any_byte_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before " + seal.BLANK.encode() + b" after")
    with path.open("rb+") as file:
        seal.stamp(file)
    assert intact(path)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert not intact(path), place


@pytest.mark.parametrize("content", [b"", b"no stamp", seal.BLANK.encode() * 2])
def test_a_file_without_one_stamp_is_not_intact(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not intact(path)


def test_no_flipped_bit_of_a_run_goes_unnoticed(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    store.save(trace_of({(0, 1): {"GFS-READ": 0.5}}))
    path = Path(store.path(RunKey(0, 1)))
    content = path.read_bytes()
    dice = random.Random(3)
    for _ in range(300):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(ResultError, match="is not a readable Tierscope result"):
            store.load(RunKey(0, 1))
