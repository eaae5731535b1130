"""What the preloaded library is told: tiers, their paths and stations, written to a file before the command starts."""

import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.native.seen import NAME, SEEN_BYTES
from tierscope.native.state import _LOST, CONFIG_MAGIC, MAX_PREFIXES, MAX_STATIONS, MAX_TIERS, PATH, VERSION
from tierscope.native.stations import TIER, TierStations, pack

CONFIG = np.dtype(
    [
        ("magic", "S8"),
        ("crc", "<u4"),
        ("bytes", "<u4"),
        ("version", "<u4"),
        ("options", "<u4"),
        ("tiers", "<u4"),
        ("prefixes", "<u4"),
        ("servers", "<u4"),
        ("slots", "<u4"),
        ("boot", "S40"),
        ("tier", TIER, MAX_TIERS),
    ]
)


PREFIX = np.dtype([("tier", "<u4"), ("length", "<u4"), ("path", f"S{PATH - 8}")])


@dataclass(frozen=True, slots=True)
class TierSetup:
    """One tier as a recorded process is told of it. Prefixes are absolute; only the root ends in a slash."""

    prefixes: tuple[str, ...]
    stations: TierStations | None = None  # None: not emulated


def write_setup(folder: str, tiers: Sequence[TierSetup], slots: int, boot: str, options: int = 0) -> None:
    """The config, the board, the count of what cannot be recorded and that of what is seen on no tier, before any process starts. The folder is new: files that are there are an error."""
    with open(os.path.join(folder, "lost"), "xb") as lost:
        lost.write(bytes(_LOST.size))
    with open(os.path.join(folder, NAME), "xb") as seen:
        seen.write(bytes(SEEN_BYTES))
    with open(os.path.join(folder, "board"), "xb") as board:
        board.write(bytes(max(1, slots) * 8))  # real blocks: it will be mapped
    with open(os.path.join(folder, "config"), "xb") as config:
        config.write(config_bytes(tiers, slots, boot, options))


def config_bytes(tiers: Sequence[TierSetup], slots: int, boot: str, options: int) -> bytes:
    prefixes = _prefix_rows(tiers)
    stations, servers = pack([tier.stations for tier in tiers])
    for name, amount, most in (
        ("tiers", len(tiers), MAX_TIERS),
        ("paths of tiers", len(prefixes), MAX_PREFIXES),
        ("emulated servers", len(servers), MAX_STATIONS),
    ):
        if amount > most:
            raise UserError(f"{amount} {name} are too many; at most {most}")
    head = np.zeros((), CONFIG)
    head["magic"], head["version"], head["options"], head["boot"] = CONFIG_MAGIC, VERSION, options, boot.encode()
    head["tiers"], head["prefixes"], head["servers"], head["slots"] = len(tiers), len(prefixes), len(servers), slots
    head["tier"][: len(tiers)] = stations
    head["bytes"] = head.nbytes + prefixes.nbytes + servers.nbytes
    body = head.tobytes()[12:] + prefixes.tobytes() + servers.tobytes()
    return CONFIG_MAGIC + struct.pack("<I", zlib.crc32(body)) + body


def _prefix_rows(tiers: Sequence[TierSetup]) -> npt.NDArray[np.void]:
    """The longest first: of nested directories the innermost counts."""
    pairs = [(os.fsencode(path.rstrip("/")), number) for number, tier in enumerate(tiers) for path in tier.prefixes]
    rows = np.zeros(len(pairs), PREFIX)
    for row, (path, number) in zip(rows, sorted(pairs, key=lambda pair: -len(pair[0])), strict=True):
        if len(path) >= PATH - 8:
            raise UserError(f"{os.fsdecode(path[:60])}…: path of a tier is too long; at most {PATH - 9} bytes")
        row["tier"], row["length"], row["path"] = number, len(path), path
    return rows
