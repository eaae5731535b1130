"""How many ranks can this storage feed? The largest number of nodes, or of ranks on a node, at which accelerators are still busy, or at which
ranks that each read as many samples as in the study are done in time.

By doubling until the goal is missed, then by halving; all numbers that were simulated are kept, and a few more are tried beyond the answer, so that a
utilisation that does not fall with the number is seen. Where a dataset has too few batches for many ranks, it is taken as larger: what counts is the rate at
which storage serves, not how long an epoch is.

Of every number the best point of the study's sweep counts, as `explore` takes the best cache rate of every combination.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tierscope.analysis.comparable import comparable_groups
from tierscope.errors import UserError
from tierscope.plan.room import feasibility_of
from tierscope.predict.combining import simulate_combination
from tierscope.predict.exploration import Combination
from tierscope.predict.explore_simulated import goal_of
from tierscope.predict.fronts import best_rate, certain_rate
from tierscope.predict.method import chosen_method
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.simulation import DRAWN_FROM
from tierscope.predict.unsimulated import refuse_unsimulated
from tierscope.spec import keys
from tierscope.spec.check import find_problem
from tierscope.spec.dump import with_settings
from tierscope.spec.goal import AU, Goal
from tierscope.spec.kinds import Integer
from tierscope.spec.load import Loaded
from tierscope.spec.study import STAGED_POLICIES, Axis, Point, Study
from tierscope.spec.sweep import points
from tierscope.watch import Watch

MOST_KEYS = {"ranks_per_node": ("system.ranks_per_node", 1024), "nodes": ("system.nodes", 10**6)}
_STEPS = 20  # of each rank: AU leaves the first one out
_ENOUGH_STEPS = 100  # of each rank: more say nothing else
_ENOUGH_FILES = 16  # of each rank: with few, ranks and servers have unequal work
_BEYOND = (2,)  # times the answer: tried too


@dataclass(frozen=True, slots=True)
class LargestFed:
    """`value`: the largest number that meets the goal, 0 where not even 1 does; `sure`: that does so at the bad end of the interval too."""

    goal: Goal
    method: str
    key: str
    value: int
    sure: int
    limit: int  # up to which it was looked for
    limit_why: str
    at: Combination | None  # of the answer; None: there is none
    beyond: Combination | None  # of the next number; None: the limit came first
    again: (
        int | None
    )  # a number beyond the answer that meets the goal all the same; None: utilisation falls, as it should
    tried: dict[int, Combination] = field(default_factory=dict)
    grown_from: int | None = None  # the number from which on the dataset was taken as larger
    swept: tuple[Axis, ...] = ()  # by the study; of each number the best point

    @property
    def safe(self) -> Combination | None:
        """What to rely on: the largest that meets the goal at the bad end of its interval too. None: nothing does."""
        return self.tried.get(self.sure)

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Why nobody can tell how many: what was simulated is one of many values that are as likely."""
        option = self.at or self.beyond
        if option is None or self.sure == self.value > 0:
            return ()
        may_meet = self.at is not None or self.goal.is_met(option.interval(self.goal.kind)[self.goal.kind == AU])
        return option.unidentified if may_meet else ()

    @property
    def is_limited(self) -> bool:
        """The answer is as far as it was looked: there may be more."""
        return self.value == self.limit


def find_most(loaded: Loaded, wanted: str, goal: str | None, method: str, watch: Watch) -> LargestFed:
    """`wanted`: `nodes` or `ranks_per_node`, and where to stop looking, like `nodes=512`."""
    judged = goal_of(loaded, goal)
    study = loaded.study
    if loaded.study.cases:
        raise UserError(f"--most {wanted}: the study has several cases; choose one with --set case=NAME")
    if judged.kind == AU and not study.workload.train.computation_time:
        raise UserError("an AU goal needs compute, but the study has none; set workload.train.computation_time")
    key, limit, why = _limit(study, wanted)
    path = MOST_KEYS[key][0]
    tried = _comparable(list(points(replace(study, sweep=tuple(axis for axis in study.sweep if axis.path != path)))))
    for point in tried:
        refuse_unsimulated(point.study)
        refuse_missing_rates(point.study, loaded.known)
    method = chosen_method(tried, method)
    watch.phase("searching", 1, "answers")
    search = _Search(tried, key, judged, method, loaded)
    value = _largest(search.is_met, limit)
    sure = _largest(lambda number: search.is_met(number, worst=True), value)
    again = next((n for n in (value * times for times in _BEYOND) if value < n <= limit and search.is_met(n)), None)
    watch.advance(1)
    return LargestFed(
        goal=judged,
        method=method,
        key=key,
        value=value,
        sure=sure,
        limit=limit,
        limit_why=why,
        at=search.tried.get(value),
        beyond=search.option(value + 1) if value < limit else None,
        again=again,
        tried=dict(sorted(search.tried.items())),
        grown_from=min(search.grown, default=None),
        swept=study.sweep,
    )


