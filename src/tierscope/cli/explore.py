import click

from tierscope.cli import common


@click.command("explore")
@click.argument("result", metavar="OUT", type=click.Path())
@click.option(
    "--goal", metavar="TIME", help="I/O time per epoch of the slowest process, like 4s; default: the study's."
)
@click.option(
    "--vary",
    multiple=True,
    metavar="CLASS=A:B:STEP",
    help="Percent more throughput to try; also A,B,C. Two or more classes make a grid.",
)
@common.improve_option
@click.option(
    "--cost",
    multiple=True,
    metavar="CLASS=PRICE",
    help="Price of each percent more of a class; TIER-gib=PRICE: of each GiB cached on a tier, over all nodes.",
)
@common.basis_option
@common.json_option
def command(
    result: str,
    goal: str | None,
    vary: tuple[str, ...],
    improve: tuple[str, ...],
    cost: tuple[str, ...],
    basis: str,
    as_json: bool,
) -> None:
    """Find the improvements that meet a goal, each with the smallest cache rate that it needs.

    For example: tierscope explore OUT --goal 4s --vary GFS-META=0:200:10 --vary LFS-READ=0:200:10
    """
    from tierscope.studies.analyze import analyze  # noqa: PLC0415
    from tierscope.studies.whatif import explored  # noqa: PLC0415

    analysis = analyze(result, basis)
    found, findings = explored(analysis, goal, vary, improve, cost)
    if as_json:
        from tierscope.predict.to_json import exploration_json  # noqa: PLC0415

        rate = analysis.study.placement.cache_rate if analysis.study else None
        common.print_json(exploration_json(found, basis, rate, findings, analysis.conditions))
        return
    from tierscope.report.estimates import ExplorationView  # noqa: PLC0415

    common.print_rich(ExplorationView(analysis.name, found, findings, analysis.conditions))
