"""Findings about shuffling: each appears when it should, and only then."""

from tests.finding_cases import Case, finding_tests
from tierscope.analysis.shuffling import (
    Io,
    LearningSetup,
    LearntData,
    Shuffle,
    ShuffleRow,
    Shuffling,
    SimulatedPart,
    about_shuffling,
)
from tierscope.analysis.wording import Finding

GLOBAL, CHUNKED, LOCAL = Shuffle("global"), Shuffle("chunked", 2), Shuffle("local")
GOOD, WORSE, BAD = (0.95, 0.96, 0.97), (0.93, 0.94, 0.955), (0.5, 0.6, 0.7)
NEEDS = {GLOBAL: 4096, CHUNKED: 2048, LOCAL: 1024}
NETWORK = "batch normalisation within each rank"


def row(shuffle: Shuffle, last: tuple[float, ...], seconds: float = 1.0, network: str = "ghost", batch: int = 4) -> ShuffleRow:  # fmt: skip
    io = Io((seconds,), NEEDS[shuffle], 1024, 1.0)
    return ShuffleRow(network, "sorted", batch, shuffle, tuple((0.1, each) for each in last), io)


def made(*rows: ShuffleRow) -> Shuffling:
    seeds = len(rows[0].accuracy)
    storage = SimulatedPart("bound", "fugaku", nodes=4, sample_bytes=4096, near_room_shares=2.0, epochs=2)
    data = LearntData("digits", 1280, test_samples=517, split_seed=1, files=8, samples_per_file=160)
    training = LearningSetup(hidden=32, learning_rate=0.1, momentum=0.9, epochs=2, ranks_per_node=2)
    return Shuffling(8, 2, 2, seeds, "fugaku", 4096, data, training, storage, rows)


def found(*rows: ShuffleRow) -> list[Finding]:
    return about_shuffling(made(*rows))


BESIDE = {"network": NETWORK, "layout": "sorted", "batch": 4}
IO = {"system": "fugaku", "batch": 4, "sample_bytes": 4096, "global_bytes": 4096, "local_bytes": 1024}
COSTS = (row(GLOBAL, GOOD, 2.0), row(CHUNKED, WORSE), row(LOCAL, BAD))
FREE = (row(GLOBAL, GOOD), row(CHUNKED, GOOD), row(LOCAL, WORSE, 2.0))
CASES: dict[str, Case] = {
    "shuffle_local_costs": Case(
        lambda: found(*COSTS),
        {**BESIDE, "ranks": 8, "global_percent": 96.0, "local_percent": 60.0, "seeds": 3},
        lambda: found(*FREE),
    ),
    "shuffle_local_enough": Case(
        lambda: found(*FREE),
        {**BESIDE, "ranks": 8, "global_percent": 96.0, "local_percent": 94.0, "seeds": 3},
        lambda: found(*COSTS),
    ),
    "shuffle_chunk_enough": Case(
        lambda: found(*COSTS),
        {
            **BESIDE,
            "nodes": 2,
            "chunk": "chunked, 2 nodes",
            "percent": 94.0,
            "global_percent": 96.0,
            "seeds": 3,
            "chunk_bytes": 2048,
            "whole_bytes": 4096,
        },
        lambda: found(row(GLOBAL, GOOD), row(CHUNKED, BAD), row(LOCAL, BAD)),
    ),
    "shuffle_io_saved": Case(
        lambda: found(*COSTS), {**IO, "global_seconds": 2.0, "local_seconds": 1.0}, lambda: found(*FREE)
    ),
    "shuffle_io_not_saved": Case(
        lambda: found(*FREE), {**IO, "global_seconds": 1.0, "local_seconds": 2.0}, lambda: found(*COSTS)
    ),
    "shuffle_few_seeds": Case(
        lambda: found(row(GLOBAL, GOOD[:2]), row(LOCAL, BAD[:2])),
        {"seeds": 2, "enough": 3},
        lambda: found(*COSTS),
    ),
}


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_the_worst_batch_speaks_for_all_and_a_chunk_must_be_enough_at_each() -> None:
    more = [row(GLOBAL, GOOD, batch=16), row(CHUNKED, BAD, batch=16), row(LOCAL, GOOD, batch=16)]
    kinds = {finding.kind: finding.evidence for finding in found(*COSTS, *more)}
    assert kinds["shuffle_local_costs"]["batch"] == 4
    assert "shuffle_chunk_enough" not in kinds


def test_without_global_shuffle_nothing_is_compared() -> None:
    assert found(row(LOCAL, GOOD)) == []


def test_the_target_is_reached_by_the_median_or_never() -> None:
    good, bad = row(GLOBAL, GOOD, 3.0), row(LOCAL, BAD)
    assert (good.epochs_to_target, good.io_to_target) == (2, 6.0)
    assert (bad.epochs_to_target, bad.io_to_target) == (None, None)
