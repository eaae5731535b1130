"""One adapter per on-disk format: how samples lie in a file, and how a read one is checked."""

from tierscope.formats.base import Extent, Format, Shape
from tierscope.registry import Entry, Registry

FORMATS: Registry[type[Format]] = Registry(
    "format",
    {
        "raw": Entry("tierscope.formats.raw:Raw", "the bare samples one after another; the least that can be read"),
        "tfrecord": Entry("tierscope.formats.tfrecord:TFRecord", "TensorFlow's records with their checksums"),
        "npz": Entry("tierscope.formats.npz:Npz", "NumPy's uncompressed archive with one array of samples"),
    },
)

__all__ = ["FORMATS", "Extent", "Format", "Shape"]
