"""Thousands of damaged Darshan logs: each is read, refused or doubted, and none is our crash.

They are made from small real logs that PyDarshan brings along: bits flipped, ends cut off, blocks doubled, tails added, and, since most of
a log is compressed, also the numbers inside, packed again as if they were right.
"""

import json
import random
import resource
import struct
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from tests.imports.darshan_logs import HEADER_BYTES, compressed_parts, needs_library, wheel_logs
from tests.imports.test_darshan_reader import children
from tests.nightly import first_in_ci
from tierscope.analysis.to_json import breakdown_json
from tierscope.commands.analyze import analyze_import
from tierscope.errors import TierscopeError
from tierscope.imports import darshan_reader
from tierscope.imports.darshan import DarshanOptions, import_logs
from tierscope.imports.darshan_reader import DarshanLog, UnreadableLog, read_logs
from tierscope.imports.gathered import to_trace
from tierscope.imports.paths import TierRules

pytestmark = [pytest.mark.darshan, needs_library]

LOGS = first_in_ci([400, 2000], 1)
MOST_CPU_SECONDS_PER_LOG = 0.1  # of ours and of workers; two cores share them
PATIENCE_SECONDS = 20.0
SMALL_BYTES = 20_000
ODD = (0, 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 0x7FF8000000000000, 0x7FF0000000000000)  # NaN, ∞


def flip_bits(log: bytes, chance: random.Random) -> bytes:
    changed = bytearray(log)
    for _ in range(chance.choice((1, 3, 20))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def flip_header(log: bytes, chance: random.Random) -> bytes:
    return flip_bits(log[:HEADER_BYTES], chance) + log[HEADER_BYTES:]


def cut(log: bytes, chance: random.Random) -> bytes:
    return log[: chance.randrange(1, len(log))]


def double(log: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(log))
    end = min(len(log), start + chance.choice((8, 64, 1024)))
    return log[:end] + log[start:end] + log[end:]


def add_tail(log: bytes, chance: random.Random) -> bytes:
    return log[: chance.randrange(len(log) // 2, len(log))] + chance.randbytes(chance.randrange(1, 2000))


def change_numbers(log: bytes, chance: random.Random) -> bytes:
    """In one compressed part; the parts that the header tells of are laid out anew."""
    parts = compressed_parts(log)
    changed = bytearray(log[: min(start for start, _ in parts.values())])
    victim = chance.choice(list(parts))
    for place, (start, length) in parts.items():
        packed = log[start : start + length]
        if place == victim:
            content = bytearray(zlib.decompress(packed))
            for _ in range(chance.choice((1, 3, 20))):
                number = chance.choice((chance.getrandbits(64), chance.choice(ODD)))
                struct.pack_into("<Q", content, chance.randrange(len(content) // 8) * 8, number)
            packed = zlib.compress(bytes(content))
        struct.pack_into("<QQ", changed, place, len(changed), len(packed))
        changed += packed
    return bytes(changed)


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits,
    flip_header,
    cut,
    double,
    add_tail,
    change_numbers,
    change_numbers,
)


@pytest.fixture(params=LOGS)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The same ones on every machine."""
    chance = random.Random(20)
    small = [path.read_bytes() for path in wheel_logs() if path.stat().st_size < SMALL_BYTES]
    assert len(small) >= 5
    assert all(compressed_parts(log) for log in small)
    paths = []
    for number in range(request.param):
        damage = DAMAGES[number % len(DAMAGES)]
        path = tmp_path / f"me_python_id7-{number}_1-1-1-1_1.{damage.__name__}.darshan"
        path.write_bytes(damage(chance.choice(small), chance))
        paths.append(path)
    return paths


def cpu_seconds() -> float:
    mine, others = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + others.ru_utime + others.ru_stime


def test_damaged_logs_are_never_our_crash(damaged: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(darshan_reader, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    contents = [path.read_bytes() for path in damaged]
    began, before, used = time.monotonic(), children(), cpu_seconds()
    counts: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    for path, log in zip(damaged, read_logs([str(path) for path in damaged]), strict=True):
        assert log.path == str(path)
        started = time.monotonic()
        try:
            counts[outcome(log)] += 1
        except Exception as error:  # noqa: BLE001  (all of them are listed)
            counts["our crash"] += 1
            failures.append(f"{path.name}: {type(error).__name__}: {str(error)[:200]}")
        slowest = max(slowest, time.monotonic() - started)
    seconds = time.monotonic() - began
    used = cpu_seconds() - used
    print(f"\n{dict(counts)}; {seconds:.0f} s in all, CPU {used:.0f} s; the slowest import {slowest:.1f} s")
    assert [path.read_bytes() for path in damaged] == contents  # nobody wrote to them
    assert children() == before
    assert sum(counts.values()) == len(damaged)
    assert counts["shown"] > len(damaged) / 20
    assert counts["unreadable: took too long"] <= 2
    assert counts["unreadable: the library crashed"] < len(damaged) / 10
    assert used < MOST_CPU_SECONDS_PER_LOG * len(damaged)
    assert not failures, "\n".join([f"{len(failures)} failures:", *failures[:20]])


def outcome(log: DarshanLog | UnreadableLog) -> str:
    """As with `analyze --force --json`."""
    if isinstance(log, UnreadableLog):
        if "took longer" in log.reason:
            return "unreadable: took too long"
        return "unreadable: the library crashed" if "crash" in log.reason else "unreadable"
    imported = import_logs([log], TierRules({"gfs": ("/",)}), DarshanOptions())
    doubts = structs.replace(imported.facts.doubts, damaged_logs=tuple(log.complaints[:1]))
    facts = structs.replace(imported.facts, job_id=log.job["job_id"], doubts=doubts)
    try:
        analysis = analyze_import(to_trace(replace(imported, facts=facts, command=log.job["command"])))
    except TierscopeError:
        return "refused"
    json.dumps(breakdown_json(analysis.breakdown, analysis.findings, analysis.conditions), allow_nan=False)
    assert all("\n" not in finding.text for finding in analysis.findings)
    return "shown, with complaints" if log.complaints else "shown"
