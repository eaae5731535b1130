"""Property tests give the same verdict on every machine; `--hypothesis-profile=default` looks for new examples."""

from hypothesis import HealthCheck, settings

slow_machines_are_fine = [HealthCheck.too_slow]
settings.register_profile(
    "tierscope", deadline=None, derandomize=True, database=None, suppress_health_check=slow_machines_are_fine
)
settings.load_profile("tierscope")
