"""A module of torch, run on fake tensors in training mode: its layers, and what autograd keeps of its forward pass."""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from tierscope.arch.layer import INPUT, Layer, Shape
from tierscope.arch.network import Network
from tierscope.arch.precision import Precision
from tierscope.arch.traced_device import as_on_a_device, autocast
from tierscope.arch.traced_errors import ForwardError
from tierscope.arch.traced_layers import LayerRecorder, Places, unused_layer
from tierscope.errors import UserError

_BATCH = 61  # a prime that hardly any side of a layer is a multiple of
_OTHER_BATCH = 67  # what grows from one batch to the other is of samples, and all else of weights


@dataclass(frozen=True, slots=True)
class TracedModule:
    """`swapped`: fake tensors that stand for its real parameters and buffers while it runs; empty where it was built of fake ones."""

    target: str
    module: nn.Module
    mode: FakeTensorMode
    swapped: dict[str, torch.Tensor]

    @classmethod
    def of_real(cls, target: str, module: nn.Module, mode: FakeTensorMode | None = None) -> Self:
        """Its own tensors are left as they are. Those who share a tensor share its fake, under the first of their names."""
        mode = mode or _fake_mode()
        named = [*module.named_parameters(), *module.named_buffers()]
        return cls(target, module.train(), mode, {name: mode.from_tensor(value) for name, value in named})

    def network(self, shape: Shape) -> Network:
        recorder = self._run(shape, _BATCH)
        layers = recorder.layers
        if not layers:
            raise UserError(f"{self.target} does not use its input")
        idle = [list(self._parameters().items())[place] for place in sorted(recorder.unused)]
        if idle:
            unused = unused_layer([name for name, _ in idle], sum(value.numel() for _, value in idle))
            layers = [unused, *(_moved(layer) for layer in layers)]
        return Network(self.target, shape, tuple(layers))

    def saved_bytes_per_sample(self, shape: Shape, precision: Precision) -> int:
        less, more = (self._saved_bytes(shape, batch, precision) for batch in (_BATCH, _OTHER_BATCH))
        return (more - less) // (_OTHER_BATCH - _BATCH)

    def _saved_bytes(self, shape: Shape, batch: int, precision: Precision) -> int:
        with autocast(precision.copies_weights):
            recorder = self._run(shape, batch)
        return recorder.saved.nbytes(without=recorder.sample_storages)

    def _parameters(self) -> dict[str, torch.Tensor]:
        return {name: self.swapped.get(name, value) for name, value in self.module.named_parameters()}

    def _run(self, shape: Shape, batch: int) -> LayerRecorder:
        """Its forward pass; on whole numbers if that is what it asks for, to look them up in a table."""
        try:
            try:
                return self._recorded(shape, batch, torch.float32)
            except ForwardError as error:
                if "Long" not in error.reason:
                    raise
                return self._recorded(shape, batch, torch.int64)
        except ForwardError as error:
            raise error.as_user_error(self.target, shape, batch) from error

    def _recorded(self, shape: Shape, batch: int, dtype: torch.dtype) -> LayerRecorder:
        places = Places({id(module): name for name, module in self.module.named_modules()})
        with self.mode, torch.enable_grad(), as_on_a_device(), places.watched(), _errors_said_once():
            sample = torch.empty((batch, *shape), dtype=dtype)
            recorder = LayerRecorder(list(self._parameters().values()), sample, places)
            try:
                with recorder, recorder.saved.hooks():
                    torch.func.functional_call(self.module, self.swapped, (sample,), tie_weights=True)
            except (Exception, SystemExit) as error:
                raise ForwardError(error, places.path, type(places.module or self.module).__name__) from error
        return recorder


def is_module(value: object) -> bool:
    return isinstance(value, nn.Module)


def fake_or_real(target: str, build: Callable[[], Any]) -> TracedModule:
    """Of fake tensors where that can be done. What looks at values of tensors while it is built, or hands out what was built before, is real."""
    mode = _fake_mode()
    with contextlib.suppress(Exception), mode, warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Accessing the data pointer of FakeTensor"
        )  # by torch, which copies layers
        module = build()
        if is_module(module) and all(
            isinstance(tensor, FakeTensor) for tensor in (*module.parameters(), *module.buffers())
        ):
            return TracedModule(target, module.train(), mode, {})
    module = build()
    if not is_module(module):
        raise UserError(f"{target} returns a {type(module).__name__}, not a torch.nn.Module")
    return TracedModule.of_real(target, module, mode)


@contextlib.contextmanager
def _errors_said_once() -> Iterator[None]:
    """Fake tensors print a traceback of what fails before they raise it; the one line that names the layer says it."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _fake_mode() -> FakeTensorMode:
    return FakeTensorMode(allow_non_fake_inputs=True)


def _moved(layer: Layer) -> Layer:
    """One place on."""
    return replace(layer, inputs=tuple(source if source == INPUT else source + 1 for source in layer.inputs))
