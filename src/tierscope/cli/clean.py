import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tierscope.errors import UserError, escaped
from tierscope.units import counted

if TYPE_CHECKING:
    from tierscope.dataset.cleaning import FolderTally


@click.command("clean")
@click.argument("directories", nargs=-1, required=True, metavar="OUT|TIER…")
@click.option(
    "--data", is_flag=True, help="Delete only the study's data on the tiers visible to this host; keep the results."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def command(directories: tuple[str, ...], data: bool, yes: bool) -> None:
    """Delete results, or data on tiers. Lists what would be deleted and asks first.

    Deletes only files that Tierscope created, in directories with its marker; lists anything else and keeps it.
    """
    from tierscope.dataset.cleaning import cleaning  # noqa: PLC0415
    from tierscope.units import about_bytes  # noqa: PLC0415

    with cleaning(directories, data) as plan:
        for folder in plan.tallies:
            click.echo(
                f"{escaped(folder.path)}  {folder.kind}, {counted(folder.files, 'file')}, {about_bytes(folder.nbytes)}"
            )
            for path in folder.kept:
                click.echo(f"  kept, not created by Tierscope: {path!r}")
        files, nbytes = _sums(plan.tallies)
        if not files:
            click.echo("nothing to delete")
            return
        if not yes and not _agreed(f"delete {counted(files, 'file')}, {about_bytes(nbytes)}? [y/N] "):
            click.echo("nothing was deleted")
            return
        deleted = plan.delete()
    shown = {path for folder in plan.tallies for path in folder.kept}
    for folder in deleted:
        for path in folder.changed:
            click.echo(f"  kept, changed in the meantime: {path!r}")
        for path in folder.kept:
            if path not in shown:
                click.echo(f"  kept, not created by Tierscope: {path!r}")
    files, nbytes = _sums(deleted)
    click.echo(f"deleted: {counted(files, 'file')}, {about_bytes(nbytes)}")


def _sums(tallies: "Sequence[FolderTally]") -> tuple[int, int]:
    return sum(tally.files for tally in tallies), sum(tally.nbytes for tally in tallies)


def _agreed(question: str) -> bool:
    sys.stdout.write(question)
    sys.stdout.flush()
    answer = sys.stdin.readline() if sys.stdin else ""
    if not answer:
        click.echo()
        raise UserError("no answer on standard input; nothing was deleted; use --yes to delete without asking")
    return answer.strip().lower() in ("y", "yes")
