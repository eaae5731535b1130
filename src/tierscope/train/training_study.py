"""What `train` does with a study: a network in place of emulated work, and one thing varied at a time. No table library is needed here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.arch.networks import ALIASES, NETWORKS
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.spec import keys, sweep
from tierscope.spec.check import find_problem
from tierscope.spec.load import Loaded, load
from tierscope.spec.study import TRAINING_DATA, Axis, Study
from tierscope.spec.vary import read_vary, value_at
from tierscope.train.loader_axes import LOADER, loader_settings, with_worker_keys

ENOUGH_REPETITIONS = 5
_EPOCHS = 2  # the first is apart
_MODEL = "workload.model"
_BATCH, _DATA = "workload.reader.batch_size", f"{_MODEL}.data"
_REFUSED = {
    "workload.train.computation_time": "emulates compute, but train computes for real; remove it",
    f"{_MODEL}.network": "can only have one value; use --model",
    "workload.train.epochs": "cannot be varied; use --set",
}


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Options as they are typed; None: as the study says."""

    model: str | None = None
    device: str | None = None
    precision: str | None = None
    optimizer: str | None = None
    input: str | None = None
    batch: str | None = None
    data: str | None = None
    vary: tuple[str, ...] = ()
    repetitions: int | None = None
    loader: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """`parts`: what is varied (None: nothing, or what the study sweeps), and the study to run for it."""

    base: Study
    parts: tuple[tuple[str | None, Study], ...]
    notes: tuple[str, ...]


def plan_training(
    name: str,
    asked: TrainOptions,
    settings: Sequence[str] = (),
    system: str | None = None,
    scaled: Callable[[Loaded], Loaded] = lambda loaded: loaded,
) -> Planned:
    """`settings` win over what is done here, so that a contradiction is said and not hidden."""
    plain = load(name, (), system).study
    ours, notes = [*_model_settings(asked), *loader_settings(asked.loader)], list[str]()
    for setting, note in _real_work(plain):
        ours += setting
        notes.append(note)
    loaded = scaled(load(name, [*ours, *settings], system))
    base, axes = _base_and_axes(loaded.study, asked)
    if base.workload.model.network is None:
        raise UserError(f"the study has no network; add --model {' or '.join(NETWORKS)}")
    notes = [*loaded.notes, *notes]
    repetitions = asked.repetitions or max(base.repetitions, ENOUGH_REPETITIONS)
    if base.workload.train.epochs < _EPOCHS:
        notes.append(f"epochs: {_EPOCHS} instead of {base.workload.train.epochs}, because the first is excluded")
        base = replace(base, workload=replace(base.workload, train=replace(base.workload.train, epochs=_EPOCHS)))
    if axes and base.cases:
        raise UserError(
            f"the study has the cases {', '.join(case.name for case in base.cases)}, but only one case can be trained; add --set case={base.cases[0].name}"
        )
    if axes and base.sweep:
        swept = ", ".join(axis.path for axis in base.sweep)
        notes.append(
            f"the study's own sweep ({swept}) is ignored, because other keys are varied; to include it, use --vary"
        )
    base = replace(base, repetitions=repetitions)
    parts = tuple(_parts(base, axes))
    for _, study in parts:
        _check(study)
    return Planned(replace(base, cases=(), sweep=()), parts, tuple(notes))


def _model_settings(asked: TrainOptions) -> Iterator[str]:
    for key, value in (
        ("network", ALIASES.get(asked.model or "", asked.model)),
        ("device", asked.device),
        ("arithmetic", asked.precision),
        ("solver", asked.optimizer),
        ("input", asked.input),
    ):
        if value is not None:
            yield f"{_MODEL}.{key}={value}"


