import click

from tierscope.cli import common
from tierscope.cli.showing import all_option
from tierscope.recording.recorders import BUILTIN, RECORDERS


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
    default=BUILTIN,
    show_default=True,
    help="What records the I/O; other profilers are preloaded into the ranks, and their logs kept in OUT/logs.",
)
@click.option(
    "--metrics", is_flag=True, help="Also print DLIO's metrics, as [METRIC] lines; they are always in OUT/summary.json."
)
@common.au_option
@common.stall_option
@click.option(
    "--live-csv",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep the live figures in FILE: a row per second and tier, appended.",
)
@common.quiet_option
@all_option
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
    live_csv: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run STUDY (a YAML file, a DLIO file, or a preset): generate its data, run the sweep, analyze.

    Rerun the same command to resume: finished runs are not repeated. Under mpirun or srun, the launcher's processes
    are the ranks; otherwise ranks are started on this machine.
    """
    given = common.Given(common.all_settings(overrides, settings), system, dlio, au, metrics, scale, live_csv)
    common.run_and_show(study, given, out, quiet, as_json, ops, profiler, stall_limit)
