"""The queues of emulated tiers: what they are, and how C has them (c/queues.h)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

STATION = np.dtype([("number", "<i8"), ("per_op_ns", "<f8"), ("per_byte_ns", "<f8")])
TIER = np.dtype(
    [
        ("metadata", STATION),
        ("gateway", STATION),
        ("latency_ns", "<u8"),
        ("emulated", "<u8"),
        ("first_server", "<u8"),
        ("servers", "<u8"),
    ]
)


@dataclass(frozen=True, slots=True)
class Station:
    """A FIFO queue: its number on the board, and its service time in nanoseconds."""

    number: int
    per_op_ns: float
    per_byte_ns: float

    def service_ns(self, nbytes: int) -> int:
        return round(self.per_op_ns + nbytes * self.per_byte_ns)


@dataclass(frozen=True, slots=True)
class TierStations:
    """The queues of one tier that one node's operations go through; None where no rate limits."""

    metadata: Station | None = None
    servers: tuple[Station | None, ...] = (None,)
    gateway: Station | None = None
    latency_ns: int = 0


def pack(views: Sequence[TierStations | None]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """TIER of each tier (None: not emulated), and STATION of all their servers."""
    tiers = np.zeros(len(views), TIER)
    servers: list[tuple[int, float, float]] = []
    for number, view in enumerate(views):
        if view is not None:
            stations = (_row(view.metadata), _row(view.gateway))
            tiers[number] = (*stations, view.latency_ns, 1, len(servers), len(view.servers))
            servers += [_row(server) for server in view.servers]
    return tiers, np.array(servers, STATION)


def _row(station: Station | None) -> tuple[int, float, float]:
    return (station.number, station.per_op_ns, station.per_byte_ns) if station else (-1, 0.0, 0.0)
