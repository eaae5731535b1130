"""A study's samples and loader, as one rank has them."""

from collections.abc import Callable

from tierscope.formats import Format
from tierscope.loaders import LOADERS, Loader, Source
from tierscope.spec.study import Study
from tierscope.tiers.access import Access, Directory, Nothing
from tierscope.tiers.emulated import Emulated, Queues
from tierscope.tiers.files import DatasetFiles
from tierscope.tiers.stations import map_stations
from tierscope.trace.recorder import Lane, OpSink, WallClock


def make_loader(study: Study, source: Source, epoch: int = 1, sink: OpSink | None = None) -> Loader:
    """The loader that the study asks for, for one epoch, with a lane per reading thread."""
    reader, tiers = study.workload.reader, len(source.files)
    clock = WallClock() if reader.read_threads > 1 else None
    return LOADERS.load("threads" if reader.read_threads else "inline")(
        source,
        reader.batch_size,
        reader.read_threads,
        reader.prefetch_size,
        lambda number: Lane(number, tiers, epoch, clock, sink),
    )


def make_source(study: Study, out: str, node: int, board: str | None, form: Format) -> Source:
    """The study's samples as the ranks of a node reach them."""
    tiers = study.system.tiers
    views = map_stations(study.system, study.seed).views
    dataset = study.workload.dataset

    def open_accesses() -> tuple[Access, ...]:
        queues = Queues(board) if board else None
        accesses: list[Access] = []
        for view in views:
            accesses.append(Emulated(view[node], queues) if view is not None and queues else Directory())
        return tuple(accesses)

    return Source(
        format=form,
        files=tuple(DatasetFiles.of(tier, out, node, dataset, study.seed, form.suffix) for tier in tiers),
        tier_names=tuple(tier.name for tier in tiers),
        transfer_bytes=study.workload.reader.transfer_size,
        samples_per_file=dataset.num_samples_per_file,
        open_accesses=open_accesses,
        close_accesses=_close_queues,
    )


def _close_queues(accesses: tuple[Access, ...]) -> None:
    for queues in {access.queues for access in accesses if isinstance(access, Emulated)}:
        queues.close()


def null_source(study: Study, form: Format, access: Callable[[], Access] = Nothing) -> Source:
    """The study's samples on storage that does nothing."""
    nowhere = DatasetFiles("/nowhere", "/nowhere", form.suffix, 0)
    tiers = len(study.system.tiers)
    return Source(
        format=form,
        files=(nowhere,) * tiers,
        tier_names=tuple(tier.name for tier in study.system.tiers),
        transfer_bytes=study.workload.reader.transfer_size,
        samples_per_file=study.workload.dataset.num_samples_per_file,
        open_accesses=lambda: tuple(access() for _ in range(tiers)),
        check=False,  # memory that nothing was read into cannot pass
    )
