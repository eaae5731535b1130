"""Which registered loader a study's `data_loader` means on this machine. Decided once for a run; everybody else is told."""

from tierscope.errors import UserError
from tierscope.loaders import LOADERS
from tierscope.native import library
from tierscope.spec.emulation import python_only, reads_in_python
from tierscope.spec.study import FRAMEWORKS, Reader, Study
from tierscope.storage.opening import storage_type

_INSTALL = "reinstall tierscope with a C compiler available, or"


def choose_loader(study: Study, seen: bool = False) -> str:
    """`auto` is native where that one can do all that the study asks; threads without any thread read inline.

    `seen`: another profiler must see what it reads. Refuses a loader that cannot do what the study asks.
    """
    reader = study.workload.reader
    if reader.data_loader in FRAMEWORKS:
        if seen:
            raise UserError(
                f"workload.reader.data_loader = {reader.data_loader} works only with the built-in recorder; remove --profiler"
            )
        return reader.data_loader
    name = _in_python(reader) if seen or _only_in_python(study) else _available(reader)
    wanted = "odirect = true" if reader.odirect else "io_engine = uring" if reader.io_engine == "uring" else None
    if wanted and not LOADERS[name].in_c:
        raise UserError(
            f"workload.reader.{wanted} needs the native loader, whose library is missing or cannot be loaded; "
            f"{_INSTALL} remove the key"
        )
    return name


def fills_as_it_reads(study: Study) -> bool:
    """Whether ranks copy what they read to the near tier."""
    return study.placement.policy == "first-touch"


def _only_in_python(study: Study) -> bool:
    """The native loader opens paths itself. It does not emulate all that a tier may be, copy files, or read through MPI."""
    reader, tiers = study.workload.reader, study.system.tiers
    return (
        fills_as_it_reads(study)
        or any(python_only(tier) or not storage_type(tier).abilities.paths for tier in tiers)
        or reader.file_access == "collective"
        or (reader.data_loader == "auto" and reads_in_python(study) is not None)
    )


def _in_python(reader: Reader) -> str:
    """The loader that is asked for, if its reads pass through Python; threads for one that is not of this kind."""
    name = reader.data_loader
    if name in LOADERS and LOADERS[name].in_python and name != "threads":
        return name
    return "threads" if reader.read_threads else "inline"


def _available(reader: Reader) -> str:
    name = "native" if reader.data_loader == "auto" else reader.data_loader
    if not LOADERS[name].in_c or library.load() is not None:
        return name if LOADERS[name].in_c else _in_python(reader)
    if reader.data_loader == "auto":
        return _in_python(reader)
    raise UserError(
        f"workload.reader.data_loader = {name}, but the native library is missing or cannot be loaded; "
        f"{_INSTALL} set data_loader: threads"
    )
