"""The interval around a simulated epoch: other shuffles, other devices, other services."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.examples import examples
from tests.predict.queueing import Case, case_of, study_of, systems, tier
from tierscope.predict import bound, events, spread
from tierscope.predict.outcome import Outcome
from tierscope.spec.study import Study, Tier

pytestmark = pytest.mark.whole


def by_bound(case: Case) -> Outcome:
    return bound.simulate(case.study, case.stations, case.reading, case.schedule)


def by_events(study: Study, seed: int) -> Outcome:
    pytest.importorskip("numba", reason="the event engine needs numba")
    case = case_of(study)
    return events.simulate(study, case.stations, case.reading, case.schedule, events.EventOptions(seed=seed))


def relative(case: Case, outcome: Outcome | None = None) -> tuple[float, float]:
    return spread.relative(case.study, case.stations, case.reading, outcome or by_bound(case))


@given(systems())
@settings(max_examples=examples(25))
def test_the_simulated_time_is_in_its_own_interval(case: Case) -> None:
    low, high = relative(case)
    assert 0 < low <= 1 <= high < np.inf
    assert (low, high) == relative(case)


def test_where_nothing_is_random_there_is_no_interval() -> None:
    """One metadata server for all, and every rank asks it as often as ever."""
    assert relative(case_of(study_of(tier(metadata_ops=10, latency=0.1), nodes=4, files=80))) == pytest.approx(
        (1.0, 1.0)
    )


def test_without_stations_there_is_no_interval() -> None:
    assert relative(case_of(study_of(tier(latency=0.1)))) == (1.0, 1.0)


@pytest.mark.parametrize("stripe_count", [1, 4])
def test_files_that_lie_on_one_server_are_not_charged_to_all_of_their_stripes(stripe_count: int) -> None:
    """All files are shorter than a stripe: it does not matter over how many servers longer ones would be spread."""
    gfs = tier(read_ops=100, servers=4, stripe_count=stripe_count)
    low, high = relative(case_of(study_of(gfs, files=40_000, nodes=4)))
    assert 0.97 < low <= 1 <= high < 1.03


# Two tiers whose devices differ; services vary.
DISKS = tier("lfs", visible_to="node", device_shared_by=2, read_ops=300, variation=0.15, service_variation=0.5)
SERVERS = tier(metadata_ops=2000, servers=4, bandwidth=4e5, variation=0.1, service_variation=0.3, latency=0.001)
# Two that are never busy: only how far away they are matters.
IDLE = tier("lfs", visible_to="node", read_ops=10_000, latency=0.001)
REMOTE = tier(metadata_ops=100_000, bandwidth=1e9, latency=0.05)


def redrawn(study: Study, draws: int) -> list[float]:
    """The epoch with other shuffles, other devices and other services."""
    return [float(by_events(replace(study, seed=1000 + seed), seed).seconds.max()) for seed in range(1, draws + 1)]


@pytest.mark.parametrize(
    ("near", "far", "rate"),
    [
        (DISKS, SERVERS, 0.9),  # the disks are the bottleneck
        (DISKS, SERVERS, 0.1),  # the servers are
        (replace(DISKS, variation=0.0), replace(SERVERS, variation=0.0), 0.9),  # only shuffles and services differ
        (IDLE, REMOTE, 0.5),  # no station is: the epoch waits for the process with most files far away
    ],
    ids=["disks", "servers", "alike", "processes"],
)
def test_about_nine_of_ten_epochs_are_within_it(near: Tier, far: Tier, rate: float) -> None:
    study = study_of(near, far, files=2400, nodes=8, ranks_per_node=3, batch=4, cache_rate=rate)
    case, outcome = case_of(study), by_events(study, seed=0)
    low, high = relative(case, outcome)
    epoch = float(outcome.seconds.max())
    found = redrawn(study, 100)
    inside = sum(low * epoch <= seconds <= high * epoch for seconds in found)
    assert 80 <= inside <= 97, (low, high, np.quantile(found, [0.05, 0.5, 0.95]) / epoch)


@pytest.mark.parametrize(
    ("files", "per_file", "transfer"), [(480, 1, 1000), (60, 8, 2**40)], ids=["requests", "samples"]
)
def test_what_lies_in_one_file_is_on_one_server(files: int, per_file: int, transfer: int) -> None:
    """Sixteen requests of a file, or eight samples, are not spread over servers each by itself: busy servers differ more than that."""
    near = tier("lfs", visible_to="node", read_ops=1e6)
    far = tier(servers=8, bandwidth=1e5)
    shape: dict[str, Any] = {"nodes": 4, "ranks_per_node": 15, "files": files, "per_file": per_file}
    study = study_of(near, far, cache_rate=0.5, record=16_000, transfer=transfer, seed=3, **shape)
    case, outcome = case_of(study), by_events(study, seed=0)
    low, high = relative(case, outcome)
    epoch = float(outcome.seconds.max())
    inside = sum(low * epoch <= seconds <= high * epoch for seconds in redrawn(study, 60))
    assert inside >= 45, (low, high, inside)


def test_rates_that_are_uncertain_make_it_wider() -> None:
    study = study_of(DISKS, SERVERS, files=2400, nodes=8, ranks_per_node=3, cache_rate=0.9)
    case = case_of(study)
    narrow = relative(case)
    systems_ = [
        replace(study.system, tiers=(replace(DISKS, read_ops=300 * factor), SERVERS))
        for factor in np.linspace(0.6, 1.6, 11)
    ]
    low, high = spread.relative(study, case.stations, case.reading, by_bound(case), systems_)
    assert low < narrow[0] * 0.95
    assert high > narrow[1] * 1.05
