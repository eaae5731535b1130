import click

from tierscope.cli import common


@click.command("validate")
@click.argument("results", nargs=-1, required=True, metavar="OUT…", type=click.Path())
@common.quiet_option
@common.json_option
def command(results: tuple[str, ...], quiet: bool, as_json: bool) -> None:
    """Predict every measured point from a fit to all the others, and say how far off that is."""
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.validate import validate_results  # noqa: PLC0415

    with watching(quiet) as watch:
        name, left_out = validate_results(results, watch)
    if as_json:
        from tierscope.predict.model_json import validation_json  # noqa: PLC0415

        common.print_json(validation_json(left_out))
        return
    from tierscope.report.models import ValidationView  # noqa: PLC0415

    common.print_rich(ValidationView(name, left_out))
