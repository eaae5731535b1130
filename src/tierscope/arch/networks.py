"""The networks that ship, and what each is trained on.

Sizes of training sets are as published by the Architecture study (Ibrahim et al., PMBS 2021) and, for the two networks that only the
Training study (Han et al., CLUSTER 2019) has, of the data sets that it names: ImageNet and MNIST.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierscope.errors import UserError
from tierscope.registry import Entry, Registry
from tierscope.units import closest, counted

if TYPE_CHECKING:  # a study's choices need the registry only
    from tierscope.arch.layer import Shape
    from tierscope.arch.network import Network


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """`element_bytes`: of an input element as it lies in memory; `file_bytes`: of a sample as storage must deliver it; `target_bytes`: of a label;
    `samples_per_file`: how many lie in one file; `assumed`: nobody said how many there are.
    """

    samples: int
    element_bytes: int
    file_bytes: float
    about: str
    target_bytes: int = 8
    samples_per_file: int = 1
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkEntry(Entry):
    """Its target builds it, of a sample's shape if that is not the usual one. `aliases`: other names that a command line may use."""

    data: TrainingSet
    aliases: tuple[str, ...] = ()


_IMAGENET = TrainingSet(
    1_281_167,
    1,
    150e9 / 1_281_167,
    "ImageNet: 150 GB, about 1.3 million images in 1,024 files",
    samples_per_file=-(-1_281_167 // 1_024),
)
_COSMOFLOW = TrainingSet(262_144, 2, 17e6, "5.1 TB as published: 262,144 files, 17 MB to read for each sample", 16)
_DEEPCAM = TrainingSet(
    121_266, 2, 61e6, "8.8 TB as published: 121,266 files, 61 MB to read for each sample", 768 * 1152 * 8
)
_MNIST = TrainingSet(60_000, 1, 28 * 28, "MNIST: 60,000 images of 28 x 28 bytes in one file", samples_per_file=60_000)

NETWORKS: "Registry[Callable[..., Network], NetworkEntry]" = Registry(
    "network",
    {
        "cosmoflow": NetworkEntry(
            "tierscope.arch.cosmoflow:cosmoflow", "regression on cubes of 128^3 x 4", data=_COSMOFLOW
        ),
        "deepcam": NetworkEntry(
            "tierscope.arch.deepcam:deepcam", "segmentation of climate images of 768 x 1152 x 16", data=_DEEPCAM
        ),
        "resnet50": NetworkEntry(
            "tierscope.arch.resnet:resnet50", "classification of images, 25.6 million parameters", data=_IMAGENET
        ),
        "resnet101": NetworkEntry(
            "tierscope.arch.resnet:resnet101", "classification of images, 44.5 million parameters", data=_IMAGENET
        ),
        "alexnet": NetworkEntry(
            "tierscope.arch.alexnet:alexnet", "classification of images, 61.1 million parameters", data=_IMAGENET
        ),
        "lenet5": NetworkEntry(
            "tierscope.arch.lenet:lenet5",
            "handwritten digits, 62 thousand parameters",
            data=_MNIST,
            aliases=("lenet",),
        ),
    },
)
ALIASES = {alias: name for name, entry in NETWORKS.entries.items() for alias in entry.aliases}


def build_network(name: str, shape: "Shape | None" = None) -> "Network":
    """Refuses a shape that the network cannot take."""
    find_network(name)
    build = NETWORKS.load(ALIASES.get(name, name))
    usual = build()
    if shape is None or shape == usual.input_shape:
        return usual
    if len(shape) != len(usual.input_shape) or shape[0] != usual.input_shape[0]:
        raise UserError(
            f"--input {shown(shape)}: {name} takes {counted(usual.input_shape[0], 'channel')} and {counted(len(usual.input_shape) - 1, 'side')}, "
            f"like {shown(usual.input_shape)}"
        )
    network = build(shape)
    small = next((layer for layer in network.layers if min(layer.out_shape) < 1), None)
    uneven = network.layers[-1].kind.startswith("ConvTranspose") and network.layers[-1].out_shape[1:] != shape[1:]
    if small or uneven:
        reason = f"it is too small for layer {small.name}" if small else "its sides must be multiples of 16"
        raise UserError(
            f"--input {shown(shape)}: {name} does not support it: {reason}; its default is {shown(usual.input_shape)}"
        )
    return network


def shown(shape: "Shape") -> str:
    return "x".join(map(str, shape))


def find_network(name: str) -> NetworkEntry:
    """What is known of it, by its name or another of its names."""
    if ":" in name:
        raise UserError(
            f"{name}: only built-in networks are supported here, not module:function: {', '.join(NETWORKS)}"
        )
    known = ALIASES.get(name, name)
    if known not in NETWORKS:
        guess = closest(name, [*NETWORKS, *ALIASES])
        hint = f"did you mean {guess}?" if guess else f"choose from {', '.join(NETWORKS)}."
        raise UserError(f"{name}: no such network; {hint} For your own network, use module:function")
    return NETWORKS[known]
