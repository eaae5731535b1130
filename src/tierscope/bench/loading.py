"""A run's samples and loader, as one rank has them."""

from collections.abc import Callable, Sequence

from tierscope.bench.resolved import ResolvedRun
from tierscope.dataset.content import maker
from tierscope.dataset.sums import sums_layout
from tierscope.loaders import LOADERS, Loader, Reach, SampleSource
from tierscope.loaders.choose import fills_as_it_reads
from tierscope.loaders.preprocess import make_preprocess
from tierscope.loaders.verify import SampleChecks, SumsTable, read_in
from tierscope.plan.reading import is_buffered
from tierscope.spec.study import Study
from tierscope.storage.access import Access, Nothing, NullDevice, SeenDirectory
from tierscope.storage.base import Storage
from tierscope.storage.files import DatasetFiles
from tierscope.storage.opening import open_storages, services_of, views_at
from tierscope.storage.sums import NAME as SUMS
from tierscope.trace.recorder import Recording

_NO_STORAGE: dict[str, Callable[[], Access]] = {"nothing": Nothing, "null device": NullDevice}


def in_memory(study: Study) -> bool:
    """Whether ranks read everything before the first step, and nothing after it."""
    return study.workload.reader.read_ahead == "all" or study.workload.model.data == "memory"


def make_loader(run: ResolvedRun, source: SampleSource, recording: Recording) -> Loader:
    """The run's loader, for one epoch."""
    reader = run.study.workload.reader
    make = LOADERS.load(run.loader)
    return make(source, reader.batch_size, reader.read_threads, reader.prefetch_size, recording)


def node_storages(
    run: ResolvedRun, out: str, node: int, board: str | None = None, rank: int = 0
) -> tuple[Storage, ...]:
    """The study's tiers as a rank of a node reaches them; `board`: the emulated tiers' shared queues, while they are measured."""
    study = run.study
    return open_storages(study, out, node, services_of(views_at(run.stations, node), board, study.seed, rank))


def make_source(
    run: ResolvedRun, storages: Sequence[Storage], out: str, node: int, board: str | None, seen: bool = False
) -> SampleSource:
    """The run's samples as a rank of a node reaches them; `seen`: with calls that any profiler knows."""
    study, form = run.study, run.format
    tiers, dataset, reader = study.system.tiers, study.workload.dataset, study.workload.reader
    fills = fills_as_it_reads(study)

    def open_accesses() -> tuple[Access, ...]:
        return tuple(SeenDirectory() if seen else storage.open_access() for storage in storages)

    return SampleSource(
        format=form,
        files=tuple(
            DatasetFiles.of(tier, out, node, dataset, study.seed, form.suffix, copies=fills and tier is not tiers[-1])
            for tier in tiers
        ),
        tier_names=tuple(tier.name for tier in tiers),
        transfer_bytes=reader.transfer_size,
        samples_per_file=dataset.num_samples_per_file,
        open_accesses=open_accesses,
        reach=Reach(views_at(run.stations, node), board, reader.io_engine, reader.odirect),
        preprocess=make_preprocess(reader.preprocess, reader.preprocess_time, form),
        preprocess_threads=reader.computation_threads,
        options=reader,
        make_payload=maker(study),
        checks=_sample_checks(run, storages, out, node),
        buffered=is_buffered(study),
    )


def _sample_checks(run: ResolvedRun, storages: Sequence[Storage], out: str, node: int) -> SampleChecks | None:
    """Copies that ranks make as they read are what the last tier holds: so are their checksums."""
    study, form = run.study, run.format
    layout, tiers = sums_layout(study, form), study.system.tiers
    if layout is None:
        return None
    tables = []
    for index in range(len(tiers)):
        home = len(tiers) - 1 if fills_as_it_reads(study) else index
        files = DatasetFiles.of(tiers[home], out, node, study.workload.dataset, study.seed, form.suffix)
        tables.append(SumsTable(f"{files.folder}/{SUMS}", layout, storages[home]))
    every = read_in(study.workload.reader.verify, study.workload.dataset.record_length_bytes)
    return SampleChecks(every, tuple(tables))


def null_source(run: ResolvedRun, storage: str = "nothing") -> SampleSource:
    """The run's samples on storage that does nothing: without system calls, or with ones that do no work (`null device`)."""
    study, form = run.study, run.format
    nowhere = DatasetFiles("/nowhere", "/nowhere", form.suffix, 0)
    tiers, reader = len(study.system.tiers), study.workload.reader
    return SampleSource(
        format=form,
        files=(nowhere,) * tiers,
        tier_names=tuple(tier.name for tier in study.system.tiers),
        transfer_bytes=reader.transfer_size,
        samples_per_file=study.workload.dataset.num_samples_per_file,
        open_accesses=lambda: tuple(_NO_STORAGE[storage]() for _ in range(tiers)),
        check=False,  # memory that nothing was read into cannot pass
        make_payload=lambda _, slot: slot.nbytes,
        reach=Reach(io_engine=reader.io_engine, odirect=reader.odirect, storage=storage),
        buffered=is_buffered(study),
    )
