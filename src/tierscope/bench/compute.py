"""Emulated compute: how long a step takes, and what passes that time.

A core is kept busy (`loaders/busy.py`). When a host has no core to spare for it, it sleeps instead, as a host does while its accelerator
works, and results say so.
"""

import random
import time
from collections.abc import Callable

from tierscope.loaders.busy import Busy
from tierscope.spec.study import Train


def compute_mode(ranks_on_host: int, cores: int) -> str:
    """Busy needs a core per rank and one to read with."""
    return "busy" if ranks_on_host < cores else "sleep"


def make_compute(mode: str) -> Callable[[float], None]:
    return Busy() if mode == "busy" else time.sleep


def step_seconds(train: Train, seed: int, rank: int, epoch: int) -> Callable[[], float]:
    """Seconds of one step after another; the same for the same (seed, rank, epoch)."""
    mean, stdev = train.computation_time, train.computation_time_stdev
    rng = random.Random(f"{seed}/compute/{rank}/{epoch}")
    half_width = stdev * 3**0.5
    match train.computation_time_distribution:
        case "normal":
            return lambda: max(0.0, rng.gauss(mean, stdev))
        case "uniform":
            return lambda: max(0.0, rng.uniform(mean - half_width, mean + half_width))
        case "exponential":
            return lambda: rng.expovariate(1 / mean) if mean else 0.0
        case _:
            return lambda: mean
