"""In which precision a network is trained, and with which optimizer."""

from dataclasses import dataclass

PARAMETER_BYTES = 4  # weights, their gradients and the optimizer's moments are 32-bit in both precisions


@dataclass(frozen=True, slots=True)
class Precision:
    """`amp`: matrix products and what follows them in 16 bits, with 16-bit copies of the weights; otherwise all in 32 bits."""

    name: str
    activation_bytes: int
    copies_weights: bool


PRECISIONS = {"fp32": Precision("fp32", 4, False), "amp": Precision("amp", 2, True)}
OPTIMIZER_STATES = {"none": 0, "sgd": 1, "adam": 2}  # moments kept for each parameter
