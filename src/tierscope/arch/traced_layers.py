"""Records what a module of torch does with one batch of shapes, operation by operation.

Tensors are fake: they have shapes and no values, so that neither memory nor time goes by a model's size. A side that the batch divides is the
batch's, and is divided by it.

A tensor is either of the samples, made by a layer, or the same for all: parameters and what is made of them alone, which costs once for a batch
and is no layer.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tierscope.arch.layer import INPUT, Layer, Shape
from tierscope.arch.traced_kinds import ATTENTION, CONVOLUTION, FACTORIES, PRODUCTS, SAME, kind_of


@dataclass(slots=True)
class Places:
    """In whose forward pass we are. After a failure: in whose it happened."""

    names: dict[int, str]  # of modules
    inside: list[nn.Module] = field(default_factory=list)

    @property
    def module(self) -> nn.Module | None:
        return self.inside[-1] if self.inside else None

    @property
    def path(self) -> str:
        return next((name for module in reversed(self.inside) if (name := self.names.get(id(module)))), "")

    def named(self, function: str) -> str:
        """A module of torch that has none inside is one layer; in others, functions have names of their own."""
        module = self.module
        own = module is not None and type(module).__module__.startswith("torch.nn") and not any(module.children())
        return self.path if own and self.path else f"{self.path}.{function}".lstrip(".")

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        def enter(module: nn.Module, _inputs: Any) -> None:
            self.inside.append(module)

        def leave(module: nn.Module, _inputs: Any, _output: Any) -> None:
            while self.inside and self.inside.pop() is not module:
                pass  # left by an exception that someone caught

        hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


@dataclass(slots=True)
class Saved:
    """Asks autograd what it keeps: storages, each once, by address."""

    storages: dict[int, int] = field(default_factory=dict)  # address → bytes
    _alive: list[Any] = field(default_factory=list)

    def hooks(self) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(self._pack, lambda packed: packed)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self._alive.append(storage)
        self.storages[storage._cdata] = storage.nbytes()
        return tensor

    def nbytes(self, without: set[int]) -> int:
        return sum(size for address, size in self.storages.items() if address not in without)


class LayerRecorder(TorchDispatchMode):  # type: ignore[misc]
    """Every operation on samples that runs under it becomes a layer. Tensors are kept alive, so that their addresses stay theirs."""

    def __init__(self, parameters: Sequence[torch.Tensor], sample: torch.Tensor, places: Places) -> None:
        super().__init__()
        self.layers: list[Layer] = []
        self.saved = Saved()
        self._batch, self._places = sample.shape[0], places
        self._sizes = [parameter.numel() for parameter in parameters]
        self._counted: set[int] = set()
        self._alive: list[Any] = [sample]
        self._source: dict[int, int] = {id(sample): INPUT}  # of tensors of samples: which layer made them
        self._writer: dict[int, int] = {}  # of storages: who wrote over them last
        self._made_of: dict[int, frozenset[int]] = {}  # of other tensors: which parameters
        for place, parameter in enumerate(parameters):
            self._made_of[id(parameter)] = frozenset({place})
        self.sample_storages = {storage_of(sample)}

    @property
    def unused(self) -> set[int]:
        """Parameters that no layer read, by place."""
        return set(range(len(self._sizes))) - self._counted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = _tensors(result)
        if func.namespace != "prim" and made:
            self._record(_Operation(func, args, kwargs or {}, _tensors((args, kwargs)), made))
        return result

    def _record(self, run: "_Operation") -> None:
        self._alive.append((run.read, run.made))
        sources = self._sources(run)
        if not sources:
            self._constant(run)
        elif run.name in SAME or (sources == (INPUT,) and (run.views or run.name == "_to_copy")):
            self._rename(run, max(sources))
        elif run.views:
            for tensor in run.made:
                self._append(run, [tensor], sources, "View")
        else:
            self._append(run, run.made, sources)

    def _sources(self, run: "_Operation") -> tuple[int, ...]:
        if run.name in FACTORIES or run.name.startswith("new_"):
            return ()
        sources = dict.fromkeys(index for tensor in run.read if (index := self._made_by(tensor)) is not None)
        if not sources and run.products and any(side % self._batch == 0 for side in run.made[0].shape):
            return (INPUT,)  # of a state that is the same for all samples at first, but computed for each
        return tuple(sources)

    def _made_by(self, tensor: torch.Tensor) -> int | None:
        index = self._source.get(id(tensor))
        written = self._writer.get(storage_of(tensor))
        return index if written is None else max(written, INPUT if index is None else index)

    def _parameters(self, run: "_Operation") -> frozenset[int]:
        return frozenset().union(*(self._made_of.get(id(tensor), frozenset()) for tensor in run.read))

    def _constant(self, run: "_Operation") -> None:
        made_of = self._parameters(run)
        for tensor in run.made:
            self._made_of[id(tensor)] = made_of | self._made_of.get(id(tensor), frozenset())

    def _rename(self, run: "_Operation", source: int) -> None:
        for tensor in run.made:
            self._source[id(tensor)] = source
            if source == INPUT:
                self.sample_storages.add(storage_of(tensor))

    def _append(self, run: "_Operation", made: list[torch.Tensor], sources: tuple[int, ...], kind: str = "") -> None:
        new = self._parameters(run) - self._counted
        self._counted |= new
        kind = kind or kind_of(run.name, run.first.dim(), self._differing(run), run.pointwise, self._class())
        shapes = {"in_shape": self._of_sample(run.first.shape), "out_shape": self._of_sample(made[0].shape)}
        layer = Layer(
            name=self._places.named(run.function),
            inputs=sources,
            parameters=sum(self._sizes[place] for place in new),
            inplace=run.in_place,
            **{"kind": kind, **shapes, **self._details(run, kind)},
        )
        for tensor in made:
            self._source[id(tensor)] = len(self.layers)
            if run.in_place:
                self._writer[storage_of(tensor)] = len(self.layers)
        self.layers.append(layer)

    def _class(self) -> str:
        module = self._places.module
        return type(module).__name__ if module is not None else ""

    def _differing(self, run: "_Operation") -> int:
        """Operands that its backward pass may need: of samples, or trained."""
        return sum(self._made_by(tensor) is not None or tensor.requires_grad for tensor in run.read)

    def _details(self, run: "_Operation", kind: str) -> dict[str, Any]:
        if run.name in CONVOLUTION:
            return self._convolution(run)
        if run.name in PRODUCTS:
            return self._product(run)
        if run.name.startswith(ATTENTION):
            return self._attention(run)
        if kind.startswith("BatchNorm"):
            shape = self._channels_first(run.first.shape)
            return {"in_shape": shape, "out_shape": shape, "bias": _given(run.args, 2)}
        return _plain_details(run, kind)

    def _convolution(self, run: "_Operation") -> dict[str, Any]:
        value, weight, bias, stride, padding, dilation, transposed, output_padding, groups = run.args[:9]
        dims = weight.dim() - 2

        def per_dim(sizes: Sequence[int]) -> Shape:
            return tuple(sizes) * (dims if len(sizes) == 1 else 1)

        return {
            "kind": f"{'ConvTranspose' if transposed else 'Conv'}{dims}d",
            "in_shape": self._channels_first(value.shape),
            "out_shape": self._channels_first(run.made[0].shape),
            "kernel": tuple(weight.shape[2:]),
            "stride": per_dim(stride),
            "padding": per_dim(padding),
            "dilation": per_dim(dilation),
            "output_padding": per_dim(output_padding) if transposed else (),
            "groups": groups,
            "bias": bias is not None,
            "gradients": int(value.requires_grad) + int(weight.requires_grad),
        }

    def _product(self, run: "_Operation") -> dict[str, Any]:
        left, right = (run.args[place] for place in PRODUCTS[run.name])
        rows = left.numel() // max(1, left.shape[-1])
        columns = right.shape[-1] if right.dim() > 1 else 1
        of_samples = [operand for operand in (left, right) if self._made_by(operand) is not None]
        return {
            "kind": "MatMul" if len(of_samples) == 2 else "Linear",
            "in_shape": self._of_sample((of_samples or [left])[0].shape),
            "gemm": self._gemm_of_sample((rows, columns, left.shape[-1])),
            "bias": run.name == "addmm" and run.args[0].dim() == 1,
            "gradients": int(left.requires_grad) + int(right.requires_grad),
        }

    def _attention(self, run: "_Operation") -> dict[str, Any]:
        query, key, value = run.args[:3]
        rows, keys = query.numel() // query.shape[-1], key.shape[-2]
        return {
            "kind": "Attention",
            "gemm": self._gemm_of_sample((rows, query.shape[-1] + value.shape[-1], keys)),
            "gradients": 2 if any(operand.requires_grad for operand in (query, key, value)) else 0,
        }

    def _gemm_of_sample(self, gemm: tuple[int, int, int]) -> tuple[int, int, int]:
        """Of one sample. A product without the batch in it runs once for all, and is counted for each."""
        place = next((place for place, side in enumerate(gemm) if side % self._batch == 0), None)
        rows, columns, inner = (side // self._batch if index == place else side for index, side in enumerate(gemm))
        return rows, columns, inner

    def _of_sample(self, shape: Sequence[int]) -> Shape:
        sides = list(shape)
        if self._batch in sides:
            sides.remove(self._batch)
            return tuple(sides)
        place = next((place for place, side in enumerate(sides) if side and side % self._batch == 0), None)
        return tuple(side // self._batch if index == place else side for index, side in enumerate(sides))

    def _channels_first(self, shape: Sequence[int]) -> Shape:
        """Several images of one sample (frames, windows) lie beside one another as one more side."""
        first, channels, *sides = shape
        if first == 1 and channels % self._batch == 0:
            return (channels // self._batch, *sides)
        images = first // self._batch if first % self._batch == 0 else first
        return (channels, *sides) if images == 1 else (channels, images, *sides)


@dataclass(frozen=True, slots=True)
class _Operation:
    func: Any
    args: Any
    kwargs: Any
    read: list[torch.Tensor]
    made: list[torch.Tensor]

    @property
    def name(self) -> str:
        """As of the one that is not in place."""
        name: str = self.func._schema.name.split("::")[1]
        return name.removesuffix("_") if self.in_place else name

    @property
    def function(self) -> str:
        return "attention" if self.name.startswith(ATTENTION) else self.name.strip("_")

    @property
    def first(self) -> torch.Tensor:
        return self.read[0]

    @property
    def in_place(self) -> bool:
        return any(self.made[0] is tensor for tensor in self.read)

    @property
    def views(self) -> bool:
        return not self.in_place and storage_of(self.made[0]) in {storage_of(tensor) for tensor in self.read}

    @property
    def pointwise(self) -> bool:
        return torch.Tag.pointwise in self.func.tags

    @property
    def products(self) -> bool:
        return self.name in PRODUCTS or self.name in CONVOLUTION


def storage_of(tensor: torch.Tensor) -> int:
    address: int = tensor.untyped_storage()._cdata
    return address


def unused_layer(names: Sequence[str], elements: int) -> Layer:
    """Parameters that are there and take memory, but do nothing."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return Layer(
        name=f"unused: {shown}",
        kind="Identity",
        inputs=(INPUT,),
        in_shape=(0,),
        out_shape=(0,),
        parameters=elements,
    )


def _plain_details(run: _Operation, kind: str) -> dict[str, Any]:
    if kind in ("LayerNorm", "GroupNorm"):
        return {"bias": _given(run.args, 3 if kind == "LayerNorm" else 2)}
    if "pool" in run.name and "adaptive" not in run.name:
        kernel = tuple(run.args[1])
        stride = tuple(run.args[2]) if len(run.args) > 2 and run.args[2] else kernel
        padding = tuple(run.args[3]) if len(run.args) > 3 else (0,) * len(kernel)
        return {"kernel": kernel, "stride": stride, "padding": padding}
    if run.name in ("leaky_relu", "native_dropout"):
        return {"slope": float(run.args[1]) if len(run.args) > 1 else 0.01}
    return {}


def _given(args: Sequence[Any], place: int) -> bool:
    return len(args) > place and args[place] is not None


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
