"""Real training: the steps of a rank, and what is planned and measured about them. This is the registry of who trains."""

from typing import Any

from tierscope.registry import Entry, Registry

TRAININGS: Registry[Any, Entry] = Registry(
    "training with",
    {"torch": Entry("tierscope.train.work:TorchWork", "networks of tierscope.arch on torch", "torch")},
)
