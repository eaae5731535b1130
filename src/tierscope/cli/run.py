import click

from tierscope.cli import common
from tierscope.recording.recorders import RECORDERS


@click.command("run")
@click.argument("study")
@common.overrides_argument
@common.out_option
@common.set_option
@common.system_option
@common.dlio_option
@common.scale_option
@click.option("--ops", is_flag=True, help="Also keep the full list of operations (OUT/ops).")
@click.option(
    "--profiler",
    type=click.Choice(list(RECORDERS)),
    default="builtin",
    show_default=True,
    help="What measures; a site's profiler is preloaded into the ranks, and its logs are kept in OUT/logs.",
)
@click.option(
    "--metrics", is_flag=True, help="Also print DLIO's metrics, as [METRIC] lines; OUT/summary.json has them always."
)
@common.au_option
@common.stall_option
@common.quiet_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    study: str,
    overrides: tuple[str, ...],
    out: str | None,
    settings: tuple[str, ...],
    system: str | None,
    dlio: bool,
    scale: str | None,
    ops: bool,
    profiler: str,
    metrics: bool,
    au: str | None,
    stall_limit: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run STUDY (a YAML file, also one of DLIO, or a preset): generate its data, sweep, analyse.

    Run the same command again to resume: finished runs are not repeated. Under mpirun or srun the ranks are those
    that the launcher started; otherwise they are processes of this machine.
    """
    given = common.Given(common.all_settings(overrides, settings), system, dlio, au, metrics, scale)
    common.run_and_show(study, given, out, quiet, as_json, ops, profiler, stall_limit)
