"""How a run reads, on the page and in the terminal: drawn where data allow, and no stranger's text is markup."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.report.sources import alone, source_of
from tests.report.test_page import HOSTILE, Parsed
from tests.traces import trace_of
from tierscope.analysis.character_ops import FileUse, FormatUse
from tierscope.analysis.characterise import Character, RankUse, characterise
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.similarity import similarity
from tierscope.report.character import CharacterView, some_ranks
from tierscope.report.drawn.character import NAMES, draw_character
from tierscope.report.figures import figures, standalone
from tierscope.report.page import page
from tierscope.report.report_source import ReportSource
from tierscope.report.similarity import ComparedRun, SimilarityView


def character(**changes: Any) -> Character:
    steps = np.array([[1.0, 1.0, 3.0], [3.0, 3.0, 1.0]])
    classes = {(rank, epoch): {"GFS-READ": 5.0 + rank} for rank in range(3) for epoch in (1, 2)}
    trace = trace_of(classes, seconds=8.0, steps=steps, stall_seconds=2.0, compute_seconds=4.0)
    return replace(characterise(trace), **changes)


def source(**changes: Any) -> ReportSource:
    return source_of(alone(), character=character(), **changes)


def made(given: ReportSource) -> str:
    return page(given, [*figures(given), *draw_character(given)]).decode()


def printed(view: object, width: int = 160) -> str:
    out = StringIO()
    Console(file=out, width=width).print(view)
    return out.getvalue()


def test_all_figures_are_drawn_and_well_formed() -> None:
    drawn = draw_character(source())
    assert [figure.name for figure in drawn] == list(NAMES)
    for figure in drawn:
        assert ET.fromstring(standalone(figure)).tag.endswith("svg")


def test_nothing_is_drawn_without_a_trace() -> None:
    given = source_of(alone())
    assert draw_character(given) == []
    assert 'id="reads"' not in made(given)


def test_only_what_the_data_allow_is_drawn() -> None:
    bare = character(sizes=(), timeline=None, ranks=())
    drawn = draw_character(replace(source(), character=bare))
    assert [figure.name for figure in drawn] == ["reads-hidden"]


def test_many_ranks_are_a_curve() -> None:
    ranks = tuple(RankUse(rank, 0, 1, 100 + rank, 0, 1.0, None) for rank in range(500))
    drawn = {figure.name: figure for figure in draw_character(replace(source(), character=character(ranks=ranks)))}
    assert "500 ranks" in (drawn["reads-ranks"].svg or "")


def test_the_page_has_the_section_and_which_run_it_shows() -> None:
    parsed = Parsed(made(source(character_where="point 3 (cache_rate 50%, the best)")))
    assert parsed.having(id="reads")
    assert "Shown: point 3 (cache_rate 50%, the best)." in parsed.text
    assert "I/O hidden behind compute" in parsed.text
    for name in NAMES:
        assert len(parsed.having(id=f"figure-{name}")) == 1


def test_names_of_strangers_are_no_markup() -> None:
    files = (FileUse(HOSTILE, HOSTILE, 1, 1, 1, 1.0),)
    formats = (FormatUse(HOSTILE, 1, 1, 1, 1.0),)
    text = made(replace(source(), character=character(files=files, formats=formats), character_where=HOSTILE))
    assert HOSTILE not in text
    assert not [tag for tag, _ in Parsed(text).elements if tag == "img"]


def test_emulated_tiers_are_labelled() -> None:
    given = source(conditions=Conditions(emulated=("gfs",)))
    for figure in draw_character(given):
        assert "emulated tiers: gfs" in figure.note
        assert "Emulated tiers: gfs." in figure.caption


@pytest.mark.parametrize("width", [60, 160])
def test_the_terminal_view(width: int) -> None:
    said = printed(CharacterView("test", "point 1", character(), [], Conditions(emulated=("gfs",))), width)
    assert "test, point 1: I/O characteristics" in said
    assert "64 B – 128 B" in said
    assert "No files:" in said


def test_the_ends_of_many_ranks_are_shown() -> None:
    ranks = [RankUse(rank, 0, 1, rank, 0, 1.0, None) for rank in range(100)]
    shown = some_ranks(ranks, 5)
    assert [one.rank for one in shown] == [99, 74, 49, 25, 0]


def test_the_slowest_of_many_ranks_is_shown() -> None:
    ranks = [RankUse(rank, 0, 1, 7, 0, 2.0 if rank == 33 else 1.0, None) for rank in range(100)]
    assert [use.rank for use in some_ranks(ranks, 5)] == [33, 0, 34, 66, 99]


def test_two_side_by_side() -> None:
    one = character()
    halved = replace(one.metrics["bytes"], value=(one.metrics["bytes"].value or 0) / 2)
    found = similarity(one, replace(one, metrics={**one.metrics, "bytes": halved}))
    said = printed(SimilarityView((ComparedRun("a", "A's", ""), ComparedRun("b", "B's", "point 1")), found))
    assert "B: b (B's, point 1)" in said
    assert "+50.0 %" in said
    assert "Largest difference: bytes read and written, +50.0 % (600 B and 300 B)." in said
    assert "but 1 metric differs 2× or more: bytes read and written (2×)" in said
    assert "Different scale: both have" in said


def test_a_high_cosine_does_not_pass_for_alike() -> None:
    """Who reads one line reads of the tenfold difference; the next says what the cosine would be without it."""
    same = character()
    slower = replace(
        same.metrics["bandwidth_per_operation"], value=(same.metrics["bandwidth_per_operation"].value or 0) / 10
    )
    likeness = similarity(same, replace(same, metrics={**same.metrics, "bandwidth_per_operation": slower}))
    said = printed(SimilarityView((ComparedRun("a", "A's", ""), ComparedRun("b", "B's", "")), likeness), 300)
    lines = said.splitlines()
    first = next(line for line in lines if line.startswith("Cosine similarity"))
    assert "but 1 metric differs 2× or more: bandwidth per read (10×)" in first
    assert "A high cosine does not mean alike here: one metric alone cannot lower it below" in said
    assert "Held down by: bandwidth per read (1.0000 without it, +" in said
    alike = printed(
        SimilarityView((ComparedRun("a", "A's", ""), ComparedRun("b", "B's", "")), similarity(same, same)), 300
    )
    assert "no metric differs 2× or more" in alike
    assert "Held down" not in alike
    assert "Different scale" not in alike
