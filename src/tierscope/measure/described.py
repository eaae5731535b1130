"""What the trace of a measured run says of itself."""

from collections.abc import Mapping, Sequence

from tierscope.arch.networks import find_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.step_memory import CUDNN, step_memory
from tierscope.measure.checkpoints import checkpoints_of
from tierscope.measure.coverage import coverage_of_ranks
from tierscope.measure.trained import metadata_cache, network_of
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.spec.dump import identity
from tierscope.spec.study import Point, Study, Tier
from tierscope.storage.opening import storage_type
from tierscope.trace.description import DescribedTier, Measured, OwnCost, TrainingSummary
from tierscope.trace.provenance import Provenance
from tierscope.trace.rank_trace import RankTrace


def about_run(
    point: Point,
    mode: str,
    ranks: list[RankTrace],
    origin: Provenance,
    own_cost: OwnCost | None = None,
    devices: Mapping[str, str] | None = None,
) -> Measured:
    """What a trace says of itself; `origin`: where and with what it was measured; `devices`: what is behind tiers, where that is known."""
    study = point.study
    plan = Plan.of(study, make_format(study).file_bytes)
    tiers = tuple(_described(tier, devices or {}) for tier in study.system.tiers)
    return Measured(
        study=identity(study),
        point=point.index,
        sweep=dict(point.sweep),
        provides=("epochs", "lanes", "busy", "wall", "steps", "cold"),
        tiers=tiers,
        ranks=study.system.ranks,
        nodes=study.system.nodes,
        trimmed_samples=plan.order.undivided,
        compute=mode,
        loader=", ".join(sorted({rank.loader for rank in ranks})),
        checkpoint=checkpoints_of(study, ranks) if study.workload.checkpoint.wanted else None,
        training=training_of(study, ranks),
        metadata_cache=metadata_cache(study),
        provenance=origin,
        own_cost=own_cost,
        coverage=coverage_of_ranks(ranks, tiers, study.workload.model.network is not None),
    )


def _described(tier: Tier, devices: Mapping[str, str]) -> DescribedTier:
    able = storage_type(tier).abilities
    evictable = able.evict or able.emulated  # nothing is evicted where queues make the time, and nothing is warm
    return DescribedTier(name=tier.name, emulated=able.emulated, evictable=evictable, device=devices.get(tier.name))


def training_of(study: Study, ranks: Sequence[RankTrace]) -> TrainingSummary | None:
    """What was trained, where, how it went, and the memory that it should have taken; None: nothing was."""
    logs = [rank.training for rank in ranks if rank.training is not None]
    if not logs:
        return None
    model, batch = study.workload.model, study.workload.reader.batch_size
    network = network_of(model)
    peaks = [log.peak_memory_bytes for log in logs if log.peak_memory_bytes is not None]
    predicted = step_memory(
        network,
        batch,
        PRECISIONS[model.arithmetic],
        model.solver,
        CUDNN,
        model.recompute,
        find_network(network.name).data.target_bytes,
    )
    return TrainingSummary(
        network=logs[0].network,
        parameters=logs[0].parameters,
        device=logs[0].device,
        device_memory_bytes=logs[0].device_memory_bytes,
        software=logs[0].software,
        arithmetic=model.arithmetic,
        solver=model.solver,
        data=model.data,
        first_loss=logs[0].first_loss,
        last_loss=logs[0].last_loss,
        peak_memory_bytes=max(peaks) if peaks else None,
        predicted_memory_bytes=predicted.peak + max(log.ahead_bytes for log in logs),
        repeated=max(log.repeated for log in logs),
        loader_name=ranks[0].loader or None,
        loader_workers=study.workload.reader.read_threads,
    )
