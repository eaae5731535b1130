"""What of LMDB's reading is timed, and how its files are mapped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tierscope.formats import FORMATS, Handle, Opened, Shape

pytest.importorskip("lmdb")

SHAPE = Shape(3, 20_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "000.lmdb"
    FORMATS.load("lmdb")(SHAPE).write(str(made), [[bytes([number]) * SHAPE.record_bytes] for number in range(3)])
    return made


def opened(path: Path, timed: Callable[[Callable[[], int]], int]) -> Handle:
    return FORMATS.load("lmdb")(SHAPE).open(Opened(str(path), lambda: None, timed))


def test_the_lookup_is_timed_as_well_as_the_copy(path: Path) -> None:
    """The library touches a value's pages when it looks it up: outside of what is timed nothing of storage would be seen."""
    works: list[Callable[[], int]] = []

    def timed(work: Callable[[], int]) -> int:
        works.append(work)
        return 0

    handle = opened(path, timed)
    slot = memoryview(bytearray(SHAPE.record_bytes))
    try:
        handle.read(99, slot)  # not there, and nobody looked
        handle.read(2, slot)
        assert not any(slot)
        missing, present = works
        with pytest.raises(ValueError, match="sample 99 is not in it"):
            missing()
        assert present() == SHAPE.record_bytes
        assert set(slot) == {2}
    finally:
        handle.close()


def test_the_system_reads_ahead_in_the_mapping(path: Path) -> None:
    """As LMDB's readers do unless they are told otherwise; `rr`: advised that reads are random, a page at a time."""
    handle = opened(path, lambda work: work())
    try:
        flags = flags_of_mapping(str(path))
    finally:
        handle.close()
    assert "rd" in flags
    assert "rr" not in flags


def flags_of_mapping(path: str) -> list[str]:
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(path) for line in lines), "the file is not mapped"
    return next(line for line in lines if line.startswith("VmFlags:")).split()[1:]
