"""What limits a training, said before anything else: storage, the loader apart from it, both, neither, or that it cannot be determined."""

from dataclasses import dataclass, replace

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.statistics import Mean
from tierscope.analysis.storage_stall import MATTERS, NO, UNCLEAR, YES, StorageStall, matters
from tierscope.jsonable import SweepValues
from tierscope.loaders import LOADERS
from tierscope.units import counted

STORAGE, LOADER, INPUT, BOTH, NEITHER, CHECKPOINTS = "storage", "loader", "input", "both", "neither", "checkpoints"
_NAMES = {"pytorch": "torch's DataLoader", "tensorflow": "tf.data"}
_QUIETER = "use more repetitions or a quieter machine"


@dataclass(frozen=True, slots=True)
class Limit:
    """`answer`: STORAGE, LOADER (or INPUT: decoding and copying, with a loader of ours), BOTH, NEITHER, CHECKPOINTS or UNCLEAR; `text`: a sentence, and what checkpoints take."""

    sweep: SweepValues
    loader: str | None
    workers: int | None
    answer: str
    text: str


@dataclass(frozen=True, slots=True)
class Waits:
    """What a training whose samples came from the tiers only shows: its shares of an epoch that waited for batches and copied them, and that stood still for checkpoints."""

    sweep: SweepValues
    share: float
    n: int
    on_device: bool
    checkpoints: float = 0.0


def limit_of(stall: StorageStall) -> Limit:
    answer, text = _told(stall)
    where = f" ({sweep_text(stall.sweep)})" if stall.sweep else ""
    subject, _, rest = text.partition(" this training")
    limit = Limit(stall.sweep, stall.loader, stall.workers, answer, f"{subject} this training{where}{rest}.")
    return _with_checkpoints(limit, stall.checkpoints)


def _with_checkpoints(limit: Limit, share: float) -> Limit:
    """They are neither waiting for samples nor compute."""
    if share < MATTERS:
        return limit
    taken = f"take {100 * share:.1f} % of an epoch"
    if limit.answer == UNCLEAR:
        return replace(limit, text=f"Checkpoints {taken}. {limit.text}")
    if limit.answer != NEITHER:
        return replace(limit, text=f"{limit.text} Checkpoints {taken}.")
    where = f" ({sweep_text(limit.sweep)})" if limit.sweep else ""
    reading = limit.text.partition(": ")[2]
    return replace(limit, answer=CHECKPOINTS, text=f"Checkpoints limit this training{where}: they {taken}; {reading}")


def untold_limit(waits: Waits, loader: str | None, workers: int | None) -> Limit:
    """Without a comparison."""
    return _with_checkpoints(_untold(waits, loader, workers), waits.checkpoints)


def _untold(waits: Waits, loader: str | None, workers: int | None) -> Limit:
    where = f" ({sweep_text(waits.sweep)})" if waits.sweep else ""
    share = f"{100 * waits.share:.1f} % of an epoch (n={waits.n})"
    if waits.share >= MATTERS or not waits.on_device:
        why = (
            f"waiting for batches and copying them take {share}"
            if waits.share >= MATTERS
            else f"waiting for batches and copying them take only {share}, but what reading takes from compute on the same CPU is not known"
        )
        text = f"Whether storage or the loader limits this training{where} cannot be determined: {why}; add --storage-matters."
        return Limit(waits.sweep, loader, workers, UNCLEAR, text)
    text = f"Neither storage nor the loader limits this training{where}: waiting for batches and copying them take {share}."
    return Limit(waits.sweep, loader, workers, NEITHER, text)


def is_framework(loader: str | None) -> bool:
    return loader is not None and loader in LOADERS and LOADERS[loader].framework


def loader_text(stall: StorageStall) -> str:
    """Who reads, or what it is that costs time."""
    if stall.loader is None or not is_framework(stall.loader):
        return "decoding and copying samples to the device"
    name = _NAMES.get(stall.loader, stall.loader)
    unit = "worker" if LOADERS[stall.loader].workers else "thread"
    how = "" if stall.workers is None else f" ({counted(stall.workers, unit) if stall.workers else 'without workers'})"
    return f"{name}{how}"


