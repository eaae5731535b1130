"""Which registered loader a study's `data_loader` means here."""

from tierscope.errors import UserError
from tierscope.native import library


def choose_loader(data_loader: str, read_threads: int) -> str:
    """`auto` is native where its library can be loaded; threads without any thread read inline."""
    available = library.load() is not None
    if data_loader == "native" and not available:
        raise UserError(
            "workload.reader.data_loader = native, but the native library is missing or cannot be loaded; "
            "install tierscope again where there is a C compiler, or set data_loader: threads"
        )
    if data_loader == "native" or (data_loader == "auto" and available):
        return "native"
    return "threads" if read_threads else "inline"
