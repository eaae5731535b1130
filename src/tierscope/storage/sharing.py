"""A station that serves all its operations at once, each the slower the more there are: processor sharing.

Its clock counts the work that each operation present has got; with n of them it moves on by 1/n of real time. An operation that
arrives at clock V and needs s is over when the clock reaches V + s. Nobody has to leave: whoever looks next moves the clock past every
target that was reached meanwhile, at its exact time. So a client that wakes up late or dies holds up nobody, and others' operations
need no client at all. All numbers are whole nanoseconds and no remainder is lost: work is conserved exactly.
"""

from array import array
from bisect import insort
from dataclasses import dataclass

_HEAD = 3  # numbers on the board before the targets: clock, updated, how many are present


def slots(room: int) -> int:
    """Numbers on the board that a station with room for so many operations takes."""
    return _HEAD + room


@dataclass(slots=True)
class Present:
    """Who is being served: the clock as it was at `updated`, and at which clock each will be over, soonest first."""

    clock: int
    updated: int
    targets: list[int]

    @classmethod
    def read(cls, words: "memoryview[int]", first: int) -> "Present":
        clock, updated, present = words[first : first + _HEAD]
        return cls(clock, updated, words[first + _HEAD : first + _HEAD + present].tolist())

    def write(self, words: "memoryview[int]", first: int) -> None:
        content = array("q", (self.clock, self.updated, len(self.targets), *self.targets))
        words[first : first + len(content)] = content

    def advance(self, now: int) -> None:
        """Move the clock on to this time; those that were over meanwhile are gone."""
        present, gone = len(self.targets), 0
        for target in self.targets:
            over = self.updated + (target - self.clock) * present
            if over > now:
                break
            self.clock, self.updated = target, over
            present -= 1
            gone += 1
        del self.targets[:gone]
        if not present:
            self.updated = max(self.updated, now)
        elif (step := (now - self.updated) // present) > 0:
            self.clock += step
            self.updated += step * present

    def join(self, service: int) -> int:
        """The clock at which the newcomer will be over."""
        target = self.clock + service
        insort(self.targets, target)
        return target

    def over_at(self, target: int) -> int | None:
        """When the clock reaches it if nobody else comes, so never before; None: it has."""
        if target <= self.clock:
            return None
        clock, time, present = self.clock, self.updated, len(self.targets)
        for other in self.targets:
            time += (other - clock) * present
            if other >= target:
                break
            clock = other
            present -= 1
        return time
