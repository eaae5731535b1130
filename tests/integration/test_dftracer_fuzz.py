"""Two thousand damaged DFTracer traces, in a process with limits: each is read, refused or doubted, and none is our crash."""

import gzip
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.imports.dftracer_lines import as_version_2, began, call, complete, named, text_of
from tests.integration.test_darshan_fuzz import add_tail, cut, double, flip_bits
from tests.nightly import first_in_ci

pytestmark = pytest.mark.darshan

SECONDS = 240
MEMORY_BYTES = 4 << 30
PROGRAM = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
from tierscope.analysis.to_json import breakdown_json
from tierscope.errors import UserError
from tierscope.commands.analyze import analyze_import
from tierscope.imports.logs import ImportOptions, import_logs
from tierscope.imports.paths import TierRules

for line in sys.stdin:
    path = line.rstrip("\\n")
    try:
        found = analyze_import(import_logs([path], ImportOptions(TierRules({{"gfs": ("/gfs",)}}), force=True)))
        json.dumps(breakdown_json(found.breakdown, found.findings, found.conditions), allow_nan=False)
        print("shown", flush=True)
    except UserError as error:
        assert "\\n" not in str(error)
        print("refused", flush=True)
"""


def whole_traces() -> list[bytes]:
    paths = [f"/gfs/{number}" for number in range(6)]
    lines = [*began(), *named(*paths)]
    for number, path in enumerate(paths * 3):
        at = 100 * number
        lines += [
            call("open64", path, at, 5),
            call("read", path, at + 10, 20, ret=4096),
            call("close", path, at + 40, 2),
        ]
    lines += [complete("DLIOBenchmark._train", 900 * epoch, 890, epoch=epoch + 1) for epoch in range(2)]
    texts = [text_of(lines), text_of([as_version_2(line) for line in lines]), text_of(lines, compact=False)]
    return [*texts, *(gzip.compress(text) for text in texts)]


@pytest.mark.parametrize("traces", first_in_ci([400, 2000], 1))
def test_no_damage_makes_us_crash(traces: int, tmp_path: Path) -> None:
    chance = random.Random(11)
    wholes = whole_traces()
    paths = []
    for number in range(traces):
        content = chance.choice(wholes)
        for _ in range(chance.choice((1, 1, 3))):
            content = chance.choice((flip_bits, cut, double, add_tail))(content, chance) or b"x"
        path = tmp_path / f"{number}.pfw{'.gz' if chance.random() < 0.5 else ''}"
        path.write_bytes(content)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(paths),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    counts = Counter(done.stdout.split())
    assert sum(counts.values()) == traces
    assert counts["shown"] > traces // 4
    assert counts["refused"] > 0
