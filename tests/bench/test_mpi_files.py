"""Files by MPI-IO, with a library that is made up: what it says, and how it is understood."""

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from tierscope.bench.mpi_files import TogetherByMpi


class MpiError(Exception):
    def __init__(self, number: int) -> None:
        self.number = number

    def Get_error_class(self) -> int:  # noqa: N802
        return self.number

    def Get_error_string(self) -> str:  # noqa: N802
        return f"MPI_ERR_{self.number}"


class Library:
    """A file of 100 bytes; like ROMIO 3.2 it does not touch the status of a read of nothing. `fails`: with which error, where."""

    Exception, MODE_RDONLY, BYTE, ERR_NO_SUCH_FILE, ERR_ACCESS = MpiError, 2, "byte", 42, 20

    def __init__(self, **fails: int) -> None:
        self._fails, self._count = fails, -1
        self.File = SimpleNamespace(Open=self._open)

    def Status(self) -> Any:  # noqa: N802
        return SimpleNamespace(Get_count=lambda _: self._count)

    def _done(self, what: str) -> None:
        if what in self._fails:
            raise MpiError(self._fails[what])

    def _open(self, communicator: object, path: str, mode: int) -> Any:
        assert (communicator, path, mode) == ("ranks", "/some/file", 2)
        self._done("open")
        return SimpleNamespace(Get_size=lambda: 100, Read_at_all=self._read, Close=lambda: self._done("close"))

    def _read(self, _offset: int, buffer: list[Any], _status: object) -> None:
        self._done("read")
        if buffer[1]:
            self._count = buffer[1]


def test_bytes_of_each_read() -> None:
    file = TogetherByMpi(Library(), "ranks").open("/some/file")
    assert file.size == 100
    assert [file.read(0, memoryview(bytearray(size))) for size in (60, 0, 40, 0)] == [60, 0, 40, 0]
    file.close()


@pytest.mark.parametrize("where", ["open", "read", "close"])
@pytest.mark.parametrize(("number", "system"), [(42, errno.ENOENT), (20, errno.EACCES), (35, None)])
def test_errors_are_the_system_s_where_it_has_them(where: str, number: int, system: int | None) -> None:
    ranks = TogetherByMpi(Library(**{where: number}), "ranks")
    with pytest.raises(OSError, match=f"MPI_ERR_{number}") as caught:
        _use(ranks)
    assert caught.value.errno == system


def _use(ranks: TogetherByMpi) -> None:
    file = ranks.open("/some/file")
    file.read(0, memoryview(bytearray(1)))
    file.close()
