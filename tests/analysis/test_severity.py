"""Which findings a reader in a hurry sees first."""

import io

import pytest
from rich.console import Console

from tierscope.analysis.severity import CRITICAL, NOTE, SEVERITY, WARNING, by_severity, count_by_severity, severity_of
from tierscope.analysis.wording import WORDING, Finding
from tierscope.report.findings import MOST_SHOWN, finding_lines, labelled_lines, result_findings_line

NOTES = [Finding("sleeping_compute", {}), Finding("trimmed", {"samples": 2}), Finding("emulated", {"tiers": ["gfs"]})]
WARNINGS = [Finding("not_evicted", {}), Finding("warm_metadata", {"tiers": ["gfs"]})]
SEVERE = Finding("partial", {"finished": 1, "total": 4})


def printed(lines: object) -> list[str]:
    target = io.StringIO()
    Console(file=target, width=400, highlight=False).print(*lines, sep="\n")  # type: ignore[misc]
    return target.getvalue().splitlines()


def test_every_kind_has_a_severity() -> None:
    assert set(SEVERITY) == set(WORDING)


def test_a_kind_without_severity_is_shown_first() -> None:
    assert severity_of(Finding("not_ranked_yet", {})) == CRITICAL


def test_order_is_by_severity_and_stable() -> None:
    found = by_severity([*NOTES, *WARNINGS, SEVERE])
    assert found == [SEVERE, *WARNINGS, *NOTES]
    assert [severity_of(finding) for finding in found] == [CRITICAL, WARNING, WARNING, NOTE, NOTE, NOTE]


def test_a_severe_finding_that_was_found_last_is_shown_first() -> None:
    """The wrong answer to fear: it is the sixth, and the terminal shows three."""
    first, *_, last = shown = printed(finding_lines([*NOTES, *WARNINGS, SEVERE]))
    assert len(shown) == MOST_SHOWN + 1
    assert first.startswith("critical: only 1 of 4 runs has finished")
    assert last == "3 more findings (3 notes); use --all to show them."


def test_all_shows_all() -> None:
    shown = printed(finding_lines([*NOTES, *WARNINGS, SEVERE], show_all=True))
    assert [line.partition(":")[0] for line in shown] == ["critical", "warning", "warning", "note", "note", "note"]


def test_severe_findings_beyond_the_third_are_counted_as_such() -> None:
    severe = [Finding("failed_command", {"code": code}) for code in range(1, 6)]
    assert printed(finding_lines(severe))[-1] == "2 more findings (2 critical); use --all to show them."


def test_findings_above_the_table_count() -> None:
    shown = printed(finding_lines(NOTES, shown_above=[SEVERE, SEVERE]))
    assert shown[1:] == ["2 more findings (2 notes); use --all to show them."]


def test_one_limit_for_all_cases() -> None:
    shown = printed(labelled_lines({"a: ": NOTES, "b: ": [SEVERE], "": WARNINGS}))
    assert shown[0].startswith("critical: b: only 1 of 4")
    assert len(shown) == MOST_SHOWN + 1


def test_findings_of_a_result_are_counted_in_one_line() -> None:
    (line,) = printed(result_findings_line([*NOTES, SEVERE]))
    assert (
        line
        == "4 findings about the result itself (1 critical, 3 notes); use --all or 'tierscope analyze' to show them."
    )
    assert list(result_findings_line([])) == []


@pytest.mark.parametrize(("amount", "text"), [(1, "1 warning"), (2, "2 warnings")])
def test_counts(amount: int, text: str) -> None:
    assert count_by_severity(WARNINGS[:amount]) == text
