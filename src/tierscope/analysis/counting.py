"""What of a result counts, as the user asked for it."""

from dataclasses import dataclass

from tierscope.trace.ops import CATEGORIES


@dataclass(frozen=True, slots=True)
class Counting:
    """What of a result counts. `basis`: wall or busy seconds; None: wall, where they are known. `epoch`: only that one; None: those after the first.

    `categories`: READ, META, WRITE or fewer of them. `case`: only that one of a study; None: all.
    """

    basis: str | None = None
    epoch: int | None = None
    categories: tuple[str, ...] = CATEGORIES
    case: str | None = None
