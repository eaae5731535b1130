import click

from tierscope.cli import common
from tierscope.studies.recorders import RECORDERS


@click.command("run")
@click.argument("study")
@common.out_option
@common.set_option
@click.option("--ops", is_flag=True, help="Also keep the full list of operations (OUT/ops).")
@click.option(
    "--profiler",
    type=click.Choice(list(RECORDERS)),
    default="builtin",
    show_default=True,
    help="What measures; a site's profiler is preloaded into the ranks, and its logs are kept in OUT/logs.",
)
@common.quiet_option
@common.json_option
def command(
    study: str, out: str | None, settings: tuple[str, ...], ops: bool, profiler: str, quiet: bool, as_json: bool
) -> None:
    """Run STUDY (a YAML file or a preset): generate its data, sweep, analyse.

    Run the same command again to resume: finished runs are not repeated. Under mpirun or srun the ranks are those
    that the launcher started; otherwise they are processes of this machine.
    """
    common.run_and_show(study, settings, out, quiet, as_json, ops, profiler)
