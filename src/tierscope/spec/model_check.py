"""What only studies with a real network may say, and what those may not."""

from collections.abc import Iterator

from tierscope.formats import FORMATS
from tierscope.spec.problem import Problem
from tierscope.spec.study import Model, Study

_KEY = "workload.model"


def model_problems(study: Study) -> Iterator[Problem]:
    model, reader, train = study.workload.model, study.workload.reader, study.workload.train
    if model.network is None:
        for name in ("input", "arithmetic", "solver", "data", "recompute"):
            if (value := getattr(model, name)) != getattr(Model(), name):
                path = f"{_KEY}.{name}"
                yield Problem(
                    path,
                    f"{path} = {str(value).lower()}, but no network is trained; set {_KEY}.network, or remove the key",
                )
        return
    trained = f"{_KEY}.network = {model.network}"
    if train.computation_time or train.computation_time_stdev:
        path = "workload.train.computation_time"
        yield Problem(path, f"{path} emulates compute, but {trained} trains for real; remove one of them")
    if reader.pin_memory and model.device == "cpu":
        path = "workload.reader.pin_memory"
        yield Problem(
            path,
            f"{path} = true, but {_KEY}.device = cpu has nothing to pin for; set device: cuda, or remove pin_memory",
        )
    if reader.preprocess in ("busy", "sleep"):
        path = "workload.reader.preprocess"
        yield Problem(path, f"{path} = {reader.preprocess} has no effect on training; set none or decode")
    if FORMATS[study.workload.dataset.format].picture and reader.preprocess != "decode" and model.data != "synthetic":
        path = "workload.reader.preprocess"
        yield Problem(
            path,
            f"{path} = {reader.preprocess}, but {study.workload.dataset.format} must be decoded for training; set decode",
        )
