"""The command line as it was typed, for errors that say what to type instead."""

import shlex
from collections.abc import Collection, Sequence

import click

_KEY = "tierscope.typed"


def remember_typed(context: click.Context, arguments: Sequence[str]) -> None:
    """`arguments`: all behind the command's name."""
    context.meta[_KEY] = tuple(arguments)


def typed_options(paths: Collection[str]) -> str:
    """What was typed beside these paths, quoted for a shell; empty outside a command."""
    context = click.get_current_context(silent=True)
    return shlex.join(word for word in (context.meta.get(_KEY, ()) if context else ()) if word not in paths)
