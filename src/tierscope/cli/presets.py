import click

from tierscope.errors import UserError
from tierscope.spec import presets, systems
from tierscope.spec.shipped_yaml import Shelf
from tierscope.units import closest


@click.command("presets")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the built-in studies and systems, or print NAME as YAML: a study with every key explained, a system with the source of every number."""
    if name is None:
        _show_list("Studies, for 'tierscope run NAME'", presets.SHELF)
        click.echo()
        _show_list("Systems, for 'system: NAME' in a study", systems.SHELF)
    elif name in presets.names():
        _show_study(name)
    elif name in systems.names():
        click.echo(systems.text(name), nl=False)
    else:
        known = [*presets.names(), *systems.names()]
        guess = closest(name, known)
        hint = f"did you mean {guess}?" if guess else f"known: {', '.join(known)}"
        raise UserError(f"unknown preset '{name}'; {hint}")


def _show_list(title: str, shelf: Shelf) -> None:
    click.echo(f"{title}:")
    for name in shelf.names():
        click.echo(f"  {name:<22} {shelf.summary(name)}")


def _show_study(name: str) -> None:
    from tierscope.spec.dump import to_yaml  # noqa: PLC0415
    from tierscope.spec.load import load_study  # noqa: PLC0415

    click.echo("\n".join(presets.preamble(name)))
    click.echo(to_yaml(load_study(name), comments=True), nl=False)
