"""How many examples a property test tries: a third in `make test`, where they are the same in every run, all in `make nightly`.

A test with a number of its own says `@settings(max_examples=examples(60))`; one without has the profile's.
"""

from hypothesis import HealthCheck, settings

EVERY_RUN, NIGHTLY = "tierscope", "nightly"
_EACH = 100
slow_machines_are_fine = [HealthCheck.too_slow]


def examples(number: int) -> int:
    """The profile is known before any test is imported: `pytest --hypothesis-profile=nightly`."""
    return max(5, number // 3) if settings().derandomize else number


def register() -> None:
    """For conftest.py: what `make test` uses, and what looks for new examples."""
    for name, number in ((EVERY_RUN, _EACH // 3), (NIGHTLY, _EACH)):
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
