"""Where a network stands against a device: operations and bytes of every layer, and the least time that they take.

A layer takes at least its operations over the peak of the cores that can do them, and at least its bytes over the memory's bandwidth:
the larger of the two (Williams et al., 2009). Layers run one after another, so a network takes the sum.
"""

from dataclasses import dataclass

from tierscope.arch.network import Network
from tierscope.arch.precision import Precision
from tierscope.arch.traffic import traffic, uses_tensor_cores


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks, nominal or measured. `tensor`: of matrix products in 16 bits; None: the device has none."""

    fp32: float
    memory_bandwidth: float
    tensor: float | None = None
    tf32: float | None = (
        None  # of 32-bit products where tensor cores take them with fewer bits, as torch's convolutions do
    )

    def peak(self, precision: Precision, tensor_cores: bool = True) -> float:
        peak = self.tensor if precision.copies_weights else self.tf32
        return peak if peak and tensor_cores else self.fp32


@dataclass(frozen=True, slots=True)
class LayerCost:
    name: str
    kind: str
    forward_flops: int
    backward_flops: int
    forward_bytes: int
    backward_bytes: int
    tensor_cores: bool

    @property
    def flops(self) -> int:
        return self.forward_flops + self.backward_flops

    @property
    def nbytes(self) -> int:
        return self.forward_bytes + self.backward_bytes

    def seconds(self, device: Device, precision: Precision) -> float:
        """At least, forward and backward, for one sample."""
        peak = device.peak(precision, self.tensor_cores)
        forward = max(self.forward_flops / peak, self.forward_bytes / device.memory_bandwidth)
        return forward + max(self.backward_flops / peak, self.backward_bytes / device.memory_bandwidth)

    def memory_bound(self, device: Device, precision: Precision) -> bool:
        return self.nbytes / device.memory_bandwidth > self.flops / device.peak(precision, self.tensor_cores)


def layer_costs(network: Network, precision: Precision) -> list[LayerCost]:
    costs = []
    for index, layer in enumerate(network.layers):
        moved = traffic(network, index, precision.activation_bytes)
        costs.append(
            LayerCost(
                name=layer.name,
                kind=layer.kind,
                forward_flops=layer.forward_flops,
                backward_flops=layer.backward_flops,
                forward_bytes=moved.forward,
                backward_bytes=moved.backward,
                tensor_cores=uses_tensor_cores(layer),
            )
        )
    return costs


def bound_by(costs: list[LayerCost], device: Device, precision: Precision) -> str:
    """What a perfect implementation of the whole network would wait for longest: `memory`, `tensor` (16-bit matrix units) or `fp32`."""
    memory = sum(cost.nbytes for cost in costs) / device.memory_bandwidth
    compute = sum(cost.flops / device.peak(precision, cost.tensor_cores) for cost in costs)
    if memory > compute:
        return "memory"
    return "tensor" if device.peak(precision) != device.fp32 else "fp32"


def roofline_seconds(costs: list[LayerCost], device: Device, precision: Precision) -> float:
    """Of one sample, layer by layer."""
    return sum(cost.seconds(device, precision) for cost in costs)
