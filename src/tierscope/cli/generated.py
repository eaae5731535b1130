"""Data that is only generated: what is said about it."""

from typing import TYPE_CHECKING

import click

from tierscope.units import about_bytes

if TYPE_CHECKING:
    from tierscope.spec.study import Study


def say_generated(study: "Study", written: int) -> None:
    click.echo(f"{about_bytes(written)} written; the data of {study.study} is complete")
