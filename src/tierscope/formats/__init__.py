"""One adapter per on-disk format: how samples lie in a file, and how a read one is checked."""

from tierscope.formats.base import EXTENTS, LIBRARY, NOTHING, WHOLE, Extent, Format, Handle, Opened, Shape
from tierscope.registry import Entry, Registry

FORMATS: Registry[type[Format]] = Registry(
    "format",
    {
        "raw": Entry("tierscope.formats.raw:Raw", "the bare samples one after another; the least that can be read"),
        "tfrecord": Entry("tierscope.formats.tfrecord:TFRecord", "TensorFlow's records with their checksums"),
        "npz": Entry("tierscope.formats.npz:Npz", "NumPy's uncompressed archive with one array of samples"),
        "npy": Entry("tierscope.formats.npy:Npy", "NumPy's bare array of samples"),
        "hdf5": Entry("tierscope.formats.hdf5:Hdf5", "HDF5, in chunks and compressed if wanted", "hdf5"),
        "csv": Entry("tierscope.formats.csv:Csv", "text: a row of numbers per sample"),
        "lmdb": Entry("tierscope.formats.lmdb:Lmdb", "LMDB: a database that is mapped into memory", "lmdb"),
        "parquet": Entry("tierscope.formats.parquet:Parquet", "Parquet: a row group per sample", "parquet"),
        "jpeg": Entry("tierscope.formats.images:Jpeg", "pictures, one sample each, with losses", "images"),
        "png": Entry("tierscope.formats.images:Png", "pictures, one sample each, without losses", "images"),
        "synthetic": Entry("tierscope.formats.synthetic:Synthetic", "no files: all that is not storage"),
    },
)

__all__ = ["EXTENTS", "FORMATS", "LIBRARY", "NOTHING", "WHOLE", "Extent", "Format", "Handle", "Opened", "Shape"]
