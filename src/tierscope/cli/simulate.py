import click

from tierscope.cli import common
from tierscope.cli.showing import all_option


@click.command("simulate")
@click.argument("study")
@common.overrides_argument
@click.option(
    "--method",
    type=click.Choice(common.METHODS),
    default="auto",
    show_default=True,
    help="events: simulate every operation; bound: a fast estimate from the busiest station; auto: events, or bound if it is as good and numba is not installed.",
)
@click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY-simulated.")
@common.system_option
@common.set_option
@common.dlio_option
@common.scale_option
@common.quiet_option
@all_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    study: str,
    overrides: tuple[str, ...],
    method: str,
    out: str | None,
    system: str | None,
    settings: tuple[str, ...],
    dlio: bool,
    scale: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Simulate STUDY (a YAML file or a preset) from its tiers' rates, without running it.

    The plan and outputs are those of 'tierscope run', labelled simulated: analyze, estimate, explore and report work on them too.
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.simulate import refuse_generate_only, simulate_study  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    loaded = common.scaled(load(study, common.all_settings(overrides, settings), system, dlio), scale)
    refuse_generate_only(loaded, study)
    wanted = loaded.study
    target = common.default_out(wanted, out, suffix="-simulated")
    with watching(quiet) as watch:
        common.say_notes(loaded, watch.note)
        store = simulate_study(wanted, target, method, watch, loaded.known)
    common.show_result(analyze(target, store=store), target, as_json, known=loaded.known)
