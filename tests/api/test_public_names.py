"""What `import tierscope` gives: names that hide no module, docstrings, examples that hold, and an import that costs nothing."""

import doctest
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tierscope as ts

SOURCE = Path(ts.__file__).parent
ROOT = SOURCE.parent.parent
COSTS = ("osts ", "akes ", "millisecond", "seconds", "memory", "Reads ", "Copies", "copies", "olds ", "keeps ", "KB")


def test_no_public_name_is_a_module_or_a_subpackage() -> None:
    """`import tierscope.trace` would replace `ts.trace`, whichever came first."""
    taken = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not set(ts.__all__) & taken
    assert {"trace", "plan", "report", "api"} <= taken


def test_names_and_their_places_are_those_that_type_checkers_see() -> None:
    text = (SOURCE / "__init__.py").read_text()
    for name, place in ts._PLACES.items():
        assert f"    from tierscope.{place} import {name} as {name}\n" in text
        assert getattr(ts, name).__name__ == name
    assert set(ts.__all__) == {*ts._PLACES, "mark_epoch", "phase"}
    assert set(ts.__all__) <= set(dir(ts))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        ts.lod  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(ts, "nothing")


def test_the_import_pulls_in_no_library_and_is_quick() -> None:
    program = (
        "import sys; before = set(sys.modules); import time; t = time.process_time(); import tierscope; spent = time.process_time() - t; "
        "print(spent); print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    found = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        spent, names = done.stdout.splitlines()
        found.append(float(spent))
        assert not set(names.split()) & {"polars", "numpy", "msgspec", "torch", "rich", "click", "yaml", "ctypes"}
    assert min(found) < 0.05


def public_parts(name: str) -> list[tuple[str, object]]:
    thing = getattr(ts, name)
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return [(name, thing)]
    parts = [
        (f"{name}.{part}", inspect.getattr_static(thing, part))
        for part in vars(thing)
        if not part.startswith("_") and part not in getattr(thing, "__dataclass_fields__", {})
    ]
    return [(name, thing), *((part, found) for part, found in parts if callable(found) or hasattr(found, "fget"))]


@pytest.mark.parametrize("name", ts.__all__)
def test_every_public_name_says_what_it_is_and_what_it_costs(name: str) -> None:
    thing = getattr(ts, name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        assert thing.__doc__
        return
    for part, found in public_parts(name):
        text = inspect.getdoc(found.__func__ if isinstance(found, classmethod) else found) or ""
        assert text, f"{part} has no docstring"
        costs = any(word in text for word in COSTS)
        assert costs or part.startswith(("mark_epoch", "phase", "Finding")), f"{part}: what does it cost?"


@pytest.mark.parametrize("place", sorted({place for place in ts._PLACES.values() if place.startswith("api.")}))
def test_examples_in_docstrings_hold(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert doctest.testmod(importlib.import_module(f"tierscope.{place}")).failed == 0


def test_the_document_names_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    assert not [name for name in ts.__all__ if f"`{name}" not in text and f"ts.{name}" not in text]


def test_a_bad_number_of_threads_is_refused_in_one_line_and_errors_can_still_be_named() -> None:
    program = "import tierscope as ts\ntry: ts.load\nexcept ts.UserError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "POLARS_MAX_THREADS": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("POLARS_MAX_THREADS = 0")
