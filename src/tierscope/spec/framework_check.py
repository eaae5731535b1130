"""What loaders of frameworks do not do, and what only they do: refused, not ignored."""

from collections.abc import Iterator

from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.spec.emulation import python_only
from tierscope.spec.problem import Problem
from tierscope.spec.study import Reader, Study

_KEY = "workload.reader"
OF_WORKERS = ("multiprocessing_context", "pin_memory")
_NOT_THEIRS = ("read_ahead", "odirect", "io_engine", "computation_threads")


def framework_problems(study: Study) -> Iterator[Problem]:
    reader = study.workload.reader
    if reader.loader is None or not reader.loader.workers:
        theirs = " or ".join(LOADERS.where(lambda entry: entry.workers))
        for name, value in _unusual(reader, OF_WORKERS):
            yield Problem(
                f"{_KEY}.{name}",
                f"{_KEY}.{name} = {value} works only with data_loader: {theirs}; set that, or remove the key",
            )
    if reader.loader is None or not reader.loader.framework:
        return
    loader = f"{_KEY}.data_loader = {reader.data_loader}"
    for name, value in _unusual(reader, _NOT_THEIRS):
        yield Problem(
            f"{_KEY}.{name}",
            f"{_KEY}.{name} = {value}, which {loader} does not support; remove it, or set data_loader: auto",
        )
    if study.placement.policy == "first-touch":
        path = "placement.policy"
        yield Problem(path, f"{path} = first-touch, but {loader} copies nothing; set data_loader: auto")
    for tier in study.system.tiers:
        if key := python_only(tier):
            path = f"system.tiers.{tier.name}.{key}"
            yield Problem(path, f"{path} is emulated only in Python, which {loader} bypasses; set data_loader: auto")
    yield from _format_problems(study, loader)


def _unusual(reader: Reader, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Keys that are not as they are by themselves, with their values as the user writes them."""
    usual = Reader()
    for name in names:
        if (value := getattr(reader, name)) != getattr(usual, name):
            yield name, str(value).lower()


def _format_problems(study: Study, loader: str) -> Iterator[Problem]:
    reader, dataset = study.workload.reader, study.workload.dataset
    form = FORMATS[dataset.format]
    if form.in_memory:
        path = "workload.dataset.format"
        yield Problem(path, f"{path} = {dataset.format}, but {loader}; set data_loader: auto")
    if reader.loader is None or not reader.loader.in_order:
        return
    ranks = study.system.ranks
    if dataset.num_samples_per_file > 1 and reader.file_access == "multi" and dataset.num_files_train % ranks:
        path = "workload.dataset.num_files_train"
        yield Problem(
            path,
            f"{path} = {dataset.num_files_train} does not divide evenly among {ranks} ranks, but {loader} reads whole files; set a multiple, or another data_loader",
        )
    runs = form.records and reader.sample_shuffle == "off" and reader.file_access == "multi"
    if form.library or (dataset.num_samples_per_file > 1 and not runs):
        wanted = {"format": ("tfrecord", form.records), "sample_shuffle": ("off", reader.sample_shuffle == "off")}
        wanted["file_access"] = "multi", reader.file_access == "multi"
        fixes = ", ".join(f"{key}: {value}" for key, (value, there) in wanted.items() if not there)
        yield Problem(
            f"{_KEY}.data_loader",
            f"{loader} reads TFRecord files from beginning to end (sample_shuffle: off, file_access: multi), or files with one sample; "
            f"set {fixes}, or another data_loader",
        )
