"""What `calibrate` and `validate` share: a table of published measurements and the study that it is of."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.predict.measured_table import MeasuredTable
    from tierscope.spec.load import Loaded
    from tierscope.watch import Watch

table_study_option = click.option(
    "--study", metavar="STUDY", help="OUT is a TABLE of published measurements of STUDY (a YAML file or a preset)."
)
where_option = click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Use only matching rows of the table; also with <=, >=, <, >, != and ~ (contains).",
)


def one_table(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        raise UserError(f"{paths[1]}: only one table at a time with --study; remove it")
    return paths[0]


def refuse_without_study(where: Sequence[str], system: str | None, settings: Sequence[str]) -> None:
    for given, name in ((where, "--where"), (system, "--system"), (settings, "--set")):
        if given:
            raise UserError(f"{name}: requires a table and --study; remove it, or add --study")


@contextmanager
def reading_table(
    table: str, where: Sequence[str], study: str, system: str | None, settings: Sequence[str], quiet: bool
) -> "Iterator[tuple[MeasuredTable, Loaded, Watch]]":
    """What was measured, and the study that it is of; what is to be said about that is said."""
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.predict.tables import read_measured  # noqa: PLC0415
    from tierscope.spec.load import load  # noqa: PLC0415

    measured = read_measured(table, where)
    loaded = load(study, common.all_settings((), tuple(settings)), system, False)
    with watching(quiet) as watch:
        common.say_notes(loaded, watch.note)
        yield measured, loaded, watch
