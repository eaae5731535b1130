"""Whether META is cold or warm, as users read it."""

from collections.abc import Mapping

_DONE = {
    "cold": "cold (names and inodes dropped before every epoch)",
    "warm": "warm (names and inodes not dropped)",
    "unknown": "unknown (caches left alone)",
}


def metadata_line(states: Mapping[str, str]) -> str:
    """By tier: what was done on this host, and what nobody knows."""
    told = ", ".join(f"{tier} {_DONE[state]}" for tier, state in states.items())
    return f"{told}; server caches are unknown"
