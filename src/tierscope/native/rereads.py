"""What a rank's processes read, as the C library keeps it to find epochs by re-reads (c/rereads.h): read, and trusted in nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.native.state import StateHead, open_plain

SLOTS, MOST_BOUNDARIES = 1 << 14, 256
GENERATION, NO_PAGE = 1 << 30, 2**31 - 1
GAVE_UP_LOCK, GAVE_UP_EPOCHS, GAVE_UP_CLOCK, MARKED_INSTEAD = 1, 2, 3, 4

UNIT = np.dtype([("key", "<u8"), ("last", "<u4"), ("counts", "<u4")])
_COUNTERS = (
    *("locked", "gave_up", "mask", "nearly", "units", "clock", "epoch_start", "covered", "unheard", "first_unheard"),
    *("run", "run_start", "longest_run", "latest", "generation", "boundaries"),
)
REREADS = np.dtype(
    [*((name, "<u4") for name in _COUNTERS), ("boundary", "<u4", MOST_BOUNDARIES), ("table", UNIT, SLOTS)]
)
PAGE = np.dtype([("rank", "<u4", 16), ("clock", "V65664"), ("rereads", REREADS)])  # as the processes of a rank share it

_LAUNCHERS = (  # in the order of c/process.c
    *("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK"),
    *("PALS_RANKID", "JSM_NAMESPACE_RANK", "SLURM_PROCID"),
)


@dataclass(frozen=True, slots=True)
class RereadPage:
    """A rank's page. Counts are of the reads that were looked at: one in `mask` + 1."""

    gave_up: int
    mask: int
    nearly: bool
    clock: int
    epoch_start: int
    covered: int
    longest_run: int
    latest: int
    boundaries: tuple[int, ...]
    keys: npt.NDArray[np.uint64]  # of the units in the table, and of each:
    reads: npt.NDArray[np.int64]
    passes: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64]  # bytes of its largest read, to a power of two


def page_name(head: StateHead) -> str:
    """The file that this process shares with the others of its rank on its host."""
    return f"rank-{head.host}-{_rank_name(head.variables)}".replace("/", "_")


def _rank_name(variables: Mapping[str, str]) -> str:
    names = ("RANK", *_LAUNCHERS) if "WORLD_SIZE" in variables else _LAUNCHERS
    for name in names:
        value = variables.get(name, "")
        if value.isascii() and value.isdigit() and int(value) < 2**31:
            return f"{name}-{int(value)}"
    return "all-"


def read_page(path: str) -> RereadPage | None:
    """None: there is none, or it cannot be what it should be."""
    try:
        with open(open_plain(path), "rb") as file:
            content = file.read(PAGE.itemsize)
    except OSError:
        return None
    if len(content) < PAGE.itemsize:
        return None
    page = np.frombuffer(content, PAGE, 1)[0]["rereads"]
    count = int(page["boundaries"])
    units = page["table"][page["table"]["key"] != 0]
    counts = units["counts"].astype(np.int64)
    if count > MOST_BOUNDARIES or len(units) != page["units"] or page["covered"] > len(units):
        return None
    return RereadPage(
        gave_up=int(page["gave_up"]),
        mask=int(page["mask"]),
        nearly=bool(page["nearly"]),
        clock=int(page["clock"]),
        epoch_start=int(page["epoch_start"]),
        covered=int(page["covered"]),
        longest_run=int(page["longest_run"]),
        latest=int(page["latest"]),
        boundaries=tuple(map(int, page["boundary"][:count])),
        keys=units["key"],
        reads=(counts & 0xFFFF),
        passes=(counts >> 16) & 0x3FF,
        sizes=2.0 ** (counts >> 26),
    )
