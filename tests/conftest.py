"""Property tests give the same verdict on every machine; `--hypothesis-profile=default` looks for new examples."""

from hypothesis import settings

settings.register_profile("tierscope", deadline=None, derandomize=True, database=None)
settings.load_profile("tierscope")
