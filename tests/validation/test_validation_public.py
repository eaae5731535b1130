"""The model of first batches: its terms by hand, and that it finds what it was made from."""

from pathlib import Path

import pytest

from validation import public
from validation.public import NAMES, Runs, carried_to, fit, largest_normal, predict

MODEL = {"fixed": 1.0, "work": 0.5, "waiting": 0.3, "between_nodes": 0.2, "shared": 0.01}
SIZES = ((1, 1), (1, 8), (2, 16), (4, 32), (8, 64))


def made_of(model: dict[str, float]) -> list[Runs]:
    return [Runs(nodes, ranks, *predict(model, nodes, ranks)) for nodes, ranks in SIZES]


@pytest.mark.parametrize(("count", "expected"), [(1, 0.0), (2, 0.5642), (8, 1.4236), (64, 2.3437)])
def test_largest_of_normals_as_tabulated(count: int, expected: float) -> None:
    assert largest_normal(count) == pytest.approx(expected, abs=2e-4)


def test_prediction_by_hand() -> None:
    mean, largest = predict(MODEL, 1, 8)
    assert mean == pytest.approx(1.0 + 0.5 + 7 * 0.3 + 7 * 0.01)
    assert largest == pytest.approx(1.0 + 8 * 0.5 + 7 * 0.01)


def test_one_rank_is_its_own_maximum() -> None:
    mean, largest = predict(MODEL, 1, 1)
    assert mean == pytest.approx(largest) == pytest.approx(1.5)


def test_fit_finds_the_model_that_the_times_were_made_of() -> None:
    found = fit(made_of(MODEL)[:4])
    assert [found[name] for name in NAMES] == pytest.approx([MODEL[name] for name in NAMES], rel=1e-6)


def test_nothing_is_fitted_to_what_is_predicted() -> None:
    measured = {runs.ranks: runs for runs in made_of(MODEL)}
    expected = carried_to(measured, 32, 64)
    changed = carried_to({**measured, 64: Runs(8, 64, 99.0, 99.0)}, 32, 64)
    assert (changed.mean, changed.largest) == (expected.mean, expected.largest)
    assert expected.largest == pytest.approx(expected.true.largest)


def test_measurements_are_read_by_ranks_and_epochs(tmp_path: Path) -> None:
    table = tmp_path / "times.csv"
    table.write_text(
        "tier,hosts,n_ranks,run,epoch,first_load_mean_s,first_load_max_s\n"
        "lustre,1,8,0,1,4,5\nlustre,1,8,1,1,4,5\nlustre,1,8,0,2,6,9\nlustre,1,8,1,2,6,9\n"
        "nvme,1,8,0,1,1,1\nlustre,1,1,0,1,2,2\n"
    )
    one, eight = public.read(table)
    assert (one.ranks, one.mean, one.largest) == (1, 2.0, 2.0)
    assert (eight.mean, eight.largest) == (5.0, 7.0)
    assert [eight.mean_error, eight.largest_error] == pytest.approx([1.0, 2.0])


def test_no_measurements_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(public, "MEASURED", tmp_path / "none.csv")
    (row,) = public.rows(short=True)
    assert (row.value, row.met) == ("skipped", None)
