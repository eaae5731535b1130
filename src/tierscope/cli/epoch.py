"""`--epoch`: which epoch of every run a breakdown is about."""

import re

import click

from tierscope.errors import UserError

epoch_option = click.option(
    "--epoch",
    metavar="N|median",
    default="median",
    show_default=True,
    help="Which epoch of every run; median: of those after the first.",
)


def read_epoch(text: str) -> int | None:
    """None: the median of the epochs after the first."""
    if text == "median":
        return None
    if not re.fullmatch(r"[1-9]\d{0,9}", text):
        raise UserError(f"--epoch {text}: must be the number of an epoch, from 1 up, or median")
    return int(text)
