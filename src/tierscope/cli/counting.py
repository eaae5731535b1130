"""What of a result counts: `--basis`, `--epoch`, `--classes`, `--case`."""

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
    help="Operations that count as I/O time.",
)
_OPTIONS = (
    click.option(
        "--basis",
        type=click.Choice(["wall", "busy"]),
        help="wall: elapsed time during which a process had I/O in progress; busy: the sum over its operations. Default: wall, if known.",
    ),
    click.option(
        "--epoch",
        metavar="N|median",
        default="median",
        show_default=True,
        help="Which epoch to show; median: the median of all epochs after the first.",
    ),
    classes_option,
)
_CASE = click.option("--case", metavar="NAME", help="Show only this case of the study; default: all cases.")


def counting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The three options of what has no cases, as one argument `counting` of the command."""

    @functools.wraps(command)
    def with_counting(*, basis: str | None, epoch: str, classes: str, case: str | None = None, **others: Any) -> Any:
        from tierscope.analysis.counting import Counting  # noqa: PLC0415

        return command(counting=Counting(basis, read_epoch(epoch), read_classes(classes), case), **others)

    return functools.reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), with_counting)


def result_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `counting_options`, and `--case`."""
    return _CASE(counting_options(command))


def read_epoch(text: str) -> int | None:
    """None: the median of the epochs after the first."""
    if text == "median":
        return None
    if not re.fullmatch(r"[1-9]\d{0,9}", text):
        raise UserError(f"--epoch {text}: must be an epoch number, 1 or more, or median")
    return int(text)


def read_classes(text: str) -> tuple[str, ...]:
    """In our own order, as the trace names them."""
    given = [part.strip().lower() for part in text.split(",")]
    for part in given:
        if part not in CATEGORIES:
            raise UserError(
                f"--classes {text}: {part or 'an empty name'} is not a class; choose from {', '.join(CATEGORIES)}"
            )
        if given.count(part) > 1:
            raise UserError(f"--classes {text}: {part} is given twice; remove one")
    return tuple(category.upper() for category in CATEGORIES if category in given)
