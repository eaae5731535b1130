"""What tuning found, for the terminal."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.tuning.tuning import NO_BETTER, Tried, Tuning
from tierscope.units import about_seconds, counted

MOST_ROWS, MOST_INERT = 12, 3
_WHAT = {"epoch_seconds": "epoch", "io_seconds": "I/O of the slowest process"}


@dataclass(frozen=True, slots=True)
class TuningView:
    tuning: Tuning

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        tuning = self.tuning
        emulated = f" · emulated tiers: {', '.join(tuning.emulated)}" if tuning.emulated else ""
        what = _WHAT[tuning.minimised]
        yield Text(f"{tuning.study}: {counted(len(tuning.tried), 'combination')} tried, {what} minimised{emulated}", style="bold")  # fmt: skip
        ordered = sorted(tuning.tried, key=lambda tried: (-len(tried.rounds), tried.rounds[-1].seconds))
        shown = [tuning.baseline, *ordered[:MOST_ROWS]]
        time = Unit.of(max(tried.rounds[-1].seconds for tried in shown))
        columns = [
            Column(
                name, [Text(value_text(name, tried.settings[name]) if tried.settings else "default") for tried in shown]
            )
            for name in tuning.winner.settings
        ]
        columns += [
            Column("last round", [Text(str(len(tried.rounds))) for tried in shown], drop=2),
            Column("runs there", [Text(str(tried.rounds[-1].repetitions)) for tried in shown], drop=3),
            Column(f"{what} then {time.name}", [time.text(tried.rounds[-1].seconds) for tried in shown], "bold"),
            Column("speed-up then", [Text(f"{self._speedup(tried):.2f}×") for tried in shown], drop=1),
        ]
        yield table(fitting(columns, options.max_width))
        if len(ordered) > MOST_ROWS:
            yield Text(f"and {len(ordered) - MOST_ROWS} more, dropped earlier or slower: see --json", style="dim")
        yield Text(verdict(tuning), style="bold")
        if tuning.is_better:
            yield Text(f"Why: {tuning.why}.")
            if tuning.equals:
                others = "; ".join(sweep_text(settings) for settings in tuning.equals)
                yield Text(f"Statistically indistinguishable: {others}.")
            yield Text(f"To set it: {' '.join(tuning.commands)}")
        for refused in tuning.refused[:MOST_ROWS]:
            yield Text(f"• not tried: {sweep_text(refused.settings)}: {refused.line}", style="dim")
        if len(tuning.refused) > MOST_ROWS:
            yield Text(f"and {len(tuning.refused) - MOST_ROWS} more that cannot run: see --json", style="dim")
        for same in tuning.inert[:MOST_INERT]:
            yield Text(f"• not tried: {sweep_text(same.settings)}: {same.line}")
        if len(tuning.inert) > MOST_INERT:
            yield Text(f"and {len(tuning.inert) - MOST_INERT} more with the effect of another combination: see --json")
        yield Text(
            f"{about_seconds(tuning.spent_seconds)} of {about_seconds(tuning.budget_seconds)} spent.", style="dim"
        )

    def _speedup(self, tried: Tried) -> float:
        """Over the default in the same round."""
        default = self.tuning.baseline.rounds[len(tried.rounds) - 1].seconds
        return default / max(1e-9, tried.rounds[-1].seconds)


def verdict(tuning: Tuning) -> str:
    """The winner with its interval; or that it is none."""
    best, ratio, seconds = sweep_text(tuning.winning_settings), tuning.speedup, tuning.seconds
    if not tuning.is_decided:
        return f"So far: {best} with {about_seconds(seconds.median)}, {ratio.median:.2f}× the default's speed; too few runs for a conclusion."
    span = f"{ratio.low:.2f}–{ratio.high:.2f}×, {'range' if ratio.kind == 'range' else '95 %'}, n={ratio.n}"
    if not tuning.is_better:
        return f"Best: {best}, {NO_BETTER} ({ratio.median:.2f}×; {span})."
    return (
        f"Winner: {best}: {about_seconds(seconds.median)} ({about_seconds(seconds.low)}–{about_seconds(seconds.high)}), "
        f"{ratio.median:.2f}× as fast as the default ({span})."
    )
