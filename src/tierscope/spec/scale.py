"""A study made smaller with its proportions kept: `--scale 0.001`.

What shrinks, by the share F (each at least 1, as whole numbers allow):

    ranks            nodes first, then ranks of the one node that is left; at least 2 where there were 2. Those of a checkpoint whose model is split over
                     ranks stay: each writes its own part
    samples          to F of them; where every rank reads all of them only below two ranks' worth: fewer ranks read less. And a sample for every rank at least; those made in memory as ranks do, so that a rank's steps stay
    files            to F of them, but one for every rank where there were as many: then each has fewer samples. One shared file stays one
    steps            (`total_training_steps`, `steps_between_checkpoints`) as a rank's samples do
    parameters       of a checkpoint's model, to F of them
    batch            only where a rank has fewer samples than one: to those, which reads the same and takes less memory

Bytes of a sample, a file of statistics and its reads, epochs, compute time and the tiers stay as they are. Bytes in all are F of the whole, as far as samples divide over files.
"""

from dataclasses import replace

from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.spec import sweep
from tierscope.spec.check import find_problem
from tierscope.spec.dump import in_case
from tierscope.spec.kinds import Fraction
from tierscope.spec.load import Loaded
from tierscope.spec.study import Dataset, Reader, Study, StudyCase, System
from tierscope.spec.vary import value_at
from tierscope.units import about_bytes, counted

_SHRINKS = (
    "workload.dataset.num_files_train",
    "workload.dataset.num_samples_per_file",
    "workload.train.total_training_steps",
    "workload.checkpoint.steps_between_checkpoints",
    "workload.checkpoint.model_parameters",
    "system.nodes",
    "system.ranks_per_node",
)
_BATCH = "workload.reader.batch_size"
_LONGEST_NAME = 64


def scaled(loaded: Loaded, scale: str | None) -> Loaded:
    """Made smaller, if that is asked for, with a note of what it is then."""
    if scale is None:
        return loaded
    try:
        share = float(Fraction(0, 1).parse(scale))
    except ValueError as error:
        raise UserError(f"--scale {scale}: {error}") from None
    small = scale_study(loaded.study, share)
    return replace(loaded, study=small, notes=(*loaded.notes, scale_note(loaded.study, small)))


def scale_study(study: Study, share: float) -> Study:
    """The study with so much of its data and ranks, under a name of its own; 1: as it is."""
    if not 0 < share <= 1:
        raise UserError(f"--scale {share:g}: must be above 0 and at most 1")
    if share == 1:
        return study
    if swept := next((axis.path for axis in study.sweep if axis.path in _SHRINKS), None):
        raise UserError(
            f"--scale {share:g} would scale {swept}, which the study sweeps; set a single value, or remove --scale"
        )
    suffix = f"-x{share:g}"
    small = _shrunk(study, share)
    small = replace(small, study=study.study[: _LONGEST_NAME - len(suffix)] + suffix)
    small = replace(small, cases=tuple(_case(study, small, case, share) for case in study.cases))
    for point in sweep.points(small):
        if problem := find_problem(point.study):
            raise UserError(f"--scale {share:g}: {problem.text}")
    return small


def scale_note(full: Study, small: Study) -> str:
    """What became of it, for whoever asked."""
    if not full.cases:
        return f"scaled: {_figures(small)}; full study: {_figures(full)}"
    pairs = zip(small.cases, full.cases, strict=True)
    figures = ((part.name, _figures(in_case(small, part)), _figures(in_case(full, whole))) for part, whole in pairs)
    return "scaled: " + "; ".join(f"{name}: {part} (full: {whole})" for name, part, whole in figures)


def _shrunk(study: Study, share: float) -> Study:
    checkpoint = study.workload.checkpoint
    if checkpoint.wanted and (checkpoint.model_parallel > 1 or checkpoint.data_parallel is not None):
        return _with_data(study, study, share)
    return _with_data(replace(study, system=_system(study.system, share)), study, share)


