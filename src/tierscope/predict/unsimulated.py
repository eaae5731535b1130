"""What ranks do and a simulation does not: refused where times would be wrong by it, said where something is only left out."""

from collections.abc import Iterator

from tierscope.errors import UserError
from tierscope.formats import LIBRARY
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study


def refuse_unsimulated(study: Study) -> None:
    network = study.workload.model.network
    if network is not None:
        raise UserError(
            f"workload.model.network = {network} is not simulated; remove it and set "
            "workload.train.computation_time to the time of a step (lower bound: 'tierscope require'; measured: 'tierscope train')"
        )


def left_out(study: Study, method: str) -> Iterator[str]:
    """Lines worth saying before it begins."""
    reader, train = study.workload.reader, study.workload.train
    if reader.preprocess != "none":
        yield f"preprocess: {reader.preprocess} is not simulated"
    if reader.file_access == "collective":
        yield "file_access: collective is simulated as shared: one open per batch, without waits for other ranks inside reads"
    if train.computation_time_distribution != "constant":
        yield f"computation_time_distribution: {train.computation_time_distribution} is simulated as its mean"
    if train.sync == "step" and method == "bound":
        yield "sync: step is simulated only by --method events"
    if study.workload.checkpoint.wanted and study.workload.checkpoint.background and method == "bound":
        yield "checkpoint.background: in the bound, writes take a share of the servers' time; only --method events simulates reads that wait for a whole write"
    if study.workload.dataset.record_length_bytes_stdev and method == "bound":
        yield "record_length_bytes_stdev: --method bound uses the mean sample size; events uses varying sizes"
    dataset = study.workload.dataset
    if make_format(study).reading == LIBRARY:
        read = "whole chunks, uncompressed" if dataset.hdf5.chunk_size else "one read per sample"
        yield f"format: {dataset.format} is simulated as {read}, without other reads of its library"
