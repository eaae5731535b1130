"""A study's samples and loader, as one rank has them."""

import itertools
import random
from collections.abc import Callable

from tierscope.bench.profiled import SeenDirectory
from tierscope.dataset.content import maker
from tierscope.errors import UserError
from tierscope.formats import Format
from tierscope.loaders import LOADERS, Loader, Reach, SampleSource, choose_loader
from tierscope.loaders.preprocess import make_preprocess
from tierscope.spec.emulation import python_only, reads_in_python
from tierscope.spec.study import FRAMEWORKS, Study
from tierscope.storage.access import Access, Directory, Nothing, NullDevice
from tierscope.storage.emulated import Emulated, Queues
from tierscope.storage.files import DatasetFiles
from tierscope.storage.stations import map_stations
from tierscope.trace.recorder import Recording

_NO_STORAGE: dict[str, Callable[[], Access]] = {"nothing": Nothing, "null device": NullDevice}


def pick_loader(study: Study, seen: bool = False) -> str:
    """The registered loader that the study means on this machine; refuses one that cannot do what the study asks.

    `seen`: another profiler must see what it reads. It cannot see the native one, which calls the kernel directly. Nor does that one
    emulate all that a tier may be, copy files, or read through MPI.
    """
    reader = study.workload.reader
    if reader.data_loader in FRAMEWORKS:
        if seen:
            raise UserError(
                f"workload.reader.data_loader = {reader.data_loader} is measured by our own recorder; leave --profiler out"
            )
        return reader.data_loader
    in_python = seen or fills_as_it_reads(study) or any(python_only(tier) for tier in study.system.tiers)
    in_python = in_python or reader.file_access == "collective"
    in_python = in_python or (reader.data_loader == "auto" and reads_in_python(study) is not None)
    name = choose_loader("threads" if in_python else reader.data_loader, reader.read_threads)
    wanted = "odirect = true" if reader.odirect else "io_engine = uring" if reader.io_engine == "uring" else None
    if wanted and name != "native":
        raise UserError(
            f"workload.reader.{wanted} needs the native loader, whose library is missing or cannot be loaded; "
            "install tierscope again where there is a C compiler, or leave the key out"
        )
    return name


def fills_as_it_reads(study: Study) -> bool:
    """Whether ranks copy what they read to the near tier."""
    return study.placement.policy == "first-touch"


def in_memory(study: Study) -> bool:
    """Whether ranks read everything before the first step, and nothing after it."""
    return study.workload.reader.read_ahead == "all" or study.workload.model.data == "memory"


def make_loader(study: Study, source: SampleSource, recording: Recording) -> Loader:
    """The loader that the study asks for, for one epoch."""
    reader = study.workload.reader
    name = pick_loader(study, seen=recording.silent and reader.data_loader not in FRAMEWORKS)
    make = LOADERS.load(name)
    return make(source, reader.batch_size, reader.read_threads, reader.prefetch_size, recording)


def make_source(
    study: Study, out: str, node: int, board: str | None, form: Format, seen: bool = False, rank: int = 0
) -> SampleSource:
    """The study's samples as a rank of a node reaches them; `seen`: with calls that any profiler knows."""
    tiers = study.system.tiers
    stations = map_stations(study.system, study.seed, study.workload.reader.read_threads)
    views = [view[node] if view else None for view in stations.views]
    dataset, reader = study.workload.dataset, study.workload.reader
    threads, fills = itertools.count(), fills_as_it_reads(study)

    def open_accesses() -> tuple[Access, ...]:
        queues = Queues(board) if board else None
        real = SeenDirectory if seen else Directory
        thread = next(threads)
        return tuple(
            Emulated(view, queues, random.Random(f"{study.seed}/{rank}/{thread}/{tier.name}"))
            if view and queues
            else real()
            for tier, view in zip(tiers, views, strict=True)
        )

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
        close_accesses=_close_queues,
        reach=Reach(tuple(views), board, reader.io_engine, reader.odirect),
        preprocess=make_preprocess(reader.preprocess, reader.preprocess_time, form),
        preprocess_threads=reader.computation_threads,
        options=reader,
        make_payload=maker(study),
    )


def _close_queues(accesses: tuple[Access, ...]) -> None:
    for queues in {access.queues for access in accesses if isinstance(access, Emulated)}:
        queues.close()


def null_source(study: Study, form: Format, storage: str = "nothing") -> SampleSource:
    """The study's samples on storage that does nothing: without system calls, or with ones that do no work (`null device`)."""
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
    )
