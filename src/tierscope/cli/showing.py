"""`--all`: whether a command prints all of its findings, or only the most severe."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierscope.analysis.wording import Finding

_KEY = "tierscope.show_all"


def _remember(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_KEY] = value


all_option = click.option(
    "--all",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Print all findings, not only the three most severe. JSON always has all.",
)


def shows_all() -> bool:
    """Whether the running command was given --all; False where it has no such option."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_KEY))


def print_result_findings(findings: "Sequence[Finding]") -> None:
    """For a command that builds on a result: one line that counts the result's findings, or all of them with --all."""
    from tierscope.cli import common  # noqa: PLC0415
    from tierscope.report.findings import finding_lines, result_findings_line  # noqa: PLC0415

    common.print_rich(*(finding_lines(findings, True) if shows_all() else result_findings_line(findings)))
