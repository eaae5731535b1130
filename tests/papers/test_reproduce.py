"""`tierscope reproduce`: every judged row has a verdict, names are checked first, and a folder is ours."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.small_pictures import small_pictures  # noqa: F401  (a fixture)
from tierscope.cli.main import _run
from tierscope.papers import hierarchy_arithmetic
from tierscope.papers.charts import TOTAL, ChartPanel, Line, draw_chart
from tierscope.papers.files import claim_reproduction, write_reproduction
from tierscope.papers.hierarchy_accesses import judged as accesses_judged
from tierscope.papers.pages import headline, markdown
from tierscope.papers.reproduce import JudgedRow, Reproduction, check_section, followed
from tierscope.papers.rows import rows_of
from tierscope.papers.section import PaperFigure, PaperTable
from tierscope.papers.sections import STUDIES, PaperStudy, SectionEntry, unmade_rows
from tierscope.papers.small_run import SmallRun
from tierscope.papers.verdict import Outcome, Verdict


@pytest.mark.parametrize("study", STUDIES)
def test_every_judged_row_is_made_by_one_section(study: str) -> None:
    assert unmade_rows(study) == []
    for row in rows_of(study).values():
        makers = [entry.module for entry in STUDIES[study].sections if entry.makes(row.id)]
        assert len(makers) <= 1, f"{row.id}: {makers}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hierarchi"], "did you mean hierarchy?"),
        (["climate"], "known: hierarchy, dlio, architecture, training\n"),
        (["H-F1"], "is a row of hierarchy, not a study; use 'tierscope reproduce hierarchy --row H-F1'"),
        (["t-f8"], "use 'tierscope reproduce training --row T-F8'"),
        (["hierarchy", "--row", "H-F2-66"], "did you mean H-F2-6"),
        (["hierarchy", "--row", "D-F8-1"], "use 'tierscope reproduce dlio --row D-F8-1'"),
        (["dlio", "--row", ""], "no such row"),
        (["dlio", "--row", "d-f8-1, D-F8-2"], "is several rows; use --row D-F8-1 --row D-F8-2"),
        (["hierarchy", "--out", ""], "--out is empty"),
    ],
)
def test_unknown_names_are_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run(["reproduce", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines(keepends=True)
    assert len(lines) == 1
    assert said in lines[0]
    assert not list(tmp_path.iterdir())


def test_a_section_that_leaves_out_a_row_or_makes_another_fails() -> None:
    entry = SectionEntry("made_up", ("H-X-1", "H-X-2"))
    both = [Verdict("H-X-1", "1", "holds"), Verdict("H-X-2", "2", "holds")]
    check_section("hierarchy", entry, both)
    with pytest.raises(ValueError, match="no verdict on H-X-2"):
        check_section("hierarchy", entry, both[:1])
    for more in (Verdict("H-X-3", "3", "holds"), Verdict("H-X-1", "4", "holds"), Verdict("H-Q-1", "5", "holds")):
        with pytest.raises(ValueError, match=f"not its own, or twice: {more.id}"):
            check_section("hierarchy", entry, [*both, more])
    check_section("hierarchy", entry, [*both, Verdict("H-W-1", "", "listed")])


def test_a_cheap_row_is_printed_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert _run(["reproduce", "Hierarchy", "--row", "h-x-4", "--short", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "Hierarchy study: of 1 row, 1 holds (of them 1 our arithmetic on its figures), 0 do not." in said
    assert "5.26 s < T65 ≤ 9.01 s (arithmetic)" in said
    assert not list(tmp_path.iterdir())


def test_a_long_table_says_where_it_is() -> None:
    table = PaperTable("H-F1", "times", ("rate",), tuple((number,) for number in range(31)), "simulated", "times")
    page = markdown(Reproduction(STUDIES["hierarchy"], (row("H-F1", "beside"),), (), (table,), False, True))
    assert (
        "\nsimulated; 31 lines, not printed here; as CSV in the folder that `tierscope reproduce hierarchy` writes: "
        in page
    )


def test_rows_that_are_only_listed_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["reproduce", "hierarchy", "--row", "H-S-1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], document["kind"], document["study"]) == (1, "reproduction", "hierarchy")
    assert [(row["id"], row["outcome"]) for row in document["rows"]] == [("H-S-1", "listed")]


def test_a_folder_is_marked_and_can_be_cleaned(tmp_path: Path) -> None:
    folder = claim_reproduction(str(tmp_path / "out"), "hierarchy")
    panel = ChartPanel("small", "cache_rate", "cache rate", "s", (0.0, 0.5, 1.0), (Line("sum", (3.0, None, 1.0), TOTAL, 0),))  # fmt: skip
    figure = PaperFigure("H-F1", "f1", draw_chart("hierarchy-f1", "times", "Times.", [panel]), "simulated", "Times.")
    table = PaperTable("H-F1", "times", ("rate", "s"), ((0.0, 3.0), (1.0, 1.0)), "simulated", "times")
    rows = (row("H-F2-6"), row("H-F1", "beside"))
    write_reproduction(Reproduction(STUDIES["hierarchy"], rows, (figure,), (table,), True, False), folder)
    out = Path(folder)
    assert {"hierarchy.md", "hierarchy.html", "hierarchy.json", "hierarchy-rows.csv", "tierscope.json"} <= set(names(out))  # fmt: skip
    assert (out / "tables" / "hierarchy-times.csv").read_text() == "rate,s\n0.0,3.0\n1.0,1.0\n"
    drawing = (out / "figures" / "hierarchy-f1.svg").read_text()
    assert drawing.startswith("<?xml")
    assert ">simulated</text>" in drawing
    page = (out / "hierarchy.md").read_text()
    assert (
        "\nsimulated; as CSV in the folder that `tierscope reproduce hierarchy --row H-F2-6 --row H-F1 --short` writes: `tables/hierarchy-times.csv`\n"
        in page
    )
    assert "![Times.](figures/hierarchy-f1.svg)" in page
    assert "Made by `tierscope reproduce hierarchy --row H-F2-6 --row H-F1 --short`, Tierscope" in page
    assert "Short form" in page
    assert _run(["clean", folder, "--yes"]) == 0
    assert not out.exists()


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_files_of_every_study_are_ours(tmp_path: Path, study: PaperStudy) -> None:
    folder = claim_reproduction(str(tmp_path / "out"), study.name)
    panel = ChartPanel("small", "rate", "rate", "s", (0.0, 1.0), (Line("sum", (3.0, 1.0), TOTAL, 0),))
    figure = PaperFigure("F", "f1", draw_chart(f"{study.name}-f1", "times", "Times.", [panel]), "simulated", "Times.")
    table = PaperTable("F", "times", ("rate", "s"), ((0.0, 3.0),), "simulated", "times")
    write_reproduction(Reproduction(study, (), (figure,), (table,), True, False), folder)
    assert _run(["clean", folder, "--yes"]) == 0
    assert not Path(folder).exists()


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_only_what_a_reproduction_wrote_is_deleted(tmp_path: Path) -> None:
    """Names as another reproduction would give them are somebody else's here."""
    out = tmp_path / "out"
    assert _run(["reproduce", "hierarchy", "--row", "H-S-1", "--out", str(out), "--quiet", "--json"]) == 0
    mine = {"architecture.md", "training.json", "figures/training-loss-curve.png", "tables/training-accuracy.csv"}
    for name in mine:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    assert _run(["clean", str(out), "--yes"]) == 0
    assert {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} == {
        *mine,
        "tierscope.json",
        "lock",
    }


