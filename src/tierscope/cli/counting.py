"""What of a result counts: `--basis`, `--epoch`, `--classes`."""

import functools
import re
from collections.abc import Callable
from typing import Any

import click

from tierscope.errors import UserError

CATEGORIES = ("read", "meta", "write")

classes_option = click.option(
    "--classes",
    metavar="CLASS[,CLASS…]",
    default=",".join(CATEGORIES),
    show_default=True,
    help="What makes up the I/O time.",
)
_OPTIONS = (
    click.option(
        "--basis",
        type=click.Choice(["wall", "busy"]),
        help="wall: seconds on the clock in which a process had I/O under way; busy: the sum of its operations. Default: wall, where it is known.",
    ),
    click.option(
        "--epoch",
        metavar="N|median",
        default="median",
        show_default=True,
        help="Which epoch of every run; median: of those after the first.",
    ),
    classes_option,
)


def counting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The three options, as one argument `counting` of the command."""

    @functools.wraps(command)
    def with_counting(*, basis: str | None, epoch: str, classes: str, **others: Any) -> Any:
        from tierscope.analysis.counting import Counting  # noqa: PLC0415

        return command(counting=Counting(basis, read_epoch(epoch), read_classes(classes)), **others)

    return functools.reduce(lambda found, option: option(found), reversed(_OPTIONS), with_counting)


def read_epoch(text: str) -> int | None:
    """None: the median of the epochs after the first."""
    if text == "median":
        return None
    if not re.fullmatch(r"[1-9]\d{0,9}", text):
        raise UserError(f"--epoch {text}: must be the number of an epoch, from 1 up, or median")
    return int(text)


def read_classes(text: str) -> tuple[str, ...]:
    """In our own order, as the trace names them."""
    given = [part.strip().lower() for part in text.split(",")]
    for part in given:
        if part not in CATEGORIES:
            raise UserError(f"--classes {text}: {part or 'nothing'} is no class; choose from {', '.join(CATEGORIES)}")
        if given.count(part) > 1:
            raise UserError(f"--classes {text}: {part} is given twice; remove one")
    return tuple(each.upper() for each in CATEGORIES if each in given)
