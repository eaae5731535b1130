"""What tiers lie on, before anything is touched: refuse what a storage declares that it cannot do, and say what a reader of times should know."""

from collections.abc import Iterable, Iterator
from itertools import combinations

from tierscope.errors import UserError
from tierscope.formats import FORMATS, LIBRARY
from tierscope.loaders import LOADERS
from tierscope.recording.recorders import BUILTIN
from tierscope.spec.lustre_check import placed_by
from tierscope.spec.study import EVICT_METADATA, Study, Tier
from tierscope.storage.base import Abilities
from tierscope.storage.dropping import check_metadata
from tierscope.storage.files import tier_root
from tierscope.storage.opening import open_storage, storage_name, storage_type


def check_storages(studies: Iterable[Study], out: str, profiler: str = BUILTIN) -> None:
    for study in studies:
        for tier in study.system.tiers:
            abilities = storage_type(tier).abilities
            for asked, ability in _asked(study, tier, profiler):
                if not getattr(abilities, ability):
                    raise UserError(_refusal(tier, asked, ability, abilities))
            open_storage(tier, out, 0)  # refuses a path that it cannot use


def _asked(study: Study, tier: Tier, profiler: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """What the study asks of the storage of a tier: key, value and another value; and the ability that it takes."""
    reader, dataset = study.workload.reader, study.workload.dataset
    key = "workload.reader"
    if reader.data_loader in LOADERS and not LOADERS[reader.data_loader].in_python:
        yield (f"{key}.data_loader", reader.data_loader, "auto or threads"), "paths"
    if reader.odirect:
        yield (f"{key}.odirect", "true", "false"), "paths"
        yield (f"{key}.odirect", "true", "false"), "direct_io"
    if reader.io_engine != "pread":
        yield (f"{key}.io_engine", reader.io_engine, "pread"), "paths"
    if reader.file_access == "collective":
        yield (f"{key}.file_access", "collective", "shared"), "paths"
    if FORMATS.load(dataset.format).reading == LIBRARY:
        yield ("workload.dataset.format", dataset.format, "raw"), "paths"
    if name := placed_by(tier):
        yield (f"system.tiers.{tier.name}.{name}", str(getattr(tier, name)), "null"), "striping"
    if profiler != BUILTIN:
        yield ("--profiler", profiler, BUILTIN), "paths"


def _refusal(tier: Tier, asked: tuple[str, str, str], ability: str, abilities: Abilities) -> str:
    key, value, other = asked
    return (
        f"{key} = {value}, but tier {tier.name} is on storage {storage_name(tier)}, which does not support it because "
        f"{abilities.why[ability]}; set {key.rpartition('.')[2]}: {other}, or another storage"
    )


def check_dropping(studies: Iterable[Study], out: str) -> None:
    """Refuse what this host does not allow; other hosts' ranks look themselves."""
    for study in studies:
        if study.workload.reader.evict == EVICT_METADATA and study.workload.model.data != "synthetic":
            check_metadata(tier_root(tier, out, 0) for tier in _real(study))


def _real(study: Study) -> list[Tier]:
    return [tier for tier in study.system.tiers if not storage_type(tier).abilities.emulated]


def check_known(study: Study) -> None:
    """Refuse a storage that nobody knows, before a job waits for it."""
    for tier in study.system.tiers:
        storage_type(tier)


def check_hosts(tier: Tier) -> None:
    """Refuse a storage that does not do for several hosts."""
    abilities = storage_type(tier).abilities
    what = f"system.tiers.{tier.name}.{'emulate = true' if tier.emulate else f'storage = {tier.storage}'}"
    if not abilities.many_hosts:
        raise UserError(
            f"{what} works only on a single host, because {abilities.why['many_hosts']}; use real paths on a cluster"
        )
    if tier.visible_to == "global" and not abilities.share_hosts:
        raise UserError(
            f"{what}, but visible_to = global and ranks run on several hosts, which cannot share it because "
            f"{abilities.why['share_hosts']}; use another storage there"
        )


def filesystems(study: Study, out: str) -> tuple[dict[str, str], dict[str, str]]:
    """By tier: directories of this system; and the names of storages that are none."""
    roots = {tier.name: tier_root(tier, out, 0) for tier in study.system.tiers}
    others = {tier.name: storage_name(tier) for tier in study.system.tiers if not storage_type(tier).abilities.paths}
    return {name: root for name, root in roots.items() if name not in others}, others


def storage_notes(studies: Iterable[Study], out: str) -> list[str]:
    """Lines worth saying before times are taken, each once."""
    notes: dict[str, None] = {}
    for study in studies:
        notes |= dict.fromkeys(_by_threads(study))
        notes |= dict.fromkeys(_warm(study))
        notes |= dict.fromkeys(_one_device(study, out))
    return list(notes)


def _by_threads(study: Study) -> Iterator[str]:
    """Where `auto` does not mean what it usually does."""
    for tier in study.system.tiers if study.workload.reader.data_loader == "auto" else ():
        abilities = storage_type(tier).abilities
        if not abilities.paths:
            yield (
                f"{tier.name}: storage {storage_name(tier)} is read only in Python because {abilities.why['paths']}: "
                "data_loader: auto uses Python threads"
            )


def _warm(study: Study) -> Iterator[str]:
    for tier in study.system.tiers:
        abilities = storage_type(tier).abilities
        if study.workload.reader.evict and not abilities.evict and not abilities.emulated:
            yield (
                f"{tier.name}: storage {storage_name(tier)} cannot evict files because {abilities.why['evict']}: its reads may be warm"
            )


def devices_of(study: Study, out: str) -> dict[str, str]:
    """What is behind each tier, as the first node sees it. Emulated tiers take their time from queues, whatever is underneath."""
    storages = {tier.name: open_storage(tier, out, 0) for tier in _real(study)}
    return {name: str(storage.device(storage.root)) for name, storage in storages.items()}


def _one_device(study: Study, out: str) -> Iterator[str]:
    for (name, device), (other, behind) in combinations(devices_of(study, out).items(), 2):
        if device == behind:
            yield f"{name} and {other} are on the same device: they are two names for the same storage"
