"""Start-up: what a user waits for before anything happens."""

import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.common import Result, interleaved, ratio, spread


def startup() -> Iterator[Result]:
    def run(*arguments: str) -> float:
        start = time.monotonic()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return time.monotonic() - start

    times = interleaved(
        {"python": lambda: run("-c", "pass"), "help": lambda: run("-m", "tierscope.cli.main", "--help")},
        9,
    )
    yield spread("python -c pass", times["python"], "s")
    help_ = spread("tierscope --help", times["help"], "s")
    yield Result(help_.name, help_.value, "s", help_.low, help_.high, help_.n, "≤ 0.25 s", help_.value <= 0.25)
    yield ratio("python -c pass / tierscope --help", times["python"], times["help"])
