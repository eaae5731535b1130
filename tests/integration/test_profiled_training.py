"""A real trace of torch's profiler beside the reads of the same program: aligned by marks, the hidden share is what the program itself says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.imports.dftracer_lines import START, began, call, named, write
from tierscope.analysis.time_spans import union_of
from tierscope.commands.characterise import TimelineRequest, characterise_path
from tierscope.imports.paths import TierRules

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parent / "programs" / "profiled_training.py"


def test_the_hidden_share_is_what_the_program_says(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path)], check=True, capture_output=True, timeout=300)
    told = json.loads((tmp_path / "told.json").read_text())
    paths = sorted({path for path, *_ in told["reads"]})
    lines = [
        call("read", path, start // 1000 - START, end // 1000 - start // 1000, ret=nbytes)
        for path, start, end, nbytes in told["reads"]
    ]
    log = write(tmp_path / "job.pfw", [*began(), *named(*paths), *lines])
    run = characterise_path(
        [log], TierRules({"gfs": (str(tmp_path),)}), timelines=TimelineRequest((str(tmp_path / "torch.json"),))
    )
    (merged,) = run.merged
    assert (merged.alignment.by, merged.alignment.marks) == ("marks", 2)
    assert merged.compute_basis == "tierscope.phase compute"
    io, compute = (
        union_of(spans) for spans in ([(start, end) for _, start, end, _ in told["reads"]], told["computed"])
    )
    uncertain = merged.alignment.uncertainty_ns
    assert uncertain < 5_000_000
    slack = 2 * uncertain + 3_000_000  # what entering and leaving a span takes
    assert merged.hidden_ns == pytest.approx(io.overlap_ns(compute), abs=slack)
    assert merged.io_ns == pytest.approx(io.total_ns, abs=slack)
    assert 0 < merged.low_ns <= merged.hidden_ns <= merged.high_ns < merged.io_ns
    assert run.character.hidden.share == pytest.approx(merged.hidden_ns / merged.io_ns)
