"""validation/measured/transfer.json: settings that were tuned on the emulation and then applied to a real script, both measured on the same emulated tier.

Made by `python -m validation.measured_transfer`, which needs torch. It lies beside the package, in a clone; an installed Tierscope is without it.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tierscope.output.typed_documents import DocumentKind, read_typed

PATH = Path(__file__).parents[3] / "validation" / "measured" / "transfer.json"
COMMAND = "python -m validation.measured_transfer"
Seconds = Annotated[float, Meta(gt=0, le=1e6)]
Ratio = Annotated[float, Meta(gt=0, le=1e6)]
Words = Annotated[str, Meta(min_length=1, max_length=200)]


class MeasuredGain(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Median seconds of an epoch before and after, and how many times faster it is: the median ratio of alternating runs, the smallest and the largest."""

    before_seconds: Seconds
    after_seconds: Seconds
    gain: Ratio
    low: Ratio
    high: Ratio
    n: Annotated[int, Meta(ge=1, le=1000)]

    def __post_init__(self) -> None:
        if not self.low <= self.gain <= self.high:
            raise ValueError(f"gain {self.gain:g} is not between low {self.low:g} and high {self.high:g}")

    @property
    def text(self) -> str:
        return f"{self.gain:.2f}× ({self.low:.2f}–{self.high:.2f}, n={self.n})"


class AppliedSetting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`key`: of a study; `before`, `after`: its values. `is_winner`: `after` is what tuning on the emulation chose."""

    name: Words
    key: Words
    before: Words
    after: Words
    is_winner: bool
    emulated: MeasuredGain
    application: MeasuredGain


class TransferFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema_version: Literal[1]
    kind: Literal["transfer"]
    made: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    machine: Words
    tier: Words
    settings: Annotated[list[AppliedSetting], Meta(min_length=1, max_length=20)]

    def named(self, name: str) -> AppliedSetting | None:
        return next((setting for setting in self.settings if setting.name == name), None)


TRANSFER = DocumentKind(TransferFile, f"make it again: {COMMAND}", most_bytes=1 << 16)


def read_transfer(path: Path = PATH) -> TransferFile | None:
    """None: there is none here."""
    try:
        return read_typed(path, TRANSFER)
    except FileNotFoundError:
        return None
