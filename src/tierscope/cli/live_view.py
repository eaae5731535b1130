"""What a running study looks like: a few lines for a terminal, or one line for a job's log."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text
from tierscope.measure.eta import Remaining
from tierscope.measure.live import LiveState, RunUnderWay, Staging
from tierscope.measure.live_figures import Figures, StalledRank, TierRate
from tierscope.units import about_bytes, counted

_BAR = 30
_ALIKE = 1.2  # a range whose ends differ by less is one number
_ASCII = str.maketrans({"·": "-", "–": "-", "█": "#", "░": ".", "…": "."})
_MOST_STALLED = 4


def duration_text(seconds: float) -> str:
    """Rounded: 40 s, 4 min, 2 h 10 min."""
    if seconds < 59.5:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def eta_text(left: Remaining | None) -> str:
    if left is None:
        return "ETA not known yet"
    low, high = duration_text(left.low_seconds), duration_text(left.high_seconds)
    return (
        f"ETA about {high}" if left.high_seconds <= _ALIKE * left.low_seconds or low == high else f"ETA {low} to {high}"
    )


def rate_text(value: float | None) -> str:
    return "–" if value is None else f"{about_bytes(value)}/s"


def operations_text(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}/s" if value >= 10 or not value else f"{value:.1f}/s"


def run_text(run: RunUnderWay) -> str:
    parts = [f"run {run.number} of {run.runs}", f"point {run.key.point} ({sweep_text(run.sweep)})"]
    parts += [f"repetition {run.key.repetition} of {run.repetitions}"] if run.repetitions > 1 else []
    parts += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    return " · ".join(parts)


def epoch_text(run: RunUnderWay, own: Figures) -> str:
    return f"epoch {own.epoch} of {run.epochs}: {own.doing}" if own.epoch else own.doing


def slowest_text(own: Figures) -> str:
    if own.slowest is None:
        return "slowest rank: not known yet"
    slow = own.slowest
    return (
        f"slowest rank: {slow.rank}, {slow.share:.0%} of its samples read; fastest: {slow.fastest_share:.0%}".replace(
            "%", " %"
        )
    )


def stalled_texts(stalled: tuple[StalledRank, ...]) -> Iterator[str]:
    for rank in stalled[:_MOST_STALLED]:
        if rank.reports:
            yield f"no I/O for {duration_text(rank.seconds)}: rank {rank.rank}"
        else:
            yield f"no report for {duration_text(rank.seconds)}: rank {rank.rank} (suspended?)"
    if len(stalled) > _MOST_STALLED:
        yield f"and {counted(len(stalled) - _MOST_STALLED, 'more rank')}"


def limits_texts(run: RunUnderWay, own: Figures) -> Iterator[str]:
    """What the figures are not of."""
    if own.visible and own.is_partial:
        yield f"{own.visible} of {own.ranks} ranks visible: figures are of the ranks on this host only"
    if not own.visible:
        yield "no rank visible yet"
    if run.emulated and run.counted:
        yield f"emulated: {', '.join(name for name in run.tiers if name in run.emulated)}"
    if not run.counted:
        yield "bytes and operations are not visible while another recorder measures"


def staging_texts(staging: Staging, runs: int) -> tuple[str, str]:
    """What is written, and how long that may take: nothing of it is measured."""
    left = staging.seconds_left
    time_left = "time left not known yet" if left is None else f"about {duration_text(left)} left"
    return (
        f"generating data: {about_bytes(staging.done_bytes)} of {about_bytes(staging.total_bytes)}, {rate_text(staging.bytes_per_second)} written",
        f"{time_left}, then {counted(runs, 'run')} to measure",
    )


def plain_line(state: LiveState) -> str | None:
    """One line for a log; None: nothing is under way."""
    if state.staging is not None:
        return " · ".join(staging_texts(state.staging, state.runs - state.finished))
    run, own = state.run, state.figures
    if run is None or own is None:
        return None
    parts = [run_text(run), epoch_text(run, own)]
    parts += [_tier_text(tier) for tier in own.tiers if run.counted]
    parts += [slowest_text(own), *stalled_texts(own.stalled), *limits_texts(run, own), eta_text(state.left)]
    return " · ".join(parts)


def _tier_text(tier: TierRate) -> str:
    written = f", {rate_text(tier.written_bytes)} written" if tier.written_bytes else ""
    return f"{tier.tier} {rate_text(tier.read_bytes)} read{written}, {operations_text(tier.operations)} operations"


def finished_line(state: LiveState, seconds: float | None) -> str:
    took = "" if seconds is None else f" in {duration_text(seconds)}"
    ending = f"; {eta_text(state.left)}" if state.finished < state.runs else ""
    return f"finished run {state.finished} of {state.runs}{took}{ending}"


def live_view(state: LiveState, unicode: bool = True) -> RenderableType:
    """For a terminal of any width; without `unicode` in ASCII only."""

    def line(text: str, style: str = "") -> Text:
        return Text(
            text if unicode else text.translate(_ASCII),
            style=style,
            no_wrap=True,
            overflow="ellipsis" if unicode else "crop",
        )

    if state.staging is not None:
        share = state.staging.done_bytes / state.staging.total_bytes if state.staging.total_bytes else 0.0
        written, left = staging_texts(state.staging, state.runs - state.finished)
        return Group(line(written), line(f"{_bar_text(share)} · {left}"))
    run, own = state.run, state.figures
    if run is None or own is None:
        return line(
            f"preparing · {state.finished} of {counted(state.runs, 'run')} finished" if state.runs else "preparing"
        )
    lines: list[RenderableType] = [
        line(run_text(run), "bold"),
        line(f"{_bar_text(own.share)} · {epoch_text(run, own)} · {eta_text(state.left)}"),
    ]
    lines += [_tiers(own, unicode)] if run.counted else []
    lines.append(line(slowest_text(own)))
    lines += [line(text, "bold yellow") for text in stalled_texts(own.stalled)]
    lines += [line(text, "dim") for text in limits_texts(run, own)]
    return Group(*lines)


def _bar_text(share: float) -> str:
    full = round(_BAR * min(1.0, max(0.0, share)))
    return f"{'█' * full}{'░' * (_BAR - full)} {share:.0%}".replace("%", " %")


def _tiers(own: Figures, unicode: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    writes = any(tier.written_bytes for tier in own.tiers)
    for header in ("tier", "read now", *(("written now",) if writes else ()), "operations now"):
        table.add_column(
            header,
            justify="left" if header == "tier" else "right",
            header_style="dim",
            no_wrap=True,
            overflow="ellipsis" if unicode else "crop",
        )
    for tier in own.tiers:
        written = (rate_text(tier.written_bytes),) if writes else ()
        cells = tier.tier, rate_text(tier.read_bytes), *written, operations_text(tier.operations)
        table.add_row(*(Text(cell if unicode else cell.translate(_ASCII)) for cell in cells))
    return table


def speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")
