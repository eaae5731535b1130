"""The hardware-efficiency histogram of one step of a network on the device that is here."""

from dataclasses import asdict, dataclass

from tierscope.arch.efficiency import BINS, COUNTED, COUNTERS, Histogram, Kernel, histogram, slowest
from tierscope.arch.layer import Shape
from tierscope.arch.networks import build_network, shown
from tierscope.arch.precision import PRECISIONS
from tierscope.errors import UserError
from tierscope.jsonable import JsonObject

SCHEMA_VERSION = 1
_SOLVER = "sgd"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """`ceilings`: what was measured on the same device and efficiencies are relative to; None: hardware counters know their own. A step of SGD that keeps its activations."""

    network: str
    batch: int
    precision: str
    device: str
    histogram: Histogram
    slowest: tuple[Kernel, ...]
    ceilings: dict[str, float] | None
    input: str = ""
    device_memory_bytes: int | None = None

    @property
    def title(self) -> str:
        return f"{self.network}, batch {self.batch}, {self.precision}, on {self.device}"


def measure_efficiency(
    name: str, batch: int, precision: str, device: str, shape: Shape | None = None, by_counters: bool = False
) -> Efficiency:
    network = build_network(name, shape)
    try:
        from tierscope.train.devices import device_name, memory_bytes, pick_device  # noqa: PLC0415  (imports torch)
    except ModuleNotFoundError as error:
        raise UserError(
            f"'tierscope kernels' needs {error.name}, which is not installed; pip install 'tierscope[torch]'"
        ) from None
    from tierscope.train import ceilings, counters, fits, operations, steps  # noqa: PLC0415

    where = pick_device(device, 0, "--device")
    known = None
    if by_counters:
        if where.type != "cuda":
            raise UserError("--counters needs a CUDA device, but torch finds none; remove --counters")
        kernels = counters.profile_step(network, batch, precision, _SOLVER)
    else:
        fits.refuse_too_large(network, batch, PRECISIONS[precision], _SOLVER, False, where)
        known = ceilings.measure_ceilings(where)
        trainer = steps.Trainer(network, batch, PRECISIONS[precision], _SOLVER, where)
        kernels = operations.as_kernels(operations.watch_step(trainer), known, where.type == "cuda")
    return Efficiency(
        network.name,
        batch,
        precision,
        device_name(where),
        histogram(kernels, COUNTERS if by_counters else COUNTED),
        tuple(slowest(kernels)),
        None if known is None else asdict(known),
        shown(network.input_shape),
        memory_bytes(where),
    )


def to_json(efficiency: Efficiency) -> JsonObject:
    shares = efficiency.histogram
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "efficiency",
        "model": efficiency.network,
        "batch": efficiency.batch,
        "precision": efficiency.precision,
        "optimizer": _SOLVER,
        "checkpointed": False,
        "input": efficiency.input or None,
        "device": efficiency.device,
        "device_memory_bytes": efficiency.device_memory_bytes,
        "source": shares.source,
        "ceilings": efficiency.ceilings,
        "kernels": shares.kernels,
        "bins": [
            {
                "from": number / BINS,
                "to": (number + 1) / BINS,
                "seconds": seconds,
                "ideal_seconds": shares.ideal_by_bin[number],
                "unique_kernels": shares.unique_by_bin[number],
            }
            for number, seconds in enumerate(shares.seconds)
        ],
        "total_seconds": shares.total_seconds,
        "ideal_seconds": shares.ideal_seconds,
        "potential_speedup": shares.potential if shares.ideal_seconds else None,
        "slowest": [{**asdict(kernel), "efficiency": kernel.efficiency} for kernel in efficiency.slowest],
    }
