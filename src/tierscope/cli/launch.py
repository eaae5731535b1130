import click

from tierscope.cli import common
from tierscope.launch import LAUNCHERS
from tierscope.units import counted


@click.command("launch")
@click.argument("study")
@common.overrides_argument
@click.option(
    "--with",
    "launcher",
    type=click.Choice(list(LAUNCHERS)),
    required=True,
    help="The scheduler or launcher.",
)
@click.option("--nodes", type=click.IntRange(1, 10**6), help="Override the study's system.nodes.")
@click.option("--ranks-per-node", type=click.IntRange(1, 1024), help="Override the study's system.ranks_per_node.")
@click.option(
    "--time", default="1h", show_default=True, metavar="TIME", help="Time limit of one job; the next job continues."
)
@click.option("--queue", metavar="NAME", help="Partition, resource group or queue.")
@click.option("--account", metavar="NAME", help="Account or group to charge.")
@click.option(
    "--option", "options", multiple=True, metavar="TEXT", help="Additional directive for the scheduler, verbatim."
)
@click.option(
    "--setup", multiple=True, metavar="LINE", help="Shell command to run before the study, e.g. 'module load …'."
)
@click.option(
    "--mpi", metavar="KIND", help="MPI type for srun (see srun --mpi=list), or mpirun to use Open MPI's own launcher."
)
@click.option(
    "--program", default="tierscope", show_default=True, metavar="PATH", help="Path of Tierscope on the nodes."
)
@click.option("--out", type=click.Path(file_okay=False), help="Results directory, visible to all nodes.")
@click.option("--script", "path", type=click.Path(dir_okay=False), help="Default ./STUDY.LAUNCHER.sh.")
@click.option("--submit", is_flag=True, help="Also submit it; with mpirun: run it here.")
@common.stall_option
@common.system_option
@common.set_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    study: str,
    overrides: tuple[str, ...],
    launcher: str,
    nodes: int | None,
    ranks_per_node: int | None,
    time: str,
    queue: str | None,
    account: str | None,
    options: tuple[str, ...],
    setup: tuple[str, ...],
    mpi: str | None,
    program: str,
    out: str | None,
    path: str | None,
    submit: bool,
    stall_limit: str | None,
    system: str | None,
    settings: tuple[str, ...],
) -> None:
    """Write a job script that runs STUDY on many nodes, continues after the time limit, and ends when all runs have finished.

    The study is checked now, not when the job starts. Paths must be the same on every node.
    """
    import os  # noqa: PLC0415
    import shlex  # noqa: PLC0415

    from tierscope.commands import launch as jobs  # noqa: PLC0415
    from tierscope.errors import UserError  # noqa: PLC0415
    from tierscope.spec.load import load_study  # noqa: PLC0415
    from tierscope.units import parse_seconds  # noqa: PLC0415

    given = [("system.nodes", nodes), ("system.ranks_per_node", ranks_per_node)]
    sizes = [f"{key}={value}" for key, value in given if value is not None]
    every = [*common.all_settings(overrides, settings), *sizes]
    wanted = load_study(study, every, system)
    try:
        seconds = parse_seconds(time)
    except ValueError as error:
        raise UserError(f"--time = {time} {error}") from None
    target = os.path.abspath(common.default_out(wanted, out))
    place = os.path.abspath(study) if os.path.exists(study) else study
    words = [program, "run", place, "--out", target, "--quiet"]
    if stall_limit is not None:
        common.read_seconds("--stall-limit", stall_limit)
        words += ["--stall-limit", stall_limit]
    words += [part for setting in every for part in ("--set", setting)]
    words += ["--system", os.path.abspath(system) if os.path.exists(system) else system] if system else []
    where = path or f"{wanted.study}.{launcher}.sh"
    asked = jobs.JobRequest(launcher, seconds, queue, account, options, setup, mpi)
    tokens = jobs.write_job(wanted, asked, words, target, where)
    if submit:
        click.echo(jobs.submit(launcher, tokens))
        return
    layout = jobs.one_layout(wanted)
    click.echo(
        f"{where}: {counted(layout.nodes, 'node')} x {counted(layout.ranks_per_node, 'rank')}; results: {target}"
    )
    click.echo(f"To submit it: {shlex.join(tokens)}")
