"""Whether storage or the loader limits a traced program, from what its loader's workers spent: seen from outside, without a comparison.

Workers that are never idle limit the program: nothing is ready when it asks. What they spend with I/O is storage's part. CPU in user mode is their own work, and so is waiting for a
core beyond what I/O took (both may count the same instant); the system's CPU may be either's, since it is in I/O and in handing batches over. Workers that wait limit nothing only if the process that trains is busy: else one of them may be late while the others wait.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from msgspec import structs

from tierscope.analysis.storage_stall import UNCLEAR
from tierscope.analysis.training_limits import BOTH, LOADER, NEITHER, STORAGE
from tierscope.analysis.wording import Finding
from tierscope.jsonable import JsonObject
from tierscope.trace.description import LoaderUse
from tierscope.units import counted

BUSY = 0.8  # of their time: workers that are never idle
IDLE = 0.7  # no more than that: they wait
SMALL = 0.1
LACKING = 0.5  # of their time without a core
LEAST_SECONDS = 0.5  # of workers' time: below, starting is most of it
_UNTOLD = "Whether storage or the loader limits this program cannot be determined"


@dataclass(frozen=True, slots=True)
class LoaderShares:
    """Of the workers' time. What is their own lies between two bounds."""

    io: float
    own_low: float
    own_high: float
    delay: float | None = None  # waiting for a core, which is in their own; None: not known

    @property
    def busy_low(self) -> float:
        return min(1.0, self.io + self.own_low)

    @property
    def busy_high(self) -> float:
        return min(1.0, self.io + self.own_high)


@dataclass(frozen=True, slots=True)
class TracedLimit:
    answer: str
    text: str
    shares: LoaderShares | None = None


def shares_of(use: LoaderUse) -> LoaderShares | None:
    """None: there were no workers, or not long enough."""
    whole = use.window_seconds
    if not use.workers or whole < LEAST_SECONDS:
        return None
    delay = use.delay_seconds or 0.0
    least = use.user_seconds + max(0.0, delay - use.io_seconds)
    most = use.user_seconds + use.system_seconds + delay
    io, low, high = (min(1.0, seconds / whole) for seconds in (use.io_seconds, least, most))
    return LoaderShares(io, low, high, None if use.delay_seconds is None else min(1.0, delay / whole))


def traced_limit(use: LoaderUse, from_cache: bool = False) -> TracedLimit:
    """`from_cache`: files were read at the speed of memory, so that nothing is known of storage."""
    shares = shares_of(use)
    if shares is None:
        return TracedLimit(UNCLEAR, f"{_UNTOLD}: {_why_no_shares(use)}.")
    answer, text = _told(use, shares)
    if from_cache and answer in (LOADER, NEITHER):
        text += "; its files came from the page cache: from slower storage, storage may limit it too"
    return TracedLimit(answer, f"{text}.", shares)


def _why_no_shares(use: LoaderUse) -> str:
    if use.workers:
        return f"the loader's {counted(use.workers, 'worker process')} read for {use.window_seconds:.2g} s only; trace a longer run"
    names = " and ".join(use.frameworks)
    loader = "tensorflow" if "tensorflow" in use.frameworks else "pytorch"
    return (
        f"no worker process of a loader was seen, so {names} reads files where it may train too, and the loader's own work looks like training; "
        f"measure it with 'tierscope train STUDY --loader {loader} --storage-matters'"
    )


def _told(use: LoaderUse, shares: LoaderShares) -> tuple[str, str]:
    who = f"the loader's {counted(use.workers, 'worker process')}"
    io, own = f"{100 * shares.io:.0f} % with I/O on these tiers", _own_text(shares)
    if shares.busy_low >= BUSY:
        spent = f"{who} were busy at least {100 * shares.busy_low:.0f} % of the time, {io} and {own}"
        if shares.io < SMALL:
            lack = ", for lack of free cores" if (shares.delay or 0.0) >= LACKING else ""
            return LOADER, f"The loader, not storage, limits this program{lack}: {spent}"
        if shares.own_high < SMALL:
            return STORAGE, f"Storage, not the loader's own work, limits this program: {spent}"
        return BOTH, f"Storage and the loader both limit this program: {spent}"
    spent = f"{who} were busy {_span(shares.busy_low, shares.busy_high)} of the time, {io} and {own}"
    if why := _why_untold(use, shares):
        return UNCLEAR, f"{_UNTOLD}: {spent}, {why}"
    return (
        NEITHER,
        f"Neither storage nor the loader limits this program, its training process does: {spent}, while that process computed",
    )


def _why_untold(use: LoaderUse, shares: LoaderShares) -> str:
    """Of workers that were idle at times; empty: the process that trains was not."""
    if shares.busy_high > IDLE:
        return "which is neither all of it nor little"
    if use.delay_seconds is None:
        return "and whether they waited for a core is not known"
    if use.training_cpu_share is None:
        return "and the process that trains was not seen"
    if use.training_cpu_share < IDLE:
        return "and the process that trains waited too, for a device or for a batch"
    return ""


def _own_text(shares: LoaderShares) -> str:
    waiting = f"; {100 * shares.delay:.0f} % waiting for a free core" if shares.delay and shares.delay >= SMALL else ""
    return f"{_span(shares.own_low, shares.own_high)} with their own work (decoding, collating, handing over{waiting})"


def _span(low: float, high: float) -> str:
    first, last = f"{100 * low:.0f}", f"{100 * high:.0f}"
    return f"{first} %" if first == last else f"{first} to {last} %"


def loader_limit(use: LoaderUse | None, findings: Sequence[Finding]) -> TracedLimit | None:
    """With what findings say of the files; None: there is no loader to speak of."""
    if use is None:
        return None
    return traced_limit(use, any(finding.kind == "page_cache_speed" for finding in findings))


def limit_json(use: LoaderUse, limit: TracedLimit) -> JsonObject:
    shares = asdict(limit.shares) if limit.shares else None
    return {"answer": limit.answer, "text": limit.text, "shares": shares, **structs.asdict(use)}
