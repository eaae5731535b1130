"""What commands share: options, and how they print."""

import errno
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from tierscope.cli import generated, showing, terminal
from tierscope.errors import TierscopeError, UserError, shell_word
from tierscope.recording.recorders import BUILTIN

if TYPE_CHECKING:
    from tierscope.analysis.analysis import Analysis
    from tierscope.jsonable import JsonObject
    from tierscope.measure.crews import Crews
    from tierscope.predict.exploration import Remedy
    from tierscope.report.folder import WrittenReport
    from tierscope.report.summary import Summary
    from tierscope.spec.goal import Goal
    from tierscope.spec.load import Loaded
    from tierscope.spec.study import Study

WIDTH = 160
METHODS = ("auto", "bound", "events")  # of simulating

out_option = click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY.")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the study; any unambiguous suffix."
)
overrides_argument = click.argument("overrides", nargs=-1, metavar="[++workload.KEY=VALUE]…")
dlio_option = click.option("--dlio", is_flag=True, help="Treat STUDY as a DLIO file.")
au_option = click.option(
    "--au",
    metavar="FRACTION",
    help="Goal for accelerator utilisation (AU), e.g. 0.9 or 90%; default: that of a DLIO file.",
)
goal_option = click.option(
    "--goal",
    metavar="GOAL",
    help="io=4s (or 4s): I/O time per epoch of the slowest process; epoch=10min; au=90%: accelerator utilisation. Default: the study's.",
)
system_option = click.option(
    "--system",
    metavar="NAME|FILE",
    help="Use this system instead of the study's: a name, or a file from probe or calibrate.",
)
scale_option = click.option(
    "--scale",
    metavar="FRACTION",
    help="Fraction of the study to run, e.g. 0.001: fewer ranks, files and samples in the same proportions.",
)
stall_option = click.option(
    "--stall-limit",
    metavar="TIME",
    help="Stop after a rank has waited this long for storage, or has been suspended, e.g. 5min; default 45 s; 0: wait forever.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Do not show progress.")
improve_option = click.option(
    "--improve",
    multiple=True,
    metavar="CLASS=PERCENT",
    help="Assume PERCENT more throughput in a class, e.g. GFS-META=50.",
)
log_tiers_option = click.option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="NAME=/PATH[,/PATH2…]",
    help="Logs only: a storage tier and the path of its files; nearest tier first.",
)
_no_shared = click.option(
    "--no-shared",
    is_flag=True,
    help="Darshan logs only: ignore files summed over all ranks. By default the slowest and the fastest rank get their recorded times, the others equal parts of the rest.",
)
_split_shared = click.option("--split-shared", is_flag=True, hidden=True, help="The default.")


class FiniteRange(click.FloatRange):
    """Numbers between two: NaN is compared with nothing, so the range alone lets it through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--no-shared`, and `--split-shared`, which was an option before it became the default."""
    return _no_shared(_split_shared(command))


def refuse_both_shared(no_shared: bool, split_shared: bool) -> None:
    if no_shared and split_shared:
        raise UserError("--no-shared and --split-shared exclude each other; remove one")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


def all_settings(overrides: tuple[str, ...], settings: tuple[str, ...]) -> list[str]:
    """What `spec.load` takes: overrides of DLIO's keys and settings of ours, in one list."""
    for override in overrides:
        if not override.startswith("++"):
            key = override.lstrip("+")
            dlio = f"++{key}" if key.startswith("workload.") else "++workload.KEY=VALUE"
            raise UserError(
                f"{override}: only one study at a time; write DLIO keys as {dlio}, study keys as --set KEY=VALUE"
            )
    return [*overrides, *settings]


def read_au(text: str) -> float:
    from tierscope.spec.kinds import Fraction  # noqa: PLC0415

    try:
        return float(Fraction(0, 1).parse(text))
    except ValueError as error:
        raise UserError(f"--au {text}: {error}") from None


def read_seconds(option: str, text: str) -> float:
    from tierscope.spec.kinds import Seconds  # noqa: PLC0415

    try:
        return float(Seconds(0).parse(text))
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None


def scaled(loaded: "Loaded", scale: str | None) -> "Loaded":
    """Made smaller, if that is asked for."""
    from tierscope.spec import scale as scaling  # noqa: PLC0415

    return scaling.scaled(loaded, scale)


def say_notes(loaded: "Loaded", note: Callable[[str], None]) -> None:
    """Of a file of DLIO: what becomes of its keys; of a study that is scaled: its figures."""
    for text in loaded.notes:
        note(f"note: {text}")


def default_out(study: "Study", out: str | None, suffix: str = "") -> str:
    from tierscope.spec import load  # noqa: PLC0415

    return load.default_out(study, out, suffix)


def refuse_existing(path: str, force: bool) -> None:
    if os.path.exists(path) and not force:
        raise UserError(f"{path}: already exists; choose another name, or use --force to overwrite it")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{path}: no such directory: {folder}; create it, or choose another name")


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=1, allow_nan=False) + "\n")


def print_rich(*renderables: Any) -> None:
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    console = terminal.console(sys.stdout, highlight=False, width=width)
    for renderable in renderables:
        console.print(renderable)


