"""Loaders that `train` is asked for: which of them a study is checked with, and what changes with them when several are compared."""

from collections.abc import Iterator

from tierscope.loaders import LOADERS
from tierscope.spec.framework_check import OF_WORKERS
from tierscope.spec.study import Axis, Reader, Study

LOADER = "workload.reader.data_loader"
_ZIP = 1


def loader_settings(asked: str | None) -> Iterator[str]:
    """The loader that the study has where others are not compared: the first with workers, so that their keys can be given.

    A name that nobody knows is refused later, where the option is named.
    """
    names = [name.strip() for name in (asked or "").split(",")]
    known = [name for name in names if name in ("auto", *LOADERS.entries)]
    if asked and len(known) == len(names):
        yield f"{LOADER}={next((name for name in known if _has_workers(name)), known[0])}"


def with_worker_keys(base: Study, axis: Axis) -> tuple[Axis, ...]:
    """The loaders, and keys that only those with workers know: others get them as they are by themselves."""
    usual = Reader()
    changed = [name for name in OF_WORKERS if getattr(base.workload.reader, name) != getattr(usual, name)]
    if not changed or all(map(_has_workers, axis.values)):
        return (axis,)
    zipped = [Axis(LOADER, axis.values, _ZIP)]
    for name in changed:
        given, other = getattr(base.workload.reader, name), getattr(usual, name)
        values = tuple(given if _has_workers(loader) else other for loader in axis.values)
        zipped.append(Axis(f"workload.reader.{name}", values, _ZIP))
    return tuple(zipped)


def _has_workers(name: str) -> bool:
    return name in LOADERS and LOADERS[name].workers
