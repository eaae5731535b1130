"""`tierscope`: the commands, loaded when they are called, and the one place where exit codes are decided."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from tierscope import __version__
from tierscope.cli.common import output_failed
from tierscope.cli.terminal import escaped_streams, show_bug
from tierscope.errors import TierscopeError, UserError
from tierscope.launch import LAUNCHERS
from tierscope.shortage import shortage_of
from tierscope.signals import ignore_to_the_end, raise_on_signals, stopped_by
from tierscope.thread_limits import check_threads
from tierscope.units import closest

_LAUNCHERS = ", ".join(launcher.title for launcher in LAUNCHERS.entries.values())
# name → (module, one line of help): --help must not import what commands need.
COMMANDS = {
    "run": ("tierscope.cli.run", "Run a study: generate its data, sweep, analyse. Run again to resume."),
    "demo": ("tierscope.cli.demo", "Run the embedded demo study on this machine, in under a minute."),
    "simulate": ("tierscope.cli.simulate", "Simulate a study from its tiers' rates, without running it."),
    "probe": ("tierscope.cli.probe", "Measure what this host's storage can do: rates for simulate, in minutes."),
    "calibrate": ("tierscope.cli.calibrate", "Fit a system's rates to measured runs, with intervals."),
    "validate": ("tierscope.cli.validate", "Leave-one-out errors of the model on measured runs."),
    "trace": ("tierscope.cli.trace", "Run any command and show where its I/O time goes."),
    "convert": ("tierscope.cli.convert", "Print the study that a file of DLIO means."),
    "launch": ("tierscope.cli.launch", f"Write a job script ({_LAUNCHERS}) that runs and resumes a study."),
    "generate": ("tierscope.cli.generate", "Only generate the data of a study."),
    "analyze": ("tierscope.cli.analyze", "Show where the I/O time of the slowest process goes."),
    "characterise": ("tierscope.cli.characterise", "Show how a run reads: sizes, order, files, bandwidth, hidden I/O."),
    "compare": ("tierscope.cli.compare", "Compare how two runs read: cosine similarity, and each metric's difference."),
    "estimate": ("tierscope.cli.estimate", "Estimate what a faster class of I/O would change."),
    "explore": ("tierscope.cli.explore", "Find the improvements that meet a goal, and the cheapest of them."),
    "tune": ("tierscope.cli.tune", "Try combinations of keys on this system; which is fastest, and why."),
    "train": (
        "tierscope.cli.train",
        "Train a real network from the tiers: throughput, phases, whether storage matters.",
    ),
    "require": ("tierscope.cli.require", "What training a network demands of a system; does storage matter for it?"),
    "kernels": ("tierscope.cli.kernels", "At which efficiency a training step uses this machine's device."),
    "shuffling": ("tierscope.cli.shuffling", "What global, chunked and local shuffle cost in accuracy and I/O."),
    "report": ("tierscope.cli.report", "Write a page to play with, and figures for papers."),
    "presets": ("tierscope.cli.presets", "List the studies and systems to start from, or print one."),
    "clean": ("tierscope.cli.clean", "Delete results, or data on tiers: only what Tierscope made; asks first."),
    "doctor": ("tierscope.cli.doctor", "What this machine offers, and what to do about what it lacks."),
}
ALIASES = {"characterize": "characterise"}  # other spellings; not listed


class _Commands(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name][0]).command
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and ALIASES.get(name, name) not in COMMANDS:
            guess = closest(name, COMMANDS)
            hint = f"did you mean {guess}?" if guess else f"commands: {', '.join(COMMANDS)}"
            ctx.fail(f"no command '{name}'; {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tierscope")
@click.pass_context
def cli(context: click.Context) -> None:
    """Where training's I/O time goes across storage tiers, and what to cache, tune or buy.

    A first look: tierscope demo. Your own study: tierscope presets demo > study.yaml, then tierscope run study.yaml.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        return
    check_threads()
    try:
        os.getcwd()
    except OSError as error:
        raise UserError(f"the current directory cannot be used: {error.strerror}; change to another one") from None


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Exit codes: 0 done, 2 the user's mistake, 3 stopped but resumable, 1 our bug."""
    raise_on_signals()
    sys.excepthook = show_bug
    with escaped_streams():
        exit_code = _run(arguments)
    ignore_to_the_end()
    sys.exit(exit_code)


def _run(arguments: Sequence[str] | None) -> int:  # noqa: PLR0911  (one for each end)
    try:
        with cli.make_context("tierscope", list(sys.argv[1:] if arguments is None else arguments)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except TierscopeError as error:
        _say(str(error))
        return error.exit_code
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        _say(f"{' '.join(error.format_message().split())} (see --help)")  # choices come in lines
        return 2
    except (KeyboardInterrupt, click.Abort) as error:
        return _stopped(error)
    except (MemoryError, ImportError) as error:
        return _short_of_something(error)
    except OSError as error:
        cause = _interrupt_behind(error)
        return _stopped(cause) if cause else output_failed(error)
    except Exception as error:
        cause = _interrupt_behind(error)
        if cause is None:
            raise
        return _stopped(cause)


def _short_of_something(error: MemoryError | ImportError) -> int:
    """Also a library that could not be loaded may only have got no memory."""
    short = shortage_of(error)
    if short is None:
        raise error
    if isinstance(error, ImportError):
        _say(f"{error.name or 'a library'} could not be loaded: {short}")
    else:
        _say("there is not enough memory for this; use fewer files, ranks or points, or a machine with more")
    return 3


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """This may be only what an interrupt left behind, as a buffer that could not be closed then."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def _stopped(error: BaseException) -> int:
    by = stopped_by(_interrupt_behind(error))  # Abort: click's own for Ctrl-C
    _say(f"{by}; finished runs are kept, the same command goes on")
    return 3


def _say(message: str) -> None:
    sys.stderr.write(f"tierscope: {message}\n")


if __name__ == "__main__":
    main()
