import os

import click

from tierscope.cli import common


@click.command("doctor")
@click.argument("directories", nargs=-1, type=click.Path(exists=True, file_okay=False))
@common.json_option
def command(directories: tuple[str, ...], as_json: bool) -> None:
    """Check what this machine offers for measurements, with advice for each check.

    DIRECTORIES are candidates for tiers; default: the current directory.
    """
    from dataclasses import asdict  # noqa: PLC0415

    from tierscope.commands.doctor import examine  # noqa: PLC0415

    checks = list(examine([os.path.abspath(name) for name in directories] or [os.getcwd()]))
    if as_json:
        common.print_json(
            {"schema_version": 1, "kind": "doctor", "checks": [asdict(check) for check in checks], "findings": []}
        )
        return
    from rich.text import Text  # noqa: PLC0415

    marks = {"ok": ("✔", "green"), "lacking": ("✘", "red"), "note": ("·", "yellow")}
    for check in checks:
        mark, colour = marks[check.status]
        line = Text(f"{mark} ", style=colour)
        line.append(f"{check.name}: ", style="bold")
        line.append(check.found)
        if check.advice:
            line.append(f" → {check.advice}", style="dim")
        common.print_rich(line)
