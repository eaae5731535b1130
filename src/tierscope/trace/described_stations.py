"""What the description of a simulated run says of its stations."""

from msgspec import Struct

from tierscope.trace.limits import Count, Seconds, TierName


class StationLoad(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The busiest station of a kind: seconds of work that an epoch asks of it."""

    station: str  # with its number, unless nobody knows which server has which file
    seconds: Seconds
    stations: Count | None = None  # of this kind
    ops: Count | None = None


class DrawnLayout(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nobody knows which of a tier's servers has which file: of some layouts that were tried the one with the median time is simulated."""

    tier: TierName
    servers: Count
    tried: Count
