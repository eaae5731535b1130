import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tierscope.errors import UserError, escaped
from tierscope.units import counted

if TYPE_CHECKING:
    from tierscope.dataset.cleaning import Found


@click.command("clean")
@click.argument("directories", nargs=-1, required=True, metavar="OUT|TIER…")
@click.option(
    "--data", is_flag=True, help="Of a result, only its study's data on the tiers that this host sees; results stay."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def command(directories: tuple[str, ...], data: bool, yes: bool) -> None:
    """Delete results, or data on tiers; first show what, and ask.

    Only directories with Tierscope's mark, and in them only files that it made: anything else is kept and named.
    """
    from tierscope.dataset.cleaning import cleaning  # noqa: PLC0415
    from tierscope.units import about_bytes  # noqa: PLC0415

    with cleaning(directories, data) as plan:
        for found in plan.found:
            click.echo(
                f"{escaped(found.path)}  {found.kind}, {counted(found.files, 'file')}, {about_bytes(found.nbytes)}"
            )
            for path in found.kept:
                click.echo(f"  kept, not ours: {path!r}")
        files, nbytes = _sums(plan.found)
        if not files:
            click.echo("nothing to delete")
            return
        if not yes and not _agreed(f"delete {counted(files, 'file')}, {about_bytes(nbytes)}? [y/N] "):
            click.echo("nothing was deleted")
            return
        deleted = plan.delete()
    shown = {path for found in plan.found for path in found.kept}
    for found in deleted:
        for path in found.changed:
            click.echo(f"  kept, changed meanwhile: {path!r}")
        for path in found.kept:
            if path not in shown:
                click.echo(f"  kept, not ours: {path!r}")
    files, nbytes = _sums(deleted)
    click.echo(f"deleted: {counted(files, 'file')}, {about_bytes(nbytes)}")


def _sums(found: "Sequence[Found]") -> tuple[int, int]:
    return sum(each.files for each in found), sum(each.nbytes for each in found)


def _agreed(question: str) -> bool:
    sys.stdout.write(question)
    sys.stdout.flush()
    answer = sys.stdin.readline() if sys.stdin else ""
    if not answer:
        click.echo()
        raise UserError("nobody is there to answer, so nothing was deleted; --yes deletes without asking")
    return answer.strip().lower() in ("y", "yes")
