import click

from tierscope.cli import common
from tierscope.errors import UserError

_MINIMIZED = {"epoch": "epoch_seconds", "io": "io_seconds"}


@click.command("tune")
@click.argument("study")
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="Values of a key to try, e.g. reader.transfer_size=256KiB,1MiB or read_threads=1:8:1; repeatable: all combinations.",
)
@click.option("--budget", default="10min", show_default=True, metavar="TIME", help="Time for all runs together; the first round is always completed.")  # fmt: skip
@click.option(
    "--minimize",
    "minimized",
    type=click.Choice(list(_MINIMIZED)),
    default="epoch",
    show_default=True,
    help="What to minimize: the epoch, or the I/O time of the slowest process.",
)
@click.option("--goal", "former", hidden=True)  # its name in earlier versions
@click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY-tune.")
@common.set_option
@common.system_option
@common.quiet_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    study: str,
    vary: tuple[str, ...],
    budget: str,
    minimized: str,
    former: str | None,
    out: str | None,
    settings: tuple[str, ...],
    system: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Try combinations of STUDY's keys on this system, and report which is fastest, how much faster, and why.

    All combinations get short runs; the best third gets longer ones, and the last few get repeated full runs, alternating with
    the unchanged study. Rerun the same command to resume: finished trials are not repeated.

    For example: tierscope tune STUDY --vary reader.transfer_size=64KiB,256KiB,1MiB --vary reader.read_threads=1,2,4,8
    """
    from tierscope.spec.whatif import read_duration  # noqa: PLC0415

    if former is not None and former not in _MINIMIZED:
        raise UserError(
            f"--goal {former}: {former!r} is not one of {', '.join(map(repr, _MINIMIZED))}; tune has no goal, use --minimize"
        )
    seconds = read_duration("--budget", budget)
    with common.ranks_of_study() as crews:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.spec.load import load  # noqa: PLC0415
        from tierscope.tuning.tuner import tune  # noqa: PLC0415

        loaded = load(study, settings, system)
        target = common.default_out(loaded.study, out, "-tune")
        with watching(quiet) as watch:
            common.say_notes(loaded, watch.note)
            tuning = tune(loaded.study, vary, _MINIMIZED[former or minimized], seconds, target, crews, watch)
    if as_json:
        from tierscope.tuning.tuning import tuning_json  # noqa: PLC0415

        common.print_json(tuning_json(tuning))
        return
    from tierscope.report.tuning import TuningView  # noqa: PLC0415

    common.print_rich(TuningView(tuning))
    click.echo(f"Trials: {target}/trials")