def _real_work(plain: Study) -> Iterator[tuple[list[str], str]]:
    """Settings that take out what only emulates training, each with what to say about it."""
    train, reader = plain.workload.train, plain.workload.reader
    if train.computation_time or train.computation_time_stdev or _swept(plain, "workload.train.computation_time"):
        key = "workload.train.computation_time"
        yield (
            [f"{key}=0", f"{key}_stdev=0", f"{key}_distribution=constant"],
            "the study's compute time is ignored: train computes for real",
        )
    image = FORMATS[plain.workload.dataset.format].picture
    emulated = reader.preprocess in ("busy", "sleep")
    if emulated or (image and reader.preprocess == "none"):
        said = "emulated" if emulated else "nothing is decoded"
        yield (
            ["workload.reader.preprocess=decode", "workload.reader.preprocess_time=0"],
            f"preprocess: decode instead of {reader.preprocess} ({said}): train needs real samples",
        )


def _swept(study: Study, prefix: str) -> bool:
    return any(path.startswith(prefix) for path in study.changing)


def _base_and_axes(study: Study, asked: TrainOptions) -> tuple[Study, tuple[Axis, ...]]:
    """A single value is the base's own; several are varied."""
    lists = [(_BATCH, "--batch", asked.batch), (_DATA, "--data", asked.data), (LOADER, "--loader", asked.loader)]
    given = [_listed(study, path, option, text) for path, option, text in lists if text is not None]
    for axis in given:
        if len(axis.values) == 1:
            _refuse_overruled(study, axis)
            study = _with(study, axis.path, axis.values[0])
    varied = [axis for axis in given if len(axis.values) > 1]
    for axis in read_vary(study, asked.vary, _REFUSED):
        if any(axis.path == other.path for other in given):
            raise UserError(f"--vary {axis.path}: is also set by its own option; remove one")
        varied.append(axis)
    return study, tuple(varied)


def _refuse_overruled(study: Study, axis: Axis) -> None:
    """A case or a zip that sets the key too would silently win."""
    if any(axis.path in case.settings for case in study.cases):
        raise UserError(f"{axis.path} is set by cases of the study; add --set case={study.cases[0].name}")
    if any(other.zipped for other in study.sweep if other.path == axis.path):
        raise UserError(f"{axis.path} is part of a zip in the study's sweep; add --set sweep={{}}")


def _listed(study: Study, path: str, option: str, text: str) -> Axis:
    try:
        (axis,) = read_vary(study, [f"{path}={text}"])
    except UserError as error:
        raise type(error)(str(error).replace(f"--vary {path}={text}", f"{option} {text}")) from None
    return axis


def _with(study: Study, path: str, value: Any) -> Study:
    kept = tuple(axis for axis in study.sweep if axis.path != path)
    section, _, key = path.removeprefix("workload.").rpartition(".")
    inner = replace(getattr(study.workload, section), **{key: value})
    return replace(study, workload=replace(study.workload, **{section: inner}), sweep=kept)


def _parts(base: Study, axes: Sequence[Axis]) -> Iterator[tuple[str | None, Study]]:
    """One study for each key; where there are several, all of them have the base in common.

    Loaders are compared at every source of samples, if that is varied too: what a loader costs apart from storage is a difference of those.
    """
    if not axes:
        yield None, base
        return
    loaders, sources = ([axis for axis in axes if axis.path == path] for path in (LOADER, _DATA))
    crossed = [*loaders, *sources] if loaders and sources else []
    if crossed:
        yield LOADER.rpartition(".")[2], replace(base, sweep=(*with_worker_keys(base, loaders[0]), *sources))
    left = [axis for axis in axes if axis not in crossed]
    names = keys.short_names([axis.path for axis in left])
    for axis in left:
        own = value_at(base, axis.path)
        values = axis.values if own in axis.values or len(axes) == 1 else (own, *axis.values)
        varied = Axis(axis.path, values)
        yield names[axis.path], replace(base, sweep=with_worker_keys(base, varied) if axis in loaders else (varied,))


def _check(study: Study) -> None:
    for point in sweep.points(study):
        if problem := find_problem(point.study):
            at = ", ".join(f"{name} = {value}" for name, value in point.sweep.items())
            raise UserError(f"{problem.text}{f' (at {at})' if at else ''}")


def all_data() -> str:
    """What --storage-matters compares."""
    return ",".join(TRAINING_DATA)
