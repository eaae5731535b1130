"""What commands printed on fixed inputs, they still print: a change of any of it is meant, and in the CHANGELOG."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.commands import COMMANDS, DARSHAN_COMMANDS, anonymous, darshan_logs, expected, inputs
from tests.kept_readers import kept_readers
from tierscope.cli.main import _run

__all__ = ["kept_readers"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("golden")
    inputs(made)
    return made


def differences(printed: Any, known: Any, place: str = "") -> Iterator[str]:
    """Sums of the same numbers may differ in the last digits by the order of adding."""
    if isinstance(printed, dict) and isinstance(known, dict):
        for name in sorted(printed.keys() | known.keys()):
            if name not in printed or name not in known:
                yield f"{place}.{name}: only {'expected' if name in known else 'printed'}"
            else:
                yield from differences(printed[name], known[name], f"{place}.{name}")
    elif isinstance(printed, list) and isinstance(known, list) and len(printed) == len(known):
        for number, (one, other) in enumerate(zip(printed, known, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif isinstance(printed, float) and isinstance(known, float):
        if not math.isclose(printed, known, rel_tol=1e-9, abs_tol=1e-15):
            yield f"{place}: {printed!r}, expected {known!r}"
    elif printed != known or type(printed) is not type(known):
        yield f"{place}: {printed!r}, expected {known!r}"


def check(name: str, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run([*arguments, "--json"]) == 0
    assert list(differences(json.loads(anonymous(capsys.readouterr().out)), expected(name))) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_it_printed(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    check(name, COMMANDS[name], capsys)


@pytest.mark.parametrize("name", DARSHAN_COMMANDS)
@pytest.mark.skipif(not darshan_logs(), reason="no PyDarshan: its example logs are in its wheel")
def test_logs_in_the_wheel_of_darshan_give_what_they_gave(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    check(name, DARSHAN_COMMANDS[name], capsys)


def test_the_comparison_can_fail() -> None:
    assert list(differences({"a": [1.0, {"b": 2}]}, {"a": [1.0 + 1e-6, {"b": "2"}], "c": None})) == [
        ".a[0]: 1.0, expected 1.000001",
        ".a[1].b: 2, expected '2'",
        ".c: only expected",
    ]
