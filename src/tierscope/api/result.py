"""A Result: what a study, a trace, logs or a CSV of times tell, in memory. `load` reads one; `run`, `simulate` and `analyze_logs` return one."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.counting import Counting
from tierscope.analysis.to_json import analysis_json
from tierscope.analysis.wording import Finding
from tierscope.api import pictures
from tierscope.api.given import (
    Percent,
    Percents,
    StrPath,
    chosen,
    goal_text,
    improvement_texts,
    limit_text,
    path_text,
    price_texts,
    said,
    texts_of,
    variation_texts,
)
from tierscope.api.points import ResultPoint, point_frame, points_of, swept_name
from tierscope.api.progress import in_notebook
from tierscope.api.whatif import ResultEstimate, ResultExploration
from tierscope.commands.analyze import analyze, views_of
from tierscope.commands.estimate import estimated
from tierscope.commands.explore import explored
from tierscope.commands.report import besides_of, report_folder, report_page, write_report
from tierscope.commands.simulate import remedies_of
from tierscope.errors import PartialResultWarning, StaleResultWarning, UserError
from tierscope.jsonable import JsonObject
from tierscope.predict.exploration import Remedy
from tierscope.predict.goals import refuse_untold
from tierscope.predict.plan_json import remedy_json
from tierscope.spec.whatif import read_goal, read_improvements
from tierscope.trace.description import Imported, Simulated, Traced

if TYPE_CHECKING:
    import pandas as pd

    from tierscope.spec.goal import Goal

Source = Literal["measured", "simulated", "traced", "imported", "csv"]
_CATEGORIES = ("read", "meta", "write")


class Result:
    """Where the I/O time of the slowest process goes, at every point that was measured, simulated, traced or imported.

    Get one from `load`, `run`, `simulate` or `analyze_logs`; print it for what the command prints, or let a notebook show its table and figure.
    It is a snapshot: runs that finish later are not in it (`reload` reads them), and a method that is called then warns (`StaleResultWarning`).
    Holds one row per process, epoch, class and run in memory; no method changes anything on disk but `report`.
    """

    __slots__ = ("_analysis", "_counting", "_path", "_remedies", "_stamp")

    def __init__(self, analysis: Analysis, path: str | None = None, counting: Counting | None = None) -> None:
        """Not for callers: the functions above make them."""
        self._analysis, self._path, self._counting = analysis, path, counting or Counting()
        self._stamp = _stamp(path)
        self._remedies: tuple[Remedy, ...] | None = None

    @property
    def name(self) -> str:
        """Of the study; the command of a trace or a job; the file of a CSV. Costs nothing."""
        return self._analysis.name

    @property
    def path(self) -> str | None:
        """The result directory or CSV that it was read from; None: logs that were not kept. Costs nothing."""
        return self._path

    @property
    def source(self) -> Source:
        """How its times came about: never take "simulated" for "measured". The frames carry it as a column. Costs nothing."""
        abouts = self._analysis.times.about
        if not abouts:
            return "csv"
        if any(isinstance(about, Simulated) for about in abouts):
            return "simulated"
        if any(isinstance(about, Traced) for about in abouts):
            return "traced"
        return "imported" if any(isinstance(about, Imported) for about in abouts) else "measured"

    @property
    def emulated(self) -> tuple[str, ...]:
        """Tiers whose times come from configured rates, although ranks really waited. Costs nothing."""
        return self._analysis.conditions.emulated

    @property
    def basis(self) -> str:
        """`wall`: seconds on the clock in which a process had I/O under way; `busy`: the sum of its operations. Costs nothing."""
        return self._analysis.breakdown.basis

    @property
    def class_names(self) -> tuple[str, ...]:
        """TIER-READ, TIER-META and TIER-WRITE: what `estimate` and `explore` take. Costs nothing."""
        return self._analysis.times.io_classes

    @property
    def is_complete(self) -> bool:
        """Whether every run of the study is finished; where not, all numbers are about those that are. Costs nothing."""
        return not any(finding.kind == "partial" for finding in self._analysis.findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader of the numbers must know, most important first: `kind`, `evidence`, `text`, `suggestion`. Costs nothing."""
        return tuple(self._analysis.findings)

    @property
    def points(self) -> tuple[ResultPoint, ...]:
        """One for every combination of swept values that has a finished run; the epochs after the first, of all repetitions. Costs nothing."""
        self._warn_if_stale()
        return points_of(self._analysis.breakdown)

    @property
    def best(self) -> ResultPoint | None:
        """The point to take. None where nothing can be recommended: no point fits, or cases and amounts of data that are not ranked against each other
        (then every one that `is_best` is the best of its own `group`). Costs nothing."""
        points = [point for point in self.points if point.is_best]
        return points[0] if len(points) == 1 and len(self._analysis.breakdown.groups) == 1 else None

    def breakdown(self) -> pl.DataFrame:
        """A row per point: swept values, seconds of I/O of the slowest process with their interval, of every class, bottleneck, epoch, AU.

        The table that `tierscope analyze` prints, as numbers in base units. Costs next to nothing.
        """
        self._warn_if_stale()
        return point_frame(self._analysis.breakdown, self.source)

    def classes(self) -> pl.DataFrame:
        """A row per run, epoch, process and class: seconds, operations, bytes; as `analyze --csv` writes them, with `source` behind.

        For statistics of your own. Shares memory with the result: no copy is made. `.to_pandas()` of a frame needs pandas and pyarrow; `Result.to_pandas` only pandas.
        """
        self._warn_if_stale()
        table = self._analysis.times.table
        renamed = table.rename({"source": swept_name("source")}) if "source" in table.columns else table
        return renamed.with_columns(pl.lit(self.source).alias("source"))

    def to_pandas(self, table: Literal["classes", "breakdown"] = "classes") -> "pd.DataFrame":
        """`classes` or `breakdown` for pandas, which must be installed; copies the table."""
        chosen("table", table, ("classes", "breakdown"))
        try:
            import pandas as pd  # noqa: PLC0415  (not among our dependencies)
        except ImportError:
            raise UserError("to_pandas needs the package pandas; pip install pandas") from None
        frame = self.classes() if table == "classes" else self.breakdown()
        return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})

    def estimate(
        self, improvements: Mapping[str, Percent] | None = None, /, *, goal: str | None = None, **classes: Percent
    ) -> ResultEstimate:
        """What would change if classes of I/O were faster: `estimate(GFS_META=50)` or `estimate({"GFS-META": 50})` is 50 % more throughput.

        Percentages, not fractions or factors: 0.5 is refused, twice as fast is 100. Without any: only what each class by itself could give. It is a
        first guess by scaling, and its warnings say when not to believe it. Takes milliseconds.
        """
        self._warn_if_stale()
        wanted = improvement_texts(improvements, classes, self.class_names)
        groups, findings = estimated(self._analysis, wanted, goal_text(goal))
        return ResultEstimate(self._analysis, groups, findings, self.source)

    def explore(
        self,
        goal: str | None = None,
        vary: Mapping[str, Percents] | None = None,
        *,
        improve: Mapping[str, Percent] | None = None,
        cost: Mapping[str, str] | Sequence[str] | None = None,
        max_price: str | float | None = None,
    ) -> ResultExploration:
        """Which improvements meet a goal, each with the smallest cache rate that it needs.

        `goal`: "io=4s", "epoch=10min" or "au=90%"; None: the study's. `vary`: percentages to try by class, like {"GFS-META": range(0, 201, 10)} or
        {"GFS_META": "0:200:10"}. `cost`: {"GFS-META": "3/%", "lfs.capacity": "90/TiB"}. A grid of a million combinations takes seconds.
        """
        self._warn_if_stale()
        classes = self.class_names
        fixed = improvement_texts(improve, {}, classes)
        wanted = goal_text(goal)
        groups, findings = explored(
            self._analysis, wanted, variation_texts(vary, classes), fixed, price_texts(cost), limit_text(max_price)
        )
        return ResultExploration(self._analysis, groups, findings, self.source)

    def report(
        self,
        out: StrPath | None = None,
        *,
        goal: str | None = None,
        improve: Mapping[str, Percent] | None = None,
        beside: Sequence["Result"] = (),
    ) -> Path:
        """Write report.html, one file to play with, and figures/*.svg; the page's path.

        `out`: another directory than the result's own; logs that were not kept need one. `beside`: other results of the same sweep, as a simulation of it.
        Replaces the page that an earlier call wrote. Takes about a second, more with PNGs.
        """
        folder = None if out is None else path_text("out", out)
        if self._path is None and folder is None:
            raise UserError("report: these logs were not kept as a result; give out=DIRECTORY")
        wanted, improvements = self._shown(goal, improve)
        places = tuple(result.path or result.name for result in (self, *beside))
        laid = besides_of(self._analysis, [result._analysis for result in beside], places)
        target = report_folder(self._path or "", folder)
        written = write_report(
            self._analysis, target, wanted, improvements, laid, result=self._path, remedies=self._instead()
        )
        return Path(written.page)

    def show(self, height: int = 800, *, goal: str | None = None, improve: Mapping[str, Percent] | None = None) -> None:
        """The interactive page below the cell of a notebook, in an iframe of its own; nothing is written. Takes about half a second.

        Elsewhere there is nothing to show it in: use `report`, and open what it wrote.
        """
        if not in_notebook():
            raise UserError("show: this is not a notebook; report() writes the page, and any browser opens it")
        from IPython.display import HTML, display  # noqa: PLC0415  (only in a notebook)

        # As bytes that are no literal: IPython warns of iframes in HTML(), and means those that load an address.
        display(HTML(f"<div>{self.page_html(height, goal=goal, improve=improve)}</div>"))

    def page_html(
        self, height: int = 800, *, goal: str | None = None, improve: Mapping[str, Percent] | None = None
    ) -> str:
        """What `show` displays, for other front ends: an iframe with the whole page in it. Some hundred KB; takes about half a second."""
        wanted, improvements = self._shown(goal, improve)
        page = report_page(self._analysis, wanted, improvements, self._path, self._instead())
        return pictures.frame_html(page, height)

    def to_dict(self) -> JsonObject:
        """What `tierscope analyze --json` prints: keys that stay as they are within a schema version. Costs next to nothing."""
        self._warn_if_stale()
        instead = self._remedies or ()
        listed = {"remedies": [remedy_json(remedy, self._analysis.goal) for remedy in instead]} if instead else {}
        return {**analysis_json(self._analysis), **listed}

    def reload(self) -> "Result":
        """The same result as it is on disk now, counted in the same way. Reads it anew."""
        if self._path is None:
            raise UserError("reload: these logs were not kept as a result; read them again with analyze_logs")
        return _load(self._path, self._counting)

    def _shown(self, goal: str | None, improve: Mapping[str, Percent] | None) -> tuple["Goal | None", dict[str, float]]:
        self._warn_if_stale()
        improvements = read_improvements(
            improvement_texts(improve, {}, self.class_names), self._analysis.times.io_classes
        )
        text = goal_text(goal)
        wanted = None if text is None else read_goal(text)
        if wanted is not None:
            refuse_untold(self._analysis.times, wanted)
        return wanted, improvements

    def _instead(self) -> tuple[Remedy, ...]:
        """What would fit, where the best of a simulation does not: simulated once."""
        if self._remedies is None:
            self._remedies = remedies_of(self._analysis)
        return self._remedies

    def _warn_if_stale(self) -> None:
        if self._stamp != _stamp(self._path):
            warnings.warn(
                StaleResultWarning(f"{self._path}: has changed since it was loaded; reload() reads it as it is now"),
                stacklevel=3,
            )

    @property
    def _labels(self) -> list[str]:
        """What nobody may miss."""
        partial = [finding.text for finding in self._analysis.findings if finding.kind == "partial"]
        emulated = [f"emulated tiers: {', '.join(self.emulated)}"] if self.emulated else []
        return [self.source, *emulated, *partial]

    def __repr__(self) -> str:
        points = len(self._analysis.breakdown.summary)
        return f"<Result {self.name!r}: {', '.join(self._labels)}; {points} point{'s' if points != 1 else ''}>"

    def __str__(self) -> str:
        return pictures.as_text(views_of(self._analysis, self._remedies or (), show_all=True))

    def _repr_html_(self) -> str:
        return pictures.result_html(self._analysis, self._labels)