def test_a_reproduction_overwrites_no_file_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "hierarchy", "--row", "H-S-1", "--out", str(out), "--quiet", "--json"]
    assert _run(words) == 0
    assert _run(words) == 0  # its own give way
    (out / "training.md").write_text("mine")
    capsys.readouterr()
    assert _run(["reproduce", "training", "--short", "--out", str(out)]) == 2
    assert f"{out}/training.md: was not created by Tierscope; move it away" in capsys.readouterr().err
    assert (out / "training.md").read_text() == "mine"


def test_a_foreign_folder_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert _run(["reproduce", "dlio", "--out", str(tmp_path)]) == 2
    assert "was not created by Tierscope" in capsys.readouterr().err
    assert names(tmp_path) == ["thesis.tex"]


def row(row_id: str, outcome: Outcome = "holds") -> JudgedRow:
    return JudgedRow(rows_of("hierarchy")[row_id], Verdict(row_id, "a | b_c", outcome, "fitted", "because"))


def test_the_first_sentence_names_what_fails() -> None:
    rows = (row("H-F2-6"), row("H-F1-6", "does not hold"), row("H-F1", "beside"), row("H-D-5", "not available here"))
    made = Reproduction(STUDIES["hierarchy"], rows, (), (), False, True)
    assert headline(made) == (
        "Hierarchy study: of 4 rows, 1 holds (of them 1 with rates fitted to the study's own figures), 1 does not (H-F1-6), "
        "1 printed beside the published figure, not judged, 1 not available here (H-D-5)."
    )
    page = markdown(made)
    assert page.index("1 does not (H-F1-6)") < page.index("## Rows")
    assert r"a \| b\_c" in page
    assert "**does not hold**" in page


def test_a_headline_follows_from_all_its_rows() -> None:
    holds, fails, beside = (Verdict("D-F15-1", "x", outcome) for outcome in ("holds", "does not hold", "beside"))
    assert followed("D-I-3", [holds, holds]).outcome == "holds"
    assert followed("D-I-3", [holds, fails]).outcome == "does not hold"
    for missing in (None, beside):
        assert followed("D-I-3", [holds, missing]).outcome == "not available here"


@pytest.mark.parametrize("module", ["hierarchy_arithmetic"])
def test_cheap_sections_give_exactly_their_rows(module: str) -> None:
    entry = next(entry for study in STUDIES.values() for entry in study.sections if entry.module == module)
    verdicts = hierarchy_arithmetic.make(True).verdicts
    check_section("hierarchy", entry, verdicts)
    assert {verdict.outcome for verdict in verdicts} == {"holds"}


def test_derived_numbers_must_be_the_printed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy_arithmetic, "GOAL_META", 150.0)
    outcomes = {verdict.id: verdict.outcome for verdict in hierarchy_arithmetic.make(True).verdicts}
    assert outcomes["H-X-4"] == "does not hold"
    assert outcomes["H-X-1"] == "holds"


def test_a_write_to_the_dataset_fails_its_row() -> None:
    ops = pl.DataFrame({"epoch": [1, 1, 1], "kind": ["open", "read", "close"], "file": [0, 0, 0]})
    assert accesses_judged(SmallRun(ops, 0, 1, "none")).outcome == "holds"
    assert accesses_judged(SmallRun(ops, 1, 1, "none")).outcome == "does not hold"
    written = pl.concat([ops, ops.with_columns(kind=pl.lit("write"))])
    assert accesses_judged(SmallRun(written, 0, 1, "none")).outcome == "does not hold"
    assert accesses_judged(SmallRun(ops.clear(), 0, 1, "none")).outcome == "does not hold"
