"""How many examples a property test tries: a quarter in `make test`, where they are the same in every run, all in `make nightly`.

A test with a number of its own says `@settings(max_examples=examples(60))`; one without has the profile's.

Hypothesis also draws the constants of all modules that happen to be imported: those differ between workers, and finding them took seconds
of each. Only `make nightly` has them.
"""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

EVERY_RUN, NIGHTLY = "tierscope", "nightly"
_EACH, _PART = 100, 4
slow_machines_are_fine = [HealthCheck.too_slow]


def examples(number: int) -> int:
    """The profile is known before any test is imported: `pytest --hypothesis-profile=nightly`."""
    return max(5, number // _PART) if settings().derandomize else number


def register() -> None:
    """For conftest.py: what `make test` uses, and what looks for new examples."""
    for name, number in ((EVERY_RUN, _EACH // _PART), (NIGHTLY, _EACH)):
        settings.register_profile(
            name,
            deadline=None,
            database=None,
            derandomize=name == EVERY_RUN,
            max_examples=number,
            print_blob=True,
            suppress_health_check=slow_machines_are_fine,
        )
    settings.load_profile(EVERY_RUN)
    find = providers._get_local_constants
    none = providers._local_constants

    def constants() -> Constants:
        return none if settings().derandomize else find()

    providers._get_local_constants = constants