def _case(full: Study, small: Study, case: StudyCase, share: float) -> StudyCase:
    """The case as a study of its own, shrunk: what it sets, and what shrinks differently from the study around it."""
    own = _shrunk(in_case(full, case), share)
    settings = {path: value_at(own, path) for path in case.settings}
    for path in (*_SHRINKS, _BATCH):
        if (value := value_at(own, path)) != value_at(small, path):
            settings[path] = value
    return StudyCase(case.name, settings)


def _system(system: System, share: float) -> System:
    nodes, ranks = system.nodes, system.ranks_per_node
    if share * nodes >= 1:
        nodes = round(share * nodes)
    else:
        nodes, ranks = 1, max(1, round(share * system.ranks))
    if nodes * ranks < 2 <= system.ranks:
        nodes, ranks = (nodes, 2) if system.ranks_per_node > 1 else (2, ranks)
    return replace(system, nodes=nodes, ranks_per_node=ranks)


def _with_data(small: Study, full: Study, share: float) -> Study:
    workload, ranks = full.workload, small.system.ranks
    of_data = ranks / full.system.ranks if FORMATS[workload.dataset.format].in_memory else share
    if reads_all(workload.reader):  # of every rank's: they shrink where the ranks no longer can
        of_data = min(1.0, share * full.system.ranks / min(2, full.system.ranks))
    dataset = _dataset(workload.dataset, of_data, ranks, workload.reader.file_access == "multi")
    own, before = dataset.samples // ranks, workload.dataset.samples // full.system.ranks
    if workload.reader.rank_reads == "all":
        own, before = dataset.samples, workload.dataset.samples
    reader = replace(workload.reader, batch_size=min(workload.reader.batch_size, own))
    longer = own / max(1, before)
    train, checkpoint = workload.train, workload.checkpoint
    if train.total_training_steps is not None:
        train = replace(train, total_training_steps=_part(train.total_training_steps, longer))
    if checkpoint.steps_between_checkpoints:
        steps = _part(checkpoint.steps_between_checkpoints, longer)
        checkpoint = replace(checkpoint, steps_between_checkpoints=steps)
    if checkpoint.model_parameters is not None:
        checkpoint = replace(checkpoint, model_parameters=_part(checkpoint.model_parameters, share))
    workload = replace(workload, dataset=dataset, reader=reader, train=train, checkpoint=checkpoint)
    return replace(small, workload=workload)


def reads_all(reader: Reader) -> bool:
    """Whether every rank reads the whole dataset, in every epoch or once before the first step."""
    return reader.rank_reads == "all" or (reader.read_ahead == "all" and reader.shuffle in ("global", "off"))


def _dataset(dataset: Dataset, share: float, ranks: int, whole_files: bool) -> Dataset:
    samples = share * dataset.samples
    files = max(min(dataset.num_files_train, ranks), round(share * dataset.num_files_train))
    if whole_files:  # a rank has as many as any other
        files = ranks * max(1, round(share * dataset.num_files_train / ranks))
    per_file = max(-(-ranks // files), round(samples / files))
    return replace(dataset, num_files_train=files, num_samples_per_file=per_file)


def _part(count: int, share: float) -> int:
    return max(1, round(count * min(1, share)))


def _figures(study: Study) -> str:
    dataset, checkpoint = study.workload.dataset, study.workload.checkpoint
    parts = [counted(study.system.ranks, "rank", grouped=True)]
    if FORMATS[dataset.format].in_memory:
        parts.append(f"{counted(dataset.samples, 'sample', grouped=True)} made in memory")
    else:
        parts += [
            counted(dataset.num_files_train, "file", grouped=True),
            counted(dataset.samples, "sample", grouped=True),
        ]
        parts.append(about_bytes(dataset.samples * dataset.record_length_bytes))
    if checkpoint.wanted and checkpoint.model_parameters is not None:
        parts.append(f"a model of {counted(checkpoint.model_parameters, 'parameter', grouped=True)}")
    return ", ".join(parts)