def load(
    path: StrPath,
    *,
    basis: Literal["wall", "busy"] | None = None,
    epoch: int | None = None,
    classes: str | Sequence[str] = _CATEGORIES,
    case: str | None = None,
) -> Result:
    """Read a result: the directory of a run, a simulation, a trace or kept logs, or a CSV of times.

    `basis`: wall or busy seconds; None: wall, where it is known. `epoch`: only that one; None: those after the first. `classes`: what makes up the
    I/O time, of read, meta and write. `case`: only that one of a study with several. A study that is not finished is read as far as it is, with a
    `PartialResultWarning`. Reads every run once: about 10 ms each, and a second for the first call of a process.

    >>> import tierscope as ts
    >>> result = ts.load("tests/golden/results/measured")
    >>> result.source, result.emulated, len(result.points)
    ('measured', ('gfs', 'lfs'), 3)
    >>> result.best.values
    {'cache_rate': 0.5}
    """
    if basis is not None:
        chosen("basis", basis, ("wall", "busy"))
    return _load(path_text("path", path), Counting(basis, _epoch(epoch), _categories(classes), case))


def _load(path: str, counting: Counting) -> Result:
    result = Result(analyze(path, counting), path, counting)
    for finding in result.findings:
        if finding.kind == "partial":
            warnings.warn(PartialResultWarning(f"{path}: {finding.text}; {finding.suggestion}"), stacklevel=3)
    return result


def _epoch(epoch: int | None) -> int | None:
    if epoch is not None and (isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1):
        raise UserError(f"epoch = {said(epoch)}: must be the number of an epoch, from 1 up, or None")
    return epoch


def _categories(classes: str | Sequence[str]) -> tuple[str, ...]:
    given = [part.strip().lower() for text in texts_of("classes", classes) for part in text.split(",")]
    for part in given:
        chosen("classes", part, _CATEGORIES)
    return tuple(category.upper() for category in _CATEGORIES if category in given)


def _stamp(path: str | None) -> tuple[int, ...]:
    """What changes when a run is added, replaced or taken away."""
    if path is None:
        return ()
    try:
        at = os.stat(os.path.join(path, "runs") if os.path.isdir(path) else path)
    except OSError:
        return ()
    return at.st_mtime_ns, at.st_size, at.st_ino
