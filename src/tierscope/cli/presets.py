import click

from tierscope.errors import UserError
from tierscope.spec import presets
from tierscope.units import closest


@click.command("presets")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the presets, or print NAME as YAML to start from: every key, each with what it means."""
    if name is None:
        for known in presets.names():
            click.echo(f"{known:<22} {presets.summary(known)}")
        return
    if name not in presets.names():
        guess = closest(name, presets.names())
        hint = f"did you mean {guess}?" if guess else f"known: {', '.join(presets.names())}"
        raise UserError(f"no preset '{name}'; {hint}")
    from tierscope.spec.dump import to_yaml  # noqa: PLC0415
    from tierscope.spec.load import load_study  # noqa: PLC0415

    click.echo("\n".join(presets.preamble(name)))
    click.echo(to_yaml(load_study(name), comments=True), nl=False)
