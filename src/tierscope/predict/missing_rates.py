"""Rates that a study uses and its system does not have: refused, for without them files would be opened, or bytes moved, in no time.

A tier of each node opens files at the speed of its kernel, which no system here has a rate for: taken as none. A shared tier's opens cross a network and wait
for a server, and bytes are moved by something; `unlimited` says that one of these is free. What was calibrated was fitted to whole times, opens included.
"""

from tierscope.errors import UnidentifiedError, UserError
from tierscope.formats import FORMATS
from tierscope.predict.simulation import check_rates
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import STAGED_POLICIES, Study, Tier

_OPENS = ("metadata_ops", "metadata_latency", "open_bytes", "file_open_ops")
MOVES = ("bandwidth", "read_ops", "node_bandwidth", "device_bandwidth", "gateway_bandwidth", "stream_bandwidth")


def refuse_missing_rates(study: Study, known: KnownSystem | None = None, calibrated: bool = False) -> None:
    """`known`: what is known of the study's system; `calibrated`: it is not at hand, but was."""
    check_rates(study)
    if calibrated or (known is not None and known.is_calibrated):
        return
    for tier in _read_tiers(study):
        if not any(getattr(tier, key) for key in MOVES):
            raise _missing(tier, known, "bandwidth", "reads from it (latency alone limits no bytes)")
        if tier.visible_to == "global" and not any(getattr(tier, key) for key in _OPENS):
            raise _missing(tier, known, "metadata_ops", "opens files on it")


def _read_tiers(study: Study) -> list[Tier]:
    """Of which samples are read."""
    dataset, rate = study.workload.dataset, study.placement.cache_rate
    if FORMATS[dataset.format].in_memory and dataset.statistics.file_bytes is None:
        return []
    near, home = study.system.tiers[:-1], study.system.tiers[-1]
    is_home_read = rate < 1 or study.placement.policy not in STAGED_POLICIES
    return [*(near if rate > 0 else ()), *([home] if is_home_read else ())]


def _missing(tier: Tier, known: KnownSystem | None, key: str, why: str) -> UserError:
    path = f"{tier.name}.{key}"
    free = f"or --set {path}=unlimited if that takes no time"
    if known is not None and any(of.startswith(f"tiers.{tier.name}.") for of in known.figures):
        reason = f"the study {why}, but the system {known.name} does not say {path}"
        return UnidentifiedError(
            f"not identified: {reason}; measure it with 'tierscope probe --tier {tier.name}=DIR', "
            f"or add a benchmark's output that has it (opens: mdtest) to 'tierscope probe --from', and use --set {path}=RATE; {free}",
            reason,
        )
    return UserError(
        f"system.tiers.{tier.name}: the study {why}, but {key} is not set; set it ('tierscope probe' measures it; --system uses that of a known system), {free}"
    )
