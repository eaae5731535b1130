"""The engine of these tests is compiled by one process."""

from tests.compiled_once import compiled_once

__all__ = ["compiled_once"]
