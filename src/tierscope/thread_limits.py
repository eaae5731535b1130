"""How many threads tables are read with: Polars takes that from the environment. Imports nothing, so that a command can ask before it begins."""

import os

from tierscope.errors import UserError

_MOST = 4096
_NAME = "POLARS_MAX_THREADS"


def check_threads() -> None:
    """Refuse a number of threads that Polars cannot start with: it would fail on every table, or never come back."""
    given = os.environ.get(_NAME, "")
    if given.isascii() and given.isdigit() and not 1 <= int(given[:20]) <= _MOST:
        raise UserError(
            f"{_NAME} = {given[:20]} in the environment; must be within 1 – {_MOST}: unset it, or set it to the number of cores"
        )
