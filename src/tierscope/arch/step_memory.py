"""Memory of a device over one training step, allocation by allocation, as torch makes them.

Assumptions
- Outputs are freed when their last reader has run and nothing keeps them for the backward pass (`arch/kept_activations.py`); backward runs in the
  opposite order and frees what a layer kept when it has run. Gradients of weights are made in backward (`zero_grad` sets to none).
- Under `amp` the sample and every weight of a matrix product are copied to 16 bits; a weight's copy lives until its layer's backward,
  where its gradient is made in 16 bits and then cast.
- Workspace: a convolution that is neither depthwise nor of kernel 1 and stride 1 works on copies of its input, output and weights in
  another layout, `workspace` times their bytes; others need none. `library_bytes` are allocated for good at the first matrix product.
- Sums of gradients are made in place. Allocations are multiples of 512 bytes.
"""

import math
from dataclasses import dataclass, field

from tierscope.arch.kept_activations import beside_bytes, keeps_input, keeps_output, statistics_bytes, storages
from tierscope.arch.layer import CONVOLUTIONS, INPUT, TRANSPOSED, VIEWS, Layer
from tierscope.arch.network import Network, weight_tensors
from tierscope.arch.precision import OPTIMIZER_STATES, PARAMETER_BYTES, Precision
from tierscope.arch.segments import segments

_BLOCK = 512  # bytes that the allocator deals in


@dataclass(frozen=True, slots=True)
class Policy:
    """What a library takes beside tensors. `workspace`: copies that a convolution works on, in units of its own tensors."""

    workspace: float = 1.0
    library_bytes: int = 0


CUDNN = Policy(1.3, 68 << 20)  # fitted to an H200 with torch 2.11 and cuDNN 9.19: `python -m validation accelerator`


@dataclass(frozen=True, slots=True)
class StepMemory:
    """Bytes. `activations`: kept when the forward pass ends, without the sample; `peak`: the most at any moment, at `peak_at`."""

    parameters: int
    gradients: int
    optimizer: int
    input: int
    activations: int
    workspace: int  # the largest
    library: int
    peak: int
    peak_at: str


def step_memory(
    network: Network,
    batch: int,
    precision: Precision,
    optimizer: str = "sgd",
    policy: Policy | None = None,
    checkpointed: bool = False,
    target_bytes: int = 0,
) -> StepMemory:
    """`target_bytes`: of one sample's label."""
    step = _Step(network, batch, precision, policy or Policy())
    blocks = sum(rounded(size * PARAMETER_BYTES) for size in network.parameter_tensors)
    state = blocks * OPTIMIZER_STATES[optimizer]
    running = sum(2 * rounded(layer.out_shape[0] * PARAMETER_BYTES) for layer in network.layers if _runs(layer))
    resident = blocks + running + state + step.input + rounded(batch * target_bytes) + step.policy.library_bytes
    step.alloc(resident)
    if checkpointed:
        step.in_segments(segments(network))
    else:
        step.forward(range(len(network.layers)))
        step.kept_after_forward = step.live - resident
        step.lose()
        step.backward(range(len(network.layers)))
    if optimizer == "adam":
        step.hold(blocks, "optimizer")  # roots of the second moments
    return StepMemory(
        parameters=blocks + running,
        gradients=blocks,
        optimizer=state,
        input=step.input,
        activations=step.kept_after_forward,
        workspace=step.largest_workspace,
        library=step.policy.library_bytes,
        peak=step.peak,
        peak_at=step.peak_at,
    )


