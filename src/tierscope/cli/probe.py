import os

import click
from click.core import ParameterSource

from tierscope.cli import common, settling
from tierscope.cli.showing import all_option, shows_all
from tierscope.errors import StoppedError, UserError, shell_word
from tierscope.signals import stopped_by

_MOST_RANKS = 256
_OF_ACCELERATORS = ("accelerator", "output", "force", "quiet", "all", "as_json")


@click.command("probe")
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    metavar="NAME=/PATH",
    help="A storage tier and a directory on it; nearest tier first.",
)
@click.option(
    "--accelerator",
    type=click.Choice(["cuda"]),
    help="Measure this host's accelerator instead of storage: seconds of the kinds of work that layers are made of, for 'require --device-file'.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the measured system to FILE, for --system.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option(
    "--seconds",
    type=common.FiniteRange(1, 86400),
    default=600,
    show_default=True,
    help="Time for all tiers together, not counting the removal of files.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1, _MOST_RANKS),
    help="Maximum number of concurrent readers; default: number of cores, at most 16.",
)
@click.option(
    "--size", "sizes", multiple=True, metavar="SIZE", help="A file size; repeatable; default 4KiB, 128KiB, 1MiB, 16MiB."
)
@click.option(
    "--servers",
    multiple=True,
    metavar="TIER=COUNT",
    help="Number of object servers of a tier, which a client cannot see; the rates are divided evenly between them.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="[TIER=]FILE…",
    help="Do not measure; read output of IO500, IOR, mdtest, fio (JSON) or elbencho. Several files: one --from, then all files.",
)
@click.argument("more", nargs=-1, metavar="[FILE…]", type=click.Path())
@click.option(
    "--row", metavar="NAME", help="With --from a table of IO500 submissions: the submission, by name or line number."
)
@click.option(
    "--nodes", type=click.IntRange(1, 10**6), help="With --from: number of compute nodes, if the files do not state it."
)
@settling.for_option
@common.quiet_option
@all_option
@common.json_option
def command(  # noqa: C901, PLR0913, PLR0917  (one per option)
    tiers: tuple[str, ...],
    accelerator: str | None,
    output: str | None,
    force: bool,
    seconds: float,
    ranks: int | None,
    sizes: tuple[str, ...],
    servers: tuple[str, ...],
    sources: tuple[str, ...],
    more: tuple[str, ...],
    row: str | None,
    nodes: int | None,
    for_study: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure the storage of this host, and write it as a system for simulations.

    On every tier, writes files of several sizes to a new directory, evicts them from the page cache, opens and reads them with 1, 2, 4, …
    processes until throughput stops growing, and removes them. Name the nearest tier first: the last one
    holds every file and is visible to all nodes, the others only to their node.

    Rates that were still growing at the end, or were limited by this host's CPUs, are reported as "at least".

    With --accelerator, it measures a device in minutes, and writes a file for 'tierscope require --device-file'.

    With --from, nothing is measured: the system is built from the output files of other benchmarks, with the source of every figure.
    """
    if accelerator is not None:
        _probe_accelerator(accelerator, output, force, quiet, as_json)
        return
    if sources:
        _refuse_measuring(tiers, sizes)
        if output:
            common.refuse_existing(output, force)
        _from_files((*sources, *more), row, nodes, ranks, servers, output, for_study, as_json)
        return
    for given, name in ((more[:1], "FILE"), (row, "--row"), (nodes, "--nodes")):
        if given:
            raise UserError(f"{name}: requires --from; add --from FILE, or remove it")
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.probe.findings import findings_of  # noqa: PLC0415
    from tierscope.probe.probe import known_system, run_probe, write_system  # noqa: PLC0415
    from tierscope.probe.request import read_wanted  # noqa: PLC0415

    wanted = read_wanted(tiers, sizes, ranks, seconds, servers)
    if output:
        common.refuse_existing(output, force)
        _refuse_unwritable(output)
    study = settling.study_to_settle(for_study)
    try:
        with watching(quiet) as watch:
            probed = run_probe(wanted, watch)
    except KeyboardInterrupt as error:
        raise StoppedError(f"{stopped_by(error)}; the probe's files were removed; no system was written") from None
    if output:
        write_system(probed, output)
    findings = findings_of(probed)
    to_settle = settling.settled(known_system(probed), study)
    if as_json:
        from tierscope.report.probe import probe_json  # noqa: PLC0415

        common.print_json({**probe_json(probed, findings), **settling.settling_json(to_settle)})
        return
    from tierscope.report.probe import ProbeView  # noqa: PLC0415

    common.print_rich(ProbeView(probed, findings, shows_all()))
    settling.say_settling(to_settle, for_study)
    if output:
        click.echo(f"System: {shell_word(output)}. To use it: tierscope simulate STUDY --system {shell_word(output)}")


def _probe_accelerator(name: str, output: str | None, force: bool, quiet: bool, as_json: bool) -> None:
    from tierscope.commands.probe import device_json, probe_accelerator  # noqa: PLC0415

    context = click.get_current_context()
    for parameter in context.command.params:
        typed = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if typed and parameter.name not in _OF_ACCELERATORS:
            option = parameter.opts[0] if isinstance(parameter, click.Option) else "FILE"
            raise UserError(f"{option}: cannot be combined with --accelerator; remove one of them")
    if output is None:
        raise UserError(
            "--accelerator: -o is missing; name the file that the device is written to, e.g. -o device.yaml"
        )
    common.refuse_existing(output, force)
    _refuse_unwritable(output)
    device = probe_accelerator(name, output, (lambda _: None) if quiet or as_json else click.echo)
    if as_json:
        common.print_json(device_json(device))
        return
    click.echo(
        f"Device: {shell_word(output)}, measured on one device. To use it: tierscope require MODEL --system SYSTEM --device-file {shell_word(output)}"
    )


def _refuse_unwritable(path: str) -> None:
    """Now, rather than in ten minutes."""
    if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise UserError(f"{path}: permission denied; choose another -o")


def _refuse_measuring(tiers: tuple[str, ...], sizes: tuple[str, ...]) -> None:
    for given, name in ((tiers, "--tier"), (sizes, "--size")):
        if given:
            raise UserError(f"{name} {given[0]}: cannot be combined with --from; remove one of them")


def _from_files(
    files: tuple[str, ...],
    row: str | None,
    nodes: int | None,
    ranks: int | None,
    servers: tuple[str, ...],
    output: str | None,
    for_study: str | None,
    as_json: bool,
) -> None:
    from tierscope.probe.from_files import FromRequest, systems_of, write_imported  # noqa: PLC0415
    from tierscope.probe.request import read_servers  # noqa: PLC0415

    study = settling.study_to_settle(for_study)
    systems = systems_of(FromRequest(files, row, nodes, ranks, read_servers(servers)))
    for given, why in ((output, "-o writes one system"), (for_study, "--for is about one system")):
        if given and len(systems) > 1:
            raise UserError(f"{files[0]}: has {len(systems)} rows, but {why}; choose one with --row")
    if output:
        write_imported(systems[0], output, files)
    known = systems[0].known
    to_settle = None if known is None else settling.settled(known, study)
    if as_json:
        from tierscope.report.imported_systems import imported_json  # noqa: PLC0415

        common.print_json({**imported_json(systems), **settling.settling_json(to_settle)})
        return
    from tierscope.report.imported_systems import ImportedView  # noqa: PLC0415

    common.print_rich(ImportedView(systems))
    settling.say_settling(to_settle, for_study)
    if output:
        click.echo(f"System: {shell_word(output)}. To use it: tierscope simulate STUDY --system {shell_word(output)}")
