"""The short form judges a goal by its best try, and a goal that no try meets is missed."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from validation import __main__ as validation
from validation.table import Row


def fake_section(monkeypatch: pytest.MonkeyPatch, tries: list[tuple[bool, bool]]) -> None:
    """Two goals, and which of them every try meets."""
    turns: Iterator[tuple[bool, bool]] = iter(tries)

    def rows(_short: bool) -> list[Row]:
        return [Row("fake", f"goal {number}", "", "", met) for number, met in enumerate(next(turns))]

    monkeypatch.setattr("validation.__main__.importlib.import_module", lambda _: SimpleNamespace(rows=rows))


def test_each_goal_has_its_own_best_try(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_section(monkeypatch, [(True, False), (False, True)])
    first, second = validation._section("fake", True, None)
    assert (first.met, second.met) == (True, True)
    assert not first.note
    assert second.note.startswith("try 2")


def test_a_goal_that_no_try_meets_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_section(monkeypatch, [(True, False)] * validation.TRIES)
    assert [row.met for row in validation._section("fake", True, None)] == [True, False]


def test_the_long_form_has_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_section(monkeypatch, [(False, True)])
    assert [row.met for row in validation._section("fake", False, None)] == [False, True]
