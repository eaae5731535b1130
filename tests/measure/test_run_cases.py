"""A study with cases, run and simulated: each reads its own data, and is resumed, staged and refused as any study."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.measure.test_run import run, traces
from tests.tiny import TINY
from tierscope.commands.analyze import analyze
from tierscope.commands.characterise import characterise_analysis
from tierscope.commands.simulate import simulate_study
from tierscope.errors import UserError
from tierscope.output.result import read_study
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.description import StudyRun
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

CASES = """
cases:
  many: {num_files_train: 24, record_length_bytes: 1 KiB}
  few: {num_files_train: 8, record_length_bytes: 3 KiB, batch_size: 2}
"""
ZIPPED = "{zip: {batch_size: [1, 2], prefetch_size: [4, 2]}}"


def cased(*settings: str) -> Study:
    return parse_study(TINY + CASES, "cased.yaml", ["sweep={cache_rate: [0%, 50%]}", *settings])


def test_every_case_reads_its_own_data_and_is_resumed(tmp_path: Path) -> None:
    out, study = tmp_path / "out", cased()
    run(study, out)
    assert read_study(str(out)) == study
    found = traces(out)
    for trace in found:
        assert isinstance(trace.about, StudyRun)
        case, rate = trace.about.sweep["case"], trace.about.sweep["cache_rate"]
        assert list(trace.about.sweep) == ["case", "cache_rate"]
        files, size = {"many": (24, 1024), "few": (8, 3072)}[str(case)]
        reads = trace.io.filter(pl.col("kind") == "read", pl.col("epoch") == 1)
        assert reads["ops"].sum() == files
        assert reads["bytes"].sum() == files * size
        assert reads.filter(pl.col("tier") == "lfs")["ops"].sum() == files * float(rate or 0)
    assert [str(trace.about.sweep["case"]) for trace in found] == ["many", "many", "few", "few"]
    assert len([path for path in (out / "tiers" / "gfs").iterdir() if path.is_dir()]) == 2
    (out / "runs" / "0002-r1.parquet").unlink()
    diary = run(study, out)
    assert "resuming: 3 of 4 runs are finished" in diary.notes
    assert not [total for title, total in diary.phases if title == "generating data"]
    assert characterise_analysis(str(out), analyze(str(out)), 2).sweep == {"case": "few", "cache_rate": 0.0}
    with pytest.raises(UserError, match="contains results of a different study"):
        run(replace(study, cases=study.cases[::-1]), out)


def test_a_case_that_does_not_fit_is_refused_before_any_is_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"capacity"):
        run(parse_study(TINY + CASES.replace("3 KiB", "1 MiB"), "cased.yaml"), tmp_path / "out")
    assert not list(tmp_path.glob("out/runs/*"))


def test_cases_and_zips_are_simulated_and_analysed(tmp_path: Path) -> None:
    rates = [f"{tier}.{key}" for tier in ("lfs", "gfs") for key in ("bandwidth=1 MB/s", "metadata_ops=1000/s")]
    study = parse_study((TINY + CASES).replace(", batch_size: 2", ""), "cased.yaml", [*rates, f"sweep={ZIPPED}"])
    simulate_study(study, str(tmp_path / "out"), "bound", Silent())
    breakdown = analyze(str(tmp_path / "out")).breakdown
    assert breakdown.sweep_keys == ("case", "batch_size", "prefetch_size")
    assert {tuple(point.sweep.values()) for point in breakdown.summary} == {
        (case, *values) for case in ("many", "few") for values in ((1, 4), (2, 2))
    }
