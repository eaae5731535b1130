"""Checkpoints of a study's runs: what is refused before anything is touched, and what a run's description says about them."""

from collections.abc import Iterable, Sequence
from statistics import median

from tierscope.errors import UserError
from tierscope.plan.checkpoints import checkpoint_bytes, ranks_together, tier_of
from tierscope.plan.planned import planned
from tierscope.recording.recorders import BUILTIN
from tierscope.spec.study import Study
from tierscope.trace.description import CheckpointSummary
from tierscope.trace.rank_trace import CheckpointLog, RankTrace
from tierscope.units import about_bytes

_KEY = "workload.checkpoint"


def check_checkpoints(studies: Iterable[Study], profiler: str = BUILTIN) -> None:
    for study in studies:
        wanted = study.workload.checkpoint
        if not wanted.wanted:
            continue
        if profiler != BUILTIN:
            raise UserError(
                f"--profiler {profiler} does not work with checkpoints; set {_KEY}.steps_between_checkpoints and "
                f"{_KEY}.epochs_between_checkpoints to 0, or remove --profiler"
            )
        if wanted.drain:
            raise UserError(
                f"{_KEY}.drain = true; 'tierscope run' does not copy checkpoints to another tier: set false, or use 'tierscope simulate'"
            )
        _check_capacity(study)


def _check_capacity(study: Study) -> None:
    """Those that are kept and the one that is written, beside what is staged; a near tier that ranks fill themselves is their own matter."""
    index = tier_of(study)
    tier = study.system.tiers[index]
    if tier.capacity is None or study.placement.policy != "pinned":
        return
    per_node = tier.visible_to == "node"
    form, plan = planned(study)
    staged = plan.files_held(index, 0 if per_node else None) * form.file_bytes
    wanted = study.workload.checkpoint
    needed = (wanted.keep + 1) * checkpoint_bytes(wanted, ranks_together(study, 0), study.system.ranks)
    if staged + needed > tier.capacity:
        raise UserError(
            f"{_KEY}.keep = {wanted.keep}; that many checkpoints and one more take {about_bytes(needed)} on {tier.name}, plus {about_bytes(staged)} of data, "
            f"but {tier.name} holds only {about_bytes(tier.capacity)}: lower it, write to another tier, or raise system.tiers.{tier.name}.capacity if there is space"
        )


def checkpoints_of(study: Study, ranks: Sequence[RankTrace]) -> CheckpointSummary:
    """How many, how large, and how long each took the rank that took longest; the recovery too, where one was asked for."""
    logs = [rank.checkpoints for rank in ranks if rank.checkpoints and rank.checkpoints.nbytes]
    slowest = [max(of_all_ranks) for of_all_ranks in zip(*(log.seconds for log in logs), strict=True)]
    recovered = [log for log in logs if log.recovery_seconds is not None]
    return CheckpointSummary(
        tier=study.system.tiers[tier_of(study)].name,
        count=max((log.complete for log in logs), default=0),
        bytes=sum(log.nbytes for log in logs),
        writers=len(logs),
        seconds_median=median(slowest) if slowest else None,
        seconds_max=max(slowest, default=None),
        recovery_seconds=max((log.recovery_seconds or 0.0 for log in recovered), default=None),
        verified=True if recovered else None,  # a run that finds damage ends with an error
        verified_bytes=sum(log.verified_bytes or 0 for log in recovered) if recovered else None,
        recovery_resident_bytes=_resident(recovered),
    )


def _resident(recovered: Sequence[CheckpointLog]) -> int | None:
    """Null: not known of all."""
    known = [log.resident_bytes for log in recovered if log.resident_bytes is not None]
    return sum(known) if known and len(known) == len(recovered) else None
