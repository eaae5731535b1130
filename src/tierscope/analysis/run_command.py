"""The command that measures a point, for whoever is told to."""

import shlex

from tierscope.analysis.breakdown import value_text
from tierscope.jsonable import SweepValues


def run_command(sweep: SweepValues, study: str = "STUDY") -> str:
    """Like `tierscope run STUDY --set cache_rate=50% --out OUT`: what is set is not swept."""
    settings = (f" --set {shlex.quote(f'{name}={value_text(name, value)}')}" for name, value in sweep.items())
    return f"tierscope run {shlex.quote(study)}{''.join(settings)} --out OUT"
