"""Studies of these tests are run by ranks that are started once, and their reports have small pictures."""

from tests.kept_ranks import kept_ranks
from tests.small_pictures import small_pictures

__all__ = ["kept_ranks", "small_pictures"]