def output_failed(error: OSError) -> int:
    """Standard output went away (`| head`) or cannot take more: our exit code. Anything else is a bug of ours."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EBADF) or error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 0
    sys.stderr.write(f"tierscope: cannot write the output: {error.strerror}; results on disk are kept\n")
    return 3


def _instead(remedies: "Sequence[Remedy]", goal: "Goal | None") -> "JsonObject":
    if not remedies:
        return {}
    from tierscope.predict.plan_json import remedy_json  # noqa: PLC0415  (all of simulation, which reading logs does without)

    return {"remedies": [remedy_json(remedy, goal) for remedy in remedies]}


def show_analysis(analysis: "Analysis", as_json: bool, remedies: "Sequence[Remedy]" = ()) -> None:
    """`remedies`: what would fit, where the best of a simulation does not."""
    if as_json:
        from tierscope.analysis.to_json import analysis_json  # noqa: PLC0415

        print_json({**analysis_json(analysis), **_instead(remedies, analysis.goal)})
        return
    from tierscope.commands.analyze import views_of  # noqa: PLC0415

    print_rich(*views_of(analysis, remedies, showing.shows_all()))


@contextmanager
def ranks_of_study(stall_limit: str | None = None) -> "Iterator[Crews]":
    """Crews for a command that needs ranks. Under MPI every process runs the command; only rank 0 gets past here."""
    from tierscope.bench import mpi  # noqa: PLC0415
    from tierscope.bench.stall import USUAL_SECONDS  # noqa: PLC0415
    from tierscope.measure.crews import Crews  # noqa: PLC0415

    stall_seconds = (USUAL_SECONDS if stall_limit is None else read_seconds("--stall-limit", stall_limit)) or None
    world = mpi.connect()
    if world is not None and world.Get_rank() != 0:
        raise SystemExit(mpi.serve(world, stall_seconds))
    crews = Crews(world, stall_seconds)
    exit_code = 0
    try:
        yield crews
    except TierscopeError as error:
        exit_code = error.exit_code
        raise
    except BaseException as error:
        if world is not None:  # the others may be in the middle of something
            stopped = isinstance(error, KeyboardInterrupt)
            mpi.abort(world, "stopped" if stopped else f"{type(error).__name__}: {error}", 3 if stopped else 1)
        raise
    finally:
        crews.close()
        if world is not None:
            world.bcast(mpi.Stop(exit_code), root=0)


@dataclass(frozen=True, slots=True)
class Given:
    """What a study is run from, beside its file: settings of ours and of DLIO, a system, and what is wanted of its metrics."""

    settings: Sequence[str] = ()
    system: str | None = None
    is_dlio: bool = False
    au: str | None = None
    metrics: bool = False
    scale: str | None = None
    live_csv: str | None = None


def run_and_show(
    study_name: str,
    given: Given,
    out: str | None,
    quiet: bool,
    as_json: bool,
    ops: bool,
    profiler: str = BUILTIN,
    stall_limit: str | None = None,
) -> None:
    """`run` and `demo`."""
    goal = read_au(given.au) if given.au else None
    with ranks_of_study(stall_limit) as crews:
        from tierscope.cli.live import following  # noqa: PLC0415
        from tierscope.measure.run import generate_data, run_study  # noqa: PLC0415
        from tierscope.spec.goal import AU, Goal  # noqa: PLC0415
        from tierscope.spec.load import load  # noqa: PLC0415

        loaded = scaled(load(study_name, given.settings, given.system, given.is_dlio), given.scale)
        if goal is not None:
            loaded = replace(loaded, study=replace(loaded.study, goal=Goal(AU, goal)))
        target = default_out(loaded.study, out)
        with following(quiet, given.live_csv, loaded.study.study) as (watch, tracker):
            say_notes(loaded, watch.note)
            if loaded.generates_only:
                generated.say_generated(loaded.study, generate_data(loaded.study, target, crews, watch))
                return
            store = run_study(loaded.study, target, crews, watch, ops, profiler, tracker)
    from tierscope.commands.run import conclude  # noqa: PLC0415  (after the ranks are gone)

    analysis, summary = conclude(target, store, loaded.wanted, goal)
    show_result(analysis, target, as_json, summary if given.metrics else None)


def show_metrics(summary: "Summary", as_json: bool) -> None:
    """DLIO's `[METRIC]` lines, or all of summary.json."""
    if as_json:
        print_json(summary.document)
        return
    for line in summary.lines():
        click.echo(line)


def show_result(analysis: "Analysis", target: str, as_json: bool, summary: "Summary | None" = None) -> None:
    """What `run` and `simulate` end with: the breakdown, and where results and page are. `summary`: DLIO's metrics, if they are to be shown."""
    from tierscope.commands.report import write_report  # noqa: PLC0415
    from tierscope.commands.simulate import remedies_of  # noqa: PLC0415

    remedies = remedies_of(analysis)
    if summary is None or not as_json:
        show_analysis(analysis, as_json, remedies)
    if summary is not None:
        show_metrics(summary, as_json)
    if not as_json:
        say_where(target)
    written = write_report(analysis, target, None, {}, remedies=remedies)
    if not as_json:
        say_page(written)
        click.echo(f"What if storage were faster? {_program()} estimate {_shown(target)}, or open the page")


def say_where(target: str) -> None:
    click.echo(f"Results: {_shown(target)}. To show them again: {_program()} analyze {_shown(target)}")


def say_written(path: str) -> None:
    click.echo(f"Written: {_shown(path)}")


def _program() -> str:
    """How the user can call us: by name, or by where we are."""
    ours = os.path.basename(sys.argv[0]) == "tierscope" and not shutil.which("tierscope")
    return _shown(sys.argv[0]) if ours else "tierscope"


def say_page(written: "WrittenReport") -> None:
    """Where the report is, and what is missing from it."""
    click.echo(f"Page: {_shown(written.page)}")
    if written.figures:
        figures = os.path.dirname(written.figures[0])
        click.echo(f"Figures: {_shown(figures)}{written.problem and f' (no PNG: {written.problem})'}")
    if written.missing:
        click.echo(f"Not drawn: {', '.join(written.missing)}; see the page for the reasons")


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return shell_word(path if relative.startswith("..") else relative)
