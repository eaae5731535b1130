"""Files that ranks open and read together, through MPI-IO."""

import errno
from typing import Any

from tierscope.spec.study import Study


def together(study: Study, rank: int) -> "tuple[TogetherByMpi, ...]":
    """The ranks that see what this one sees of each tier: all of them, or those of its node. All ranks call it."""
    from mpi4py import MPI  # noqa: PLC0415  (an extra; ranks under a launcher have it)

    node = rank // study.system.ranks_per_node
    groups = [node if tier.visible_to == "node" else 0 for tier in study.system.tiers]
    return tuple(TogetherByMpi(MPI, MPI.COMM_WORLD.Split(group, rank)) for group in groups)


class TogetherByMpi:
    def __init__(self, mpi: Any, communicator: Any) -> None:
        self.communicator, self._mpi = communicator, mpi

    def open(self, path: str) -> "MpiFile":
        return MpiFile(self._mpi, self.communicator, path)

    def leave(self) -> None:
        """At the end of a run that went well."""
        self.communicator.Free()


class MpiFile:
    def __init__(self, mpi: Any, communicator: Any, path: str) -> None:
        self._mpi, self._status = mpi, mpi.Status()
        try:
            self._file = mpi.File.Open(communicator, path, mpi.MODE_RDONLY)
            self.size = int(self._file.Get_size())
        except mpi.Exception as error:
            raise self._as_os_error(error) from None

    def read(self, offset: int, into: memoryview) -> int:
        try:
            self._file.Read_at_all(offset, [into, into.nbytes, self._mpi.BYTE], self._status)
        except self._mpi.Exception as error:
            raise self._as_os_error(error) from None
        return int(self._status.Get_count(self._mpi.BYTE)) if into.nbytes else 0  # of which an older ROMIO says nothing

    def close(self) -> None:
        try:
            self._file.Close()
        except self._mpi.Exception as error:
            raise self._as_os_error(error) from None

    def _as_os_error(self, error: Any) -> OSError:
        """With the system's number, where MPI has a class for it."""
        known = {self._mpi.ERR_NO_SUCH_FILE: errno.ENOENT, self._mpi.ERR_ACCESS: errno.EACCES}
        number, text = known.get(error.Get_error_class()), str(error.Get_error_string())
        return OSError(number, text) if number else OSError(text)
