"""How far the model is off: each measured point predicted from all the others."""

from collections.abc import Sequence

from tierscope.commands.calibrate import cases_of
from tierscope.errors import UserError
from tierscope.predict.calibrate import LeftOut, leave_one_out
from tierscope.predict.choosing import fit
from tierscope.units import counted
from tierscope.watch import Watch


def validate_results(outs: Sequence[str], watch: Watch) -> tuple[str, tuple[LeftOut, ...]]:
    measured = cases_of(outs)
    cases = measured.to_fit
    points = len({case.name for case in cases})
    watch.phase("validating", points, "points")
    left_out = leave_one_out(cases, fit(cases), watch.advance)
    if not left_out:
        raise UserError(
            f"{counted(points, 'point')} {'is' if points == 1 else 'are'} too few to leave one out: the rest must cover every tier; measure cache rates 0 %, 50 % and 100 %"
        )
    return measured.study.study, left_out
