"""Studies of these tests are run by ranks that are started once, and their reports have small pictures. Simulated times have intervals of few draws."""

from tests.few_draws import few_draws
from tests.kept_ranks import kept_ranks
from tests.small_pictures import small_pictures

__all__ = ["few_draws", "kept_ranks", "small_pictures"]
