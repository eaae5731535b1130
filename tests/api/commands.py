"""Commands beside calls: what a command prints, and where results to load are."""

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tierscope.cli.main import main

GOLDEN = Path(__file__).parent.parent / "golden"
RESULTS = GOLDEN / "results"
MEASURED, SIMULATED, TRACED = (str(RESULTS / name) for name in ("measured", "simulated", "traced"))
LOGS = [str(GOLDEN / "logs" / f"trace-{number}-of-2.pfw") for number in (0, 1)]


def printed(*arguments: object) -> str:
    """What a command that succeeds prints."""
    out = io.StringIO()
    elsewhere = {key: value for key, value in os.environ.items() if key != "COLUMNS"}  # pytest's workers have it
    with (
        mock.patch.dict(os.environ, elsewhere, clear=True),
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit) as ended,
    ):
        main([str(each) for each in arguments])
    assert ended.value.code == 0
    return out.getvalue()


def as_json(*arguments: object) -> Any:
    return json.loads(printed(*arguments, "--json"))


def refused(*arguments: object) -> str:
    """The one line of a command that the user got wrong."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert ended.value.code == 2
    (line,) = err.getvalue().splitlines()
    return line.removeprefix("tierscope: ")
