"""A goal: what a user wants of a study, as one of three kinds.

`io`: seconds of I/O per epoch of the slowest process, at most. `epoch`: seconds of an epoch, at most. `au`: accelerator utilisation as DLIO defines
it (the first step excluded, the mean over ranks), at least. A bare time is an `io` goal.
"""

from dataclasses import dataclass

from tierscope.spec.kinds import Fraction, Kind, Seconds
from tierscope.units import about_seconds, closest, format_fraction

IO, EPOCH, AU = "io", "epoch", "au"
_KINDS: dict[str, Kind] = {IO: Seconds(above=0), EPOCH: Seconds(above=0), AU: Fraction(0, 1)}
_EXAMPLE = "io=4s, epoch=10min or au=90%"
GOAL_HINT = "add --goal io=4s (I/O per epoch), --goal epoch=10min or --goal au=90%"
_ROUNDING = 1e-12  # what meets a goal exactly does so, in whichever order its parts are added up


@dataclass(frozen=True, slots=True)
class Goal:
    """`value`: seconds, or a share of 1 where the kind is `au`."""

    kind: str
    value: float

    @classmethod
    def of(cls, goal: "Goal | float") -> "Goal":
        """A bare time is one of I/O."""
        return goal if isinstance(goal, Goal) else cls(IO, goal)

    @property
    def seconds(self) -> float | None:
        return None if self.kind == AU else self.value

    @property
    def text(self) -> str:
        """Like `4 s of I/O per epoch`."""
        if self.kind == AU:
            return f"an accelerator utilisation of {format_fraction(self.value)}"
        return (
            f"{about_seconds(self.value)} of I/O per epoch"
            if self.kind == IO
            else f"{about_seconds(self.value)} per epoch"
        )

    @property
    def short(self) -> str:
        """Like `4 s`; of the others with what they are about."""
        if self.kind == AU:
            return f"{format_fraction(self.value)} AU"
        return about_seconds(self.value) if self.kind == IO else f"{about_seconds(self.value)} per epoch"

    def shown(self, value: float) -> str:
        """A value of its kind."""
        return f"{100 * value:.1f} % AU" if self.kind == AU else about_seconds(value)

    @property
    def enough(self) -> float:
        """The limit, with what rounding may make of a value that is just it."""
        return self.value * (1 - _ROUNDING if self.kind == AU else 1 + _ROUNDING)

    def is_met(self, value: float) -> bool:
        return value >= self.enough if self.kind == AU else value <= self.enough


class GoalKind:
    """How a study's key and an option hold a goal: `4 s`, `io=4 s`, `epoch=10 min`, `au=90%`; in YAML also `{epoch: 10 min}`."""

    def parse(self, text: str) -> Goal:
        text = self._unbraced(text.strip())
        kind, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            if text.endswith("%"):
                raise ValueError(f"is a share, not a time; did you mean au={text}?")
            kind, value = IO, text
        if kind not in _KINDS:
            guess = closest(kind, _KINDS)
            raise ValueError(
                f"{kind} is not a kind of goal{f', did you mean {guess}?' if guess else ''}; write it like {_EXAMPLE}"
            )
        if not value:
            raise ValueError(f"has no value; write it like {_EXAMPLE}")
        try:
            return Goal(kind, float(_KINDS[kind].parse(value)))
        except ValueError as error:
            raise ValueError(
                str(error) if "write it like" in str(error) else f"{error}; write it like {_EXAMPLE}"
            ) from None

    def format(self, value: Goal) -> str:
        """A bare time where it is one of I/O, as in results of earlier versions."""
        return (
            _KINDS[IO].format(value.value)
            if value.kind == IO
            else f"{value.kind}={_KINDS[value.kind].format(value.value)}"
        )

    @staticmethod
    def _unbraced(text: str) -> str:
        """`{au: 90%}` on the command line, as YAML has it."""
        if not (text.startswith("{") and text.endswith("}")):
            return text
        kind, _, value = text[1:-1].partition(":")
        if ":" in value:
            raise ValueError("must be one goal, e.g. {epoch: 10 min}")
        return f"{kind.strip()}={value.strip()}"

    def joined(self, mapping: dict[str, str | None]) -> str:
        """`{epoch: 10 min}` as one text; ValueError where it is not one goal."""
        if len(mapping) != 1:
            raise ValueError(f"must be one goal, e.g. {{epoch: 10 min}}, not {len(mapping)}")
        ((kind, value),) = mapping.items()
        return f"{kind}={value or ''}"
