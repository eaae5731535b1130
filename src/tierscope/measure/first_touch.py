"""Placement policies in a benchmark: which it can carry out (pinned and first-touch), and what first-touch needs of a study."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tierscope.bench.checkpoint_files import LANE as CHECKPOINTS
from tierscope.errors import UserError
from tierscope.loaders.choose import fills_as_it_reads
from tierscope.measure.natively import refuse_native
from tierscope.measure.profiled import BUILTIN
from tierscope.plan.planned import planned
from tierscope.plan.policies import Caches
from tierscope.spec.study import Placement, Study
from tierscope.trace.ops import KINDS, OPEN
from tierscope.trace.rank_trace import RankTrace

_KEY = "placement.policy"


def check_policies(studies: Iterable[Study], profiler: str = BUILTIN) -> None:
    """Before anything is touched: refuse what ranks cannot do."""
    for study in studies:
        policy = study.placement.policy
        if policy not in ("pinned", "first-touch"):
            raise UserError(
                f"{_KEY} = {policy}; the benchmark knows pinned and first-touch only: set one of them, or use 'tierscope simulate'"
            )
        if fills_as_it_reads(study):
            _check_first_touch(study, profiler)


def _check_first_touch(study: Study, profiler: str) -> None:
    dataset = study.workload.dataset
    form, plan = planned(study)
    if dataset.num_samples_per_file > 1 or form.slot_bytes != form.file_bytes:
        raise UserError(
            f"{_KEY} = first-touch, but workload.dataset.num_samples_per_file = {dataset.num_samples_per_file} (format {dataset.format}); "
            "ranks copy files that they read as a whole: set it to 1, set pinned, or use 'tierscope simulate'"
        )
    why = f"{_KEY} = first-touch, and the native loader copies no files"
    refuse_native(study.workload.reader, why, "pinned", "auto or threads")
    if profiler != BUILTIN:
        raise UserError(
            f"--profiler {profiler} is for {_KEY} = pinned; this study has first-touch: set pinned, or leave --profiler out"
        )
    Caches(study, plan, form.file_bytes, node=0)  # refuses what cannot be followed


def staged_as(study: Study) -> Study:
    """What has to be there before a run of it: nothing on the near tier, where ranks fill that one themselves."""
    return replace(study, placement=Placement()) if fills_as_it_reads(study) else study


def hit_rates(ranks: Sequence[RankTrace]) -> dict[str, float]:
    """By epoch: the share of samples that were not read from the last tier. Each of them is a file of its own."""
    found: dict[str, float] = {}
    for epochs in zip(*(rank.epochs for rank in ranks), strict=True):
        lanes = [lane for epoch in epochs for lane in epoch.lanes if lane.lane != CHECKPOINTS]
        opens = sum(int(lane.ops.reshape(-1, len(KINDS))[-1, OPEN]) for lane in lanes)
        found[str(epochs[0].epoch)] = 1 - opens / sum(epoch.samples for epoch in epochs)
    return found
