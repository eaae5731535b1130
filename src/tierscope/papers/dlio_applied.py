"""DLIO's figure 13: what was tuned on the emulation, applied to a real script, from the dated file (`transfer_file.py`)."""

from tierscope.papers.drawn_tuning import draw_applied
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.transfer_file import COMMAND, AppliedSetting, TransferFile, read_transfer
from tierscope.papers.verdict import Outcome, Verdict, direction, gain_agrees, ratio_agrees

_APPLIED = {  # row → which setting, its value, and the published gain
    "D-F13-1": ("transfer", "1MiB", 1.33),
    "D-F13-2": ("threads", "8", 1.12),
    "D-F13-3": ("chunk", "1MiB", 8.0),
    "D-F13-4": ("gzip", "gzip", 1.35),
}
_AS_PERCENTAGE = ("threads",)
_ALL_READING = "the script computes next to nothing, so that its epoch is all reading"
_REASONS = {
    "transfer": f"{_ALL_READING}, and what a request costs beside its bytes is assumed",
    "threads": f"{_ALL_READING}, and every worker is a stream of its own; torch has no threads for preprocessing alone: its workers read and preprocess",
    "chunk": f"{_ALL_READING}, and what a request costs beside its bytes is assumed",
    "gzip": f"{_ALL_READING}: half of the bytes save what the assumed cost of requests leaves, less what inflating takes",
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
        verdicts.append(_judged(row, setting, published, transfer))
    return [*verdicts, _resembles(transfer)]


def _judged(row: str, setting: AppliedSetting, published: float, transfer: TransferFile) -> Verdict:
    gain = setting.application
    way = direction(gain.low, gain.high, published)
    agrees = gain_agrees if setting.name in _AS_PERCENTAGE else ratio_agrees
    holds = way == "the same direction" and agrees(gain.gain, published)
    outcome: Outcome = "holds" if holds else "does not hold"
    where = f"a torch script on {transfer.tier}"
    why = where if holds else f"{way}: {_REASONS[setting.name]}; {where}"
    return Verdict(row, f"{gain.text}; on the emulation {setting.emulated.text}", outcome, "emulated", why, transfer.made)  # fmt: skip


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
    return draw_applied(transfer, {f"{name} {after}": gain for name, after, gain in _APPLIED.values()})


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
