"""What it takes to stage, by hand; and when it pays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.predict.queueing import study_of, tier
from tests.traces import TIERS, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.staging_costs import break_even_epochs
from tierscope.analysis.times import from_traces
from tierscope.plan.stations import mixed
from tierscope.predict.simulation import Simulation
from tierscope.predict.staging import staging_seconds
from tierscope.spec.study import Placement, Study, Tier


def near(**keys: Any) -> Tier:
    return tier("lfs", **{"visible_to": "node", "bandwidth": 1000.0, **keys})


def two_nodes(first: Tier, last: Tier, policy: str = "pinned", rate: float = 0.5, **changes: Any) -> Study:
    """Eight files of 1,000 bytes, of which half are to be staged."""
    study = study_of(first, last, files=8, nodes=2, **changes)
    return replace(study, placement=Placement(policy=policy, cache_rate=rate))


def seconds(study: Study, startup: float = 0.0) -> float | None:
    simulation = Simulation.of(study)
    return staging_seconds(study, simulation.plan, simulation.stations, simulation.reading.file_bytes, startup)


@pytest.mark.parametrize(
    ("first", "last", "ranks", "expected"),
    [
        pytest.param(near(), tier(bandwidth=500.0), 1, 16.0, id="the last tier: 2 nodes x 4 files x 2 s"),
        pytest.param(near(), tier(bandwidth=4000.0), 1, 5.0, id="a stream: 4 x (0.25 + 1) s"),
        pytest.param(near(), tier(bandwidth=4000.0), 4, 4.0, id="the near device: 4 x 1 s"),
        pytest.param(near(device_shared_by=2), tier(bandwidth=4000.0), 4, 8.0, id="one device for both nodes"),
        pytest.param(near(), tier(bandwidth=4000.0, metadata_ops=0.5), 4, 16.0, id="opens: 8 x 2 s"),
        pytest.param(near(metadata_ops=0.5), tier(bandwidth=4000.0), 4, 8.0, id="new entries: 4 x 2 s"),
        pytest.param(near(), tier(bandwidth=4000.0, servers=4, stripe_count=4, stripe_size=512), 4, 4.0, id="striped"),
        pytest.param(
            near(),
            tier(bandwidth=4000.0, gateway_bandwidth=100.0, gateway_shared_by=1),
            4,
            40.0,
            id="gateways: 4 x 10 s",
        ),
        pytest.param(near(), tier(bandwidth=4000.0, node_bandwidth=200.0), 4, 20.0, id="links of nodes: 4 x 5 s"),
        pytest.param(near(), tier(bandwidth=4000.0, background=0.9), 4, 20.0, id="others take nine tenths: 8 x 2.5 s"),
        pytest.param(
            near(latency=3.0),
            tier(latency=2.0, metadata_latency=1.0),
            1,
            4 * 7.0,
            id="latencies: 4 x (1 + 2 + 1 + 3) s",
        ),
        pytest.param(near(visible_to="global"), tier(bandwidth=500.0), 1, 8.0, id="once for all: 4 x 2 s"),
        pytest.param(near(visible_to="global"), tier(bandwidth=4000.0), 1, 4.0, id="together, on one device"),
    ],
)
def test_by_hand(first: Tier, last: Tier, ranks: int, expected: float) -> None:
    assert seconds(two_nodes(first, last, ranks_per_node=ranks)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "last", "ranks", "expected"),
    [
        pytest.param(near(), tier(bandwidth=500.0, open_bytes=250), 1, 20.0, id="opens queue: 8 x 2.5 s"),
        pytest.param(near(), tier(bandwidth=4000.0, open_bytes=2000), 1, 4 * 1.75, id="a stream that opens first"),
        pytest.param(near(open_bytes=500), tier(bandwidth=4000.0), 4, 4 * 1.5, id="new entries queue among the writes"),
        pytest.param(near(), tier(node_bandwidth=500.0, open_bytes=250), 4, 4 * 2.5, id="opens queue on a link"),
        pytest.param(near(), tier(bandwidth=4000.0, stream_bandwidth=200.0), 1, 4 * 6.0, id="a limited stream"),
        pytest.param(near(), tier(bandwidth=4000.0, stream_bandwidth=200.0), 4, 6.0, id="four limited streams"),
        pytest.param(near(), tier(bandwidth=500.0, credit=3.0), 1, 13.0, id="3 s were made up for before: 16 - 3 s"),
        pytest.param(near(), tier(bandwidth=2000.0, credit=0.1), 1, 4 * 1.4, id="a stream finds 0.1 s done each time"),
    ],
)
def test_terms_by_hand(first: Tier, last: Tier, ranks: int, expected: float) -> None:
    assert seconds(two_nodes(first, last, ranks_per_node=ranks)) == pytest.approx(expected)


def test_hashed_files_crowd_at_some_server() -> None:
    """Two nodes copy the same files from eight servers of 500 bytes a second: the fullest is what takes long."""
    study = two_nodes(near(bandwidth=1e9), tier(bandwidth=500.0, servers=8, layout="hash"), rate=1.0, ranks_per_node=8)
    fullest = int(np.bincount(mixed(np.arange(8)) % 8).max())
    assert fullest > 1
    assert seconds(study) == pytest.approx(2 * fullest * 2.0)


def test_reads_of_a_file_are_of_the_transfer_size() -> None:
    study = two_nodes(near(), tier(read_ops=1.0), ranks_per_node=4, transfer=250)
    assert seconds(study) == pytest.approx(2 * 4 * 4.0)


def test_with_a_local_shuffle_nodes_stage_what_is_theirs() -> None:
    study = two_nodes(near(), tier(bandwidth=500.0), rate=1.0, shuffle="local")
    assert seconds(study) == pytest.approx(8 * 2.0)  # each file once
    assert seconds(two_nodes(near(), tier(bandwidth=500.0), rate=1.0)) == pytest.approx(16 * 2.0)  # each on both nodes
    half = two_nodes(near(), tier(bandwidth=500.0), "partition", 0.25, shuffle="local")
    assert seconds(half) == pytest.approx(2 * 2 * 2.0)  # a node has room for two of its four


def test_nothing_to_stage_takes_no_time_and_starting_does() -> None:
    last = tier(bandwidth=500.0)
    assert seconds(two_nodes(near(), last, rate=0.0), startup=9.0) == 0.0
    assert seconds(two_nodes(near(), last), startup=9.0) == pytest.approx(16.0 + 9.0)
    assert seconds(two_nodes(near(), last, "lru")) is None


@pytest.mark.parametrize(
    ("staging", "without", "epoch", "expected"),
    [
        (10.0, 5.0, 4.0, 10),
        (10.1, 5.0, 4.0, 11),
        (0.3, 0.3, 0.2, 3),  # whatever the rounding
        (1e-9, 5.0, 4.0, 1),
        (0.0, 5.0, 5.0, 0),
        (10.0, 5.0, 5.0, None),
        (10.0, 5.0, 6.0, None),
    ],
)
def test_when_it_pays(staging: float, without: float, epoch: float, expected: int | None) -> None:
    assert break_even_epochs(staging, without, epoch) == expected
    if expected:
        assert staging + expected * epoch <= expected * without + 1e-9
        assert staging + (expected - 1) * epoch > (expected - 1) * without + 1e-12


def swept(*points: tuple[dict[str, Any], float, float | None]) -> Any:
    """Sweep values, epoch seconds, staging seconds."""
    traces = [
        trace_of(
            {(0, 1): {"GFS-READ": long / 2}},
            point=number,
            sweep=values,
            seconds=long,
            about={"kind": "simulated", "method": "bound", "spread": {}, "staging_seconds": staging},
        )
        for number, (values, long, staging) in enumerate(points)
    ]
    return break_down(from_traces(traces, TIERS))


def test_every_rate_against_the_bare_point_of_its_kind() -> None:
    found = swept(
        ({"cache_rate": 0.0, "nodes": 1}, 10.0, 0.0),
        ({"cache_rate": 0.5, "nodes": 1}, 8.0, 5.0),
        ({"cache_rate": 0.0, "nodes": 2}, 6.0, 0.0),
        ({"cache_rate": 0.5, "nodes": 2}, 5.0, 5.0),
        ({"cache_rate": 1.0, "nodes": 2}, 7.0, 9.0),
    )
    assert {tuple(point.sweep.values()): point.break_even_epochs for point in found.summary} == {
        (0.0, 1): 0,
        (0.5, 1): 3,
        (0.0, 2): 0,
        (0.5, 2): 5,
        (1.0, 2): None,
    }


def test_nothing_is_known_without_a_bare_point_or_a_simulation() -> None:
    found = swept(({"cache_rate": 0.25}, 10.0, 2.0), ({"cache_rate": 0.5}, 8.0, 5.0))
    assert [(point.staging_seconds, point.break_even_epochs) for point in found.summary] == [(2.0, None), (5.0, None)]
