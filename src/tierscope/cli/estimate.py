import click

from tierscope.cli import common


@click.command("estimate")
@click.argument("result", metavar="OUT", type=click.Path())
@common.improve_option
@common.basis_option
@common.json_option
def command(result: str, improve: tuple[str, ...], basis: str, as_json: bool) -> None:
    """Estimate what would change if classes of I/O were faster, and say when not to believe it.

    Every time of a class is divided by 1 + N/100, for every process; then the slowest process and the best point are found again. Without
    --improve: only what each class by itself could give. OUT is the results directory of a study or a trace, or a CSV of times.
    """
    from tierscope.studies.analyze import analyze  # noqa: PLC0415
    from tierscope.studies.whatif import estimated  # noqa: PLC0415

    analysis = analyze(result, basis)
    estimate, findings = estimated(analysis, improve)
    if as_json:
        from tierscope.predict.to_json import estimate_json  # noqa: PLC0415

        common.print_json(estimate_json(estimate, findings, analysis.conditions))
        return
    from tierscope.report.estimates import EstimateView  # noqa: PLC0415

    common.print_rich(EstimateView(analysis.name, estimate, findings, analysis.conditions))