def rounded(nbytes: int) -> int:
    return -(-nbytes // _BLOCK) * _BLOCK


def _runs(layer: Layer) -> bool:
    """Whether it has running statistics."""
    return layer.kind.startswith("BatchNorm")


def workspace_bytes(layer: Layer, batch: int, precision: Precision, policy: Policy) -> int:
    if layer.kind not in CONVOLUTIONS | TRANSPOSED or layer.groups == layer.in_shape[0] > 1:
        return 0
    if math.prod(layer.kernel) == 1 and math.prod(layer.stride) == 1:
        return 0
    elements = batch * (layer.in_elements + layer.elements) + layer.parameters
    return int(policy.workspace * elements * precision.activation_bytes)


@dataclass(slots=True)
class _Step:
    """Live bytes, and who holds which storage. A storage is freed with its last holder."""

    network: Network
    batch: int
    precision: Precision
    policy: Policy
    live: int = 0
    peak: int = 0
    peak_at: str = "start"
    kept_after_forward: int = 0
    largest_workspace: int = 0
    input: int = 0
    _own: list[int] = field(default_factory=list)
    _last_reader: dict[int, int] = field(default_factory=dict)
    _holders: dict[int, int] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)  # of live storages
    _grads: dict[int, int] = field(default_factory=dict)  # of outputs, by storage; 0: shared with another

    def __post_init__(self) -> None:
        self._own = [*storages(self.network), INPUT]  # so that _own[INPUT] is INPUT
        self._last_reader = {
            source: index for index, layer in enumerate(self.network.layers) for source in layer.inputs
        }
        self.input = rounded(self.batch * self.network.input_elements * PARAMETER_BYTES)

    def alloc(self, nbytes: int, where: str = "start") -> None:
        self.live += nbytes
        if self.live > self.peak:
            self.peak, self.peak_at = self.live, where

    def free(self, nbytes: int) -> None:
        self.live -= nbytes

    def hold(self, nbytes: int, where: str) -> None:
        """For a moment."""
        self.alloc(nbytes, where)
        self.free(nbytes)

    def forward(self, places: range) -> None:
        for index in places:
            layer, own = self.network.layers[index], self._own[index]
            where = f"forward {layer.name}"
            if INPUT in layer.inputs and self.precision.copies_weights and INPUT not in self._sizes:
                self._sizes[INPUT] = self._output_bytes(layer.in_elements)
                self.alloc(self._sizes[INPUT], where)
            if own == index:
                self._sizes[own] = self._output_bytes(layer.elements)
                self.alloc(self._sizes[own], where)
            self._take(own)  # until its last reader has run
            self.alloc(self._beside(layer) + self._weight_copy(layer), where)
            self._work(layer, where)
            for storage in self._kept_by(index):
                self._take(storage)
            for source in set(layer.inputs):
                if self._last_reader[source] == index and self._own[source] in self._sizes and source != INPUT:
                    self._drop(self._own[source])

    def lose(self) -> None:
        """The loss: logits in 32 bits, their log-softmax, and the gradient that backward starts from."""
        last = len(self.network.layers) - 1
        wide = rounded(self.batch * self.network.layers[last].elements * PARAMETER_BYTES)
        beside = wide if self.precision.activation_bytes == PARAMETER_BYTES else 2 * wide
        self.alloc(beside, "loss")
        self.alloc(wide, "loss")
        self.free(beside)
        self._grads[self._own[last]] = wide

    def backward(self, places: range) -> None:
        for index in reversed(places):
            layer, own = self.network.layers[index], self._own[index]
            where = f"backward {layer.name}"
            if layer.kind == "Add":
                self._share(layer, self._grads.pop(own, 0))
            elif layer.kind not in VIEWS:
                self._through(layer, self._grads.pop(own, 0), where)
            for storage in self._kept_by(index):
                self._drop(storage)
            self.free(self._beside(layer) + self._weight_copy(layer))
            self._widen(layer, where)
            if index == len(self.network.layers) - 1:
                self._drop(own)  # what the loss read

    def in_segments(self, parts: list[range]) -> None:
        """Checkpointed: only what enters a segment is kept; its inside is computed again on the way back."""
        entering = self._entering(parts)
        for part, nbytes in zip(parts, entering, strict=True):
            self.alloc(nbytes, "forward")
            for index in part:
                layer = self.network.layers[index]
                work = workspace_bytes(layer, self.batch, self.precision, self.policy)
                self.hold(self._output_bytes(layer.in_elements + layer.elements) + work, f"forward {layer.name}")
        self.kept_after_forward = sum(entering)
        for part, nbytes in zip(reversed(parts), reversed(entering), strict=True):
            inside = _Step(self.network, self.batch, self.precision, self.policy)
            inside.again(part)
            self.hold(inside.peak, f"again: {inside.peak_at}")
            self.alloc(inside.live)  # gradients of its weights, and those that go on
            self.free(sum(inside._grads.values()) + nbytes)
            self.largest_workspace = max(self.largest_workspace, inside.largest_workspace)

    def again(self, part: range) -> None:
        """One segment: forward, then backward from the gradients of what leaves it."""
        self.forward(part)
        last = len(self.network.layers) - 1
        for index in part:
            if self._last_reader.get(index, last + 1) >= part.stop:
                own = self._own[index]
                if own not in self._grads:
                    self._grads[own] = self._output_bytes(self.network.layers[own].elements)
                    self.alloc(self._grads[own], "again")
                if index != last:
                    self._drop(own)
        self.backward(part)

    def _entering(self, parts: list[range]) -> list[int]:
        """Bytes that each segment is the first to keep: made before it and read in it."""
        kept: set[int] = set()
        entering = []
        for part in parts:
            read = {self._own[source] for index in part for source in self.network.layers[index].inputs}
            new = {own for own in read if own != INPUT and own < part.start} - kept
            kept |= new
            entering.append(sum(self._output_bytes(self.network.layers[own].elements) for own in new))
        return entering

    def _output_bytes(self, elements: int) -> int:
        return rounded(self.batch * elements * self.precision.activation_bytes)

    def _beside(self, layer: Layer) -> int:
        return rounded(self.batch * beside_bytes(layer)) + rounded(statistics_bytes(layer))

    def _narrows(self, layer: Layer) -> bool:
        return self.precision.copies_weights and layer.multiplies

    def _weight_copy(self, layer: Layer) -> int:
        return rounded(2 * layer.parameters) if self._narrows(layer) else 0

    def _work(self, layer: Layer, where: str) -> None:
        nbytes = workspace_bytes(layer, self.batch, self.precision, self.policy)
        self.largest_workspace = max(self.largest_workspace, nbytes)
        self.hold(nbytes, where)

    def _take(self, storage: int) -> None:
        self._holders[storage] = self._holders.get(storage, 0) + 1

    def _drop(self, storage: int) -> None:
        self._holders[storage] -= 1
        if not self._holders[storage]:
            self.free(self._sizes.pop(storage))

    def _kept_by(self, index: int) -> list[int]:
        layer = self.network.layers[index]
        kept = [self._own[source] for source in layer.inputs] if keeps_input(layer) else []
        kept = [storage for storage in kept if storage in self._sizes]  # the caller's own sample is not ours to free
        return [*kept, self._own[index]] if keeps_output(layer) else kept

    def _share(self, layer: Layer, gradient: int) -> None:
        """One tensor for both summands; where another gradient is there already, it is added to that and freed."""
        shared = False
        for source in set(layer.inputs):
            storage = self._own[source]
            if storage == INPUT or storage in self._grads:
                continue
            self._grads[storage] = 0 if shared else gradient
            shared = True
        if not shared:
            self.free(gradient)

    def _through(self, layer: Layer, gradient: int, where: str) -> None:
        made: dict[int, int] = {}
        for source in layer.inputs:
            if source != INPUT:
                nbytes = self._output_bytes(self.network.layers[source].elements)
                made[self._own[source]] = made.get(self._own[source], 0) + nbytes
        self.alloc(sum(made.values()), where)
        self.alloc(_narrow_blocks(layer) if self._narrows(layer) else sum(_gradient_blocks(layer)), where)
        self._work(layer, where)
        self.free(gradient)
        for storage, nbytes in made.items():
            if self._grads.get(storage):
                self.free(nbytes)
            else:
                self._grads[storage] = nbytes

    def _widen(self, layer: Layer, where: str) -> None:
        """Gradients of a product's weights, made in 16 bits, in 32."""
        if self._narrows(layer):
            self.alloc(sum(_gradient_blocks(layer)), where)
            self.free(_narrow_blocks(layer))


def _gradient_blocks(layer: Layer) -> list[int]:
    return [rounded(PARAMETER_BYTES * size) for size in weight_tensors(layer)]


def _narrow_blocks(layer: Layer) -> int:
    return sum(rounded(2 * size) for size in weight_tensors(layer))
