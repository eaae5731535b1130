import os
import sys
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import counting_options
from tierscope.cli.showing import all_option
from tierscope.errors import StoppedError, TierscopeError, UserError, shell_word
from tierscope.recording.command import holding_signals
from tierscope.recording.recorders import BUILTIN, RECORDERS, RecordingRequest
from tierscope.signals import stopped_by

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting
    from tierscope.recording.traced import EndedCommand


@click.command("trace", context_settings={"allow_interspersed_args": False})
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="NAME=/PATH[,/PATH2…]",
    help="A storage tier and the paths of its files; nearest tier first. The longest matching path wins.",
)
@click.option(
    "--out", type=click.Path(file_okay=False), help="Results directory; default ./results/trace-COMMAND, numbered."
)
@click.option(
    "--with", "recorder", type=click.Choice(list(RECORDERS)), default=BUILTIN, show_default=True, help="The recorder."
)
@click.option(
    "--ops",
    is_flag=True,
    help="Also keep the full list of operations (OUT/ops), with start_seconds on the host's monotonic clock; paths are in files.parquet.",
)
@click.option(
    "--epochs",
    type=click.Choice(["marks", "rereads"]),
    default="marks",
    show_default=True,
    help="marks: the program calls tierscope.mark_epoch; rereads: detect passes over the same data.",
)
@click.option(
    "--emulate",
    multiple=True,
    metavar="TIER.KEY=VALUE",
    help="Slow a tier down, with the keys of a tier in a study, e.g. gfs.bandwidth=20MB/s.",
)
@common.quiet_option
@all_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON only; COMMAND's standard output goes to standard error."
)
@click.argument("command_line", metavar="-- COMMAND [ARGUMENTS]…", nargs=-1, type=click.UNPROCESSED)
@counting_options
def command(  # noqa: PLR0913, PLR0917  (one per option)
    tiers: tuple[str, ...],
    out: str | None,
    recorder: str,
    ops: bool,
    epochs: str,
    emulate: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    command_line: tuple[str, ...],
    counting: "Counting",
) -> int:
    """Run any COMMAND and show where the I/O time of its slowest rank goes.

    Records open, read, write, stat, seek, sync and close of every process that COMMAND starts, for files below the tiers' paths; a
    symbolic link counts where it points. I/O time is reads, metadata and writes.

    Does not record: reads through mmap, io_uring, mkdir, rename, unlink, directory listings; statically linked and
    setuid programs, including children; programs started without their environment (env -i, sudo) or after a change of user.

    Exits with COMMAND's exit code.
    """
    if not command_line:
        raise UserError("no command; add it after --, e.g. tierscope trace --tier gfs=/lustre -- python train.py")
    _refuse_several()
    traced: EndedCommand | None = None
    try:
        with holding_signals():
            from tierscope.cli.progress import PlainProgress  # noqa: PLC0415
            from tierscope.recording.traced import run_traced  # noqa: PLC0415
            from tierscope.spec.traced import emulation_lines, read_tiers  # noqa: PLC0415
            from tierscope.watch import Silent  # noqa: PLC0415

            wanted = RecordingRequest(command=command_line, tiers=read_tiers(tiers, emulate), ops=ops, epochs=epochs)
            sys.stdout.flush()
            watch = Silent() if quiet else PlainProgress()
            for line in emulation_lines(wanted.tiers):
                watch.note(line)
            traced = run_traced(wanted, recorder, out, watch, output_to_stderr=as_json)
        _finish(traced, counting, as_json)
    except KeyboardInterrupt as error:
        raise StoppedError(
            f"{stopped_by(error)}; 'tierscope analyze {shell_word(traced.out)}' shows what was recorded"
            if traced
            else f"{stopped_by(error)} before the command was started"
        ) from None
    return traced.exit_code


def _refuse_several() -> None:
    """Copies of us that a launcher started would fight for one OUT. An allocation alone (`sbatch`) starts only one."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        size = os.environ.get(name, "")
        if size.isascii() and size.isdigit() and int(size) > 1:
            raise UserError(
                f"{name} is {size}: a launcher started several copies of tierscope; put tierscope in front: tierscope trace … -- mpirun …"
            )


def _finish(traced: "EndedCommand", counting: "Counting", as_json: bool) -> None:
    """What goes wrong here does not hide that the command failed."""
    from tierscope.recording.traced import finish  # noqa: PLC0415

    try:
        finish(traced.out, traced.exit_code)
        _show(traced.out, counting, as_json)
    except TierscopeError as error:
        if traced.exit_code == 0:
            raise
        sys.stderr.write(f"tierscope: {error}\n")
    except OSError as error:  # nobody reads our output (`| head`): the command has ended as it has
        common.output_failed(error)


def _show(out: str, counting: "Counting", as_json: bool) -> None:
    from tierscope.commands.analyze import analyze  # noqa: PLC0415

    common.show_analysis(analyze(out, counting), as_json)
    if not as_json:
        common.say_where(out)
    sys.stdout.flush()
