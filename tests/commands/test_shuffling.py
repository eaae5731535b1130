"""What shuffling buys: the plan's order is what is learnt from, and outcomes are those that can be reasoned."""

from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tierscope.analysis.shuffling import Io, Shuffle, ShuffleRow, Shuffling, shuffling_json
from tierscope.commands.calibrate import write_known
from tierscope.commands.shuffling import ShufflingOptions, shuffling
from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.plan.plan import Plan
from tierscope.predict.shuffling_io import ShufflingLayout, part_of_system, simulated_io
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import KnownFigure, numbers
from tierscope.spec.known import KnownSystem, load_system
from tierscope.train.digits import TRAIN_SAMPLES, load_digits, one_thread, written_order
from tierscope.train.learning import learn
from tierscope.train.perceptron import batches
from tierscope.watch import Silent

# Not importorskip: it would import what takes a second into every process that only collects these tests.
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed"),
]

GLOBAL, LOCAL, CHUNKED, NODE = Shuffle("global"), Shuffle("local"), Shuffle("chunked", 4), Shuffle("chunked", 1)
RANKS, SHARE, EPOCHS = 64, 20, 8


def layout(system: str = "fugaku", room: float = 2.0, ranks: int = RANKS) -> ShufflingLayout:
    return ShufflingLayout(ranks, TRAIN_SAMPLES // ranks, 128 * 1024, 3, part_of_system(system, ranks // 4, 4), room)


def order_of(shuffle: Shuffle, batch: int = 4, seed: int = 1) -> Order:
    return Order.of(layout().study(shuffle, batch, seed))


@cache
def found() -> Shuffling:
    """The default but for one batch and fewer epochs: about three seconds."""
    return shuffling(ShufflingOptions(batch="4", epochs=EPOCHS, seeds=3), Silent())


def at(network: str, files: str, shuffle: Shuffle) -> ShuffleRow:
    return found().of_case((network, files, 4))[shuffle]


@pytest.mark.parametrize("shuffle", [GLOBAL, CHUNKED, NODE, LOCAL])
def test_steps_are_those_of_the_plan_that_the_benchmark_reads(shuffle: Shuffle) -> None:
    plan = Plan.of(layout().study(shuffle, 4, 1), 1)
    steps = list(batches(plan.order.whole_epoch(2), 4))
    assert len(steps) == plan.steps == 5
    for rank in range(RANKS):
        read = np.concatenate([block.samples for block in plan.reads(rank, 2)])
        assert np.array_equal(np.concatenate([step[rank] for step in steps]), read)


@pytest.mark.parametrize("shuffle", [GLOBAL, CHUNKED, NODE, LOCAL])
def test_every_sample_is_learnt_from_once_an_epoch(shuffle: Shuffle) -> None:
    for epoch in (1, 2):
        samples = order_of(shuffle).whole_epoch(epoch)
        assert np.array_equal(np.sort(samples.reshape(-1)), np.arange(TRAIN_SAMPLES))


def test_who_sees_what_over_many_epochs() -> None:
    """Local: a rank one file for ever; a node's chunk: the four files of its ranks; global: everything."""
    seen = {}
    for shuffle in (GLOBAL, NODE, LOCAL):
        order = order_of(shuffle)
        read = np.concatenate([order.whole_epoch(epoch)[5] for epoch in range(1, 41)])
        seen[shuffle.text] = (len(np.unique(read // SHARE)), len(np.unique(read)))
    assert seen["local"] == (1, SHARE)
    assert seen["chunked, 1 node"] == (4, 4 * SHARE)
    assert seen["global"][0] == RANKS
    assert seen["global"][1] > 0.4 * TRAIN_SAMPLES  # 800 draws of 1,280: 1 - e^(-0.625) = 46 %


def test_the_order_does_not_depend_on_the_batch() -> None:
    """So one plan serves all batches of a seed."""
    for shuffle in (GLOBAL, CHUNKED, LOCAL):
        assert np.array_equal(order_of(shuffle, 4).whole_epoch(3), order_of(shuffle, 16).whole_epoch(3))


def test_sorted_files_hold_one_class_or_two_and_random_ones_many() -> None:
    labels = load_digits().train_labels
    classes = {}
    for name in ("sorted", "random"):
        written = written_order(labels, name, seed=1)
        assert np.array_equal(np.sort(written), np.arange(TRAIN_SAMPLES))
        classes[name] = [len(set(file)) for file in labels[written].reshape(RANKS, SHARE)]
    assert max(classes["sorted"]) == 2
    assert classes["sorted"].count(1) >= RANKS - 9  # nine borders between ten classes
    assert min(classes["random"]) > 5


def test_the_split_is_fixed_and_no_picture_is_in_both_parts() -> None:
    digits = load_digits()
    assert (len(digits.train_labels), len(digits.test_labels)) == (1280, 517)
    assert set(digits.train_labels) == set(digits.test_labels) == set(range(10))
    assert 0 <= digits.train_pixels.min() <= digits.train_pixels.max() == 1
    train, test = ({row.tobytes() for row in rows} for rows in (digits.train_pixels, digits.test_pixels))
    assert not train & test


def test_local_shuffle_of_sorted_files_costs_what_normalising_within_a_rank_loses() -> None:
    """Ranges over seeds do not meet, and the loss is many times as large as what seeds make of global shuffle."""
    whole, local = at("ghost", "sorted", GLOBAL), at("ghost", "sorted", LOCAL)
    noise = max(whole.highs[-1] - whole.lows[-1], local.highs[-1] - local.lows[-1])
    assert local.falls_short_of(whole)
    assert whole.last - local.last > 2 * noise
    assert whole.last - local.last > 0.2


@pytest.mark.parametrize(("network", "files"), [("ghost", "random"), ("plain", "sorted"), ("plain", "random")])
def test_otherwise_local_shuffle_costs_nothing_that_seeds_would_not(network: str, files: str) -> None:
    """Without normalisation the union of batches is all that counts, and it has every class anyway."""
    rows = [at(network, files, shuffle) for shuffle in (GLOBAL, LOCAL)]
    noise = max(row.highs[-1] - row.lows[-1] for row in rows)
    assert abs(rows[0].last - rows[1].last) <= max(2 * noise, 0.02)  # three seeds know their spread badly


def test_chunks_lie_between() -> None:
    whole, local = at("ghost", "sorted", GLOBAL), at("ghost", "sorted", LOCAL)
    for shuffle in (CHUNKED, NODE):
        chunk = at("ghost", "sorted", shuffle)
        assert not chunk.falls_short_of(whole) or local.last < chunk.last < whole.last
        assert local.falls_short_of(chunk)
    firsts = [at("ghost", "sorted", shuffle).medians[0] for shuffle in (GLOBAL, NODE, LOCAL)]
    assert firsts == sorted(firsts, reverse=True)


def test_the_same_seeds_give_the_same_numbers() -> None:
    row, digits = at("ghost", "sorted", CHUNKED), load_digits()
    order = order_of(CHUNKED, 4, seed=2)
    epochs = [order.whole_epoch(epoch) for epoch in range(1, 4)]
    with one_thread():
        again = learn(digits, written_order(digits.train_labels, "sorted", 2), epochs, 4, "ghost", 2)
    assert tuple(again) == row.accuracy[1][:3]


def test_a_plain_run_reaches_what_scikit_learns_own_classifier_reaches() -> None:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    digits = load_digits()
    theirs = LogisticRegression(max_iter=300).fit(digits.train_pixels, digits.train_labels)
    score = theirs.score(digits.test_pixels, digits.test_labels)
    assert score >= 0.9
    assert at("plain", "random", GLOBAL).last >= score - 0.02  # a hidden layer is not worse


def test_io_of_the_slowest_process_and_room_on_the_near_tier() -> None:
    given, share_bytes = layout(), 4 * SHARE * 128 * 1024
    io = {shuffle: simulated_io(given, shuffle, 4, range(1, 3)) for shuffle in (GLOBAL, CHUNKED, NODE, LOCAL)}
    assert [io[each].needed_bytes // share_bytes for each in io] == [16, 4, 1, 1]
    assert [io[each].near_share for each in (NODE, LOCAL)] == [1, 1]
    assert io[GLOBAL].near_share == pytest.approx(2 / 16)
    assert io[CHUNKED].near_share == pytest.approx(0.5)
    assert io[GLOBAL].held_bytes == io[LOCAL].held_bytes * 2 == 2 * share_bytes
    assert max(io[each].median for each in (CHUNKED, NODE, LOCAL)) < 0.7 * io[GLOBAL].median
    # Fugaku's 27,000 opens a second, 16/768 of them, for 7/8 of 1,280 samples, each in another file than the one before
    assert io[GLOBAL].median >= 0.95 * TRAIN_SAMPLES * 7 / 8 / (27_500 * 16 / 768)


def test_more_room_takes_io_from_the_far_tier() -> None:
    """At twice the room half of a chunk's reads become all; local needs one share, and less leaves some of it far."""
    assert simulated_io(layout(room=4.0), CHUNKED, 4, range(1, 2)).near_share == 1
    assert simulated_io(layout(room=0.5), LOCAL, 4, range(1, 2)).near_share == pytest.approx(0.5)
    assert simulated_io(layout(room=0.0), GLOBAL, 4, range(1, 2)).near_share == 0


def test_a_part_of_a_system_has_its_part_of_what_is_shared() -> None:
    part, whole = part_of_system("fugaku", 16, 4).system, part_of_system("fugaku", 768, 4).system
    near, far = part.tiers
    assert (part.nodes, part.ranks_per_node) == (16, 4)
    assert far.metadata_ops == pytest.approx(27_500 * 16 / 768)
    assert far.gateway_bandwidth == pytest.approx(12.5e9 * 16 / 192)
    assert far.gateway_shared_by == 16
    assert near == whole.tiers[0]  # one SSD for 16 nodes, here as there
    assert part_of_system("fugaku", 4, 4).system.tiers[0].read_ops == pytest.approx(1511 / 4)
    assert part_of_system("laptop", 16, 4).system.tiers[1].metadata_ops == 2000


def test_json_has_what_was_promised() -> None:
    document = shuffling_json(found())
    assert (document["schema_version"], document["kind"]) == (1, "shuffling")
    assert document["data"]["train_samples"] == 1280
    assert len(document["rows"]) == 16
    for row in document["rows"]:
        assert row.keys() >= {"shuffle", "batch", "ranks", "layout", "seeds", "accuracy", "accuracy_low", "accuracy_high"}  # fmt: skip
        assert row["io_seconds_low"] <= row["io_seconds"] <= row["io_seconds_high"]
        assert len(row["accuracy"]) == len(row["accuracy_low"]) == len(row["accuracy_high"]) == EPOCHS
        assert all(low <= value <= high for low, value, high in zip(row["accuracy_low"], row["accuracy"], row["accuracy_high"], strict=True))  # fmt: skip
        assert row["near_bytes_per_node"] > 0
    kinds = [finding["kind"] for finding in document["findings"]]
    assert kinds.count("shuffle_local_costs") == 1
    assert kinds.count("shuffle_local_enough") == 3
    assert "shuffle_io_saved" in kinds


def test_ranks_that_do_not_divide_the_samples_leave_some_out() -> None:
    some = shuffling(
        ShufflingOptions(ranks=48, batch="4", epochs=1, seeds=1, shuffle="global,local", layout="sorted"), Silent()
    )
    assert (some.data.train_samples, some.data.samples_per_file) == (48 * 26, 26)
    assert [row.shuffle.name for row in some.rows] == ["global", "local"] * 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"ranks": 700},
            "--ranks 700: there are 1,280 training samples, and every rank needs two; use --ranks 640 or fewer",
        ),
        ({"ranks": 63}, "--ranks 63: is not a multiple of --ranks-per-node 4"),
        ({"shuffle": "globl"}, "--shuffle globl: 'globl' is unknown; did you mean global?"),
        ({"shuffle": "global,,local"}, "'' is unknown; known: global, chunked, local"),
        ({"layout": "sort"}, "--layout sort: 'sort' is unknown; did you mean sorted?"),
        ({"network": "resnet"}, "--network resnet: 'resnet' is unknown; known: ghost, plain"),
        ({"batch": "4,x"}, "--batch 4,x: x is not a whole number"),
        ({"batch": "21"}, "--batch 21: each of 64 ranks has 20 samples; give at most 20, or fewer ranks"),
        ({"batch": "1"}, "--batch 1: batch normalisation needs at least two samples"),
        ({"shuffle_nodes": "17"}, "--shuffle-nodes 17: 64 ranks are on 16 nodes; give at most 16"),
        ({"shuffle_nodes": "1,2,4,8"}, "at most 3 chunk sizes"),
        ({"system": "fugakuu"}, "--system fugakuu: "),
        ({"sample_bytes": "much"}, "--sample-bytes much: "),
        ({"sample_bytes": "0"}, "--sample-bytes 0: must be above 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as refused:
        shuffling(replace(ShufflingOptions(), **changes), Silent())  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_sample_is_enough_without_normalisation() -> None:
    one = shuffling(
        ShufflingOptions(batch="1", epochs=1, seeds=1, network="plain", shuffle="local", layout="random"), Silent()
    )
    assert 0 < one.rows[0].last <= 1


def test_a_system_without_a_near_tier_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("system") / "flat.yaml"
    path.write_text("system: flat\nnodes: 16\nranks_per_node: 4\ntiers:\n  gfs: {path: /gfs, bandwidth: 1 GB/s}\nfigures:\n"
                    "  nodes: {source: x}\n  ranks_per_node: {source: x}\n  tiers.gfs.bandwidth: {source: x}\n")  # fmt: skip
    with pytest.raises(UserError, match=r"its tiers are gfs \(global\): use another system"):
        part_of_system(str(path), 16, 4)


def test_a_calibrated_system_has_its_opens_in_its_other_rates(tmp_path: Path) -> None:
    near, far = part_of_system("fugaku", 16, 4).system.tiers
    system = replace(load_system("fugaku").system, tiers=(near, replace(far, metadata_ops=None)))
    figures = {path: KnownFigure(value, "source", "x") for path, value in numbers(system).items() if value is not None}
    path = str(tmp_path / "system.yaml")
    write_known(KnownSystem("plain", system, figures), path)
    with pytest.raises(UserError, match="metadata_ops"):
        simulated_io(layout(path), GLOBAL, 4, range(1, 2))
    write_known(KnownSystem("mine", system, figures, measured=CalibratedRange((1e5,), (4,), (0.0, 1.0))), path)
    assert simulated_io(layout(path), GLOBAL, 4, range(1, 2)).median > 0


def test_an_io_of_nothing_has_a_median() -> None:
    assert Io((3.0, 1.0), 1, 1, 0.0).median == 2.0
