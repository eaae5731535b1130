"""How a rank pulls batches: one module per loader. This is their registry."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierscope.registry import Entry, Registry

if TYPE_CHECKING:
    from tierscope.loaders.base import Batch, Loader, Reach, SampleSource
    from tierscope.loaders.choose import choose_loader

__all__ = ["LOADERS", "Batch", "Loader", "LoaderEntry", "Reach", "SampleSource", "choose_loader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderEntry(Entry):
    """`by_name`: a study's `data_loader` can ask for it. `in_c`: reads without Python, so O_DIRECT and io_uring are its to do. `framework`: it reads in
    processes and threads of its own, where only a preloaded library can see it. `workers`: it starts processes (`multiprocessing_context`) and
    pins memory. `in_order`: it reads many samples of a file from beginning to end only. `evicted_in_c`: it opens
    files where only the preloaded library can evict them. `package`: what it imports, of its extra. `dlio`: DLIO's
    names for it.
    """

    by_name: bool = True
    in_c: bool = False
    framework: bool = False
    workers: bool = False
    in_order: bool = False
    evicted_in_c: bool = False
    package: str | None = None
    dlio: tuple[str, ...] = ()

    @property
    def in_python(self) -> bool:
        """Our own, and its reads pass through Python."""
        return not self.in_c and not self.framework


LOADERS: "Registry[type[Loader], LoaderEntry]" = Registry(
    "loader",
    {
        "inline": LoaderEntry(
            "tierscope.loaders.inline:InlineLoader",
            "reads in the rank's own thread on demand; what other loaders do without read threads",
            by_name=False,
        ),
        "native": LoaderEntry("tierscope.loaders.native:NativeLoader", "both in C, without the GIL", in_c=True),
        "threads": LoaderEntry(
            "tierscope.loaders.threads:ThreadLoader", "Python threads prefetch while the rank computes"
        ),
        "pytorch": LoaderEntry(
            "tierscope.loaders.pytorch:TorchLoader",
            "torch's DataLoader, with its workers",
            "torch",
            framework=True,
            workers=True,
            package="torch",
            dlio=("pytorch",),
        ),
        "tensorflow": LoaderEntry(
            "tierscope.loaders.tf_data:TfDataLoader",
            "TensorFlow's tf.data",
            "tensorflow",
            framework=True,
            in_order=True,
            evicted_in_c=True,
            package="tensorflow",
            dlio=("tensorflow",),
        ),
    },
)


def __getattr__(name: str) -> Any:
    """What loaders are made of, loaded when it is first asked for: a study's choices need the registry only."""
    if name == "choose_loader":
        from tierscope.loaders import choose  # noqa: PLC0415

        return choose.choose_loader
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tierscope.loaders import base  # noqa: PLC0415

    return getattr(base, name)
