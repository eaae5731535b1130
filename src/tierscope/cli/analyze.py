import click

from tierscope.cli import common


@click.command("analyze")
@click.argument("result", metavar="OUT", type=click.Path())
@common.basis_option
@click.option("--csv", "csv_path", type=click.Path(dir_okay=False), help="Also write the class times of every process.")
@common.json_option
def command(result: str, basis: str, csv_path: str | None, as_json: bool) -> None:
    """Show where the I/O time of the slowest process goes.

    OUT is the results directory of a study or a trace, or a CSV with rank,epoch,class,seconds[,ops,bytes][,cache_rate,…].
    """
    from tierscope.analysis.times import to_csv  # noqa: PLC0415
    from tierscope.studies.analyze import analyze  # noqa: PLC0415

    analysis = analyze(result, basis)
    if csv_path:
        to_csv(analysis.times, csv_path)
    common.show_analysis(analysis, as_json)
