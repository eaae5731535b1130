"""Runs that train a real network: where their ranks meet, what is checked before hours pass. Without a decoder or tables: see `away`."""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from tierscope.arch.networks import build_network
from tierscope.errors import UserError
from tierscope.output.durable import remove_file
from tierscope.recording.recorders import BUILTIN
from tierscope.spec.study import EVICT_METADATA, Model, Study


def check_training(studies: Iterable[Study], profiler: str) -> None:
    trained = [study for study in studies if study.workload.model.network]
    if not trained:
        return
    if find_spec("torch") is None:
        raise UserError("workload.model.network needs torch, which is not installed; pip install 'tierscope[torch]'")
    if profiler != BUILTIN:
        raise UserError("workload.model.network works only with the built-in recorder; remove --profiler")
    for model in {study.workload.model for study in trained}:
        network_of(model)


def network_of(model: Model) -> Any:
    """Refuses an input that the network cannot take."""
    assert model.network is not None
    return build_network(model.network, None if model.input is None else tuple(map(int, model.input.split("x"))))


@contextmanager
def meeting(study: Study, out: str) -> Iterator[str | None]:
    """A path where ranks that train together find one another; gone afterwards."""
    if study.workload.model.network is None or study.system.ranks == 1:
        yield None
        return
    from tierscope.output.result import make_scratch  # noqa: PLC0415  (needs Polars, which a machine that only trains may lack)

    path = os.path.join(make_scratch(os.path.abspath(out)), f"meeting-{uuid.uuid4().hex}")
    try:
        yield path
    finally:
        remove_file(path, out)


def metadata_cache(study: Study) -> str:
    """What was done about names and inodes in this host's caches before every epoch: cold: dropped; warm: not; unknown: nothing was evicted at all.

    Nobody looks for any where samples are made on the device.
    """
    evict = study.workload.reader.evict
    if study.workload.model.data == "synthetic":
        return "unused"
    return "cold" if evict == EVICT_METADATA else "warm" if evict else "unknown"
