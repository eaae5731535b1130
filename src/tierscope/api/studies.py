"""Studies from Python: read or made, run on this machine, simulated, explored."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import polars as pl
import yaml

from tierscope.api import pictures
from tierscope.api.calibration import FittedSystem
from tierscope.api.given import (
    Settings,
    StrPath,
    chosen,
    goal_text,
    key_variation_texts,
    limit_text,
    path_text,
    price_texts,
    scalar_text,
    setting_texts,
    yaml_tree,
)
from tierscope.api.progress import shown
from tierscope.api.result import Result
from tierscope.bench import mpi
from tierscope.bench.stall import USUAL_SECONDS
from tierscope.commands.analyze import analyze
from tierscope.commands.report import write_report
from tierscope.commands.run import LocalRun, run_here
from tierscope.commands.simulate import refuse_generate_only, remedies_of, simulate_study
from tierscope.errors import UserError
from tierscope.jsonable import JsonObject
from tierscope.predict.exploration import SimulatedExploration
from tierscope.predict.explore_simulated import ExplorationRequest, explore_simulated
from tierscope.predict.plan_json import simulated_exploration_json
from tierscope.report.models import SimulatedExplorationView
from tierscope.spec import sweep
from tierscope.spec.dump import to_yaml
from tierscope.spec.kinds import Seconds
from tierscope.spec.load import Loaded, StudyText, default_out, load_text, read_named
from tierscope.spec.scale import scaled
from tierscope.watch import Watch

Method = Literal["auto", "bound", "events"]
SystemName = StrPath | FittedSystem  # one that ships, a YAML file, or what `calibrate` returned
_METHODS = ("auto", "bound", "events")
_DICT = "study"  # what errors call one that was made from a mapping
_KEPT = "finished runs are kept; the same call continues"


class Study:
    """Workload, system, placement and sweep, resolved and checked. Make one with `Study.from_yaml` or `Study.from_dict`; it never changes.

    Making one reads a page of YAML and checks every point of the sweep: milliseconds for a few points, seconds for ten thousand.
    """

    __slots__ = ("_is_dlio", "_loaded", "_scale", "_settings", "_system", "_written")

    def __init__(
        self,
        written: StudyText,
        settings: Sequence[str],
        system: SystemName | None,
        is_dlio: bool,
        scale: str | None = None,
    ) -> None:
        """Not for callers: use `from_yaml` or `from_dict`."""
        self._written, self._settings, self._system = written, tuple(settings), system
        self._is_dlio, self._scale = is_dlio, scale
        self._loaded = self._load()

    @classmethod
    def from_yaml(
        cls,
        path: StrPath,
        *,
        settings: Settings | None = None,
        system: SystemName | None = None,
        dlio: bool = False,
    ) -> "Study":
        """From a YAML file of ours or of DLIO, or a preset by its name ("demo").

        `settings`: keys to override, by any unambiguous suffix: {"gfs.servers": 4}, as `--set` has them. `system`: in place of the study's own.
        `dlio`: it is a file of DLIO, whatever it looks like. Reads the file once: later changes to it do not matter. Takes milliseconds.

        >>> import tierscope as ts
        >>> ts.Study.from_yaml("demo", settings={"sweep.cache_rate": [0, 1]})
        <Study 'demo': 2 points, 2 runs>
        """
        return cls(read_named(path_text("path", path), dlio), setting_texts(settings), system, dlio)

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, object],
        *,
        settings: Settings | None = None,
        system: SystemName | None = None,
        folder: StrPath = ".",
    ) -> "Study":
        """From a mapping of the same shape as the YAML, with text ("50%", "1 MiB"), numbers, lists and mappings in it.

        `folder`: from where files that it names are seen. For studies that a program makes; checked as a file is, and takes as long.
        """
        text = yaml.safe_dump(yaml_tree(content, ""), sort_keys=False, allow_unicode=True)
        written = StudyText(text, _DICT, path_text("folder", folder), has_lines=False)
        return cls(written, setting_texts(settings), system, is_dlio=False)

    def scaled(self, share: float | str) -> "Study":
        """A smaller study of the same proportions, like `--scale 0.001`: fewer ranks, files and samples. For a first try; its times are not the large one's. Takes as long as making it."""
        return Study(self._written, self._settings, self._system, self._is_dlio, scalar_text("share", share, 0))

    @property
    def name(self) -> str:
        """Names the results. Costs nothing."""
        return self._loaded.study.study

    @property
    def points(self) -> int:
        """How many combinations of swept values there are. Costs nothing."""
        return sweep.runs(self._loaded.study) // self._loaded.study.repetitions

    @property
    def runs(self) -> int:
        """Points times repetitions: what `run` has to do. Costs nothing."""
        return sweep.runs(self._loaded.study)

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of a DLIO file's keys, and of a study that was scaled. Costs nothing."""
        return self._loaded.notes

    def to_yaml(self, comments: bool = False) -> str:
        """Every key written out, as results keep it. `comments`: with what each means. Costs next to nothing."""
        return to_yaml(self._loaded.study, comments)

    def explore(
        self,
        goal: str | None = None,
        vary: Mapping[str, object] | None = None,
        *,
        cost: Mapping[str, str] | Sequence[str] | None = None,
        max_price: str | float | None = None,
        method: Method = "auto",
        progress: bool = True,
    ) -> "StudyExploration":
        """Simulate the study with other keys, and find what meets a goal, cheapest first: what to buy, before anybody built it.

        `vary`: keys and the values to try, {"gfs.servers": [1, 4, 16]}; `cost`: {"gfs.servers": "20000/server"}. Simulates every combination: milliseconds
        each by the bound, up to seconds by events. Nothing is written.
        """
        vary_texts = key_variation_texts(vary)
        wanted = ExplorationRequest(
            vary_texts, goal_text(goal), price_texts(cost), chosen("method", method, _METHODS), limit_text(max_price)
        )
        with shown(progress) as watch:
            loaded = self._load(vary_texts)
            refuse_generate_only(loaded, self._written.source)
            _say_notes(loaded, watch)
            return StudyExploration(self.name, explore_simulated(loaded, wanted, watch))

    def _load(self, vary: Sequence[str] = ()) -> Loaded:
        with _system_name(self._system) as system:
            return scaled(load_text(self._written, self._settings, system, self._is_dlio, vary), self._scale)

    def __repr__(self) -> str:
        return f"<Study {self.name!r}: {self.points} point{'s' if self.points != 1 else ''}, {self.runs} run{'s' if self.runs != 1 else ''}>"


