"""One adapter per on-disk format: how samples lie in a file, and how a read one is checked. This is their registry."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierscope.registry import Entry, Registry

if TYPE_CHECKING:
    from tierscope.formats.base import Extent, Format, Handle, Opened, Shape

__all__ = [
    "EXTENTS",
    "FORMATS",
    "LIBRARY",
    "NOTHING",
    "WHOLE",
    "Extent",
    "Format",
    "FormatEntry",
    "Handle",
    "Opened",
    "Shape",
]

EXTENTS, WHOLE, LIBRARY, NOTHING = "extents", "whole", "library", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatEntry(Entry):
    """`reading`: how a sample is fetched (`Format`). `collective`: ranks can read one file of it together. `mapped`: its files are mapped into
    memory, so that nothing can hold up a read. `picture`: must be decoded before training. `records`: TensorFlow reads many samples of one
    file from beginning to end. `options`: the section of a study's `dataset` that says how its files are laid out. `dlio`: DLIO's names for it.
    """

    reading: str = EXTENTS
    collective: bool = False
    mapped: bool = False
    picture: bool = False
    records: bool = False
    options: str | None = None
    dlio: tuple[str, ...] = ()

    @property
    def natively(self) -> bool:
        """Its samples lie where C can compute it."""
        return self.reading == EXTENTS

    @property
    def library(self) -> bool:
        """Someone else's code reads it."""
        return self.reading == LIBRARY

    @property
    def in_memory(self) -> bool:
        """There are no files."""
        return self.reading == NOTHING


FORMATS: "Registry[type[Format], FormatEntry]" = Registry(
    "format",
    {
        "raw": FormatEntry(
            "tierscope.formats.raw:Raw",
            "the bare samples, concatenated; the least possible to read",
            collective=True,
        ),
        "tfrecord": FormatEntry(
            "tierscope.formats.tfrecord:TFRecord",
            "TensorFlow's records with their checksums",
            records=True,
            dlio=("tfrecord",),
        ),
        "npz": FormatEntry(
            "tierscope.formats.npz:Npz", "NumPy's uncompressed archive with one array of samples", dlio=("npz",)
        ),
        "npy": FormatEntry("tierscope.formats.npy:Npy", "NumPy's bare array of samples", dlio=("npy",)),
        "hdf5": FormatEntry(
            "tierscope.formats.hdf5:Hdf5",
            "HDF5, optionally chunked and compressed",
            "hdf5",
            reading=LIBRARY,
            collective=True,
            options="hdf5",
            dlio=("hdf5",),
        ),
        "csv": FormatEntry("tierscope.formats.csv:Csv", "text: one row of numbers per sample", dlio=("csv",)),
        "lmdb": FormatEntry(
            "tierscope.formats.lmdb:Lmdb",
            "LMDB: a memory-mapped database",
            "lmdb",
            reading=LIBRARY,
            mapped=True,
        ),
        "parquet": FormatEntry(
            "tierscope.formats.parquet:Parquet",
            "Parquet: a row group per sample",
            "parquet",
            reading=LIBRARY,
            dlio=("parquet",),
        ),
        "jpeg": FormatEntry(
            "tierscope.formats.images:Jpeg",
            "lossy pictures, one sample each",
            "images",
            reading=WHOLE,
            picture=True,
            dlio=("jpeg",),
        ),
        "png": FormatEntry(
            "tierscope.formats.images:Png",
            "lossless pictures, one sample each",
            "images",
            reading=WHOLE,
            picture=True,
            dlio=("png",),
        ),
        "synthetic": FormatEntry(
            "tierscope.formats.synthetic:Synthetic",
            "no files: everything except storage",
            reading=NOTHING,
            dlio=("synthetic",),
        ),
    },
)


def __getattr__(name: str) -> Any:
    """What adapters are made of, loaded when it is first asked for: reading the registry needs no NumPy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tierscope.formats import base  # noqa: PLC0415

    return getattr(base, name)
