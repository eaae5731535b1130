import click

from tierscope.cli import common, tables


@click.command("validate")
@click.argument("results", nargs=-1, required=True, metavar="OUT…|TABLE", type=click.Path())
@tables.table_study_option
@tables.where_option
@common.system_option
@common.set_option
@common.quiet_option
@common.json_option
def command(
    results: tuple[str, ...],
    study: str | None,
    where: tuple[str, ...],
    system: str | None,
    settings: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict every measured point from a fit to all others, and report the error.

    With --study, a TABLE of published measurements is compared with a simulation of the study on its system (or --system); nothing is fitted.
    """
    if study is not None:
        _table(tables.one_table(results), study, where, system, settings, quiet, as_json)
        return
    tables.refuse_without_study(where, system, settings)
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


def _table(
    table: str,
    study: str,
    where: tuple[str, ...],
    system: str | None,
    settings: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    from tierscope.predict.tables import validate_table  # noqa: PLC0415
    from tierscope.report.measured_tables import PredictedTableView, predicted_json  # noqa: PLC0415

    with tables.reading_table(table, where, study, system, settings, quiet) as (measured, loaded, watch):
        validated_table = validate_table(measured, loaded, watch)
    if as_json:
        common.print_json(predicted_json("table_validation", validated_table.figures))
        return
    where_simulated = validated_table.system if system else f"the study's own system ({validated_table.system})"
    title = f"{measured.name}: measured, and simulated on {where_simulated}"
    common.print_rich(PredictedTableView(title, validated_table.figures))
