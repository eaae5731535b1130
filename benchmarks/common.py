"""What the benchmarks share: comparing in interleaved rounds, and one table of results."""

import os
import random
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    """`ratio` is to the bound or the configured value; `goal` is what we want it to be at least (or the error at most)."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    n: int
    goal: str = ""
    met: bool | None = None
    note: str = ""

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def line(self) -> str:
        if not self.n:
            return f"{self.name:<58} {self.note}"
        spread = f"{self.low:.4g}–{self.high:.4g}, n={self.n}"
        word = {None: "", True: "met", False: "MISSED"}[self.met]
        verdict = f"goal {self.goal}: {word} ({self._of_goal():.2f} of it)" if word else ""
        return f"{self.name:<58} {self.value:>9.4g} {self.unit:<8} {spread:<26} {verdict} {self.note}".rstrip()

    def _of_goal(self) -> float:
        """The value over the number in the goal, in the same unit."""
        return abs(self.value) / float("".join(re.findall(r"[\d.]", self.goal)))


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory where there is one, so that no disk is measured."""
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="tierscope-bench-", dir=parent) as folder:
        yield Path(folder)


def compile_loop(folder: Path) -> str:
    """The bound for reading files: open, read, close in C, and nothing else."""
    program = folder / "loop"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("loop.c")], check=True)
    return str(program)


def interleaved(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every contender in every round, each round in another order; the first round is a warm-up."""
    dice = random.Random(1)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        order = list(contenders)
        dice.shuffle(order)
        for name in order:
            seconds = contenders[name]()
            if number:
                times[name].append(seconds)
    return times


def ratio(name: str, bound: list[float], ours: list[float], goal: float | None = None, note: str = "") -> Result:
    """Speed of ours relative to the bound, pair by pair."""
    ratios = [theirs / mine for theirs, mine in zip(bound, ours, strict=True)]
    median = statistics.median(ratios)
    met = None if goal is None else median >= goal
    return Result(name, median, "×", min(ratios), max(ratios), len(ratios), f"≥ {goal}" if goal else "", met, note)


def spread(name: str, values: list[float], unit: str, note: str = "") -> Result:
    return Result(name, statistics.median(values), unit, min(values), max(values), len(values), note=note)


def left_out(name: str, reason: str, install: str) -> Result:
    """What was not measured, why, and what to type to have it measured."""
    return Result(name, 0, "", 0, 0, 0, note=f"(left out: {reason}; {install} installs it)")
