"""Property tests give the same verdict on every machine; `--hypothesis-profile=default` looks for new examples."""

import signal
from functools import lru_cache

import yaml
from hypothesis import HealthCheck, settings

slow_machines_are_fine = [HealthCheck.too_slow]
settings.register_profile(
    "tierscope", deadline=None, derandomize=True, database=None, suppress_health_check=slow_machines_are_fine
)
settings.load_profile("tierscope")

# Whoever starts the tests may ignore these (nohup, a shell's background job), and so would all programs that tests send them to.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same few texts are parsed thousands of times, which took a tenth of all. Nobody changes what is composed; mistakes are not kept.
yaml.compose = lru_cache(maxsize=2000)(yaml.compose)  # type: ignore[assignment]
