"""A study of a few small files on two directories, its data staged for real, and a loader's view of it."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from tierscope.bench.loading import make_source, node_storages
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.tasks import place_of
from tierscope.dataset.stage import Stager
from tierscope.loaders import LOADERS, Batch, Loader, SampleSource
from tierscope.native import library
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Block, Plan
from tierscope.plan.reading import is_buffered
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.storage.access import Access, Directory
from tierscope.storage.files import DatasetFiles
from tierscope.trace.ops import KINDS
from tierscope.trace.recorder import LaneTable, OpSink, Recording

NEEDS_LIBRARY = pytest.mark.skipif(library.load() is None, reason="the native library is not built")


def has_uring() -> bool:
    """Whether the kernel gives us a ring."""
    setup_call = 425
    parameters = ctypes.create_string_buffer(120)
    fd = ctypes.CDLL(None).syscall(setup_call, 1, parameters)
    if fd >= 0:
        os.close(fd)
    return bool(fd >= 0)


TEXT = """
study: small
seed: 7
workload:
  dataset: {format: tfrecord, num_files_train: 24, record_length_bytes: 1000}
  reader: {batch_size: 5, read_threads: 1, prefetch_size: 2}
  train: {epochs: 2}
system:
  tiers:
    lfs: {path: "{out}/lfs/{node}", visible_to: node}
    gfs: {path: "{out}/gfs"}
placement: {cache_rate: 50%}
"""


@cache
def small_study(*settings: str) -> Study:
    """The study, with `key=value` settings as on the command line; nobody can change it, so each is made once."""
    return parse_study(TEXT, "test", settings)


def plan_of(study: Study) -> Plan:
    return Plan.of(study, make_format(study).file_bytes)


def stagers(study: Study, out: str) -> list[Stager]:
    return [Stager(study, out, place_of(study, rank)) for rank in range(study.system.ranks)]


def stage(study: Study, out: str) -> int:
    """All ranks' staging, one after another where a barrier would be; the bytes written."""
    crew = stagers(study, out)
    for stager in crew:
        stager.claim()
    for stager in crew:
        stager.distrust()
    for stager in crew:
        stager.reopen()
    written = sum(stager.write(lambda _: None) for stager in crew)
    for stager in crew:
        stager.sync()
    for stager in crew:
        stager.seal()
    return written


def tier_files(study: Study, out: str, node: int = 0) -> tuple[DatasetFiles, ...]:
    suffix, dataset = make_format(study).suffix, study.workload.dataset
    return tuple(DatasetFiles.of(tier, out, node, dataset, study.seed, suffix) for tier in study.system.tiers)


def source_of(study: Study, out: str, access: Callable[[], Access] = Directory) -> SampleSource:
    """The study's samples; every thread reaches every tier through an access of its own making."""
    return SampleSource(
        format=make_format(study),
        files=tier_files(study, out),
        tier_names=tuple(tier.name for tier in study.system.tiers),
        transfer_bytes=study.workload.reader.transfer_size,
        samples_per_file=study.workload.dataset.num_samples_per_file,
        open_accesses=lambda: tuple(access() for _ in study.system.tiers),
        buffered=is_buffered(study),
    )


def node_source(study: Study, out: str, node: int = 0, board: str | None = None, rank: int = 0) -> SampleSource:
    """The study's samples as a rank of a node reaches them in a run."""
    run = ResolvedRun.of(study)
    return make_source(run, node_storages(run, out, node, board, rank), out, node, board)


def loader_of(study: Study, source: SampleSource, name: str | None = None, sink: OpSink | None = None) -> Loader:
    """A loader in Python, which reads through the source's accesses, or another one by name."""
    reader = study.workload.reader
    return LOADERS.load(name or ("threads" if reader.read_threads else "inline"))(
        source,
        reader.batch_size,
        reader.read_threads,
        reader.prefetch_size,
        Recording(len(source.files), sink=sink),
    )


@contextmanager
def reading(loader: Loader, blocks: Iterator[Block]) -> Iterator[Iterator[Batch]]:
    """The loader's batches, ended cleanly however the test leaves them."""
    batches = loader.batches(blocks)
    try:
        yield batches
    finally:
        batches.close()  # type: ignore[attr-defined]  # they are generators


def planned_samples(plan: Plan, rank: int = 0, epoch: int = 1) -> list[int]:
    return [int(sample) for block in plan.reads(rank, epoch) for sample in block.samples]


def totals(tables: list[LaneTable] | tuple[LaneTable, ...], what: str, kind: str) -> list[int]:
    """One number per tier (ops, nbytes, busy_ns, wall_ns), summed over lanes."""
    summed = np.sum([getattr(table, what) for table in tables], axis=0)
    return [int(value) for value in summed.reshape(-1, len(KINDS))[:, KINDS.index(kind)]]
