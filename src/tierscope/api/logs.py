"""Logs of other profilers from Python."""

import os
from collections.abc import Mapping, Sequence

from tierscope.analysis.counting import Counting
from tierscope.api.given import StrPath, listed, path_text, said, texts_of
from tierscope.api.result import Result
from tierscope.commands.analyze import LogRequest
from tierscope.commands.analyze import analyze_logs as analyze_job
from tierscope.errors import UserError

Tiers = Mapping[str, StrPath | Sequence[StrPath]] | Sequence[str]


def analyze_logs(  # noqa: PLR0913  (one per option)
    paths: StrPath | Sequence[StrPath],
    tiers: Tiers | None = None,
    out: StrPath | None = None,
    *,
    epoch_gap: str | None = None,
    shared: bool = True,
    dxt: bool = False,
    epoch_span: str | None = None,
    compute_span: str | None = None,
    force: bool = False,
) -> Result:
    """Read all logs of one job, Darshan's (*.darshan) or DFTracer's (*.pfw, *.pfw.gz), and show where its I/O time went.

    `tiers`: where files lay, nearest first: {"lfs": "/tmp", "gfs": ["/lustre", "/scratch"]}; without them mount points tell, as far as they can. `out`: also keep what
    was read as a result, for other calls. `epoch_gap`, `shared`, `dxt`, `epoch_span`, `compute_span`, `force`: as the options of `tierscope analyze`.
    Darshan's need `tierscope[darshan]`. Seconds for thousands of processes; memory does not grow with their number of files.
    """
    logs = [path_text("paths", path) for path in _several(paths)]
    if not logs:
        raise UserError("paths is empty; give the logs of one job")
    kept = None if out is None else path_text("out", out)
    if kept == "":
        raise UserError("out is empty; give a directory, or leave it out")
    wanted = LogRequest(_tier_texts(tiers), epoch_gap, shared, dxt, epoch_span, compute_span, force, kept)
    analysis, place = analyze_job(logs, wanted, Counting())
    return Result(analysis, place)


def _several(paths: StrPath | Sequence[StrPath]) -> Sequence[StrPath]:
    return [paths] if isinstance(paths, str | os.PathLike) else listed("paths", paths, "a path, or several of them")


def _tier_texts(tiers: Tiers | None) -> list[str]:
    """As `--tier` has them."""
    if tiers is None:
        return []
    if not isinstance(tiers, Mapping):
        return texts_of("tiers", tiers)
    return [
        f"{name}={','.join(path_text(f'tiers[{said(name)}]', path) for path in _several(where))}"
        for name, where in tiers.items()
    ]
