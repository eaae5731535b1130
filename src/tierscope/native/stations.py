"""The queues of emulated tiers: what they are, and how C has them (c/queues.h)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.errors import TierscopeError

STATION = np.dtype([("number", "<i8"), ("per_op_ns", "<f8"), ("per_byte_ns", "<f8")])
TIER = np.dtype(
    [
        ("metadata", STATION),
        ("link", STATION),
        ("latency_ns", "<u8"),
        ("metadata_latency_ns", "<u8"),
        ("emulated", "<u8"),
        ("first_server", "<u8"),
        ("servers", "<u8"),
    ]
)


@dataclass(frozen=True, slots=True)
class Station:
    """A queue: its first place on the board, its service time in nanoseconds, and how it serves.

    `variation` is the coefficient of variation of each service, `background` the share of its time that others take. With
    `room` it serves all at once, at most so many; without, one after another.
    """

    number: int
    per_op_ns: float
    per_byte_ns: float
    variation: float = 0.0
    background: float = 0.0
    room: int = 0

    def service_ns(self, nbytes: float) -> int:
        return round(self.per_op_ns + nbytes * self.per_byte_ns)


@dataclass(frozen=True, slots=True)
class TierStations:
    """The queues of one tier that one node's operations go through; none where no rate limits."""

    metadata: tuple[Station, ...] = ()  # a file belongs to one of them
    servers: tuple[Station, ...] = ()  # a file begins on one of them
    links: tuple[Station, ...] = ()  # every read passes all of them
    latency_ns: int = 0
    metadata_latency_ns: int = 0
    stripe_count: int = 1
    stripe_size: int = 1 << 20

    @property
    def plain(self) -> bool:
        """Whether C can do it. It has no several metadata servers or links, no stripes, no variation and no sharing.

        `spec.emulation.python_only` says the same of a tier's keys.
        """
        stations = (*self.metadata, *self.servers, *self.links)
        one_each = len(self.metadata) <= 1 and len(self.links) <= 1 and self.stripe_count == 1
        return one_each and not any(station.variation or station.room for station in stations)


def pack(views: Sequence[TierStations | None]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """TIER of each tier (None: not emulated), and STATION of all their servers."""
    tiers = np.zeros(len(views), TIER)
    servers: list[tuple[int, float, float]] = []
    for number, view in enumerate(views):
        if view is not None:
            if not view.plain:
                raise TierscopeError(f"tier {number} has queues that only Python emulates")
            stations = (_row(view.metadata), _row(view.links))
            own = [_row((server,)) for server in view.servers] or [_row(())]
            tiers[number] = (*stations, view.latency_ns, view.metadata_latency_ns, 1, len(servers), len(own))
            servers += own
    return tiers, np.array(servers, STATION)


def _row(stations: Sequence[Station]) -> tuple[int, float, float]:
    """Of at most one."""
    return next(((each.number, each.per_op_ns, each.per_byte_ns) for each in stations), (-1, 0.0, 0.0))
