"""Results that are written without waiting for the disk: no test cuts the power, and two milliseconds for every file were a tenth of all.

Ranks and commands that are processes of their own wait as ever, and so does whoever evicts pages or writes checkpoints. That what is
written is synced, and in which order, is for tests/output. Data that tests stage for loaders are not synced either: that would wait for
all that anybody wrote to the same disk.
"""

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

THEY_WAIT = {"output", "integration"}
THEY_STAGE = {"dataset", "loaders"}


class OsWithoutWaiting(ModuleType):
    """The module `os`, whatever a test makes of it, but for this."""

    fsync = staticmethod(os.fstat)  # a descriptor that is none is still an error

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@pytest.fixture(scope="module", autouse=True)
def no_disk_waits(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if THEY_WAIT.isdisjoint(request.path.parts):
            patch.setattr("tierscope.output.durable.os", OsWithoutWaiting("os"))
        if not THEY_STAGE.isdisjoint(request.path.parts):
            patch.setattr(
                "tierscope.output.durable.sync_filesystem", os.stat
            )  # a folder that is none is still an error
        yield
