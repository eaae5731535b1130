"""`tierscope`: the commands, loaded when they are called, and the one place where exit codes are decided."""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import click

from tierscope import __version__
from tierscope.cli.common import output_failed
from tierscope.cli.terminal import escaped_streams, show_bug
from tierscope.cli.typed import remember_typed
from tierscope.errors import TierscopeError, UserError
from tierscope.launch import LAUNCHERS
from tierscope.shortage import shortage_of
from tierscope.signals import ignore_to_the_end, raise_on_signals, stopped_by
from tierscope.thread_limits import check_threads, refuse_tables_without_room
from tierscope.units import closest

Group = Literal["measure", "explain", "predict", "plan", "maintain"]
_LAUNCHERS = ", ".join(launcher.title for launcher in LAUNCHERS.entries.values())


class Command(NamedTuple):
    """Where a command is, what it does in one line, and what it is for. `research`: for questions about training itself, not for daily work. `resumes`: finished runs stay when it is stopped."""

    module: str
    help: str
    group: Group
    research: bool = False
    resumes: bool = False


# In the order of --help, group by group. --help must not import what commands need: it reads this table only.
GROUPS: dict[Group, str] = {
    "measure": "Measure (run or record a job on real storage)",
    "explain": "Explain (where did the time go?)",
    "predict": "Predict (what would change, without running it)",
    "plan": "Plan (what to buy; does storage matter?)",
    "maintain": "Maintain",
}
COMMANDS = {
    "demo": Command(
        "tierscope.cli.demo",
        "Run a small built-in study on two emulated tiers, in about a minute.",
        "measure",
        resumes=True,
    ),
    "run": Command(
        "tierscope.cli.run", "Run a study: generate its data, sweep, analyze. Rerun to resume.", "measure", resumes=True
    ),
    "generate": Command("tierscope.cli.generate", "Generate the data of a study and stop.", "measure", resumes=True),
    "trace": Command("tierscope.cli.trace", "Run any command and show where its I/O time goes.", "measure"),
    "probe": Command(
        "tierscope.cli.probe", "Measure this host's storage in minutes; writes rates for simulate.", "measure"
    ),
    "train": Command(
        "tierscope.cli.train", "Train a real network from the tiers; does storage matter?", "measure", resumes=True
    ),
    "tune": Command(
        "tierscope.cli.tune", "Try combinations of study keys on this system and rank them.", "measure", resumes=True
    ),
    "launch": Command(
        "tierscope.cli.launch", f"Write a job script ({_LAUNCHERS}) that runs and resumes a study.", "measure"
    ),
    "kernels": Command(
        "tierscope.cli.kernels",
        "Measure how efficiently a training step uses the accelerator.",
        "measure",
        research=True,
    ),
    "analyze": Command("tierscope.cli.analyze", "Show where the slowest process spends its I/O time.", "explain"),
    "characterise": Command(
        "tierscope.cli.characterise", "Show how a run reads: sizes, order, files, bandwidth, hidden I/O.", "explain"
    ),
    "compare": Command(
        "tierscope.cli.compare", "Compare how two runs read: similarity and each metric's difference.", "explain"
    ),
    "report": Command("tierscope.cli.report", "Write an interactive page, and figures for papers.", "explain"),
    "reproduce": Command(
        "tierscope.cli.reproduce",
        "Reproduce a published study row by row: published beside ours.",
        "explain",
        research=True,
    ),
    "simulate": Command(
        "tierscope.cli.simulate",
        "Simulate a study from the rates of its tiers, without running it.",
        "predict",
        resumes=True,
    ),
    "calibrate": Command(
        "tierscope.cli.calibrate", "Fit a system's rates to measured runs, with intervals.", "predict"
    ),
    "validate": Command(
        "tierscope.cli.validate", "Report the model's leave-one-out error on measured runs.", "predict"
    ),
    "estimate": Command("tierscope.cli.estimate", "Estimate what faster storage would change in a result.", "predict"),
    "shuffling": Command(
        "tierscope.cli.shuffling",
        "Compare global, chunked and local shuffle: accuracy and I/O.",
        "predict",
        research=True,
    ),
    "explore": Command(
        "tierscope.cli.explore", "Find the improvements or systems that meet a goal, cheapest first.", "plan"
    ),
    "require": Command(
        "tierscope.cli.require", "Show what a network demands of a machine; does storage matter?", "plan"
    ),
    "presets": Command("tierscope.cli.presets", "List the built-in studies and systems, or print one.", "maintain"),
    "convert": Command("tierscope.cli.convert", "Convert a DLIO workload file to a Tierscope study.", "maintain"),
    "doctor": Command("tierscope.cli.doctor", "Check this machine, and say how to fix what is missing.", "maintain"),
    "clean": Command(
        "tierscope.cli.clean", "Delete results or data that Tierscope made; lists them and asks first.", "maintain"
    ),
}
_END_CHARS = 200
_LONG = re.compile(r"\S{4097,}")  # longer than any path
ALIASES = {"characterize": "characterise"}  # other spellings; not listed


