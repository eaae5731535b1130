"""How a rank pulls batches: which loaders there are."""

from tierscope.loaders.base import Batch, Loader, Reach, SampleSource
from tierscope.loaders.choose import choose_loader
from tierscope.registry import Entry, Registry

LOADERS: Registry[type[Loader]] = Registry(
    "loader",
    {
        "inline": Entry(
            "tierscope.loaders.inline:InlineLoader",
            "reads in the rank's own thread when a batch is asked for",
        ),
        "threads": Entry("tierscope.loaders.threads:ThreadLoader", "own threads read ahead while the rank computes"),
        "native": Entry("tierscope.loaders.native:NativeLoader", "both in C: without the interpreter's lock"),
        "pytorch": Entry("tierscope.loaders.pytorch:TorchLoader", "torch's DataLoader, with its workers", "torch"),
        "tensorflow": Entry("tierscope.loaders.tf_data:TfDataLoader", "TensorFlow's tf.data", "tensorflow"),
    },
)

__all__ = ["LOADERS", "Batch", "Loader", "Reach", "SampleSource", "choose_loader"]
