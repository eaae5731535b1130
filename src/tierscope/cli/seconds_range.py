"""An option that takes a time."""

from typing import Any

import click

from tierscope.cli.common import FiniteRange
from tierscope.units import parse_seconds


class SecondsRange(FiniteRange):
    """Times between two numbers of seconds: 200ms, 2 s, or a bare number of seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            seconds = parse_seconds(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{value}: {error}", param, ctx)
        return super().convert(seconds, param, ctx)
