"""What is wrong with a study."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """The key that is best changed, and the sentence that says why and how."""

    path: str
    text: str
