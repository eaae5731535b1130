"""Placement policies in a benchmark: which it can carry out (pinned and first-touch), and what first-touch needs of a study."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tierscope.errors import UserError
from tierscope.formats import FORMATS, Format
from tierscope.loaders.choose import fills_as_it_reads
from tierscope.measure.natively import refuse_native
from tierscope.plan.planned import planned
from tierscope.plan.policies import Caches
from tierscope.recording.recorders import BUILTIN
from tierscope.spec.study import Dataset, Placement, Study
from tierscope.trace.ops import CHECKPOINT_LANES, KINDS, OPEN
from tierscope.trace.rank_trace import RankTrace

_KEY = "placement.policy"


def check_policies(studies: Iterable[Study], profiler: str = BUILTIN) -> None:
    """Before anything is touched: refuse what ranks cannot do."""
    for study in studies:
        policy = study.placement.policy
        if policy not in ("pinned", "first-touch"):
            raise UserError(
                f"{_KEY} = {policy}; 'tierscope run' supports only pinned and first-touch: set one of them, or use 'tierscope simulate'"
            )
        if fills_as_it_reads(study):
            _check_first_touch(study, profiler)


def _check_first_touch(study: Study, profiler: str) -> None:
    dataset = study.workload.dataset
    form, plan = planned(study)
    if wrong := _not_whole(dataset, form):
        key, value, fix = wrong
        raise UserError(
            f"{_KEY} = first-touch, but workload.dataset.{key} = {value}; "
            f"only whole files of equal size can be copied: set it to {fix}, set pinned, or use 'tierscope simulate'"
        )
    why = f"{_KEY} = first-touch, and the native loader does not copy files"
    refuse_native(study.workload.reader, why, "pinned", "auto or threads")
    if profiler != BUILTIN:
        raise UserError(
            f"--profiler {profiler} works only with {_KEY} = pinned, not first-touch: set pinned, or remove --profiler"
        )
    Caches(study, plan, form.file_bytes, node=0)  # refuses what cannot be followed


def _not_whole(dataset: Dataset, form: Format) -> tuple[str, object, str] | None:
    """Which key keeps files from being read as a whole, its value, and what it should be."""
    if dataset.num_samples_per_file > 1:
        return "num_samples_per_file", f"{dataset.num_samples_per_file} (format {dataset.format})", "1"
    if not FORMATS[dataset.format].natively:
        others = list(FORMATS.where(lambda entry: entry.natively))
        return "format", dataset.format, f"{', '.join(others[:-1])} or {others[-1]}"
    if dataset.record_length_bytes_stdev:
        return "record_length_bytes_stdev", dataset.record_length_bytes_stdev, "0"
    assert form.slot_bytes == form.file_bytes, "a file of one sample is read as a whole"
    return None


def staged_as(study: Study) -> Study:
    """What has to be there before a run of it: nothing on the near tier, where ranks fill that one themselves."""
    return replace(study, placement=Placement()) if fills_as_it_reads(study) else study


def hit_rates(ranks: Sequence[RankTrace]) -> dict[int, float]:
    """By epoch: the share of samples that were not read from the last tier. Each of them is a file of its own."""
    rates: dict[int, float] = {}
    for epochs in zip(*(rank.epochs for rank in ranks), strict=True):
        lanes = [lane for epoch in epochs for lane in epoch.lanes if lane.lane not in CHECKPOINT_LANES]
        opens = sum(int(lane.ops.reshape(-1, len(KINDS))[-1, OPEN]) for lane in lanes)
        rates[epochs[0].epoch] = 1 - opens / sum(epoch.samples for epoch in epochs)
    return rates
