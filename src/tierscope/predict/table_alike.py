"""What else fits a table about as well: the same keys with other values, and other keys in their place. A table that does not tell them apart
tells only what they have in common."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which calls us
    from tierscope.predict.table_fit import TableKey, TableProblem

Values = Mapping[str, float]

_DRAWS = 16
_FIRST_STRIDE, _LONGEST = 0.01, math.log(64)  # of a walk away from a fit, in logarithms
_SEED = "alike"


def other_fits(
    problem: "TableProblem", keys: "Sequence[TableKey]", values: Values, most: float, advance: Callable[[int], None]
) -> tuple[Values, ...]:
    """Another key in the place of one of these, of all, or as much of it as there may be beside them, with a misfit of at most `most`."""
    fits: list[Values | None] = []
    for key in keys:
        if values and key.path not in values:
            kept = {tuple(sorted(values.keys() - {path})) for path in values} | {()}
            fits += [problem.instead({path: values[path] for path in paths}, key, most) for paths in sorted(kept)]
            fits.append(problem.beside(values, key, most))
        advance(1)
    return tuple(fit for fit in fits if fit)


def on_other_systems(
    systems: "Sequence[tuple[TableProblem, Values]]", values: Values, most: float
) -> tuple[Values, ...]:
    """What fits about as well where figures that were assumed are others: those, and what is fitted beside them."""
    fits = []
    for problem, assumed in systems:
        fit, misfit = problem.adjusted(values)
        if misfit <= most:
            fits.append({**assumed, **fit})
    return tuple(fits)


def alike(problem: "TableProblem", fits: Sequence[Values], most: float) -> tuple[Values, ...]:
    """Each of the fits, and others as far from one of them as the misfit stays at most `most`; all fits are drawn as often."""
    dice = random.Random(_SEED)
    return tuple(_draws(problem, fits, most, dice)) if any(fits) else ()


def _draws(problem: "TableProblem", fits: Sequence[Values], most: float, dice: random.Random) -> Iterator[Values]:
    for number in range(max(_DRAWS, len(fits))):
        fit = fits[number % len(fits)]
        yield fit if number < len(fits) else _walked(problem, fit, most, dice)


def _walked(problem: "TableProblem", fit: Values, most: float, dice: random.Random) -> Values:
    """In one direction of all keys, to anywhere between the fit and the last place that is about as good."""
    direction = {path: dice.gauss(0.0, 1.0) for path in fit}
    length = max(map(abs, direction.values()))

    def at(stride: float) -> Values:
        return {path: value * math.exp(stride * direction[path] / length) for path, value in fit.items()}

    stride = _FIRST_STRIDE
    while stride < _LONGEST and problem.misfit(at(stride)) <= most:
        stride *= 2
    farthest = stride / 2 if stride > _FIRST_STRIDE else 0.0
    return at(farthest * dice.random())
