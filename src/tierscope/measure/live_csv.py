"""`--live-csv FILE`: what a live view shows, kept over time; a row per look and tier.

Rows of one look are one append, so that a kill leaves whole lines; a line that was cut off nevertheless goes when the file is next continued. A file is ours if its first line is our
header, and is continued only by the same study: figures of two studies in one file could not be told apart. `seconds` count from the start of a
command, `time` is the calendar's.
"""

import csv
import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from tierscope.errors import UserError
from tierscope.measure.live import LiveState
from tierscope.output.durable import open_appending, replacing
from tierscope.plain_files import open_plain

COLUMNS = (
    *("time", "seconds", "study", "activity", "run", "runs", "point", "repetition", "attempt", "epoch", "tier"),
    *("bytes_per_second", "written_bytes_per_second", "ops_per_second", "slowest_rank", "slowest_share"),
    *("stalled_ranks", "visible_ranks", "ranks", "eta_low_seconds", "eta_high_seconds"),
)
_HEADER = (",".join(COLUMNS) + "\n").encode()
_TAIL = 64 << 10


LiveRow = dict[str, str | int | float]  # name of a column → its cell


def live_rows(state: LiveState) -> Iterator[LiveRow]:
    """Without time and study. Empty: not known. `bytes_per_second` are read, by the recorder's count; staging is written, and of no tier."""
    left = state.left
    common: LiveRow = {"seconds": round(state.seconds, 3), "runs": state.runs}
    if left is not None:
        common |= {"eta_low_seconds": round(left.low_seconds, 1), "eta_high_seconds": round(left.high_seconds, 1)}
    if state.staging is not None:
        yield {**common, "activity": "staging", "written_bytes_per_second": _rate(state.staging.bytes_per_second)}
        return
    run, own = state.run, state.figures
    if run is None or own is None:
        return
    common |= {
        "activity": "measuring",
        "run": run.number,
        "point": run.key.point,
        "repetition": run.key.repetition,
        "attempt": run.attempt,
        "epoch": own.epoch or "",
        "slowest_rank": own.slowest.rank if own.slowest else "",
        "slowest_share": round(own.slowest.share, 4) if own.slowest else "",
        "stalled_ranks": " ".join(str(stalled.rank) for stalled in own.stalled),
        "visible_ranks": own.visible,
        "ranks": own.ranks,
    }
    for moved in own.tiers:
        yield {
            **common,
            "tier": moved.tier,
            "bytes_per_second": _rate(moved.read_bytes),
            "written_bytes_per_second": _rate(moved.written_bytes),
            "ops_per_second": _rate(moved.operations),
        }


def _rate(value: float | None) -> float | str:
    return "" if value is None else round(value, 1)


class LiveCsv:
    """Open it before the study begins: a file that is not ours is refused."""

    def __init__(self, path: str, study: str) -> None:
        self._study = study
        try:
            is_new = not os.path.lexists(path)
            if not is_new:
                _check_ours(path, study)
            self._fd = open_appending(path, is_new)
            if is_new:
                os.write(self._fd, _HEADER)
        except OSError as error:
            raise UserError(f"--live-csv {path}: cannot be written: {error.strerror}; choose a writable file") from None

    def add(self, state: LiveState) -> None:
        text = io.StringIO()
        out = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for row in live_rows(state):
            out.writerow({"time": now, "study": self._study, **row})
        if content := text.getvalue().encode("utf-8", "replace"):
            os.write(self._fd, content)

    def close(self) -> None:
        os.close(self._fd)


def _check_ours(path: str, study: str) -> None:
    with open_plain(path, follow=True) as source:
        if source.readline(len(_HEADER)) != _HEADER:
            raise UserError(f"--live-csv {path}: already exists and was not written by --live-csv; choose another name")
        size = source.seek(0, os.SEEK_END)
        whole = _end_of_lines(source, size)
        source.seek(max(len(_HEADER), whole - _TAIL))
        last = _last_row(source.read(whole - source.tell()))
        if last is not None and len(last) == len(COLUMNS) and last[COLUMNS.index("study")] != study:
            theirs = last[COLUMNS.index("study")]
            raise UserError(
                f"--live-csv {path}: contains figures of study {theirs}, not of {study}; choose another name"
            )
        if whole < size:  # somebody was killed while it appended
            _keep_first(path, source, whole)


def _end_of_lines(source: BinaryIO, size: int) -> int:
    """Up to where lines are whole, however long the one is that was cut; the header is."""
    end = size
    while end > len(_HEADER):
        start = max(len(_HEADER), end - _TAIL)
        source.seek(start)
        at = source.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return len(_HEADER)


def _last_row(tail: bytes) -> list[str] | None:
    """None: there is none, or it is no row of ours."""
    try:
        return next(csv.reader(tail.decode("utf-8", "replace").split("\n")[:-1][-1:]), None)
    except csv.Error:
        return None


def _keep_first(path: str, source: BinaryIO, nbytes: int) -> None:
    source.seek(0)
    with replacing(os.path.realpath(path)) as out:
        while nbytes > 0:
            piece = source.read(min(nbytes, 1 << 20))
            out.write(piece)
            nbytes -= len(piece)
