"""What `Result.estimate` and `Result.explore` return: numbers that were estimated from a result, never measured, and say so."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.to_json import epoch_json
from tierscope.analysis.wording import Finding
from tierscope.api import pictures
from tierscope.api.points import ResultPoint, point_frame, points_of
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.predict.by_group import EstimatedGroups, ExploredGroups
from tierscope.predict.to_json import estimate_json, exploration_json
from tierscope.report.estimate_sentence import improvements_text
from tierscope.report.estimates import EstimateView, ExplorationView


class ResultEstimate:
    """A result as it would be with faster classes of I/O, by scaling every process's times. From `Result.estimate`; keeps the result's table alive.

    Look at `warnings` first: they say when not to believe it.
    """

    __slots__ = ("_analysis", "_findings", "_groups", "_source")

    def __init__(self, analysis: Analysis, groups: EstimatedGroups, findings: list[Finding], source: str) -> None:
        """Not for callers."""
        self._analysis, self._groups, self._findings, self._source = analysis, groups, findings, source

    @property
    def source(self) -> str:
        """ "estimated from measured" and so on: nobody measured these times. Costs nothing."""
        return f"estimated from {self._source}"

    @property
    def improvements(self) -> dict[str, float]:
        """Percent more throughput by class, as they were understood. Costs nothing."""
        return dict(self._groups.improvements)

    @property
    def change_percent(self) -> float | None:
        """Of the best point's I/O seconds, below zero where it gets shorter; None: several groups have a best of their own. Costs nothing."""
        return self._groups.parts[0].change_percent if len(self._groups.parts) == 1 else None

    @property
    def epoch_change_percent(self) -> float | None:
        """Of the best point's epoch; None: it is not known, or several groups have a best of their own. Costs nothing."""
        return self._groups.parts[0].epoch_change_percent if len(self._groups.parts) == 1 else None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """When not to believe it: a class beyond anything that was measured, a bottleneck that moves, a single point. Costs nothing."""
        return tuple(warning for part in self._groups.parts for warning in part.warnings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the measurement, and whether the goal would be met. Costs nothing."""
        return tuple(self._findings)

    @property
    def points(self) -> tuple[ResultPoint, ...]:
        """As they would be. Costs nothing."""
        return points_of(self._groups.after)

    def breakdown(self) -> pl.DataFrame:
        """`Result.breakdown` as it would be, with `source` saying so. Costs next to nothing."""
        return point_frame(self._groups.after, self.source)

    def sensitivity(self) -> pl.DataFrame:
        """What each class alone could give at the best point: percent of change at 10, 50 and 100 % more, and if it took no time. Costs next to nothing."""
        rows = [
            {
                "group": name,
                "class": sensitivity.class_name,
                "measure": sensitivity.measure,
                **{f"at_{step:g}_percent": change for step, change in sensitivity.change_percent.items()},
                "limit_percent": sensitivity.limit_percent,
            }
            for name, part in zip(self._groups.names, self._groups.parts, strict=True)
            for sensitivity in part.sensitivity
        ]
        return pl.DataFrame(rows)

    def to_dict(self) -> JsonObject:
        """What `tierscope estimate --json` prints. Costs next to nothing."""
        shown = estimate_json(self._groups, self._findings, self._analysis.conditions)
        return shown | epoch_json(self._analysis.breakdown)

    def __repr__(self) -> str:
        change = f"{self.change_percent:+.1f} % of I/O" if self.change_percent is not None else "several groups"
        warned = f"; {len(self.warnings)} warnings" if self.warnings else ""
        return f"<ResultEstimate {improvements_text(self.improvements)}: {change}, {self.source}{warned}>"

    def __str__(self) -> str:
        return pictures.as_text([self._view])

    def _repr_html_(self) -> str:
        return pictures.as_html([self._view])

    @property
    def _view(self) -> EstimateView:
        return EstimateView(self._analysis.name, self._groups, self._findings, self._analysis.conditions, show_all=True)


@dataclass(frozen=True, slots=True)
class MetOption:
    """A combination that meets the goal and that no other beats in every respect. From `ResultExploration.options`; holds numbers only.

    `improve`: percent by class. `values`: of the swept keys, the smallest cache rate that is enough. Seconds and AU are estimated; None: not known.
    """

    improve: dict[str, float]
    values: SweepValues
    io_seconds: float
    epoch_seconds: float | None
    au: float | None
    cost: float | None
    group: str
    warnings: tuple[Finding, ...]


class ResultExploration:
    """Which improvements meet a goal. From `Result.explore`; keeps a grid of all combinations."""

    __slots__ = ("_analysis", "_findings", "_groups", "_source")

    def __init__(self, analysis: Analysis, groups: ExploredGroups, findings: list[Finding], source: str) -> None:
        """Not for callers."""
        self._analysis, self._groups, self._findings, self._source = analysis, groups, findings, source

    @property
    def source(self) -> str:
        """ "estimated from measured" and so on: nobody measured these times. Costs nothing."""
        return f"estimated from {self._source}"

    @property
    def options(self) -> tuple[MetOption, ...]:
        """Those worth choosing from, cheapest first, group by group; empty: nothing that was tried meets the goal. Costs nothing."""
        return tuple(
            MetOption(
                dict(option.improve),
                dict(option.sweep),
                option.io_seconds,
                option.epoch_seconds,
                option.au,
                option.cost,
                part.name,
                option.warnings,
            )
            for part in self._groups.parts
            for option in part.exploration.options
        )

    @property
    def is_met(self) -> bool:
        """Whether every group has an option. Costs nothing."""
        return all(part.exploration.options for part in self._groups.parts)

    @property
    def met_without(self) -> tuple[SweepValues, ...]:
        """Points that meet the goal as they are, one of each group at most. Costs nothing."""
        explorations = [part.exploration for part in self._groups.parts]
        return tuple(
            dict(exploration.sweeps[exploration.met_without])
            for exploration in explorations
            if exploration.met_without is not None
        )

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """About all combinations; an option has its own. Costs nothing."""
        return tuple(warning for part in self._groups.parts for warning in part.exploration.warnings)

    def table(self) -> pl.DataFrame:
        """The options as a frame: improvements and swept values as columns. Costs next to nothing."""
        return _option_frame(self.options, self.source)

    def to_dict(self) -> JsonObject:
        """What `tierscope explore --json` prints, the whole grid too. Costs as much as the grid is large."""
        study = self._analysis.study
        rate = study.placement.cache_rate if study else None
        shown = exploration_json(
            self._groups, self._analysis.times.basis, rate, self._findings, self._analysis.conditions
        )
        return shown | epoch_json(self._analysis.breakdown)

    def __repr__(self) -> str:
        count = len(self.options)
        met = f"{count} option{'s' if count != 1 else ''}" if count else "nothing meets it"
        return f"<ResultExploration of {self._groups.first.goal.text}: {met}, {self.source}>"

    def __str__(self) -> str:
        return pictures.as_text([self._view])

    def _repr_html_(self) -> str:
        return pictures.as_html([self._view])

    @property
    def _view(self) -> ExplorationView:
        analysis = self._analysis
        return ExplorationView(
            analysis.name, self._groups, self._findings, analysis.conditions, analysis.breakdown.epoch, show_all=True
        )


def _option_frame(options: Sequence[MetOption], source: str) -> pl.DataFrame:
    rows = [
        {
            "group": option.group,
            **{f"{name} %": percent for name, percent in option.improve.items()},
            **option.values,
            "io_seconds": option.io_seconds,
            "epoch_seconds": option.epoch_seconds,
            "au": option.au,
            "cost": option.cost,
            "source": source,
        }
        for option in options
    ]
    return pl.DataFrame(rows, strict=False)