class StudyExploration:
    """Options of a system that nobody built, simulated. From `Study.explore`; holds one row per combination."""

    __slots__ = ("_exploration", "_name")

    source = "simulated"

    def __init__(self, name: str, exploration: SimulatedExploration) -> None:
        """Not for callers."""
        self._name, self._exploration = name, exploration

    @property
    def is_met(self) -> bool:
        """Whether any option fits and meets the goal. Costs nothing."""
        return bool(self._exploration.pareto)

    def options(self) -> pl.DataFrame:
        """Those that fit, meet the goal and are beaten by no other in every respect, cheapest first; empty: none does. Costs next to nothing."""
        return _combinations(self._exploration, best_only=True)

    def table(self) -> pl.DataFrame:
        """Every combination at its smallest cache rate that is enough, or its best one; `met` and `fits` tell. Costs next to nothing."""
        return _combinations(self._exploration, best_only=False)

    def to_dict(self) -> JsonObject:
        """What `tierscope explore --simulate --json` prints. Costs next to nothing."""
        return simulated_exploration_json(self._exploration)

    def __repr__(self) -> str:
        count = len(self._exploration.pareto)
        met = f"{count} option{'s' if count != 1 else ''}" if count else "nothing meets it"
        return f"<StudyExploration of {self._exploration.goal.text}: {met}, simulated ({self._exploration.method})>"

    def __str__(self) -> str:
        return pictures.as_text([SimulatedExplorationView(self._name, self._exploration)])

    def _repr_html_(self) -> str:
        return pictures.as_html([SimulatedExplorationView(self._name, self._exploration)])


def _combinations(exploration: SimulatedExploration, best_only: bool) -> pl.DataFrame:
    rows = [
        {
            **combination.settings,
            "cache_rate": combination.cache_rate,
            "io_seconds": combination.io_seconds,
            "io_low": combination.low_seconds,
            "io_high": combination.high_seconds,
            "bottleneck": combination.bottleneck,
            "epoch_seconds": combination.epoch_seconds,
            "au": combination.au,
            "cost": combination.cost,
            "met": combination.met,
            "fits": combination.feasibility.is_possible,
            "source": f"simulated ({exploration.method})",
        }
        for combination in (exploration.pareto if best_only else exploration.combinations)
    ]
    return pl.DataFrame(rows, strict=False, infer_schema_length=None)


