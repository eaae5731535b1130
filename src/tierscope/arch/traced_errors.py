"""Why a module could not be traced, in one line that names the layer."""

from tierscope.arch.layer import Shape
from tierscope.arch.networks import shown
from tierscope.errors import UserError

_OF_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException")  # that fake tensors raise: they have none
_PLAIN = ("RuntimeError", *_OF_VALUES)  # whose names say nothing


class ForwardError(Exception):
    """What went wrong, in the forward pass of which layer. `kind`: the class of that layer."""

    def __init__(self, error: BaseException, path: str, kind: str) -> None:
        super().__init__(path)
        self.reason = one_line(error)
        self._where = f"layer {path} ({kind})" if path else f"the module itself ({kind})"
        self._of_values = type(error).__name__ in _OF_VALUES

    def as_user_error(self, target: str, shape: Shape, batch: int) -> UserError:
        if self._of_values:
            return UserError(
                f"{target} cannot be traced: in {self._where} the computation depends on values ({self.reason}), "
                "but tracing knows only shapes"
            )
        return UserError(
            f"{target} cannot be traced with input {shown(shape)} (in a batch of {batch}): {self._where} fails: {self.reason}"
        )


def one_line(error: BaseException) -> str:
    """Its type, unless that says nothing, and the first line of what it says."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    kind = type(error).__name__
    if not said:
        return kind
    return said if kind in _PLAIN else f"{kind}: {said}"
