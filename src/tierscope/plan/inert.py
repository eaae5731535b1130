"""Keys that change nothing, for this format, loader and order: named wherever somebody varies one, so that nobody tunes noise.

The only place that decides it; keys that contradict others are refused before (spec/check.py). A key is inert where its value has the effect of another one (`InertKey.value`); two studies that differ only in such
keys have the same `effective` study, and do the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tierscope.formats import FORMATS, WHOLE
from tierscope.plan.file_format import make_format
from tierscope.plan.reading import is_buffered, part_samples
from tierscope.spec import keys, sweep
from tierscope.spec.study import Checkpoint, Dataset, Reader, Study
from tierscope.units import about_bytes

_READER, _DATASET = "workload.reader", "workload.dataset"
_NOT_SIMULATED = {  # what a simulation does not look at, and what its value is taken for
    f"{_READER}.evict": True,
    f"{_READER}.verify": "sample",
    f"{_READER}.preprocess": "none",
    f"{_READER}.preprocess_time": 0.0,
    f"{_READER}.computation_threads": 0,
    f"{_DATASET}.hdf5.chunk_size": None,
    f"{_DATASET}.hdf5.compression": "none",
    f"{_DATASET}.hdf5.compression_level": 4,
    f"{_DATASET}.compressibility": 0.0,
    f"{_DATASET}.num_subfolders_train": 0,
}


@dataclass(frozen=True, slots=True)
class InertKey:
    """`value`: has the same effect as the study's. `why`: a clause without a full stop."""

    path: str
    value: Any
    why: str


def inert_keys(study: Study, simulated: bool = False) -> Iterator[InertKey]:
    """Of the study as it is; a key may be inert at one value and not at another, e.g. a transfer size above the size of a sample."""
    if simulated:
        yield from (InertKey(path, value, "it is not simulated") for path, value in _NOT_SIMULATED.items())
    yield from _transfers(study)
    yield from _ahead(study.workload.reader)
    yield from _orders(study.workload.reader)
    yield from _levels(study.workload.dataset)


def effective(study: Study, simulated: bool = False) -> Study:
    """The same for all studies that differ in inert keys only."""
    for inert in inert_keys(study, simulated):
        study = _with(study, inert.path.split("."), inert.value)
    return study


def inert_axes(study: Study, simulated: bool = False) -> dict[str, str]:
    """Swept keys, by their short names, whose values all have the same effect at every point of the others; and why."""
    points = list(sweep.points(study))
    paths = keys.short_names([axis.path for axis in study.sweep])
    varied = [axis.path for axis in study.sweep if len(axis.values) > 1 and not axis.zipped]
    effects = [effective(point.study, simulated) for point in points]
    inert: dict[str, str] = {}
    for path in varied:
        name = paths[path]
        first: dict[tuple[Any, ...], Study] = {}
        beside = [tuple(value for key, value in point.sweep.items() if key != name) for point in points]
        if all(first.setdefault(others, effect) == effect for others, effect in zip(beside, effects, strict=True)):
            inert[name] = why_inert(points[-1].study, path, simulated)
    return inert


def why_inert(study: Study, path: str, simulated: bool = False) -> str:
    return next(
        (inert.why for inert in inert_keys(study, simulated) if inert.path == path), "all values have one effect"
    )


def _with(section: Any, path: list[str], value: Any) -> Any:
    name, *rest = path
    return replace(section, **{name: _with(getattr(section, name), rest, value) if rest else value})


def _transfers(study: Study) -> Iterator[InertKey]:
    dataset, reader, checkpoint = study.workload.dataset, study.workload.reader, study.workload.checkpoint
    if _writes_transfers(study, checkpoint) or reader.file_access == "collective":
        return
    path, entry, usual = (
        f"{_READER}.transfer_size",
        FORMATS[dataset.format],
        Reader.__dataclass_fields__["transfer_size"].default,
    )
    if entry.in_memory:
        yield InertKey(path, usual, "samples are made in memory")
    elif entry.library:
        yield InertKey(path, usual, f"{dataset.format} files are read by their library, which chooses its own requests")
    elif reader.data_loader == "tensorflow" and not (entry.records and dataset.num_samples_per_file > 1):
        yield InertKey(path, usual, "TensorFlow reads such files whole")
    else:
        form = make_format(study)
        sample, share = form.slot_bytes, part_samples(study)
        most = sample * min(share, dataset.num_samples_per_file) if is_buffered(study) else sample
        if reader.transfer_size >= most:
            yield InertKey(path, most, _why_short(study, sample, most, form.reading == WHOLE))


def _writes_transfers(study: Study, checkpoint: Checkpoint) -> bool:
    return checkpoint.wanted or study.placement.policy in ("first-touch", "lru")


def _why_short(study: Study, sample: int, most: int, whole: bool) -> str:
    per_file = study.workload.dataset.num_samples_per_file
    if is_buffered(study):
        return f"a thread reads at most {about_bytes(most)} of a file for its part of a batch; raise batch_size"
    if whole or per_file == 1:
        return f"a file has at most {about_bytes(sample)}"
    return f"every sample is read by itself, and has at most {about_bytes(sample)}; only samples in order (sample_shuffle: off) are read ahead through a buffer"


def _ahead(reader: Reader) -> Iterator[InertKey]:
    path = f"{_READER}.prefetch_size"
    if reader.read_threads == 0:
        yield InertKey(path, 2, "read_threads = 0 reads nothing ahead")
    elif reader.read_ahead == "all":
        yield InertKey(path, 2, "read_ahead = all reads everything before the first step")


def _orders(reader: Reader) -> Iterator[InertKey]:
    if reader.shuffle != "chunked":
        yield InertKey(f"{_READER}.shuffle_nodes", 1, f"shuffle = {reader.shuffle}")
    if reader.shuffle == "off" and reader.sample_shuffle != "offset":
        for name in ("file_shuffle", "sample_shuffle"):
            yield InertKey(f"{_READER}.{name}", "off", "shuffle = off")


def _levels(dataset: Dataset) -> Iterator[InertKey]:
    layout = dataset.hdf5
    if layout.compression != "gzip":
        yield InertKey(f"{_DATASET}.hdf5.compression_level", 4, f"compression = {layout.compression}")
