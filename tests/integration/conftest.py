import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public_place() -> Iterator[Path]:
    """A folder that every user can get at, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()
