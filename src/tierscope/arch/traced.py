"""Any module of torch as a network of layers: `my_module:build_model` and the shape of a sample.

The module is built and run on fake tensors, in training mode and in 32 bits: no weights are allocated and nothing is computed, so that a model of any
size can be traced on any machine. A module whose building looks at values is built for real and traced all the same.

Exact: parameters (each once, however often it is used), shapes, and the operations of convolutions, matrix products and attention, forward and
backward (only those gradients that are needed). Attention counts its two products in full, masked or not, and nothing that a fused kernel
computes again. Approximate: what `arch/kept_activations.py` says of functions between layers; `saved_bytes_per_sample` is what autograd itself says.
"""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierscope.arch.layer import Shape
from tierscope.arch.network import Network
from tierscope.arch.precision import Precision
from tierscope.arch.traced_errors import one_line
from tierscope.errors import UserError
from tierscope.units import closest

if TYPE_CHECKING:
    from tierscope.arch.traced_module import TracedModule


def trace_network(target: str, shape: Shape) -> Network:
    """`target`: module:function that returns a module of torch, or module:name of one or of its class. `shape`: of one sample."""
    with contextlib.redirect_stdout(sys.stderr):  # what a module prints is no part of the answer
        return _built(target).network(shape)


def saved_bytes_per_sample(target: str, shape: Shape, precision: Precision) -> int:
    """What autograd keeps for the backward pass: every storage once, without parameters and the sample.

    `amp` is autocast to bfloat16, casting what accelerators cast (`arch/traced_device.py`). Inputs of checkpointed pieces are not seen: it is the caller's frame that keeps them.
    """
    return _built(target).saved_bytes_per_sample(shape, precision)


def _built(target: str) -> "TracedModule":
    try:
        from tierscope.arch.traced_module import TracedModule, fake_or_real, is_module  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UserError(f"{target} needs the package torch; pip install 'tierscope[torch]'") from error
    with _current_directory_first():
        resolved = _resolve(target)
        if is_module(resolved):
            return TracedModule.of_real(target, resolved)
        if not callable(resolved):
            raise UserError(
                f"{target} is not a function, but a {type(resolved).__name__}; name a function that returns a module"
            )
        _refuse_arguments(target, resolved)
        try:
            return fake_or_real(target, resolved)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise UserError(f"{target} fails: {one_line(error)}") from error


def _resolve(target: str) -> Any:
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        raise UserError(f"{target}: must be module:function, e.g. my_module:build_model")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise UserError(
                f"{target}: no module {error.name} in the current directory or on the Python path"
            ) from error
        raise UserError(f"{target}: {name} cannot be imported: {one_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"{target}: {name} cannot be imported: {one_line(error)}") from error
    resolved: Any = module
    for part in attribute.split("."):
        if not hasattr(resolved, part):
            guess = closest(part, [member for member in dir(resolved) if not member.startswith("__")])
            raise UserError(f"{target}: {name} has no {part}" + (f"; did you mean {guess}?" if guess else ""))
        resolved = getattr(resolved, part)
    return resolved


def _refuse_arguments(target: str, build: Callable[..., Any]) -> None:
    try:
        inspect.signature(build).bind()
    except TypeError as error:
        raise UserError(f"{target} is called without arguments: {one_line(error)}") from error
    except ValueError:
        return  # has no signature to look at


@contextlib.contextmanager
def _current_directory_first() -> Iterator[None]:
    """As `python -m` has it; a command's own directory stands there otherwise."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(here)
