"""The queues of emulated tiers: what they are, and how C has them (c/queues.h)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.errors import TierscopeError

STATION = np.dtype(
    [
        ("number", "<i8"),
        ("per_op_ns", "<f8"),
        ("per_byte_ns", "<f8"),
        ("write_per_op_ns", "<f8"),
        ("write_per_byte_ns", "<f8"),
    ]
)
TIER = np.dtype(
    [
        ("metadata", STATION),
        ("link", STATION),
        ("latency_ns", "<u8"),
        ("metadata_latency_ns", "<u8"),
        ("stream_per_byte_ns", "<f8"),
        ("emulated", "<u8"),
        ("first_server", "<u8"),
        ("servers", "<u8"),
    ]
)


@dataclass(frozen=True, slots=True)
class Station:
    """A queue: its first place on the board, its service time in nanoseconds, and how it serves.

    `variation` is the coefficient of variation of each service, `background` the share of its time that others take. With
    `room` it serves all at once, at most so many; without, one after another. Writes take what reads take, unless they have times of their own.
    """

    number: int
    per_op_ns: float
    per_byte_ns: float
    variation: float = 0.0
    background: float = 0.0
    room: int = 0
    write_per_op_ns: float | None = None
    write_per_byte_ns: float | None = None
    credit_ns: int = 0  # idle time that it makes up for; C has none
    period_ns: int = 0  # in which it hands out what it allows, all at once; C has none

    def service_ns(self, nbytes: float) -> int:
        return round(self.per_op_ns + nbytes * self.per_byte_ns)

    def write_ns(self, nbytes: float) -> int:
        per_op, per_byte = self.writing
        return round(per_op + nbytes * per_byte)

    @property
    def writing(self) -> tuple[float, float]:
        """Nanoseconds of a write, and of each of its bytes."""
        return (
            self.per_op_ns if self.write_per_op_ns is None else self.write_per_op_ns,
            self.per_byte_ns if self.write_per_byte_ns is None else self.write_per_byte_ns,
        )


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
    open_bytes: int = 0  # of an open in the queues of server and links
    stream_ns: float = 0.0  # of a byte of one stream, outside queues
    hashed: bool = False  # files lie on servers at random instead of in turns
    locks: tuple[Station, ...] = ()  # a file has one of them, for opens; C has none

    @property
    def plain(self) -> bool:
        """Whether C can do it. It has no several metadata servers or links, no stripes, no variation, no sharing, no credit and no portions; opens queue at the
        metadata server only, not for their file's lock, and files take turns.

        `spec.emulation.python_only` says the same of a tier's keys.
        """
        stations = (*self.metadata, *self.servers, *self.links)
        single_stations = len(self.metadata) <= 1 and len(self.links) <= 1 and self.stripe_count == 1
        as_c_has_it = not (self.locks or self.open_bytes or (self.hashed and len(self.servers) > 1))
        return (
            single_stations
            and as_c_has_it
            and not any(
                station.variation or station.room or station.credit_ns or station.period_ns for station in stations
            )
        )


def pack(views: Sequence[TierStations | None]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """TIER of each tier (None: not emulated), and STATION of all their servers."""
    tiers = np.zeros(len(views), TIER)
    servers: list[_StationRow] = []
    for number, view in enumerate(views):
        if view is not None:
            if not view.plain:
                raise TierscopeError(f"tier {number} has queues that only Python emulates")
            stations = (_row(view.metadata), _row(view.links))
            own = [_row((server,)) for server in view.servers] or [_row(())]
            tiers[number] = (
                *(*stations, view.latency_ns, view.metadata_latency_ns, view.stream_ns),
                *(1, len(servers), len(own)),
            )
            servers += own
    return tiers, np.array(servers, STATION)


_StationRow = tuple[int, float, float, float, float]


def _row(stations: Sequence[Station]) -> _StationRow:
    """Of at most one."""
    rows = ((station.number, station.per_op_ns, station.per_byte_ns, *station.writing) for station in stations)
    return next(rows, (-1, 0.0, 0.0, 0.0, 0.0))
