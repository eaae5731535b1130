"""Studies of these tests are run by ranks that are started once."""

from tests.kept_ranks import kept_ranks as kept_ranks
