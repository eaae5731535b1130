"""How long a step is taken to be, and who says so.

Without a measurement a step takes the roofline at least, and at most SLOWEST times that and LAUNCH_SECONDS for each layer, of FEWEST_LAYERS at least. No step that is known took longer: on an H200 at most 12 times the roofline and the launches
(six networks, `python -m validation accelerator`); on a V100, by the Architecture study's Table II (bytes over sustained bandwidth, A-X-3), CosmoFlow 16.5 times, DeepCAM 6.6 and ResNet-50 7.1. The second part is the host's, which gives every layer to the device: of small batches and small networks it is nearly all.
Loss, zeroing and update come to every step, however few its layers are: 0.98 ms on that host, and at most 0.2 ms for each (validation/h200/device.yaml). An answer
that differs between the ends of what is known is unclear.
"""

from dataclasses import dataclass

SLOWEST = 20.0  # times the roofline: the slowest that is known, 16.5, and a fifth for what is not
LAUNCH_SECONDS = (
    3e-4  # of a layer, forward, backward and update; at most 0.21 ms were measured (LeNet-5), and hosts differ
)
FEWEST_LAYERS = 10
ROOFLINE, GIVEN, PREDICTED, MEASURED = "roofline", "given", "predicted", "measured"


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Of one accelerator's first batch, without input and exchange. `low`, `high`: between these it is; `outside`: sizes beyond what the device file has; `links_measured`: all-reduce in a node was."""

    seconds: float
    low: float
    high: float
    source: str
    about: str
    outside: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    links_measured: bool = False


def from_roofline(seconds: float, layers: int) -> StepSeconds:
    """`layers`: of the network."""
    at_least = f" of {FEWEST_LAYERS} at least" if layers < FEWEST_LAYERS else ""
    about = f"the roofline, or up to {SLOWEST:g} × that and {1e3 * LAUNCH_SECONDS:g} ms for each layer{at_least}"
    return StepSeconds(seconds, seconds, SLOWEST * seconds + launch_seconds(layers), ROOFLINE, about)


def launch_seconds(layers: int) -> float:
    """The most that the host takes to give so many layers to the device."""
    return LAUNCH_SECONDS * max(layers, FEWEST_LAYERS)


def given(seconds: float) -> StepSeconds:
    return StepSeconds(seconds, seconds, seconds, GIVEN, "--step-seconds")
