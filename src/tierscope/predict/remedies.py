"""What would fit where the best does not, each simulated, with what it costs in randomness.

pinned       the largest cache rate that fits; all ranks still draw from all samples
first-touch  nodes keep what they read first, as far as there is room; nothing is staged. Not of epochs that only a part of can be simulated: caches need all
chunked      as many nodes shuffle together as a node has room for their part of the data: room buys randomness
partition    local shuffle: a rank keeps its share for ever, and its node holds it
packed       many samples in a file, files shuffled and each read from its beginning to its end: few opens, and samples of a file stay neighbours
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.plan.file_format import make_format
from tierscope.plan.room import feasibility_of
from tierscope.predict.combining import simulate_combination, with_staging
from tierscope.predict.exploration import Combination, Remedy
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.simulation import DRAWN_FROM
from tierscope.predict.unsimulated import refuse_unsimulated
from tierscope.spec.check import find_problem
from tierscope.spec.dump import with_settings
from tierscope.spec.goal import Goal
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import Study

_POLICY, _RATE = "placement.policy", "placement.cache_rate"
_SHUFFLE, _CHUNK = "workload.reader.shuffle", "workload.reader.shuffle_nodes"
_STEPS = 1000  # of cache rates between 0 and 1
_PACKED_BYTES = 128 * 2**20  # of a packed file
_FILES_PER_RANK = 8  # packed files that a rank reads at least: fewer would leave ranks with unequal work


def remedies_for(
    options: Sequence[Combination],
    goal: Goal,
    method: str,
    known: KnownSystem | None,
    price: Callable[[Combination], Combination],
    short_of_room: bool,
) -> tuple[Remedy, ...]:
    """Where no option fits and meets the goal: each remedy with the cheapest system that was tried, or, where it is missed so, with the one that comes nearest to it.

    `options`: priced. `short_of_room`: something did not fit; else only what does better than all of them is worth a line. Those that meet the goal
    first, then by price and by what they reach.
    """
    if any(choice.is_recommended for choice in options):
        return ()
    cheapest = min(options, key=lambda choice: choice.price_rank)
    nearest = min(options, key=lambda choice: choice.shortfall(goal))
    by_name: dict[str, Remedy] = {}
    for base in dict.fromkeys((id(cheapest), id(nearest))):
        option = cheapest if base == id(cheapest) else nearest
        assert option.study is not None
        done = {name for name, remedy in by_name.items() if remedy.option.met}
        for remedy in remedies(option.study, method, known, option.settings, done):
            judged = price(remedy.option.judged(goal))
            by_name[remedy.name] = replace(remedy, option=judged)

    def rank(candidate: Remedy) -> tuple[bool, tuple[bool, float], float]:
        option = candidate.option
        return not option.met, option.price_rank if option.met else (False, 0.0), option.shortfall(goal)

    reached = math.inf if short_of_room else nearest.shortfall(goal)
    return tuple(
        sorted((candidate for candidate in by_name.values() if candidate.option.shortfall(goal) < reached), key=rank)
    )


def remedies(
    study: Study,
    method: str,
    known: KnownSystem | None = None,
    chosen: SweepValues | None = None,
    done: Collection[str] = (),
    calibrated: bool = False,
) -> tuple[Remedy, ...]:
    """Of a study with near tiers, shortest I/O first. What our own checks refuse (a format that holds one sample, say) is left out.

    `chosen`: what is other than in the study that was asked about; `done`: remedies that nobody asks for again; `calibrated`: the system was, where `known` is not at
    hand.
    """
    if len(study.system.tiers) < 2:
        return ()

    def simulated(settings: SweepValues) -> Combination | None:
        return _simulated(study, settings, method, known, calibrated)

    plain = simulated({_POLICY: "pinned", _RATE: 0.0})
    without = None if plain is None else plain.epoch_seconds
    improving: list[Remedy] = []
    for name, settings, mixed, together in _candidates(study):
        option = None if name in done else simulated(settings)
        if option is not None and option.feasibility.is_possible:
            option = with_staging(replace(option, settings=chosen or {}), without)
            improving.append(Remedy(name, settings, option, mixed, together))
    return tuple(sorted(improving, key=lambda candidate: candidate.option.io_seconds))


def _simulated(
    study: Study, settings: SweepValues, method: str, known: KnownSystem | None, calibrated: bool
) -> Combination | None:
    """The study with these settings; None: our own checks refuse it."""
    try:
        changed = _checked(study, settings)
        refuse_missing_rates(changed, known, calibrated)
        refuse_unsimulated(changed)
        return simulate_combination({}, changed, method, known)
    except UserError:
        return None


def _checked(study: Study, settings: SweepValues) -> Study:
    """As every study is when it is read; UserError: it cannot be."""
    changed = with_settings(study, settings)
    if problem := find_problem(changed):
        raise UserError(problem.text)
    make_format(changed)
    return changed


_Candidate = tuple[str, SweepValues, float, int]  # name, settings, share of the data that is mixed, samples together


def _candidates(study: Study) -> Iterator[_Candidate]:
    system, reader, dataset = study.system, study.workload.reader, study.workload.dataset
    everywhere: SweepValues = {_SHUFFLE: "global"}
    pinned: SweepValues = {**everywhere, _POLICY: "pinned"}
    rate = _largest_rate(study, pinned)
    if rate:
        yield "the largest cache rate that fits", {**pinned, _RATE: rate}, 1.0, 1
    if dataset.samples <= DRAWN_FROM:
        yield "first touch: nodes keep what they read first", {**everywhere, _POLICY: "first-touch", _RATE: 1.0}, 1.0, 1
    whole: SweepValues = {_SHUFFLE: "chunked", _POLICY: "pinned", _RATE: 1.0}
    nodes = _largest(lambda count: {**whole, _CHUNK: count}, study, system.nodes - 1) if rate < 1 else 0
    if nodes:
        share = min(1.0, nodes / system.nodes)
        yield f"shuffle among {nodes} of {system.nodes} nodes", {**whole, _CHUNK: nodes}, share, 1
    own: SweepValues = {_SHUFFLE: "local", _POLICY: "partition", _RATE: 1.0}
    yield "local shuffle: each rank reads only its share", own, 1 / system.ranks, 1
    samples_per_file = min(
        _PACKED_BYTES // dataset.record_length_bytes, dataset.samples // (_FILES_PER_RANK * system.ranks)
    )
    if dataset.num_samples_per_file == 1 and samples_per_file > 1 and reader.file_access == "shared":
        packed: SweepValues = {
            **pinned,
            "workload.dataset.num_samples_per_file": samples_per_file,
            "workload.dataset.num_files_train": dataset.samples // samples_per_file,
            "workload.reader.sample_shuffle": "off",
        }
        rate = _largest_rate(study, packed)
        yield f"packed files of {samples_per_file:,} samples", {**packed, _RATE: rate}, 1.0, samples_per_file


def _largest_rate(study: Study, settings: SweepValues) -> float:
    """The largest share of the files that fits; 0: none does."""
    return _largest(lambda step: {**settings, _RATE: step / _STEPS}, study, _STEPS) / _STEPS


def _largest(settings: Callable[[int], SweepValues], study: Study, most: int) -> int:
    """The largest number whose settings are accepted and fit, by halving; 0: not even 1 does."""

    def fits(number: int) -> bool:
        try:
            return feasibility_of(_checked(study, settings(number))).is_possible
        except UserError:
            return False

    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
