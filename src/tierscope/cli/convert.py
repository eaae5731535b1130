import click

from tierscope.cli import common


@click.command("convert")
@click.argument("file")
@common.overrides_argument
@common.system_option
@common.set_option
def command(file: str, overrides: tuple[str, ...], system: str | None, settings: tuple[str, ...]) -> None:
    """Convert a DLIO FILE to a study and print it; notes about differences go to standard error.

    For example: tierscope convert unet3d_a100.yaml ++workload.reader.batch_size=16 > study.yaml
    """
    from tierscope.spec.dump import to_yaml  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    loaded = load(file, common.all_settings(overrides, settings), system, is_dlio=True)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    if loaded.wanted and loaded.wanted.au is not None:
        click.echo(f"note: metric.au has no key in a study; use 'tierscope run --au {loaded.wanted.au:g}'", err=True)
    click.echo(to_yaml(loaded.study), nl=False)