def _comparable(of_sweep: list[Point]) -> list[Point]:
    """Those that read the most in an epoch, the smallest cache rate first: reading less is no way to meet a goal."""
    first = comparable_groups([_amount(point.study) for point in of_sweep])[0]
    return sorted((of_sweep[place] for place in first), key=lambda point: point.study.placement.cache_rate)


def _amount(study: Study) -> float:
    """Bytes of samples in an epoch."""
    dataset, steps = study.workload.dataset, study.workload.train.total_training_steps
    samples = dataset.samples
    if steps is not None:
        samples = min(samples, steps * study.workload.reader.batch_size * study.system.ranks)
    return float(samples * dataset.record_length_bytes)


def _limit(study: Study, wanted: str) -> tuple[str, int, str]:
    """The key, the largest number that is tried, and why not more."""
    key, equals, text = (part.strip() for part in wanted.partition("="))
    if key not in MOST_KEYS:
        raise UserError(f"--most {wanted}: must be {' or '.join(MOST_KEYS)}, optionally with a limit, e.g. nodes=512")
    path, most = MOST_KEYS[key]
    others = study.system.ranks_per_node if key == "nodes" else study.system.nodes
    laid_out = max(1, DRAWN_FROM // (_STEPS * study.workload.reader.batch_size * others))
    limit, why = min((most, f"the largest valid {path}"), (laid_out, "the largest that is simulated"))
    if equals:
        try:
            given = int(Integer(1, most).parse(text))
        except ValueError as error:
            raise UserError(f"--most {wanted}: {text} {error}") from None
        limit, why = min((given, "as requested"), (limit, why))
    return key, limit, why


def _largest(is_met: Callable[[int], bool], limit: int) -> int:
    """0: not even 1."""
    low, high = 0, 1
    while high <= limit and is_met(high):
        low, high = high, high * 2
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low


class _Search:
    """Every number is simulated once, at the points of the sweep until one meets the goal for certain."""

    def __init__(self, tried: list[Point], key: str, goal: Goal, method: str, loaded: Loaded) -> None:
        self._points, self._goal, self._method, self._known = tried, goal, method, loaded.known
        self._path = MOST_KEYS[key][0]
        self._short = keys.short_names([self._path])[self._path]
        self.tried: dict[int, Combination] = {}
        self.grown: list[int] = []

    def option(self, number: int) -> Combination:
        if number not in self.tried:
            group = []
            for point in self._points:
                group.append(self._simulated(number, point))
                if certain := certain_rate(group, self._goal):
                    break
            self.tried[number] = certain or best_rate(group, self._goal)
        return self.tried[number]

    def _simulated(self, number: int, point: Point) -> Combination:
        of_au = self._goal.kind == AU
        study, share = self._with(number, point.study) if of_au else (self._same_per_rank(number, point.study), 1.0)
        settings = {name: value for name, value in point.sweep.items() if name != "cache_rate"}
        combination = simulate_combination({self._short: number, **settings}, study, self._method, self._known, share)
        own = with_settings(point.study, {self._path: number}) if of_au else study
        room = feasibility_of(own) if find_problem(own) is None else combination.feasibility
        return replace(combination, feasibility=room).judged(self._goal)

    def is_met(self, number: int, worst: bool = False) -> bool:
        combination = self.option(number)
        return combination.feasibility.is_possible and not combination.missing(self._goal, worst=worst)

    def _same_per_rank(self, number: int, base: Study) -> Study:
        """With so many ranks, each of which reads as many samples as in the study: else every rank more would have less to read."""
        study = with_settings(base, {self._path: number})
        files = base.workload.dataset.num_files_train * study.system.ranks / base.system.ranks
        study = with_settings(study, {"workload.dataset.num_files_train": max(1, round(files))})
        if problem := find_problem(study):
            raise UserError(f"--most: with {self._path} = {number}, {problem.text}")
        return study

    def _with(self, number: int, base: Study) -> tuple[Study, float]:
        """With so many ranks, and data enough for steps that count; more steps than those are not simulated. And the share of an epoch that these are."""
        study = with_settings(base, {self._path: number})
        dataset, reader, ranks = study.workload.dataset, study.workload.reader, study.system.ranks
        needed = _STEPS * reader.batch_size * ranks
        if dataset.samples < needed:
            self.grown.append(number)
            files = -(-needed // dataset.num_samples_per_file)
            if reader.file_access == "multi":
                files = -(-files // ranks) * ranks
            study = with_settings(study, {"workload.dataset.num_files_train": files})
        steps = study.workload.train.total_training_steps
        enough = max(_ENOUGH_STEPS, -(-_ENOUGH_FILES * dataset.num_samples_per_file // reader.batch_size))
        whole = max(1, dataset.samples // (reader.batch_size * ranks))
        if study.placement.policy in STAGED_POLICIES and (steps is None or steps > enough):
            study = with_settings(study, {"workload.train.total_training_steps": enough})
            whole = min(steps or whole, whole)
        if problem := find_problem(study):
            raise UserError(f"--most: with {self._path} = {number}, {problem.text}")
        return study, min(1.0, (study.workload.train.total_training_steps or whole) / whole)
