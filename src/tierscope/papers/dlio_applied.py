"""DLIO's figure 13: what was tuned on the emulation, applied to a real script, from the dated file (`transfer_file.py`)."""

from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.transfer_file import COMMAND, TransferFile, read_transfer
from tierscope.papers.verdict import Outcome, Verdict, direction, ratio_agrees

_APPLIED = {  # row → which setting, its value, and the published gain
    "D-F13-1": ("transfer", "1MiB", 1.33),
    "D-F13-2": ("threads", "8", 1.12),
    "D-F13-3": ("chunk", "1MiB", 8.0),
    "D-F13-4": ("gzip", "gzip", 1.35),
}


def make(_short: bool) -> Section:
    transfer = read_transfer()
    if transfer is None:
        return Section(tuple(applied(None)))
    return Section(tuple(applied(transfer)), (applied_figure(transfer),), (applied_table(transfer),))


def applied(transfer: TransferFile | None) -> list[Verdict]:
    """What tuning brings a torch script on the same emulated tier, from the dated file."""
    rows = ("D-F13", *_APPLIED, "D-F13-5")
    if transfer is None:
        return [
            Verdict(row, "–", "not available here", why=f"no dated file here: {COMMAND}, in a clone with torch")
            for row in rows
        ]
    verdicts = [
        Verdict("D-F13", f"{len(transfer.settings)} settings, each on the emulation and in a torch script", "beside", "emulated", transfer.tier, transfer.made)
    ]  # fmt: skip
    for row, (name, after, published) in _APPLIED.items():
        setting = next((known for known in transfer.settings if known.name == name and known.after == after), None)
        if setting is None:
            why = "tuning on the emulation found no gain, so nothing was applied"
            verdicts.append(Verdict(row, "–", "does not hold", "emulated", why, transfer.made))
            continue
        gain = setting.application.gain
        outcome: Outcome = "holds" if ratio_agrees(gain, published) else "does not hold"
        ours = f"{setting.application.text}; on the emulation {setting.emulated.text}"
        left_out = "; preprocessing threads need more cores than there were" if name == "threads" else ""
        way = direction(setting.application.low, setting.application.high, published)
        why = f"{'' if outcome == 'holds' else f'{way}; '}a torch script on {transfer.tier}, without the limit of a stream, which trace does not emulate{left_out}"
        verdicts.append(Verdict(row, ours, outcome, "emulated", why, transfer.made))
    return [*verdicts, _resembles(transfer)]


def _resembles(transfer: TransferFile) -> Verdict:
    """Both gain, both lose, or neither does clearly, by every setting."""
    settings = transfer.settings
    alike = all(
        direction(known.emulated.low, known.emulated.high, 2.0)
        == direction(known.application.low, known.application.high, 2.0)
        for known in settings
    )
    apart = max(max(known.emulated.gain, known.application.gain) / min(known.emulated.gain, known.application.gain) for known in settings)  # fmt: skip
    ours = "; ".join(f"{known.key} {known.after}: {known.emulated.gain:.2f}× and {known.application.gain:.2f}×" for known in settings)  # fmt: skip
    why = f"judged by direction, where there is a clear one; the two gains differ by a factor of {apart:.2f} at most"
    return Verdict("D-F13-5", ours, "holds" if alike else "does not hold", "emulated", why, transfer.made)


def applied_figure(transfer: TransferFile) -> PaperFigure:
    name, caption = "tuning-applied", f"Gains on the emulation and in a torch script; {transfer.tier}; {transfer.made}"
    places = tuple(float(number) for number in range(1, len(transfer.settings) + 1))
    lines = tuple(
        Line(words, tuple(getattr(known, side).gain for known in transfer.settings), LOOKS[number], number)
        for number, (words, side) in enumerate((("emulation", "emulated"), ("torch script", "application")))
    )
    names = ", ".join(f"{number}: {known.key} {known.after}" for number, known in enumerate(transfer.settings, start=1))
    panel = ChartPanel("times faster than before", "setting", names, "gain", places, lines, level=1.0)
    return PaperFigure("D-F13", name, draw_chart(name, "Tuning applied", caption, [panel]), "emulated", caption)


def applied_table(transfer: TransferFile) -> PaperTable:
    columns = (
        "setting",
        "before",
        "after",
        "winner",
        "emulated gain",
        "low",
        "high",
        "application gain",
        "low ",
        "high ",
        "n",
    )
    lines = tuple(
        (
            *(known.key, known.before, known.after, "yes" if known.is_winner else "no"),
            *(known.emulated.gain, known.emulated.low, known.emulated.high),
            *(known.application.gain, known.application.low, known.application.high, known.application.n),
        )
        for known in transfer.settings
    )
    return PaperTable("D-F13", "tuning-applied", columns, lines, "measured", f"{transfer.tier}; {transfer.made}")
