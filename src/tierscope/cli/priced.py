"""Prices on the command line: one without its unit is refused with the command that has it."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click
from click.core import ParameterSource

from tierscope.errors import BarePriceError


@contextmanager
def priced_with_units() -> Iterator[None]:
    """A price without its unit is refused with the command that has it."""
    try:
        yield
    except BarePriceError as error:
        from tierscope.spec.prices import bare_prices  # noqa: PLC0415

        raise bare_prices(error.fixes, command_line(error.fixes)) from None


def command_line(changed: Mapping[str, str]) -> str:
    """What the user typed, with some values replaced; from the command that runs."""
    context = click.get_current_context()
    words = ["tierscope", context.info_name or ""]
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(parameter.name or "")
        for item in value if isinstance(value, tuple) else (value,):
            text = changed.get(str(item), str(item))
            if isinstance(parameter, click.Argument):
                words.append(text)
            elif getattr(parameter, "is_flag", False):
                words.append(parameter.opts[0])
            else:
                words += [parameter.opts[0], text]
    return shlex.join(words)
