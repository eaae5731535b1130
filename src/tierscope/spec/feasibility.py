"""Whether the files of an option fit the tiers that are to hold them: bytes per node and device beside capacities.

A capacity that a study does not give is not taken as endless: whether something fits is unknown then.
"""

from dataclasses import dataclass

from tierscope.jsonable import JsonObject
from tierscope.units import about_bytes

YES, NO, UNKNOWN = "yes", "no", "unknown"


@dataclass(frozen=True, slots=True)
class TierRoom:
    """What an option keeps on one tier, beside what the tier has room for."""

    tier: str
    bytes_per_node: int | None  # on the node that holds most; None: one copy for all nodes
    bytes_in_all: int
    capacity: int | None  # of a node, or of the tier where nodes share it; None: not given
    nodes_per_device: int = 1  # of a tier that nodes have to themselves: those whose copies are on one device
    proven: bool = False  # the files were there: they fit, whatever the capacity is
    checkpoint_bytes: int = 0  # of what is needed

    @property
    def needed(self) -> int:
        """What the capacity has to hold."""
        return self.bytes_in_all if self.bytes_per_node is None else self.bytes_per_node

    @property
    def bytes_per_device(self) -> int:
        return self.bytes_in_all if self.bytes_per_node is None else self.bytes_per_node * self.nodes_per_device

    @property
    def fits(self) -> str:
        if self.proven or not self.needed:
            return YES
        if self.capacity is None:
            return UNKNOWN
        return YES if self.needed <= self.capacity else NO

    @property
    def where(self) -> str:
        return "in all" if self.bytes_per_node is None else "per node"

    @property
    def text(self) -> str:
        """What does not fit, or cannot be told; empty: it fits."""
        saved = f" ({about_bytes(self.checkpoint_bytes)} of it checkpoints)" if self.checkpoint_bytes else ""
        size = about_bytes(self.needed)
        if self.fits == UNKNOWN:
            return f"capacity of {self.tier} is not set: whether {size} {self.where}{saved} fit is unknown"
        if self.fits == NO and self.capacity is not None:
            return f"{size} {self.where}{saved} do not fit on {self.tier}, which holds {about_bytes(self.capacity)}"
        return ""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Of one option: every near tier, and the last one where its capacity is given."""

    tiers: tuple[TierRoom, ...] = ()

    @property
    def fits(self) -> str:
        answers = {room.fits for room in self.tiers}
        return NO if NO in answers else UNKNOWN if UNKNOWN in answers else YES

    @property
    def is_possible(self) -> bool:
        """It may be recommended: nothing is known not to fit."""
        return self.fits != NO

    @property
    def doubt(self) -> TierRoom | None:
        """The tier that it does not fit, else one of which nobody can tell."""
        by_answer = {room.fits: room for room in reversed(self.tiers)}
        return by_answer.get(NO) or by_answer.get(UNKNOWN)

    @property
    def text(self) -> str:
        """Empty: it fits."""
        return self.doubt.text if self.doubt else ""

    def on(self, tier: str) -> TierRoom | None:
        return next((room for room in self.tiers if room.tier == tier), None)


def feasibility_json(feasibility: Feasibility | None) -> JsonObject | None:
    """None: nothing is known of it, as of a CSV."""
    if feasibility is None:
        return None
    return {
        "fits": feasibility.fits,
        "why": feasibility.text or None,
        "tiers": [_room(room) for room in feasibility.tiers],
    }


def _room(room: TierRoom) -> JsonObject:
    return {
        "tier": room.tier,
        "fits": room.fits,
        "bytes_per_node": room.bytes_per_node,
        "bytes_per_device": room.bytes_per_device,
        "bytes_in_all": room.bytes_in_all,
        "checkpoint_bytes": room.checkpoint_bytes,
        "capacity": room.capacity,
        "capacity_of": "all" if room.bytes_per_node is None else "node",
        "nodes_per_device": room.nodes_per_device,
    }
