"""What tuning found, for the terminal."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.tuning.tuning import NO_BETTER, Tried, Tuning
from tierscope.units import about_seconds, counted

MOST_ROWS = 12
_WHAT = {"epoch_seconds": "epoch", "io_seconds": "I/O of the slowest process"}


@dataclass(frozen=True, slots=True)
class TuningView:
    found: Tuning

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        emulated = f" · emulated tiers: {', '.join(found.emulated)}" if found.emulated else ""
        what = _WHAT[found.minimised]
        yield Text(f"{found.study}: {counted(len(found.tried), 'combination')} tried, {what} minimised{emulated}", style="bold")  # fmt: skip
        ordered = sorted(found.tried, key=lambda each: (-len(each.rounds), each.rounds[-1].seconds))
        shown = [found.baseline, *ordered[:MOST_ROWS]]
        time = Unit.of(max(each.rounds[-1].seconds for each in shown))
        columns = [
            Column(
                name, [Text(value_text(name, each.settings[name]) if each.settings else "default") for each in shown]
            )
            for name in found.winner.settings
        ]
        columns += [
            Column("last round", [Text(str(len(each.rounds))) for each in shown], drop=2),
            Column("runs there", [Text(str(each.rounds[-1].repetitions)) for each in shown], drop=3),
            Column(f"{what} then {time.name}", [time.text(each.rounds[-1].seconds) for each in shown], "bold"),
            Column("speed-up then", [Text(f"{self._speedup(each):.2f}×") for each in shown], drop=1),
        ]
        yield table(fitting(columns, options.max_width))
        if len(ordered) > MOST_ROWS:
            yield Text(f"and {len(ordered) - MOST_ROWS} more, all dropped earlier or slower: see --json", style="dim")
        yield Text(verdict(found), style="bold")
        if found.is_better:
            yield Text(f"Why: {found.why}.")
            if found.equals:
                others = "; ".join(sweep_text(each) for each in found.equals)
                yield Text(f"Cannot be told from it: {others}.")
            yield Text(f"To set it: {' '.join(found.commands)}")
        for refused in found.refused[:MOST_ROWS]:
            yield Text(f"• left out: {sweep_text(refused.settings)}: {refused.line}", style="dim")
        if len(found.refused) > MOST_ROWS:
            yield Text(f"and {len(found.refused) - MOST_ROWS} more that cannot be run: see --json", style="dim")
        yield Text(f"{about_seconds(found.spent_seconds)} of {about_seconds(found.budget_seconds)} spent.", style="dim")

    def _speedup(self, each: Tried) -> float:
        """Over the default in the same round."""
        default = self.found.baseline.rounds[len(each.rounds) - 1].seconds
        return default / max(1e-9, each.rounds[-1].seconds)


def verdict(found: Tuning) -> str:
    """The winner with its interval; or that it is none."""
    best, ratio, seconds = sweep_text(found.winner.settings), found.speedup, found.seconds
    if not found.is_decided:
        return f"So far: {best} with {about_seconds(seconds.median)}, {ratio.median:.2f}× the default's speed; too few runs to tell."
    span = f"{ratio.low:.2f}–{ratio.high:.2f}×, {'range' if ratio.kind == 'range' else '95 %'}, n={ratio.n}"
    if not found.is_better:
        return f"Best: {best}, {NO_BETTER} ({ratio.median:.2f}×; {span})."
    return (
        f"Winner: {best}: {about_seconds(seconds.median)} ({about_seconds(seconds.low)}–{about_seconds(seconds.high)}), "
        f"{ratio.median:.2f}× as fast as the default ({span})."
    )
