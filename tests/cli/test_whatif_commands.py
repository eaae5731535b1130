"""estimate and explore as a user types them: the JSON that scripts rely on, and one clear line for every mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run

CLASSES = ("GFS-READ", "GFS-META", "LFS-READ", "LFS-META")
# cache rate → rank → class times in seconds, the same in epochs 2 and 3; epoch 1 takes ten times as long.
TIMES: dict[float, list[tuple[float, float, float, float]]] = {
    0.0: [(1.0, 9.0, 0.0, 0.0), (2.0, 7.0, 0.0, 0.0)],
    0.5: [(0.5, 4.5, 1.0, 0.5), (1.0, 2.0, 4.0, 0.5)],
    1.0: [(0.0, 0.0, 8.0, 1.0), (0.0, 0.0, 9.0, 1.0)],
}


def write_times(path: Path, counts: bool = True, rates: tuple[float, ...] = (0.0, 0.5, 1.0)) -> Path:
    """With counts: a million operations and bytes per epoch and rank at a rate of 0, moving to the near tier with the rate."""
    lines = ["rank,epoch,class,seconds,cache_rate" + (",ops,bytes" if counts else "")]
    for rate in rates:
        for epoch in (1, 2, 3):
            for rank, times in enumerate(TIMES[rate]):
                for name, seconds in zip(CLASSES, times, strict=True):
                    share = round(1e6 * (rate if name.startswith("LFS") else 1 - rate))
                    amounts = f",{share},{share}" if counts else ""
                    lines.append(f"{rank},{epoch},{name},{seconds * (10 if epoch == 1 else 1)},{rate}{amounts}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def times(tmp_path: Path) -> Path:
    return write_times(tmp_path / "times.csv")


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_an_estimate_has_the_form_of_a_breakdown_and_more(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = printed(capsys, "analyze", times)
    after = printed(capsys, "estimate", times, "--improve", "GFS-META=100")
    assert set(before) - {"totals", "latency"} < set(after)  # those are what was measured
    assert (after["kind"], after["schema_version"], after["method"]) == ("estimate", 1, "scaling")
    assert after["improvements"] == {"GFS-META": 100}
    # At 50 %: rank 0 has 0.5 + 4.5/2 + 1 + 0.5 = 4.25 s, rank 1 has 1 + 2/2 + 4 + 0.5 = 6.5 s; at 0 %: 5.5 and 5.5 s.
    assert after["best"]["sweep"] == {"cache_rate": 0.0}
    assert after["best"]["io_seconds"] == pytest.approx(5.5)
    assert after["baseline_best"]["sweep"] == {"cache_rate": 0.5}
    assert after["baseline_best"]["io_seconds"] == pytest.approx(7.5)
    assert after["change_percent"] == pytest.approx(100 * (5.5 / 7.5 - 1))
    assert after["bottleneck_moved"] is True
    assert after["slowest_rank_changed"] is False
    assert [point["io_seconds"] for point in after["summary"]] == pytest.approx([5.5, 6.5, 10.0])
    assert all(point["epoch_seconds"] is None for point in after["points"])
    assert {warning["kind"] for warning in after["warnings"]} >= {"bottleneck_moves"}
    assert all(set(warning) == {"kind", "evidence", "text", "suggestion"} for warning in after["warnings"])


def test_a_slower_class_moves_the_best_point_too(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LFS-READ +100 % is best at 100 % with 9/2 + 1 s, unless LFS-META takes ten times as long."""
    faster = printed(capsys, "estimate", times, "--improve", "LFS-READ=100")
    assert (faster["best"]["sweep"], faster["best"]["io_seconds"]) == ({"cache_rate": 1.0}, pytest.approx(5.5))
    worse = printed(capsys, "estimate", times, "--improve", "LFS-READ=100", "--improve", "LFS-META=-90")
    assert (worse["best"]["sweep"], worse["best"]["io_seconds"]) == ({"cache_rate": 0.0}, pytest.approx(10.0))
    assert worse["change_percent"] == pytest.approx(100 * (10 / 7.5 - 1))


