"""Published measurements beside our own model: which rows are predicted from which, and that nothing is fitted to what is predicted."""

from pathlib import Path

import pytest

from tierscope.predict.measured_table import FIRST_MAX, FIRST_MEAN, SHARE, MeasuredFigures, MeasuredTable
from tierscope.predict.table_fit import FittedTable
from validation import public
from validation.table import Row

HEADER = "tier,hosts,n_ranks,run,epoch,steps,first_load_mean_s,first_load_max_s\n"


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = tmp_path / "times.csv"
    lines = [f"lustre,{max(1, ranks // 8)},{ranks},0,{epoch},100,{seconds},{seconds + 1}" for ranks in (1, 8, 16, 32, 64) for epoch, seconds in ((1, 4), (2, 6))]  # fmt: skip
    table.write_text(HEADER + "\n".join([*lines, "nvme,1,8,0,1,100,1,1"]) + "\n")
    monkeypatch.setattr(public, "POLARIS", table)
    return table


def test_what_is_predicted_is_not_fitted_to(times: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[MeasuredTable] = []

    class Stop(Exception):  # noqa: N818
        pass

    def look(table: MeasuredTable, *_: object) -> FittedTable:
        seen.append(table)
        raise Stop

    monkeypatch.setattr(public, "calibrate_table", look)
    with pytest.raises(Stop):
        list(public.polaris(short=True))
    assert [point.ranks for point in seen[0].points] == [1, 8, 16, 32]
    assert all(point.rows == 2 for point in seen[0].points)  # of Lustre alone


@pytest.mark.usefixtures("times")
def test_standard_errors_are_of_epochs() -> None:
    """Means of 4 and 6 s: 1 s."""
    assert public._errors_of_epochs(64) == {FIRST_MEAN: pytest.approx(1.0), FIRST_MAX: pytest.approx(1.0)}


def test_groups_are_of_one_storage_and_several_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "v1.csv"
    line = "Closed/One/results/{storage}/{work}/runs/{run}/s.json,One,Closed,{count},1,100000,1,4,{au},1 1,1,1,1"
    lines = [
        line.format(storage="S1_x", work="unet3d-h100", run=1, count=2, au=98),
        line.format(storage="S1_x", work="unet3d-h100", run=2, count=2, au=96),
        line.format(storage="S1_x", work="unet3d-h100", run=1, count=4, au=90),
        line.format(storage="S1_x", work="unet3d-a100", run=1, count=8, au=80),
        line.format(storage="S2_x", work="unet3d-h100", run=1, count=8, au=70),
        line.format(storage="S2_x", work="resnet-h100", run=1, count=2, au=99),
        line.format(storage="S2_x", work="resnet-h100", run=1, count=4, au=95),
    ]
    names = "path,submitter,division,accelerators,hosts,files,samples_per_file,read_threads,au_mean,au_epochs,samples_per_s,MBps,epoch_seconds"
    table.write_text("\n".join([names, *lines]) + "\n")
    monkeypatch.setattr(public, "V1", table)
    found = [(name, workload, [(point.ranks, round(point.figures[SHARE][0], 3)) for point in points]) for name, workload, points in public.groups()]  # fmt: skip
    assert found == [
        ("One S1, unet3d, 1 hosts", "unet3d", [(2, 0.97), (4, 0.9)]),
        ("One S2, resnet50, 1 hosts", "resnet50", [(2, 0.99), (4, 0.95)]),
    ]


def test_a_miss_is_marked() -> None:
    from tierscope.predict.table_intervals import PredictedFigure  # noqa: PLC0415

    last = MeasuredFigures(4, 32, {FIRST_MEAN: (4.0, 0.1)}, {}, 25)
    there = MeasuredFigures(8, 64, {FIRST_MEAN: (4.0, 0.1)}, {}, 25)
    off = PredictedFigure(there, FIRST_MEAN, 4.0, 0.1, 4.4, 4.0, 5.0)
    found = list(public._first_batch_rows(off, last, 0.1, True, "note"))
    assert [row.met for row in found] == [False, False]
    near = PredictedFigure(there, FIRST_MEAN, 4.0, 0.1, 4.05, 4.0, 5.0)
    assert [row.met for row in public._first_batch_rows(near, last, 0.1, True, "note")] == [True, True]


def test_no_measurements_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(public, "POLARIS", tmp_path / "none.csv")
    (row,) = public.rows(short=False)
    assert isinstance(row, Row)
    assert row.value == "skipped"