class _Commands(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name].module).command
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for group, title in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{widest}}", _line(entry)) for name, entry in COMMANDS.items() if entry.group == group]
                )

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and ALIASES.get(name, name) not in COMMANDS:
            guess = closest(name, COMMANDS)
            hint = f"did you mean {guess}?" if guess else f"commands: {', '.join(COMMANDS)}"
            ctx.fail(f"unknown command '{name}'; {hint}")
        remember_typed(ctx, args[1:])
        return super().resolve_command(ctx, args)


def _line(command: Command) -> str:
    return f"{command.help} (research tool)" if command.research else command.help


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
    refuse_tables_without_room()
    try:
        os.getcwd()
    except OSError as error:
        raise UserError(f"cannot use the current directory: {error.strerror}; change to another one") from None


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Exit codes: 0 done, 2 the user's mistake, 3 stopped but resumable, 1 our bug, or a goal that `analyze --goal` finds missed.

    `arguments`: None for the program itself, which ends here.
    """
    raise_on_signals()
    sys.excepthook = show_bug
    with escaped_streams():
        exit_code = _run(arguments)
    ignore_to_the_end(is_done=arguments is None)
    sys.exit(exit_code)


def _run(arguments: Sequence[str] | None) -> int:  # noqa: PLR0911  (one for each end)
    try:
        with cli.make_context("tierscope", list(sys.argv[1:] if arguments is None else arguments)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()
        if arguments is None:
            ignore_to_the_end(is_done=True)  # all is written: to be stopped now would deny it
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
        return _stopped(error, arguments)
    except (MemoryError, ImportError) as error:
        return _short_of_something(error)
    except OSError as error:
        cause = _interrupt_behind(error)
        return _stopped(cause, arguments) if cause else output_failed(error)
    except Exception as error:
        cause = _interrupt_behind(error)
        if cause is None:
            raise
        return _stopped(cause, arguments)


def _short_of_something(error: MemoryError | ImportError) -> int:
    """Also a library that could not be loaded may only have got no memory."""
    short = shortage_of(error)
    if short is None:
        raise error
    if isinstance(error, ImportError):
        _say(f"{error.name or 'a library'} could not be loaded: {short}")
    else:
        _say("not enough memory; use fewer files, ranks or points, or a machine with more memory")
    return 3


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """This may be only what an interrupt left behind, as a buffer that could not be closed then."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def _stopped(error: BaseException, arguments: Sequence[str] | None) -> int:
    """Only what keeps runs says so."""
    by = stopped_by(_interrupt_behind(error))  # Abort: click's own for Ctrl-C
    words = sys.argv[1:] if arguments is None else arguments
    name = next((word for word in words if not word.startswith("-")), "")
    kept = name in COMMANDS and COMMANDS[name].resumes
    _say(
        f"{by}; {'finished runs are kept; rerun the same command to continue' if kept else 'run the same command again'}"
    )
    return 3


def _say(message: str) -> None:
    sys.stderr.write(f"tierscope: {_LONG.sub(_shortened, message)}\n")


def _shortened(word: re.Match[str]) -> str:
    """What was typed may be of any length; both ends tell what it was."""
    return f"{word[0][:_END_CHARS]}…{word[0][-_END_CHARS:]}"


if __name__ == "__main__":
    main()
