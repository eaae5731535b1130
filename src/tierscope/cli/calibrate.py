import click

from tierscope.cli import common


@click.command("calibrate")
@click.argument("results", nargs=-1, required=True, metavar="OUT…", type=click.Path())
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write the system there, for --system."
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@common.quiet_option
@common.json_option
def command(results: tuple[str, ...], output: str | None, force: bool, quiet: bool, as_json: bool) -> None:
    """Fit the rates of a system's metadata servers, object servers and latencies to measured runs.

    Times per class and process are fitted; rates that a study configured are not looked at. Several results of one system
    (other file sizes, server or node counts) tell more than one. What they cannot tell is given as "at least".
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.calibrate import calibrate_results, write_system  # noqa: PLC0415

    if output:
        common.refuse_existing(output, force)
    with watching(quiet) as watch:
        found = calibrate_results(results, watch)
    if output:
        write_system(found, output)
    if as_json:
        from tierscope.predict.model_json import calibration_json  # noqa: PLC0415

        common.print_json(calibration_json(found.calibration, found.proposals, found.epochs))
        return
    from tierscope.report.models import CalibrationView  # noqa: PLC0415

    common.print_rich(CalibrationView(found.name, found.calibration, found.proposals, found.epochs))
    if output:
        click.echo(f"System: {output} · simulate with it: tierscope simulate STUDY --system {output}")
