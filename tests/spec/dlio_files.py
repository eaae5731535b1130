"""Files of DLIO for tests: those under tests/spec/dlio, and a small one to change a key of."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tierscope.errors import SpecError
from tierscope.spec.load import Loaded, load

FOLDER = Path(__file__).parent / "dlio"
SMALL = "model: small\nframework: pytorch\nworkflow: {train: True}\ndataset: {num_files_train: 64}\n"


def loaded(path: Path | str, *settings: str, system: str | None = None) -> Loaded:
    return load(str(path), settings, system)


def refusal(path: Path | str, *settings: str) -> str:
    """The one line that is said."""
    with pytest.raises(SpecError) as caught:
        loaded(path, *settings)
    line = str(caught.value)
    assert line.isprintable()
    return line


def noted(notes: Sequence[str], path: str) -> bool:
    return any(path in note.partition(":")[0].split(", ") for note in notes)
