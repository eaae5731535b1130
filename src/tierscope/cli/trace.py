import os
import sys

import click

from tierscope.cli import common
from tierscope.errors import StoppedError, TierscopeError, UserError
from tierscope.studies.launch import holding_signals
from tierscope.studies.recorders import RECORDERS, Wanted


@click.command("trace", context_settings={"allow_interspersed_args": False})
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="NAME=/PATH[,/PATH2…]",
    help="A storage tier and where its files lie; nearest first. The longest path that fits a file counts.",
)
@click.option(
    "--out", type=click.Path(file_okay=False), help="Results directory; default ./results/trace-COMMAND, numbered."
)
@click.option(
    "--with", "recorder", type=click.Choice(list(RECORDERS)), default="builtin", show_default=True, help="What records."
)
@common.basis_option
@click.option("--ops", is_flag=True, help="Also keep the full list of operations (OUT/ops).")
@click.option(
    "--epochs",
    type=click.Choice(["marks", "rereads"]),
    default="marks",
    show_default=True,
    help="marks: the program calls tierscope.mark_epoch; rereads: a file that is opened again begins the next one.",
)
@click.option(
    "--emulate",
    multiple=True,
    metavar="TIER.KEY=VALUE",
    help="Slow a tier down, with the keys of a study's tier: gfs.bandwidth=20MB/s.",
)
@common.quiet_option
@common.json_option
@click.argument("command_line", metavar="-- COMMAND [ARGUMENTS]…", nargs=-1, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917  (one per option)
    tiers: tuple[str, ...],
    out: str | None,
    recorder: str,
    basis: str,
    ops: bool,
    epochs: str,
    emulate: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    command_line: tuple[str, ...],
) -> int:
    """Run any COMMAND and show where the I/O time of its slowest process goes.

    Sees open, read, write, stat, seek, sync and close of every process that COMMAND starts, for files below the tiers' paths.
    Does not see: what is read through mmap, io_uring, statically linked and setuid programs. Exits with COMMAND's exit code.
    """
    if not command_line:
        raise UserError(
            "no command is given; write it behind --, for example: tierscope trace --tier gfs=/lustre -- python train.py"
        )
    with holding_signals():
        from tierscope.cli.progress import Notes  # noqa: PLC0415
        from tierscope.spec.traced import read_tiers  # noqa: PLC0415
        from tierscope.studies.trace import finish, run_traced  # noqa: PLC0415
        from tierscope.studies.watch import Silent  # noqa: PLC0415

        wanted = Wanted(command=command_line, tiers=read_tiers(tiers, emulate), ops=ops, epochs=epochs)
        sys.stdout.flush()
        traced = run_traced(wanted, recorder, out, Silent() if quiet else Notes(), output_to_stderr=as_json)
    try:
        finish(traced.out, traced.exit_code)
        _show(traced.out, basis, as_json)
    except TierscopeError as error:
        if traced.exit_code == 0:
            raise
        sys.stderr.write(f"tierscope: {error}\n")
    except OSError:  # nobody reads our output (`| head`)
        if traced.exit_code == 0:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        raise StoppedError(f"stopped; 'tierscope analyze {traced.out}' shows what was recorded") from None
    return traced.exit_code


def _show(out: str, basis: str, as_json: bool) -> None:
    from tierscope.studies.analyze import analyze  # noqa: PLC0415

    common.show_analysis(analyze(out, basis), as_json)
    if not as_json:
        common.say_where(out)
    sys.stdout.flush()
