"""What must hold between the keys of a study, beyond each key's own limits."""

from tierscope.errors import SpecError
from tierscope.spec.study import Study, Tier

MAX_SAMPLES = 2**60  # a sample's number must fit into 64 bits, with room for arithmetic


def check(study: Study, where: str) -> None:
    """Raise one clear line for the first thing that cannot work."""
    system, dataset = study.system, study.workload.dataset
    if dataset.samples > MAX_SAMPLES:
        raise SpecError(
            f"{where}: {dataset.samples} samples (num_files_train × num_samples_per_file); at most {MAX_SAMPLES}: "
            "lower one of them"
        )
    if dataset.samples < system.ranks:
        raise SpecError(
            f"{where}: {dataset.samples} samples for {system.ranks} ranks (nodes × ranks_per_node); "
            "every rank needs at least one: raise num_files_train or lower the ranks"
        )
    if study.placement.cache_rate > 0 and len(system.tiers) == 1:
        raise SpecError(
            f"{where}: placement.cache_rate = {study.placement.cache_rate:g} but there is one tier only; "
            "add a nearer tier or set it to 0"
        )
    home = system.tiers[-1]
    if home.visible_to != "global":
        raise SpecError(
            f"{where}: system.tiers.{home.name}.visible_to = {home.visible_to}; the last tier holds every file "
            "and must be global"
        )
    for tier in system.tiers:
        _check_tier(tier, where)


def _check_tier(tier: Tier, where: str) -> None:
    path = f"{where}: system.tiers.{tier.name}"
    if tier.visible_to == "global" and "{node}" in tier.path:
        raise SpecError(f"{path}.path = {tier.path}; a tier that is visible to all nodes cannot depend on {{node}}")
    if tier.emulate and not (
        tier.metadata_ops or tier.read_ops or tier.bandwidth or tier.gateway_bandwidth or tier.latency
    ):
        raise SpecError(
            f"{path}.emulate = true, but the tier has no rate; give metadata_ops, read_ops, bandwidth or latency"
        )
    if tier.gateway_shared_by is not None and tier.gateway_bandwidth is None:
        raise SpecError(
            f"{path}.gateway_shared_by = {tier.gateway_shared_by}, but gateway_bandwidth is not given; add it"
        )
