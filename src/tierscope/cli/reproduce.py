import os

import click

from tierscope.cli import common


@click.command("reproduce")
@click.argument("name", metavar="NAME")
@click.option("--row", "rows", multiple=True, metavar="ID", help="Only this row, e.g. H-F2-6; repeatable. Nothing is written then, unless --out is given.")  # fmt: skip
@click.option("--out", metavar="DIR", help="Output directory; default ./results/reproduce-NAME.")
@click.option("--short", is_flag=True, help="Fewer seeds and smaller sizes, for a quick look; the page says so.")
@click.option("--all", "show_all", is_flag=True, help="Print all rows, not only those that do not hold or are missing.")
@common.quiet_option
@common.json_option
def command(
    name: str, rows: tuple[str, ...], out: str | None, short: bool, show_all: bool, quiet: bool, as_json: bool
) -> None:
    """Reproduce a published study row by row: published value, ours, whether it holds, and why not.

    NAME is hierarchy (Fukai, Sato, Hirofuchi, PDCAT 2022), dlio (Devarajan et al., CCGrid 2021), architecture (Ibrahim et al., PMBS 2021) or
    training (Han et al., CLUSTER 2019).
    Writes a page (Markdown, HTML), rows and tables (CSV, JSON) and every figure (SVG, PNG). What cannot be measured on this machine is
    modelled, simulated or emulated, and labelled.

    For example: tierscope reproduce hierarchy --row H-X-4, or: tierscope reproduce hierarchy --out results/hierarchy
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.papers.files import claim_reproduction, write_reproduction  # noqa: PLC0415
    from tierscope.papers.pages import reproduction_json  # noqa: PLC0415
    from tierscope.papers.reproduce import check_names, reproduce  # noqa: PLC0415
    from tierscope.papers.view import ReproductionView  # noqa: PLC0415

    study = check_names(name, rows)
    target = os.path.join("results", f"reproduce-{study}") if out is None and not rows else out
    folder = None if target is None else claim_reproduction(target, study)
    with watching(quiet) as watch:
        made = reproduce(study, rows, short, watch)
    written = None if folder is None else write_reproduction(made, folder)
    if as_json:
        common.print_json(reproduction_json(made))
        return
    common.print_rich(ReproductionView(made, show_all or bool(rows)))
    if written is not None:
        common.say_written(written.page)
        click.echo(f"Figures and tables: {os.path.relpath(written.folder)}{written.problem and f' (no PNG: {written.problem})'}")  # fmt: skip
