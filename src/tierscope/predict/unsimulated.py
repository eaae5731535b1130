"""What ranks do and a simulation does not: refused where times would be wrong by it, said where something is only left out."""

from collections.abc import Iterator

from tierscope.errors import UserError
from tierscope.formats import LIBRARY
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study


def refuse_unsimulated(study: Study) -> None:
    reader = study.workload.reader
    if reader.read_ahead == "all":
        raise UserError(
            "workload.reader.read_ahead = all; that later epochs read nothing is not simulated: set read_ahead: batches, "
            "and look at the first epoch only"
        )

    network = study.workload.model.network
    if network is not None:
        raise UserError(
            f"workload.model.network = {network} is trained, not simulated; leave it out and give the time of a step as "
            "workload.train.computation_time ('tierscope require' has a lower bound, 'tierscope train' measures it)"
        )


def left_out(study: Study, method: str) -> Iterator[str]:
    """Lines worth saying before it begins."""
    reader, train = study.workload.reader, study.workload.train
    if reader.preprocess != "none":
        yield f"preprocess: {reader.preprocess} is not simulated"
    if reader.file_access == "collective":
        yield "file_access: collective is simulated as shared: with an open for every batch, and nobody waits for other ranks inside a read"
    if train.computation_time_distribution != "constant":
        yield f"computation_time_distribution: {train.computation_time_distribution} is simulated as its mean"
    if train.sync == "step" and method == "bound":
        yield "sync: step is simulated by --method events only"
    if study.workload.dataset.record_length_bytes_stdev:
        yield "record_length_bytes_stdev: samples are simulated with their mean size"
    if study.workload.dataset.statistics.file_bytes is not None:
        yield "workload.dataset.statistics: reads of it are not simulated"
    if make_format(study).reading == LIBRARY:
        yield f"format: {study.workload.dataset.format} is simulated as one read of a sample's bytes; what its library reads beside is not"
