"""A reproduction for the terminal: what holds in one sentence, then rows."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tierscope.papers.pages import headline
from tierscope.papers.reproduce import JudgedRow, Reproduction

_STYLES = {"holds": "green", "does not hold": "bold red", "not available here": "yellow"}
_SHOWN = ("does not hold", "not available here")


@dataclass(frozen=True, slots=True)
class ReproductionView:
    """`show_all`: also rows that hold, or are only listed."""

    made: Reproduction
    show_all: bool

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        made = self.made
        yield Text(headline(made), style="bold")
        if made.is_short:
            yield Text("Short form: fewer seeds and smaller sizes than the whole.", style="dim")
        rows = [judged for judged in made.rows if self.show_all or judged.verdict.outcome in _SHOWN]
        if rows:
            yield _table(rows)
        left = len(made.rows) - len(rows)
        if left:
            yield Text(f"{left} other rows hold, are beside or only listed; --all prints them.", style="dim")


def _table(rows: list[JudgedRow]) -> Table:
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    drawn.add_column("row", no_wrap=True)
    drawn.add_column("published", ratio=4)
    drawn.add_column("ours", ratio=3)
    drawn.add_column("outcome", ratio=1)
    drawn.add_column("why, or under which condition", ratio=3)
    for judged in rows:
        verdict = judged.verdict
        dated = ", ".join(text for text in (verdict.source, verdict.made) if text)
        drawn.add_row(
            Text(judged.row.id),
            Text(judged.row.published),
            Text(f"{verdict.ours}{f' ({dated})' if dated else ''}"),
            Text(verdict.outcome, style=_STYLES.get(verdict.outcome, "")),
            Text(verdict.why),
        )
    return drawn
