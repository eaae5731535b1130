"""Property tests give the same verdict on every machine; `--hypothesis-profile=nightly` looks for new examples."""

import gc
import os
import signal
from collections.abc import Generator
from functools import lru_cache

import pytest
import yaml

from tests import examples
from tests.compiled_once import compiled_once
from tests.no_disk_waits import no_disk_waits

__all__ = ["compiled_once", "no_disk_waits"]

examples.register()

# Whoever starts the tests may ignore these (nohup, a shell's background job), and so would all programs that tests send them to.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same few texts are parsed thousands of times, which took a tenth of all. Nobody changes what is composed; mistakes are not kept.
yaml.compose = lru_cache(maxsize=2000)(yaml.compose)  # type: ignore[assignment]

SIMULATING = {"api", "cli", "commands", "golden", "papers", "predict", "test_simulated_writes.py", "validation"}

# Of what collecting makes nothing becomes garbage before the end: looking for it was a third of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # tests are short, and hardly any of them leaves cycles
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of two workers one begins at the end: they meet in the middle, and each rewrites the assertions of half the modules only."""
    report = yield
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and isinstance(collector, pytest.Dir) and report.result:
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What simulates comes first, so that one worker compiles the engine while the others do something else."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # all workers must have the same order
        items.sort(key=lambda item: (SIMULATING.isdisjoint(item.path.parts), item.path.parts))