def share_text(cost: Mean, whole: float) -> str:
    share = f"{100 * cost.value / whole:.1f} %"
    if cost.limits is None:
        return f"{share} (n={cost.n})"
    low, high = (f"{100 * limit / whole:.1f} %" for limit in cost.limits)
    return f"{share} ({low} to {high}, 95 %, n={cost.n})"


def _told(stall: StorageStall) -> tuple[str, str]:
    """The answer, and its sentence without a full stop."""
    if stall.storage is None:
        return _together(stall)
    who = "the loader" if is_framework(stall.loader) else "decoding and copying"
    storage = f"waiting for the tiers takes {share_text(stall.storage, stall.seconds)} of an epoch"
    if stall.loader_cost is None:
        return _storage_alone(stall.answer, who, storage)
    costs = f"{loader_text(stall)} {'takes' if is_framework(stall.loader) else 'take'} {share_text(stall.loader_cost, stall.seconds)} of an epoch apart from storage"
    upper = who[0].upper() + who[1:]
    verb = "limits" if is_framework(stall.loader) else "limit"
    own = LOADER if is_framework(stall.loader) else INPUT
    sentences = {
        (YES, YES): (BOTH, f"Storage and {who} both limit this training: {_first(stall, storage, costs)}"),
        (YES, NO): (STORAGE, f"Storage, not {who}, limits this training: {storage}, {costs}"),
        (YES, UNCLEAR): (STORAGE, f"Storage limits this training: {storage}; whether {who} {verb} it too cannot be determined: {costs}"),
        (NO, YES): (own, f"{upper}, not storage, {verb} this training: {costs}, {storage}"),
        (UNCLEAR, YES): (own, f"{upper} {verb} this training: {costs}; whether storage limits it too cannot be determined: {storage}"),
        (NO, NO): (NEITHER, f"Neither storage nor {who} {verb} this training, {_rest(stall)}: {storage}, {costs}"),
        (NO, UNCLEAR): (UNCLEAR, f"Storage does not limit this training, but whether {who} {verb} it cannot be determined: {storage}, {costs}; {_QUIETER}"),
        (UNCLEAR, NO): (UNCLEAR, f"Whether storage limits this training cannot be determined, and {who} {'does' if verb == 'limits' else 'do'} not: {storage}, {costs}; {_QUIETER}"),
        (UNCLEAR, UNCLEAR): (UNCLEAR, f"Whether storage or {who} {verb} this training cannot be determined: {storage}, {costs}; {_QUIETER}"),
    }  # fmt: skip
    return sentences[stall.answer, stall.loader_answer]


def _rest(stall: StorageStall) -> str:
    """All-reduce happens within backward, and how much of it compute hides is not known."""
    return "compute does" if stall.ranks == 1 else "compute and the exchange of gradients do"


def _first(stall: StorageStall, storage: str, costs: str) -> str:
    """The larger one first."""
    assert stall.storage is not None
    larger = stall.loader_cost is not None and stall.loader_cost.value > stall.storage.value
    return f"{costs}, {storage}" if larger else f"{storage}, {costs}"


def _storage_alone(answer: str, who: str, storage: str) -> tuple[str, str]:
    """Nobody knows what the loader costs."""
    more = f"what {who} {'costs' if who == 'the loader' else 'cost'} was not measured; add synthetic to --data"
    if answer == YES:
        return STORAGE, f"Storage limits this training: {storage}; {more}"
    if answer == NO:
        return UNCLEAR, f"Storage does not limit this training: {storage}; {more}"
    return UNCLEAR, f"Whether storage limits this training cannot be determined: {storage}; {more}"


def _together(stall: StorageStall) -> tuple[str, str]:
    """Storage and loader were not told apart."""
    assert stall.input is not None
    both = f"together they take {share_text(stall.input, stall.seconds)} of an epoch"
    if matters(stall.input, stall.seconds) == NO:
        return NEITHER, f"Neither storage nor the loader limits this training, {_rest(stall)}: {both}"
    return (
        UNCLEAR,
        f"Whether storage or the loader limits this training cannot be determined: {both}; add memory to --data",
    )
