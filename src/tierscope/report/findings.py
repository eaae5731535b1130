"""Findings for the terminal: the most severe ones, and a count of the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from tierscope.analysis.severity import CRITICAL, NOTE, WARNING, by_severity, count_by_severity, severity_of
from tierscope.analysis.wording import Finding
from tierscope.units import counted

MOST_SHOWN = 3
_STYLES = {CRITICAL: "bold red", WARNING: "yellow", NOTE: "dim"}


def finding_lines(
    findings: Iterable[Finding], show_all: bool = False, shown_above: Sequence[Finding] = ()
) -> Iterator[Text]:
    """Most severe first, each with its severity; at most three unless `show_all`. `shown_above`: already shown, and counted."""
    yield from labelled_lines({"": list(findings)}, show_all, shown_above)


def labelled_lines(
    findings_by_label: Mapping[str, Sequence[Finding]], show_all: bool = False, shown_above: Sequence[Finding] = ()
) -> Iterator[Text]:
    """As `finding_lines`, for several cases: the label of a case precedes its findings."""
    labels = {id(finding): label for label, findings in findings_by_label.items() for finding in findings}
    ranked = by_severity(finding for findings in findings_by_label.values() for finding in findings)
    room = len(ranked) if show_all else max(0, MOST_SHOWN - len(shown_above))
    for finding in ranked[:room]:
        yield _line(finding, labels[id(finding)])
    if rest := ranked[room:]:
        more = f"{counted(len(rest), 'more finding')} ({count_by_severity(rest)})"
        yield Text(f"{more}; use --all to show {'it' if len(rest) == 1 else 'them'}.", style=_style_of(rest))


def result_findings_line(findings: Sequence[Finding]) -> Iterator[Text]:
    """For commands that build on a result: how many findings the result itself has; nothing where it has none."""
    if findings:
        count = f"{counted(len(findings), 'finding')} about the result itself ({count_by_severity(findings)})"
        yield Text(f"{count}; use --all or 'tierscope analyze' to show {'it' if len(findings) == 1 else 'them'}.", style=_style_of(findings))  # fmt: skip


def top_sentence(finding: Finding) -> str:
    """For a finding without which the table below it would be misread."""
    return f"{finding.text[0].upper()}{finding.text[1:]}. Fix: {finding.suggestion}."


def _line(finding: Finding, label: str) -> Text:
    severity = severity_of(finding)
    line = Text(f"{severity}: ", style=_STYLES[severity])
    line.append(f"{label}{finding.text}", style="not dim not bold default")
    line.append(f" → {finding.suggestion}", style="not bold dim default")
    return line


def _style_of(hidden: Sequence[Finding]) -> str:
    """A critical finding that is not shown must not be overlooked."""
    return "bold" if any(severity_of(finding) == CRITICAL for finding in hidden) else "dim"