def test_sensitivity_is_in_the_json_and_needs_no_improvement(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = printed(capsys, "estimate", times)
    assert result["improvements"] == {}
    assert result["change_percent"] == 0.0
    assert result["warnings"] == []
    by_class = {each["class"]: each for each in result["sensitivity"]}
    assert set(by_class) == set(CLASSES)
    assert by_class["GFS-META"]["change_percent"]["100"] == pytest.approx(100 * (5.5 / 7.5 - 1))
    assert by_class["GFS-META"]["limit_percent"] == pytest.approx(100 * (2.0 / 7.5 - 1))


def test_an_estimate_prints_before_and_after_and_a_sentence(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("estimate", times, "--improve", "GFS-META=100") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "With GFS-META +100 %: 5.5 s of I/O per epoch instead of 7.5 s (-26.7 %)" in shown
    assert "at cache_rate 0% instead of cache_rate 50%" in shown
    assert "the bottleneck moves from LFS-READ" in shown
    assert "at most" in shown


def test_what_a_class_never_served_is_a_warning_with_its_time(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ranks together never did more than 2 million reads in 10 s; 5.5 s would need more than that per second."""
    result = printed(capsys, "estimate", times, "--improve", "GFS-META=100")
    beyond = {each["evidence"]["class"]: each["evidence"] for each in result["warnings"] if "beyond" in each["kind"]}
    assert set(beyond) == {"GFS-READ"}
    assert beyond["GFS-READ"]["most_per_second"] == pytest.approx(2e6 / 10)
    assert beyond["GFS-READ"]["implied_seconds"] == pytest.approx(10.0)


def test_without_counts_the_ceilings_cannot_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = write_times(tmp_path / "plain.csv", counts=False)
    result = printed(capsys, "estimate", times, "--improve", "GFS-META=100")
    assert "no_ceilings" in {warning["kind"] for warning in result["warnings"]}


def test_one_rate_is_enough_for_an_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And another process may become the slowest: rank 0 with 0.5 + 4.5 + 1/2 + 0.5 s, where rank 1 had 7.5 s."""
    times = write_times(tmp_path / "one.csv", rates=(0.5,))
    after = printed(capsys, "estimate", times, "--improve", "LFS-READ=100")
    assert after["best"]["io_seconds"] == pytest.approx(6.0)
    assert after["slowest_rank_changed"] is True


def explored(capsys: pytest.CaptureFixture[str], times: Path, *more: object) -> dict[str, Any]:
    return printed(
        capsys, "explore", times, "--vary", "GFS-META=0,100,200", "--vary", "LFS-READ=0:100:50", *more
    )  # fmt: skip


def test_a_grid_names_the_smallest_cache_rate(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = explored(capsys, times, "--goal", "5.5s")
    assert result["goal_seconds"] == 5.5
    assert len(result["grid"]) == 9
    found = {tuple(entry["improve"].values()): entry for entry in result["grid"]}
    assert found[0, 0]["min_cache_rate"] is None
    assert found[0, 0]["met"] is False
    assert found[0, 0]["io_seconds"] == pytest.approx(7.5)
    assert found[100, 0] == {
        "improve": {"GFS-META": 100, "LFS-READ": 0},
        "min_cache_rate": 0.0,
        "io_seconds": pytest.approx(5.5),
        "met": True,
    }
    assert found[0, 100]["min_cache_rate"] == 1.0  # at 50 % rank 0 stays at 6 s; at 100 % 9/2 + 1
    assert {tuple(entry["improve"].values()) for entry in result["pareto"]} == {(100, 0), (0, 100)}
    assert result["pareto"][0]["cost"] is None


def test_prices_rank_the_options(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = explored(capsys, times, "--goal", "5.5", "--cost", "GFS-META=3/%", "--cost", "LFS-READ=1/%")
    assert [(option["improve"], option["cost"]) for option in result["pareto"]] == [
        ({"GFS-META": 0, "LFS-READ": 100}, 100.0),
        ({"GFS-META": 100, "LFS-READ": 0}, 300.0),
    ]


def test_other_classes_can_be_improved_beside_the_grid(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At 100 %, LFS-READ +100 % and LFS-META +100 %: 4.5 + 0.5 s."""
    result = explored(capsys, times, "--goal", "5", "--improve", "LFS-META=100")
    assert result["improvements"] == {"LFS-META": 100}
    found = {tuple(entry["improve"].values()): entry for entry in result["grid"]}
    assert found[0, 100]["min_cache_rate"] == 1.0


def test_explore_says_in_words_what_it_found(times: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vary = ("--vary", "GFS-META=0:100:50", "--vary", "LFS-READ=0:100:50")
    assert run("explore", times, "--goal", "1s", *vary) == 0
    assert "1 s cannot be met by these combinations: the shortest is" in capsys.readouterr().out
    assert run("explore", times, "--goal", "8s", *vary) == 0
    assert "already met without any improvement, at cache_rate 50%" in capsys.readouterr().out
    assert run("explore", times, "--goal", "8s", *vary, "--cost", "GFS-META=3/%", "--cost", "LFS-READ=2/%") == 0
    said = capsys.readouterr().out
    assert "The goal of 8 s is already met without buying anything, at cache_rate 50% (" in said
    assert "no improvement" not in said
    assert run("explore", times, "--goal", "5.5s", *vary) == 0
    assert "combinations meet it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("estimate", "{times}", "--improve", "GFS-MATA=50"), "did you mean GFS-META?"),
        (("estimate", "nowhere", "--improve", "GFS-META=50"), "no such file or directory"),
        (("explore", "{times}", "--goal", "4s"), "nothing varies"),
        (("explore", "{times}", "--vary", "GFS-META=0:10:5"), "no goal; add --goal"),
        (("explore", "{times}", "--goal", "soon", "--vary", "GFS-META=0:10:5"), "--goal soon"),
        (("explore", "{times}", "--goal", "4s", "--vary", "GFS-META=0:10:5", "--improve", "GFS-META=5"), "is already in --vary; remove one of them"),
        (("explore", "{times}", "--goal", "4s", "--vary", "GFS-META=0:10:5", "--cost", "lfs.capacity=1/GiB"), "known only for results of a study"),
        (("explore", "{times}", "--goal", "4s", "--vary", "GFS-META=0:10:5", "--cost", "LFS-READ=1/%"), "choose from GFS-META"),
        (
            ("explore", "{times}", "--goal", "4s", *(f"--vary={name}=0:400:4" for name in CLASSES)),
            "at most 1,000,000 here: use larger steps",
        ),
    ],
)  # fmt: skip
def test_mistakes_get_one_line(
    times: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run(*(argument.format(times=times) for argument in arguments)) == 2
    assert said in one_line(capsys)


@pytest.mark.parametrize(("value", "said"), [("nan", "seconds = nan"), ("-1", "seconds = -1"), ("", "seconds")])
def test_times_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, said: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"rank,epoch,class,seconds\n0,1,GFS-READ,{value}\n")
    assert run("estimate", path, "--improve", "GFS-READ=5") == 2
    line = one_line(capsys)
    assert "bad.csv:2" in line
    assert said in line


def test_a_result_can_be_exported(times: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For Perfetto and as Parquet; what is there already is left alone."""
    picture, table = tmp_path / "out.json", tmp_path / "out.parquet"
    assert run("analyze", times, "--export", "perfetto", picture, "--export", "parquet", table) == 0
    assert json.loads(picture.read_text())["traceEvents"]
    assert table.read_bytes().startswith(b"PAR1")
    capsys.readouterr()
    assert run("analyze", times, "--export", "perfetto", picture) == 2
    assert "already exists" in one_line(capsys)
    assert run("analyze", times, "--export", "excel", tmp_path / "x") == 2
