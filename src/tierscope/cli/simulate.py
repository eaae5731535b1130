import click

from tierscope.cli import common


@click.command("simulate")
@click.argument("study")
@common.overrides_argument
@click.option(
    "--method",
    type=click.Choice(common.METHODS),
    default="bound",
    show_default=True,
    help="bound: what the busiest station allows, at once; events: every operation, the authoritative one.",
)
@click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY-simulated.")
@common.system_option
@common.set_option
@common.dlio_option
@common.scale_option
@common.quiet_option
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

    Same plan, same outputs as `tierscope run`, labelled simulated: analyze, estimate, explore and report take them too.
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.simulate import simulate_study  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    loaded = common.scaled(load(study, common.all_settings(overrides, settings), system, dlio), scale)
    wanted = loaded.study
    target = common.default_out(wanted, out, suffix="-simulated")
    with watching(quiet) as watch:
        common.say_notes(loaded, watch.note)
        simulate_study(wanted, target, method, watch, loaded.known)
    common.show_result(target, as_json)
