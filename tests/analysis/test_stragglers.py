"""A slow rank is named where it is slow again and again, and only then."""

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from tests.finding_cases import Case, finding_tests
from tests.traces import TIERS, trace_of
from tierscope.analysis.stragglers import about_stragglers
from tierscope.analysis.times import from_traces
from tierscope.analysis.wording import Finding
from tierscope.trace.trace import Trace

Seconds = Mapping[int, Sequence[float]]  # epoch → of each rank


def run(epochs: Seconds, waited: Seconds | None = None, kind: str = "measured", repetition: int = 1) -> Trace:
    """Two ranks on every node; `waited`: for others after steps."""
    cells = {(rank, epoch): {"GFS-READ": 0.1} for epoch, ranks in epochs.items() for rank in range(len(ranks))}
    trace = trace_of(cells, about={"kind": kind}, repetition=repetition)

    def spread(name: str, values: Seconds) -> pl.Series:
        rows = trace.table.select("record", "epoch", "rank").rows()
        return pl.Series(name, [values[epoch][rank] if record == "rank" else None for record, epoch, rank in rows])

    columns = [spread("epoch_seconds", epochs)] + ([spread("sync_seconds", waited)] if waited else [])
    return Trace(trace.key, trace.about, trace.table.with_columns(columns))


def found(*traces: Trace) -> list[Finding]:
    return about_stragglers(from_traces(traces, TIERS))


SLOW = (1.0, 1.1, 5.0, 0.9)  # rank 2, the first of node 1
EVEN = (1.0, 1.1, 1.3, 0.9)
OTHER = (5.0, 1.1, 1.0, 0.9)
SLOW_NODE = (1.0, 1.1, 5.0, 5.6, 0.9, 1.0)  # node 1, whose ranks take turns at being the slowest
SLOW_NODE_TOO = (1.0, 1.1, 5.6, 5.0, 0.9, 1.0)
SLOW_RANK = (1.0, 1.1, 5.0, 1.2, 0.9, 1.0)
CASES = {
    "straggler": Case(
        lambda: found(run({1: EVEN, 2: SLOW, 3: SLOW})),
        {"rank": 2, "node": 1, "factor": 5.0, "epochs": 2, "of": 3},
        lambda: found(run({1: EVEN, 2: SLOW, 3: OTHER, 4: SLOW})),
    ),
    "straggling_node": Case(
        lambda: found(run({1: SLOW_NODE, 2: SLOW_NODE_TOO})),
        {"node": 1, "factor": pytest.approx(5.0 / 0.95), "epochs": 2, "of": 2},
        lambda: found(run({1: SLOW_RANK, 2: SLOW_RANK})),
    ),
}
(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_their_words() -> None:
    (rank,), (node,) = CASES["straggler"].yes(), CASES["straggling_node"].yes()
    assert rank.text == (
        "rank 2 on node 1 is a straggler: 5.0 times the median of the other ranks in 2 of 3 epochs; it dominates the times of the slowest process"
    )
    assert node.text == (
        "node 1 is a straggler: even its fastest rank takes 5.3 times the median of the other nodes in 2 of 2 epochs; it dominates the times of the slowest process"
    )


def test_one_slow_rank_is_not_its_nodes_fault() -> None:
    (finding,) = found(run({1: SLOW_RANK, 2: SLOW_RANK}))
    assert (finding.kind, finding.evidence["rank"]) == ("straggler", 2)


def test_repetitions_count_together() -> None:
    runs = [run({1: SLOW}, repetition=1), run({1: SLOW}, repetition=2)]
    (finding,) = found(*runs)
    assert (finding.evidence["epochs"], finding.evidence["of"]) == (2, 2)


def test_where_all_wait_after_every_step_the_one_that_does_not_wait_is_slow() -> None:
    waited = (4.0, 3.9, 0.0, 4.1)
    together = (5.0, 5.0, 5.0, 5.0)
    (finding,) = found(run({1: together, 2: together}, {1: waited, 2: waited}))
    assert finding.evidence["rank"] == 2
    assert finding.evidence["factor"] == pytest.approx(5.0)


@pytest.mark.parametrize(
    "traces",
    [
        [run({1: SLOW})],  # once is chance
        [run({1: (1.0, 5.0), 2: (1.0, 5.0)})],  # two ranks: nobody knows which one is usual
        [run({1: (0.001, 0.001, 0.02), 2: (0.001, 0.001, 0.02)})],  # noise
        [run({1: EVEN, 2: EVEN})],
        [run({1: SLOW, 2: SLOW}, kind="simulated")],
    ],
)
def test_nothing_is_made_of_little(traces: list[Trace]) -> None:
    assert found(*traces) == []