def run(
    study: Study | StrPath,
    out: StrPath | None = None,
    *,
    ops: bool = False,
    stall_limit: str | None = None,
    progress: bool = True,
) -> Result:
    """Run a study on this machine: generate its data, measure every point that is not finished, analyse.

    `study`: a Study, a YAML file or a preset. `out`: default ./results/STUDY. `ops`: also keep every operation. `stall_limit`: how long storage may not
    answer, like "5min"; default 45 s. Ranks are processes of this machine, and the study's tiers get its data: it takes as long and as many bytes as the study says.
    Interrupt it when you like: finished runs are kept, and the same call continues. Not under mpirun or srun: there `tierscope run` is right.
    """
    if (launched := mpi.launched()) is not None and launched[0] > 1:
        raise UserError(
            f"run: a launcher has started {launched[0]} processes, and ranks of a call are its own; use 'mpirun … tierscope run STUDY' for a study on many nodes"
        )
    wanted = _as_study(study)
    loaded = wanted._loaded
    if loaded.generates_only:
        raise UserError(
            f"{wanted._written.source}: workflow.train and workflow.checkpoint are off: its data is only generated, and there is nothing to run; 'tierscope generate' does that"
        )
    target = default_out(loaded.study, None if out is None else path_text("out", out))
    local = LocalRun(ops=ops, stall_seconds=_stall_seconds(stall_limit))
    with shown(progress) as watch, _interruptible():
        _say_notes(loaded, watch)
        analysis = run_here(loaded, target, local, watch)
        write_report(analysis, target, None, {})
    return Result(analysis, target)


def simulate(
    study: Study | StrPath,
    system: SystemName | None = None,
    out: StrPath | None = None,
    *,
    method: Method = "auto",
    progress: bool = True,
) -> Result:
    """Simulate a study from its tiers' rates, without running it; the result says `source == "simulated"` everywhere.

    `system`: in place of the study's own: a name that ships ("cori-gpu"), a YAML file, or what `calibrate` returned. `out`: default
    ./results/STUDY-simulated; what is simulated there already is not repeated. `method`: "events" plays every operation, "bound" asks what the busiest station allows,
    "auto" chooses. Milliseconds to minutes by point; needs no storage, and numba for events.
    """
    chosen("method", method, _METHODS)
    wanted = _as_study(study)
    if system is not None:
        wanted = Study(wanted._written, wanted._settings, system, wanted._is_dlio, wanted._scale)
    loaded = wanted._loaded
    refuse_generate_only(loaded, wanted._written.source)
    target = default_out(loaded.study, None if out is None else path_text("out", out), suffix="-simulated")
    with shown(progress) as watch, _interruptible():
        _say_notes(loaded, watch)
        store = simulate_study(loaded.study, target, method, watch, loaded.known)
        result = Result(analyze(target, store=store), target)
        result._remedies = remedies_of(result._analysis, loaded.known)
        write_report(result._analysis, target, None, {}, remedies=result._remedies)
    return result


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(_KEPT)
        raise


def _as_study(study: Study | StrPath) -> Study:
    return study if isinstance(study, Study) else Study.from_yaml(study)


def _say_notes(loaded: Loaded, watch: Watch) -> None:
    for text in loaded.notes:
        watch.note(f"note: {text}")


def _stall_seconds(text: str | None) -> float | None:
    if text is None:
        return USUAL_SECONDS
    try:
        return float(Seconds(0).parse(str(text))) or None
    except ValueError as error:
        raise UserError(f"--stall-limit {text}: {error}") from None


@contextmanager
def _system_name(system: SystemName | None) -> Iterator[str | None]:
    """As `--system` takes it."""
    if not isinstance(system, FittedSystem):
        yield None if system is None else path_text("system", system)
        return
    with tempfile.TemporaryDirectory(prefix="tierscope-") as folder:
        path = os.path.join(folder, f"{system.name}.yaml")
        system.save(path)
        yield path
