"""Reports of these tests have small pictures."""

from tests.small_pictures import small_pictures

__all__ = ["small_pictures"]
