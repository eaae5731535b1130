"""What must hold between the keys of a study, beyond each key's own limits."""

from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.spec.study import Study, Tier

MAX_SAMPLES = 2**60  # a sample's number must fit into 64 bits, with room for arithmetic


@dataclass(frozen=True, slots=True)
class Problem:
    """The key that is best changed, and the sentence that says why and how."""

    path: str
    text: str


def find_problem(study: Study) -> Problem | None:
    """The first thing that cannot work."""
    return next(_problems(study), None)


def _problems(study: Study) -> Iterator[Problem]:
    system, dataset, placement = study.system, study.workload.dataset, study.placement
    files = "workload.dataset.num_files_train"
    if dataset.samples > MAX_SAMPLES:
        yield Problem(
            files,
            f"{files} = {dataset.num_files_train} makes {dataset.samples} samples with num_samples_per_file; "
            f"at most {MAX_SAMPLES}: lower one of them",
        )
    if dataset.samples < system.ranks:
        yield Problem(
            files,
            f"{files} = {dataset.num_files_train} makes {dataset.samples} samples for {system.ranks} ranks "
            "(nodes × ranks_per_node); every rank needs at least one: raise it or lower the ranks",
        )
    if placement.cache_rate > 0 and len(system.tiers) == 1:
        yield Problem(
            "placement.cache_rate",
            f"placement.cache_rate = {placement.cache_rate:g} but there is one tier only; add a nearer tier or set it to 0",
        )
    home = system.tiers[-1]
    if home.visible_to != "global":
        key = f"system.tiers.{home.name}.visible_to"
        yield Problem(key, f"{key} = {home.visible_to}; the last tier holds every file and must be global")
    for number, tier in enumerate(system.tiers):
        yield from _tier_problems(tier, system.tiers[:number])
    yield from _reader_problems(study)


def _reader_problems(study: Study) -> Iterator[Problem]:
    reader, key = study.workload.reader, "workload.reader"
    if reader.data_loader == "threads" and reader.odirect:
        yield Problem(
            f"{key}.odirect", f"{key}.odirect = true needs the native loader; set data_loader: native or odirect: false"
        )
    if reader.io_engine != "uring":
        return
    name, text = f"{key}.io_engine", f"{key}.io_engine = uring"
    emulated = next((tier.name for tier in study.system.tiers if tier.emulate), None)
    if reader.data_loader == "threads":
        yield Problem(name, f"{text} needs the native loader; set data_loader: native or io_engine: pread")
    if reader.read_threads == 0:
        yield Problem(name, f"{text} needs reading threads, but read_threads = 0; raise it or set io_engine: pread")
    if emulated:
        yield Problem(
            name,
            f"{text}, but tier {emulated} is emulated: its queues hold up a thread that waits for each operation; set io_engine: pread",
        )


def _tier_problems(tier: Tier, nearer: tuple[Tier, ...]) -> Iterator[Problem]:
    key = f"system.tiers.{tier.name}"
    same = next((other.name for other in nearer if other.path == tier.path), None)
    if same:
        yield Problem(f"{key}.path", f"{key}.path = {tier.path}; tier {same} has the same: give each its own directory")
    if tier.visible_to == "global" and "{node}" in tier.path:
        yield Problem(
            f"{key}.path", f"{key}.path = {tier.path}; a tier that is visible to all nodes cannot depend on {{node}}"
        )
    rates = (tier.metadata_ops, tier.read_ops, tier.bandwidth, tier.gateway_bandwidth, tier.latency)
    if tier.emulate and not any(rates):
        yield Problem(
            f"{key}.emulate",
            f"{key}.emulate = true, but the tier has no rate; give metadata_ops, read_ops, bandwidth or latency",
        )
    if tier.gateway_shared_by is not None and tier.gateway_bandwidth is None:
        yield Problem(
            f"{key}.gateway_shared_by",
            f"{key}.gateway_shared_by = {tier.gateway_shared_by}, but gateway_bandwidth is not given; add it",
        )
