"""A step as `train` or `kernels` measured it, refused where it was another: of another network, batch, precision, optimizer, sample or device.

What a result of an earlier version does not say is not refused, but named beside the step.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tierscope.arch.device_match import SeenDevice, difference, memory_by_name
from tierscope.arch.machine import Machine
from tierscope.arch.network import Network
from tierscope.arch.networks import build_network, shown
from tierscope.arch.requirements import Wish
from tierscope.arch.step_seconds import MEASURED, StepSeconds, launch_seconds
from tierscope.errors import UserError, shell_word
from tierscope.output.typed_documents import DocumentKind, read_typed
from tierscope.spec.load import load_study
from tierscope.spec.option_values import read_shape
from tierscope.spec.study import FRAMEWORKS

_FREE = ("synthetic", "memory")  # where samples come from that cost no storage; the best first
_SAID = 60  # characters of what a file says

_Memory = Annotated[int, msgspec.Meta(ge=1, le=1 << 50)]
_Batch = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
_Shape = Annotated[str, msgspec.Meta(pattern=r"^[1-9]\d{0,8}(x[1-9]\d{0,8}){0,9}$")]
_Rate = Annotated[float, msgspec.Meta(gt=1e-6, lt=1e12)]  # samples per second


class _Efficiency(msgspec.Struct):
    """Results of earlier versions say neither optimizer nor recomputation, which `kernels` has no options for: it takes SGD and keeps activations."""

    model: str
    batch: int
    precision: str
    device: str
    total_seconds: Annotated[float, msgspec.Meta(gt=1e-9, lt=1e6)]
    ceilings: dict[str, Annotated[float, msgspec.Meta(gt=0, lt=1e21)]] | None = None
    device_memory_bytes: _Memory | None = None
    optimizer: str = "sgd"
    checkpointed: bool = False
    input: _Shape | None = None


class _TrainedPoint(msgspec.Struct):
    """`batch_size`, `recompute`: of a sweep; else the study says."""

    data: str
    samples_per_second: _Rate
    interval: tuple[float, float] | None = None  # Student's: of few or uneven repetitions it reaches below zero
    precision: str = "fp32"
    optimizer: str | None = None
    device: str = ""
    device_memory_bytes: _Memory | None = None
    loader: str | None = None
    batch_size: _Batch | None = None
    recompute: bool | None = None


class _Listed(msgspec.Struct):
    network: str


class _Trained(msgspec.Struct):
    """`studies`: of a table over several trainings, which is none itself."""

    network: str | None = None
    points: list[_TrainedPoint] = []
    studies: list[_Listed] = []


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What a step depends on. None: the result does not say."""

    model: str
    batch: int
    precision: str
    optimizer: str | None
    checkpointed: bool
    input: str | None
    device: SeenDevice


def measured_step(out: str, network: Network, machine: Machine, wish: Wish) -> StepSeconds:
    folder = Path(out)
    if os.path.lexists(folder / "efficiency.json"):
        kernels = read_typed(folder / "efficiency.json", DocumentKind(_Efficiency, "run 'tierscope kernels' again"))
        unknown = _refuse_other(out, _of_kernels(kernels), network, machine, wish)
        seconds = kernels.total_seconds
        launches = launch_seconds(len(network.layers))
        longer = "" if launches <= seconds else ", which do not tell how long the host takes to launch them"
        about = f"the kernels of a step on one {kernels.device!r}, in {out}{unknown}{longer}"
        return StepSeconds(seconds, seconds, max(seconds, launches), MEASURED, about)
    trained = _trained(out, folder)
    study = load_study(str(folder / "study.yaml"))
    ranks = study.system.nodes * study.system.ranks_per_node
    model, usual = study.workload.model, study.workload.reader.batch_size
    points = [point for free in _FREE for point in trained.points if point.data == free and _is_free(point)]
    if not points:
        raise UserError(
            f"--measured {out}: training.json has no points with samples from memory or synthetic ones, and steps that wait for storage do not tell; "
            "run 'tierscope train --storage-matters'"
        )
    assert trained.network is not None
    was = [
        _Conditions(
            trained.network,
            point.batch_size or usual,
            point.precision,
            point.optimizer,
            model.recompute if point.recompute is None else point.recompute,
            model.input or shown(build_network(trained.network).input_shape),
            _seen(point.device, point.device_memory_bytes),
        )
        for point in points
    ]
    alike = (not any(_differences(at, network, machine, wish)) for at in was)
    place = next((number for number, is_alike in enumerate(alike) if is_alike), 0)
    best, batch = points[place], was[place].batch
    unknown = _refuse_other(out, was[place], network, machine, wish)
    low, high = _interval(out, best, batch * ranks)
    devices = "one" if ranks == 1 else f"{ranks} ×"
    about = f"measured on {devices} {best.device!r} with samples from {best.data}, in {out}{unknown}"
    return StepSeconds(batch * ranks / best.samples_per_second, low, high, MEASURED, about)


def _of_kernels(kernels: _Efficiency) -> _Conditions:
    seen = _seen(kernels.device, kernels.device_memory_bytes, kernels.ceilings)
    return _Conditions(
        kernels.model, kernels.batch, kernels.precision, kernels.optimizer, kernels.checkpointed, kernels.input, seen
    )


