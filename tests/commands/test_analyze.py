"""From a result directory or a CSV to a breakdown with its findings."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from tests.tiny import tiny
from tests.traces import CLASSES, trace_of
from tierscope.analysis.counting import Counting
from tierscope.commands.analyze import analyze
from tierscope.errors import ResultError, UserError
from tierscope.output.result import open_result
from tierscope.output.store import RunStore
from tierscope.report.export import to_csv
from tierscope.spec.dump import identity
from tierscope.spec.goal import Goal
from tierscope.spec.sweep import points
from tierscope.trace.rank_trace import Residency
from tierscope.trace.trace import RunKey, Trace
from tierscope.units import parse_seconds

RATES = (0.0, 0.5, 1.0)


def trace(point: int, seconds: float = 1.0, **about: object) -> Trace:
    classes = {(rank, epoch): {"GFS-META": seconds, "LFS-READ": 0.25 * rank} for rank in (0, 1) for epoch in (1, 2)}
    residency = (Residency("gfs", 1000, 300 if point == 1 else 0),)
    return trace_of(
        classes, point=point, sweep={"cache_rate": RATES[point]}, about=about, wall_share=0.5, residency=residency
    )


def result(folder: Path, *traces: Trace, settings: tuple[str, ...] = ()) -> str:
    """A directory of results as `tierscope run` leaves it."""
    out, study = str(folder / "out"), tiny(*settings)
    made_by = [identity(point.study) for point in points(study)]
    with open_result(out, study):
        for item in traces:
            RunStore(out).save(replace(item, about=structs.replace(item.about, study=made_by[item.key.point])))
    return out


def test_a_finished_study(tmp_path: Path) -> None:
    found = analyze(result(tmp_path, trace(0, 4.0), trace(1, 1.0), trace(2, 2.0)))
    assert (found.name, found.goal, found.conditions.emulated) == ("tiny", None, ())
    assert [(point.sweep, point.epoch, point.io_seconds) for point in found.breakdown.points] == [
        ({"cache_rate": rate}, epoch, (seconds + 0.25) / 2)
        for rate, seconds in zip(RATES, (4.0, 1.0, 2.0), strict=True)
        for epoch in (1, 2)
    ]
    assert found.breakdown.classes == CLASSES
    assert found.breakdown.best.sweep == {"cache_rate": 0.5}
    assert {finding.kind: finding.evidence for finding in found.findings} == {
        "warm_pages": {"tier": "gfs", "percent": pytest.approx(30.0)}  # of what was checked in all runs
    }


def test_busy_seconds_on_request(tmp_path: Path) -> None:
    out = result(tmp_path, trace(0, 4.0))
    found = [analyze(out, Counting(basis)).breakdown for basis in (None, "wall", "busy")]
    assert [(each.basis, each.best.io.median) for each in found] == [("wall", 2.125), ("wall", 2.125), ("busy", 4.25)]


def test_a_study_that_is_not_finished(tmp_path: Path) -> None:
    found = analyze(result(tmp_path, trace(0), trace(2), settings=("repetitions=2",)))
    assert (found.findings[0].kind, found.findings[0].evidence) == ("partial", {"finished": 2, "total": 6})


@pytest.mark.parametrize(("goal", "kind"), [("2 s", "goal_met"), ("0.5 s", "goal_missed")])
def test_the_goal_of_the_study(tmp_path: Path, goal: str, kind: str) -> None:
    found = analyze(result(tmp_path, trace(0), trace(1), trace(2), settings=(f"goal={goal}",)))
    assert kind in {finding.kind for finding in found.findings}
    assert found.goal == Goal("io", parse_seconds(goal))


def test_emulated_tiers_are_told(tmp_path: Path) -> None:
    tiers = [{"name": "lfs", "emulated": True}, {"name": "gfs", "emulated": True}]
    found = analyze(result(tmp_path, trace(0, tiers=tiers), trace(1), trace(2)))
    assert found.conditions.emulated == ("gfs", "lfs")
    assert [finding.kind for finding in found.findings] == ["emulated"]


def test_before_the_first_run_is_finished(tmp_path: Path) -> None:
    out = result(tmp_path)
    with pytest.raises(UserError, match="no run has finished yet"):
        analyze(out)


def test_a_directory_that_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        ResultError, match=r"has no study\.yaml; name the --out of 'tierscope run' or 'tierscope trace'"
    ):
        analyze(str(tmp_path))


def test_a_damaged_run_is_named_not_skipped(tmp_path: Path) -> None:
    out = result(tmp_path, trace(0), trace(1))
    path = Path(RunStore(out).path(RunKey(1, 1)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultError, match=r"0001-r1\.parquet: is not a readable Tierscope result"):
        analyze(out)


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone: no such file or directory"):
        analyze(str(tmp_path / "gone"))


def test_a_csv_says_the_same_as_the_result_it_came_from(tmp_path: Path) -> None:
    found = analyze(result(tmp_path, trace(0, 4.0), trace(1, 1.0), trace(2, 2.0)))
    path = tmp_path / "times.csv"
    to_csv(found.times, str(path))
    again = analyze(str(path))
    assert (again.name, again.findings, again.conditions.emulated, again.goal) == ("times.csv", [], (), None)
    assert [point.classes for point in again.breakdown.points] == [point.classes for point in found.breakdown.points]
    assert again.breakdown.best.io == found.breakdown.best.io


def test_a_csv_has_one_kind_of_seconds(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1\n")
    assert analyze(str(path)).breakdown.best.io.median == 1.0
    with pytest.raises(UserError, match="remove --basis"):
        analyze(str(path), Counting("wall"))
