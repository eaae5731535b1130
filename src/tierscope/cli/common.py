"""What commands share: options, and how they print."""

import errno
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tierscope.errors import TierscopeError, UserError

if TYPE_CHECKING:
    from tierscope.spec.study import Study
    from tierscope.studies.analyze import Analysis
    from tierscope.studies.crews import Crews
    from tierscope.studies.report import Written

WIDTH = 160

out_option = click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY.")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key (any unambiguous suffix)."
)
system_option = click.option(
    "--system", metavar="NAME|FILE", help="A known system, or one from probe or calibrate, in place of the study's own."
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")
basis_option = click.option(
    "--basis",
    type=click.Choice(["busy", "wall"]),
    default="busy",
    show_default=True,
    help="Which seconds to show.",
)
improve_option = click.option(
    "--improve", multiple=True, metavar="CLASS=PERCENT", help="That much more throughput in a class: GFS-META=50."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Pure JSON on stdout.")


def default_out(study: "Study", out: str | None, suffix: str = "") -> str:
    if out == "":
        raise UserError("--out is empty; give a directory, or leave it out")
    return os.path.abspath(out or os.path.join("results", study.study + suffix))


def refuse_existing(path: str, force: bool) -> None:
    if os.path.exists(path) and not force:
        raise UserError(f"{path}: is there already; give another name, or --force to replace it")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{path}: there is no directory {folder}; make it, or give another name")


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, indent=1, allow_nan=False) + "\n")


def print_rich(*renderables: Any) -> None:
    from rich.console import Console  # noqa: PLC0415

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Rich would end the program here, with an exit code that is not its to choose."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    console = Plain(highlight=False, width=width)
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


def show_analysis(analysis: "Analysis", as_json: bool) -> None:
    if as_json:
        from tierscope.analysis.to_json import breakdown_json  # noqa: PLC0415

        print_json(breakdown_json(analysis.breakdown, analysis.findings, analysis.conditions))
        return
    from tierscope.report.tables import BreakdownView  # noqa: PLC0415

    print_rich(BreakdownView(analysis.name, analysis.breakdown, analysis.findings, analysis.conditions))


@contextmanager
def ranks_of_study() -> "Iterator[Crews]":
    """Crews for a command that needs ranks. Under MPI every process runs the command; only rank 0 gets past here."""
    from tierscope.bench import mpi  # noqa: PLC0415
    from tierscope.studies.crews import Crews  # noqa: PLC0415

    world = mpi.connect()
    if world is not None and world.Get_rank() != 0:
        raise SystemExit(mpi.serve(world))
    crews = Crews(world)
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


def run_and_show(
    study_name: str,
    settings: tuple[str, ...],
    out: str | None,
    quiet: bool,
    as_json: bool,
    ops: bool,
    profiler: str = "builtin",
) -> None:
    """`run` and `demo`."""
    with ranks_of_study() as crews:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.spec.load import load_study  # noqa: PLC0415
        from tierscope.studies.run import run_study  # noqa: PLC0415

        study = load_study(study_name, settings)
        target = default_out(study, out)
        with watching(quiet) as watch:
            run_study(study, target, crews, watch, ops, profiler)
    show_result(target, as_json)


def show_result(target: str, as_json: bool) -> None:
    """What `run` and `simulate` end with: the breakdown, and where results and page are."""
    from tierscope.studies.analyze import analyze  # noqa: PLC0415
    from tierscope.studies.report import write_report  # noqa: PLC0415

    analysis = analyze(target)
    show_analysis(analysis, as_json)
    if not as_json:
        say_where(target)
    written = write_report(analysis, target, None, {})
    if not as_json:
        say_page(written)
        click.echo(f"What if: {_program()} estimate {_shown(target)} · to play: open the page")


def say_where(target: str) -> None:
    click.echo(f"Results: {_shown(target)} · again: {_program()} analyze {_shown(target)}")


def _program() -> str:
    """How the user can call us: by name, or by where we are."""
    ours = os.path.basename(sys.argv[0]) == "tierscope" and not shutil.which("tierscope")
    return _shown(sys.argv[0]) if ours else "tierscope"


def say_page(written: "Written") -> None:
    """Where the report is, and what is missing from it."""
    click.echo(f"Page: {_shown(written.page)}")
    if written.figures:
        figures = os.path.dirname(written.figures[0])
        click.echo(f"Figures: {_shown(figures)}{written.problem and f' (no PNG: {written.problem})'}")
    if written.missing:
        click.echo(f"Not drawn: {', '.join(written.missing)}; the page says why")


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return shlex.quote(path if relative.startswith("..") else relative)
