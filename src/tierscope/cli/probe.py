import os

import click

from tierscope.cli import common
from tierscope.errors import StoppedError, UserError
from tierscope.signals import stopped_by

_MOST_RANKS = 256


@click.command("probe")
@click.option(
    "--tier", "tiers", multiple=True, metavar="NAME=/PATH", help="A storage tier and a directory on it; nearest first."
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write the system there, for --system."
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86400),
    default=600,
    show_default=True,
    help="For all tiers together; removing our files is not in it.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1, _MOST_RANKS),
    help="The most processes that read at a time; default: cores, at most 16.",
)
@click.option(
    "--size", "sizes", multiple=True, metavar="SIZE", help="Of files, repeated; default 4KiB, 128KiB, 1MiB, 16MiB."
)
@click.option(
    "--servers",
    multiple=True,
    metavar="TIER=COUNT",
    help="Object servers behind a tier: its rates are divided evenly between them. A client cannot see them.",
)
@common.quiet_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    tiers: tuple[str, ...],
    output: str | None,
    force: bool,
    seconds: float,
    ranks: int | None,
    sizes: tuple[str, ...],
    servers: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure what this host's storage can do, and write it as a system to simulate with.

    On every tier files of several sizes are written to a folder of its own, evicted from the page cache, opened and read by 1, 2, 4, …
    processes until more of them bring no more, and removed. Tiers are given nearest first, as everywhere: the last one
    holds every file and is visible to all nodes, the others to their node.

    What still grew at the end, or was held back by this host's own processors, is given as "at least".
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.probe.findings import findings_of  # noqa: PLC0415
    from tierscope.probe.probe import run_probe, write_system  # noqa: PLC0415
    from tierscope.probe.request import read_wanted  # noqa: PLC0415

    wanted = read_wanted(tiers, sizes, ranks, seconds, servers)
    if output:
        common.refuse_existing(output, force)
        _refuse_unwritable(output)
    try:
        with watching(quiet) as watch:
            found = run_probe(wanted, watch)
    except KeyboardInterrupt as error:
        raise StoppedError(f"{stopped_by(error)}; the probe's files are removed, and no system is written") from None
    if output:
        write_system(found, output)
    findings = findings_of(found)
    if as_json:
        from tierscope.report.probe import probe_json  # noqa: PLC0415

        common.print_json(probe_json(found, findings))
        return
    from tierscope.report.probe import ProbeView  # noqa: PLC0415

    common.print_rich(ProbeView(found, findings))
    if output:
        click.echo(f"System: {output} · simulate with it: tierscope simulate STUDY --system {output}")


def _refuse_unwritable(path: str) -> None:
    """Now, rather than in ten minutes."""
    if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise UserError(f"{path}: no permission to write there; give another -o")
