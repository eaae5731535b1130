"""What an emulated tier's keys need: which of them limit by themselves, and which only Python emulates; and what only Python reads."""

from collections.abc import Iterator

from tierscope.formats import FORMATS
from tierscope.spec import schema
from tierscope.spec.schema import Key
from tierscope.spec.study import Study, Tier

RATES = (
    "metadata_ops",
    "metadata_latency",
    "read_ops",
    "bandwidth",
    "write_ops",
    "write_bandwidth",
    "node_bandwidth",
    "device_bandwidth",
    "gateway_bandwidth",
    "latency",
    "stream_bandwidth",
    "file_open_ops",
)
_USUAL = RATES[: RATES.index("latency")]
GIVE_RATES = f"add {', '.join(_USUAL)} or latency"
_LINKS = ("gateway_bandwidth", "node_bandwidth", "device_bandwidth")


def tier_key(name: str) -> Key:
    """How a tier's key is declared."""
    return next(field.meta for field in schema.fields(Tier) if field.yaml == name and isinstance(field.meta, Key))


def said(tier: Tier, name: str) -> str:
    """`stripe_count = 4`, as the user writes it."""
    return f"{name} = {tier_key(name).kind.format(getattr(tier, name))}"


def has_rate(tier: Tier) -> bool:
    return any(getattr(tier, name) for name in RATES)


def servers_limit(tier: Tier) -> bool:
    """Whether a read or a write takes time of an object server."""
    return bool(tier.read_ops or tier.bandwidth or tier.write_ops or tier.write_bandwidth)


def python_only(tier: Tier) -> str | None:
    """The first key of an emulated tier that the C library does not emulate; None: it does all. `TierStations.plain` says the same of the queues."""
    return next(_python_only(tier), None) if tier.emulate else None


def _python_only(tier: Tier) -> Iterator[str]:
    if tier.metadata_ops and tier.metadata_servers > 1:
        yield "metadata_servers"
    if tier.metadata_ops and tier.metadata_variation:
        yield "metadata_variation"
    if servers_limit(tier) and min(tier.stripe_count, tier.servers) > 1:
        yield "stripe_count"
    if (tier.metadata_ops or servers_limit(tier)) and tier.discipline == "sharing":
        yield "discipline"
    if servers_limit(tier):
        yield from [name for name in ("service_variation", "credit", "quota_period") if getattr(tier, name)]
    if (servers_limit(tier) or any(getattr(tier, name) for name in _LINKS)) and tier.open_bytes:
        yield "open_bytes"
    if tier.file_open_ops:
        yield "file_open_ops"
    if servers_limit(tier) and tier.servers > 1 and tier.layout == "hash":
        yield "layout"
    yield from [name for name in _LINKS if getattr(tier, name)][1:]


def reads_in_python(study: Study) -> str | None:
    """The key whose value the C library's reader does not do, as the user writes it; None: it does all."""
    dataset = study.workload.dataset
    if not FORMATS[dataset.format].natively:
        return f"workload.dataset.format = {dataset.format}"
    if dataset.record_length_bytes_stdev:
        return f"workload.dataset.record_length_bytes_stdev = {dataset.record_length_bytes_stdev}"
    return None
