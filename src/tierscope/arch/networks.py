"""The networks that ship, and what each is trained on.

Sizes of training sets are as published by the Architecture study (Ibrahim et al., PMBS 2021) and, for the two networks that only the
Training study (Han et al., CLUSTER 2019) has, of the data sets that it names: ImageNet and MNIST.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tierscope.arch.alexnet import alexnet
from tierscope.arch.cosmoflow import cosmoflow
from tierscope.arch.deepcam import deepcam
from tierscope.arch.layer import Shape
from tierscope.arch.lenet import lenet5
from tierscope.arch.network import Network
from tierscope.arch.resnet import resnet50, resnet101
from tierscope.errors import UserError
from tierscope.units import closest


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """`element_bytes`: of an input element as it lies in memory; `file_bytes`: of a sample as storage must deliver it; `target_bytes`: of a label;
    `samples_per_file`: how many lie in one file.
    """

    samples: int
    element_bytes: int
    file_bytes: float
    about: str
    target_bytes: int = 8
    samples_per_file: int = 1


@dataclass(frozen=True, slots=True)
class Known:
    build: Callable[..., Network]  # of a sample's shape, if it is not the usual one
    data: TrainingSet
    summary: str


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

NETWORKS: dict[str, Known] = {
    "cosmoflow": Known(cosmoflow, _COSMOFLOW, "regression on cubes of 128^3 x 4"),
    "deepcam": Known(deepcam, _DEEPCAM, "segmentation of climate images of 768 x 1152 x 16"),
    "resnet50": Known(resnet50, _IMAGENET, "classification of images, 25.6 million parameters"),
    "resnet101": Known(resnet101, _IMAGENET, "classification of images, 44.5 million parameters"),
    "alexnet": Known(alexnet, _IMAGENET, "classification of images, 61.1 million parameters"),
    "lenet5": Known(lenet5, _MNIST, "handwritten digits, 62 thousand parameters"),
}
ALIASES = {"lenet": "lenet5"}


def build_network(name: str, shape: Shape | None = None) -> Network:
    """Refuses a shape that the network cannot take."""
    known = find_network(name)
    usual = known.build()
    if shape is None or shape == usual.input_shape:
        return usual
    if len(shape) != len(usual.input_shape) or shape[0] != usual.input_shape[0]:
        raise UserError(
            f"--input {shown(shape)}: {name} takes {usual.input_shape[0]} channels and {len(usual.input_shape) - 1} sides, "
            f"like {shown(usual.input_shape)}"
        )
    network = known.build(shape)
    small = next((layer for layer in network.layers if min(layer.out_shape) < 1), None)
    uneven = network.layers[-1].kind.startswith("ConvTranspose") and network.layers[-1].out_shape[1:] != shape[1:]
    if small or uneven:
        reason = f"nothing is left of it at layer {small.name}" if small else "its sides must divide by 16"
        raise UserError(
            f"--input {shown(shape)}: {name} cannot take it: {reason}; its own is {shown(usual.input_shape)}"
        )
    return network


def shown(shape: Shape) -> str:
    return "x".join(map(str, shape))


def find_network(name: str) -> Known:
    if ":" in name:
        raise UserError(f"{name}: only networks that ship are taken here, not module:function: {', '.join(NETWORKS)}")
    known = NETWORKS.get(ALIASES.get(name, name))
    if known is None:
        guess = closest(name, [*NETWORKS, *ALIASES])
        hint = f"did you mean {guess}?" if guess else f"known: {', '.join(NETWORKS)}"
        raise UserError(f"{name}: no such network; {hint}; or give module:function that builds one of torch")
    return known
