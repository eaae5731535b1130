"""What a network demands of a system, from Python."""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from tierscope.analysis.wording import Finding
from tierscope.api import pictures
from tierscope.api.given import StrPath, chosen, listed, path_text, scalar_text, seconds_of, text_of, whole
from tierscope.arch.kept_activations import RULES
from tierscope.arch.precision import OPTIMIZER_STATES, PRECISIONS
from tierscope.arch.requirements import NO, UNCLEAR, YES
from tierscope.commands.require import Answer, RequireOptions, answer_json
from tierscope.commands.require import require as require_of
from tierscope.jsonable import JsonObject
from tierscope.report.requirements import RequirementsView


class NetworkRequirements:
    """Memory, operations, bytes and scaling of a network on a system, from its layers and the system's peaks: nothing was run. From `require`; holds numbers only."""

    __slots__ = ("_answer",)

    source = "modelled"

    def __init__(self, answer: Answer) -> None:
        """Not for callers."""
        self._answer = answer

    @property
    def storage_matters(self) -> bool:
        """Whether epochs after the first would wait for storage at any of the node counts, however long a step takes and wherever uncertain figures of storage lie in their intervals (`storage_verdict` tells "no" from "unclear"); `scaling` says where, and of first epochs. Costs nothing."""
        return YES in self._answer.required.verdicts

    @property
    def storage_verdict(self) -> str:
        """ "yes", "no", or "unclear" where it depends on how long a step takes, which a roofline does not say, or on figures of storage that are known only within an interval. Costs nothing."""
        verdicts = self._answer.required.verdicts
        return next((verdict for verdict in (YES, UNCLEAR) if verdict in verdicts), NO)

    @property
    def max_batch(self) -> int:
        """The largest batch that fits into an accelerator's memory; 0: none does. Costs nothing."""
        return self._answer.required.max_batch

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know, most important first. Costs nothing."""
        return self._answer.findings

    def scaling(self) -> pl.DataFrame:
        """A row per number of nodes: what epochs after the first wait for, whether storage matters to them, and to the first one. Costs nothing."""
        rows = [
            {
                "nodes": point.nodes,
                "waits_for": point.waits_for,
                "storage_matters": verdict == YES,
                "storage_verdict": verdict,
                "first_epoch_waits": point.first_matters,
            }
            for point, verdict in zip(self._answer.required.scaling, self._answer.required.verdicts, strict=True)
        ]
        return pl.DataFrame(rows, strict=False)

    def to_dict(self, layers: bool = False) -> JsonObject:
        """What `tierscope require --json` prints. `layers`: every layer too. Costs next to nothing."""
        return answer_json(self._answer, layers)

    def __repr__(self) -> str:
        requirements = self._answer.required
        words = {YES: "storage matters", NO: "storage is hidden", UNCLEAR: "unclear whether storage matters"}
        verdict = words[self.storage_verdict]
        return (
            f"<NetworkRequirements of {requirements.network.name} on {requirements.machine.name}: {verdict} (modelled)>"
        )

    def __str__(self) -> str:
        return pictures.as_text([RequirementsView(self._answer.required, self._answer.findings, show_all=True)])

    def _repr_html_(self) -> str:
        return pictures.as_html([RequirementsView(self._answer.required, self._answer.findings, show_all=True)])


def require(  # noqa: PLR0913  (one per option)
    model: str,
    system: StrPath | None = None,
    *,
    batch: int | Sequence[int] = 1,
    precision: Literal["fp32", "amp"] = "fp32",
    nodes: str | int | Sequence[int] | None = None,
    optimizer: Literal["sgd", "adam", "none"] = "sgd",
    kept: Literal["autograd", "outputs", "fused", "products"] = "autograd",
    checkpointed: bool = False,
    compression: str | None = None,
    servers: int = 1,
    weak: bool = False,
    input_shape: str | Sequence[int] | None = None,
    samples: int | None = None,
    sample_file_bytes: str | int | None = None,
    step_seconds: float | None = None,
    device_file: StrPath | None = None,
    measured: StrPath | None = None,
) -> NetworkRequirements:
    """What training a network demands of a system, and whether storage matters for it: ask before anything is measured.

    `model`: cosmoflow, deepcam, resnet50, resnet101, alexnet or lenet5, or MODULE:FUNCTION that builds a network of torch (needs torch, and `input_shape` like
    (3, 224, 224)). `system`: one with its hardware that ships ("cori-gpu", "h200-node"), or a YAML file. `batch`: of one accelerator; the first of several is
    used for movement and scaling. `nodes`: 64, [1, 8, 64] or "1..64". The others: as the options of `tierscope require`. Takes milliseconds; tracing a network seconds.

    >>> import tierscope as ts
    >>> ts.require("resnet50", system="cori-gpu", batch=64).storage_matters
    False
    """
    wanted = RequireOptions(
        system=None if system is None else path_text("system", system),
        batch=_numbers("batch", batch),
        precision=chosen("precision", precision, tuple(PRECISIONS)),
        nodes=None if nodes is None else _numbers("nodes", nodes),
        optimizer=chosen("optimizer", optimizer, tuple(OPTIMIZER_STATES)),
        kept=chosen("kept", kept, RULES),
        checkpointed=checkpointed,
        step_seconds=None if step_seconds is None else seconds_of("step_seconds", step_seconds),
        device_file=None if device_file is None else path_text("device_file", device_file),
        measured=None if measured is None else path_text("measured", measured),
        compression=None if compression is None else scalar_text("compression", compression, 0),
        servers=whole("servers", servers, 10**6),
        weak=weak,
        input=None if input_shape is None else _numbers("input_shape", input_shape, "x"),
        samples=None if samples is None else whole("samples", samples, 10**15),
        sample_file_bytes=None if sample_file_bytes is None else scalar_text("sample_file_bytes", sample_file_bytes, 0),
    )
    return NetworkRequirements(require_of(text_of("model", model), wanted))


def _numbers(name: str, given: str | int | Sequence[int], between: str = ",") -> str:
    """As an option has them."""
    if isinstance(given, str | int):
        return str(given)
    return between.join(
        scalar_text(name, part, 0) for part in listed(name, given, "a whole number, or several of them")
    )
