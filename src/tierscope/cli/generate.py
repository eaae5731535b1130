import click

from tierscope.cli import common, generated


@click.command("generate")
@click.argument("study")
@common.overrides_argument
@common.out_option
@common.set_option
@common.dlio_option
@common.scale_option
@common.stall_option
@common.quiet_option
def command(
    study: str,
    overrides: tuple[str, ...],
    out: str | None,
    settings: tuple[str, ...],
    dlio: bool,
    scale: str | None,
    stall_limit: str | None,
    quiet: bool,
) -> None:
    """Generate the data of STUDY, for the largest cache rate of its sweep. Rerun to resume."""
    with common.ranks_of_study(stall_limit) as crews:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.measure.run import generate_data  # noqa: PLC0415
        from tierscope.spec.load import load  # noqa: PLC0415

        loaded = common.scaled(load(study, common.all_settings(overrides, settings), is_dlio=dlio), scale)
        spec = loaded.study
        target = common.default_out(spec, out)
        with watching(quiet) as watch:
            common.say_notes(loaded, watch.note)
            written = generate_data(spec, target, crews, watch)
    generated.say_generated(spec, written)
