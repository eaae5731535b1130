"""What `file_access: collective` needs: one file, and reads that every rank makes itself, as often and in the same order as the others."""

from collections.abc import Iterator

from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.spec.problem import Problem
from tierscope.spec.study import Study

_READER, _DATASET = "workload.reader", "workload.dataset"
_IN_PYTHON = LOADERS.where(lambda loader: loader.by_name and loader.in_python)


def collective_problems(study: Study) -> Iterator[Problem]:
    reader, dataset = study.workload.reader, study.workload.dataset
    if reader.file_access != "collective":
        return

    def problem(key: str, value: object, why: str, fix: str) -> Problem:
        return Problem(
            key, f"{key} = {value}, but with {_READER}.file_access: collective {why}; set {fix}, or file_access: shared"
        )

    if dataset.num_files_train > 1:
        why = "all ranks read a single file together"
        yield problem(f"{_DATASET}.num_files_train", dataset.num_files_train, why, "1 and more num_samples_per_file")
    if not FORMATS[dataset.format].collective:
        fix = " or ".join(FORMATS.where(lambda form: form.collective))
        yield problem(f"{_DATASET}.format", dataset.format, f"only {fix} files are read", fix)
    wanted = {"read_threads": (0,), "data_loader": ("auto", *_IN_PYTHON), "read_ahead": ("batches",)}
    wanted |= {"odirect": (False,), "io_engine": ("pread",)}
    for name, values in wanted.items():
        value = getattr(reader, name)
        if value not in values:
            why = "all ranks read batch by batch, in step"
            yield problem(
                f"{_READER}.{name}", str(value).lower(), why, " or ".join(str(allowed).lower() for allowed in values)
            )
    for tier in study.system.tiers:
        if tier.emulate:
            why = "the MPI library reads, and its reads cannot be delayed"
            yield problem(f"system.tiers.{tier.name}.emulate", "true", why, "false")