def _seen(name: str, memory: int | None, ceilings: dict[str, float] | None = None) -> SeenDevice:
    return SeenDevice(name, memory or memory_by_name(name), ceilings or {})


def _trained(out: str, folder: Path) -> _Trained:
    """Refuses what is no result of one training, and says what it is."""
    if not os.path.lexists(folder / "training.json"):
        handed = any(folder.glob("*-r*.npz"))
        raise UserError(
            f"--measured {out}: has runs that 'tierscope train --hand-over' left, and no result; run 'tierscope train --take {shell_word(out)} --out OUT' and name OUT"
            if handed
            else f"--measured {out}: has neither training.json nor efficiency.json; name a result of 'tierscope train' or 'tierscope kernels --out'"
        )
    again = "run 'tierscope train' again"
    trained = read_typed(folder / "training.json", DocumentKind(_Trained, again, most_bytes=1 << 24))
    if trained.studies:
        names = [study.network for study in trained.studies]
        raise UserError(
            f"--measured {out}: training.json lists several trainings ({', '.join(names)[:_SAID]}), and is not the result of one; {_one_of(folder, names)}"
        )
    if trained.network is None:
        raise UserError(f"{folder / 'training.json'}: is damaged: network is missing; {again}")
    if not os.path.lexists(folder / "study.yaml"):
        parts = sorted(path.parent.name for path in folder.glob("*/study.yaml"))
        where = f"name one of them, e.g. {folder / parts[0]}" if parts else again
        raise UserError(f"--measured {out}: has no study.yaml, as where several keys were varied; {where}")
    return trained


def _one_of(folder: Path, names: Sequence[str]) -> str:
    """What to name instead."""
    runs = [folder / name for name in names if name == Path(name).name and (folder / name / "study.yaml").is_file()]
    if runs:
        return f"run e.g. 'tierscope train --take {shell_word(str(runs[0]))} --out OUT' and name OUT"
    return "name the OUT of one 'tierscope train'"


def _is_free(point: _TrainedPoint) -> bool:
    """A framework's loader hands out samples from memory at its own cost, which is no part of a step."""
    return point.data != "memory" or point.loader not in FRAMEWORKS


def _interval(out: str, best: _TrainedPoint, samples: int) -> tuple[float, float]:
    """Seconds of a step of so many samples."""
    least, most = best.interval or (best.samples_per_second,) * 2
    if least <= 0 < best.samples_per_second <= most:
        raise UserError(
            f"--measured {out}: the 95 % interval of samples/s, {least:,.4g} to {most:,.4g}, reaches below zero, so it does not tell how long a step takes; "
            "run 'tierscope train' with more --repetitions"
        )
    if not least <= best.samples_per_second <= most:
        raise UserError(
            f"--measured {out}: training.json says {best.samples_per_second:g} samples/s and an interval of {least:g} to {most:g}; run 'tierscope train' again"
        )
    return samples / most, samples / least


def _refuse_other(out: str, was: _Conditions, network: Network, machine: Machine, wish: Wish) -> str:
    """A step of something else is no answer. What the result does not say, to be told beside it."""
    if was.device.name.lower().startswith(
        "cpu"
    ):  # systems have accelerators, and a step on a CPU says nothing about one
        raise UserError(
            f"--measured {out}: was measured on a CPU, not on an accelerator; measure on the accelerator of --system"
        )
    differs = next(_differences(was, network, machine, wish), None)
    if differs is not None:
        raise UserError(f"--measured {out}: {differs}")
    unknown = [
        what
        for what, is_known in (
            ("the optimizer", was.optimizer is not None),
            ("the shape of a sample", was.input is not None),
            (f"whether that is an accelerator of {machine.name}", was.device.memory_bytes or was.device.ceilings),
        )
        if not is_known
    ]
    return f" (the result does not say {', or '.join(unknown)})" if unknown else ""


def _differences(was: _Conditions, network: Network, machine: Machine, wish: Wish) -> Iterator[str]:
    pairs = (
        ("model", was.model, network.name),
        ("--batch", was.batch, wish.batches[0]),
        ("--precision", was.precision, wish.precision.name),
        ("--optimizer", was.optimizer, wish.optimizer),
        ("--input", None if was.input is None else shown(read_shape(was.input)), shown(network.input_shape)),
    )
    for name, there, asked in pairs:
        if there is not None and there != asked:
            said = f"{name} {str(there)[:_SAID]}"
            yield f"has {said}, but {asked} is asked; use {said}, or measure {asked}"
    if was.checkpointed != wish.checkpointed:
        there, use = ("recomputed", "add") if was.checkpointed else ("kept", "remove")
        asked = "kept" if was.checkpointed else "recomputed"
        yield f"activations were {there}, but are to be {asked}; {use} --checkpointed, or measure with them {asked}"
    differs = difference(was.device, machine)
    if differs is not None:
        yield (
            f"is of {was.device.name[:_SAID]!r} {differs[0]}, but accelerators of {machine.name} {differs[1]}; "
            "use what was measured on that accelerator, or a --system that has this one"
        )
