"""`tierscope shuffling`: plan, learning and simulation of the same order, put together.

Every seed has a plan, a random layout and first weights of its own; shuffles, batches and networks of one seed share them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from tierscope.analysis.shuffling import (
    CHUNKED,
    GLOBAL,
    KIND,
    LOCAL,
    Io,
    LearningSetup,
    LearntData,
    Shuffle,
    ShuffleRow,
    Shuffling,
    SimulatedPart,
    shuffling_json,
)
from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.predict.shuffling_io import EPOCHS, METHOD, ShufflingLayout, part_of_system, simulated_io
from tierscope.report.drawn.shuffling import draw_shuffling
from tierscope.report.folder import figure_files, json_bytes, write_files
from tierscope.report.png import png_problem
from tierscope.spec import option_values
from tierscope.train import digits, perceptron
from tierscope.train.digits import LAYOUTS, load_digits, one_thread, written_order
from tierscope.train.learning import GHOST, NETWORKS, learn
from tierscope.units import closest, counted
from tierscope.watch import Watch

SHUFFLES = (GLOBAL, CHUNKED, LOCAL)
DEFAULT_SYSTEM = "fugaku"
CHUNKS = (4, 1)
MOST_CHUNKS = 3
_JSON = "shuffling.json"


@dataclass(frozen=True, slots=True)
class ShufflingOptions:
    """Options as they were typed."""

    ranks: int = 64
    ranks_per_node: int = 4
    batch: str = "4,16"
    epochs: int = 20
    shuffle: str = ",".join(SHUFFLES)
    shuffle_nodes: str | None = None  # CHUNKS, as far as there are more nodes
    layout: str = ",".join(LAYOUTS)
    network: str = ",".join(NETWORKS)
    seeds: int = 5
    system: str = DEFAULT_SYSTEM
    sample_bytes: str = "128 KiB"
    near_room: float = 2.0


@dataclass(frozen=True, slots=True)
class _Wish:
    layout: ShufflingLayout
    batches: tuple[int, ...]
    shuffles: tuple[Shuffle, ...]
    layouts: tuple[str, ...]
    networks: tuple[str, ...]


def shuffling(wanted: ShufflingOptions, watch: Watch) -> Shuffling:
    """Refuses what cannot be read first, then what cannot be found; then trains."""
    wish = _wish(wanted)
    load_digits()  # or say that it is missing, before anything takes time
    layout, seeds = wish.layout, range(1, wanted.seeds + 1)
    io = {(shuffle, batch): simulated_io(layout, shuffle, batch, seeds) for shuffle, batch in product(wish.shuffles, wish.batches)}  # fmt: skip
    with one_thread():
        rows = tuple(_rows(wish, seeds, io, watch))
    return Shuffling(
        ranks=wanted.ranks,
        ranks_per_node=wanted.ranks_per_node,
        epochs=wanted.epochs,
        seeds=wanted.seeds,
        system=wanted.system,
        sample_bytes=layout.sample_bytes,
        data=LearntData(
            name=digits.NAME,
            train_samples=layout.samples_per_rank * layout.ranks,
            test_samples=len(load_digits().test_labels),
            split_seed=digits.SPLIT_SEED,
            files=layout.ranks,
            samples_per_file=layout.samples_per_rank,
        ),
        training=LearningSetup(
            hidden=perceptron.HIDDEN,
            learning_rate=perceptron.LEARNING_RATE,
            momentum=perceptron.MOMENTUM,
            epochs=wanted.epochs,
            ranks_per_node=wanted.ranks_per_node,
        ),
        storage=SimulatedPart(
            simulated=METHOD,
            system=wanted.system,
            nodes=layout.system.nodes,
            sample_bytes=layout.sample_bytes,
            near_room_shares=layout.room_shares,
            epochs=EPOCHS,
        ),
        rows=rows,
    )


def _rows(wish: _Wish, seeds: range, io: dict[tuple[Shuffle, int], Io], watch: Watch) -> Iterable[ShuffleRow]:
    layout, data = wish.layout, load_digits()
    labels = data.train_labels[: layout.ranks * layout.samples_per_rank]
    cases = list(product(wish.networks, wish.layouts, wish.batches))
    curves: dict[tuple[str, str, int, Shuffle], list[tuple[float, ...]]] = {}
    watch.phase("training", len(seeds) * len(wish.shuffles) * len(cases), "runs")
    for seed, shuffle in product(seeds, wish.shuffles):
        order = Order.of(layout.study(shuffle, wish.batches[0], seed))
        epochs = [order.whole_epoch(epoch) for epoch in range(1, layout.epochs + 1)]
        for network, files, batch in cases:
            accuracy = learn(data, written_order(labels, files, seed), epochs, batch, network, seed)
            curves.setdefault((network, files, batch, shuffle), []).append(tuple(accuracy))
            watch.advance(1)
    for (network, files, batch), shuffle in product(cases, wish.shuffles):
        accuracies = tuple(curves[network, files, batch, shuffle])
        yield ShuffleRow(network, files, batch, shuffle, accuracies, io[shuffle, batch])


def _wish(wanted: ShufflingOptions) -> _Wish:
    share = digits.TRAIN_SAMPLES // wanted.ranks
    if share < 2:
        raise UserError(
            f"--ranks {wanted.ranks}: there are {digits.TRAIN_SAMPLES:,} training samples, and every rank needs two; use --ranks {digits.TRAIN_SAMPLES // 2} or fewer"
        )
    if wanted.ranks % wanted.ranks_per_node:
        raise UserError(
            f"--ranks {wanted.ranks}: is not a multiple of --ranks-per-node {wanted.ranks_per_node}; change one of them"
        )
    batches, networks = tuple(dict.fromkeys(option_values.read_batches(wanted.batch))), _names("--network", wanted.network, NETWORKS)  # fmt: skip
    if max(batches) > share:
        raise UserError(f"--batch {wanted.batch}: each of {counted(wanted.ranks, 'rank')} has {counted(share, 'sample')}; give at most {share}, or fewer ranks")  # fmt: skip
    if 1 in batches and GHOST in networks:
        raise UserError("--batch 1: batch normalisation needs at least two samples; use 2 or more, or --network plain")
    if math.isnan(wanted.near_room):
        raise UserError("--near-room nan: must be a number, 0 or more, e.g. 2")
    nodes = wanted.ranks // wanted.ranks_per_node
    layout = ShufflingLayout(
        ranks=wanted.ranks,
        samples_per_rank=share,
        sample_bytes=option_values.read_size("--sample-bytes", wanted.sample_bytes),
        epochs=wanted.epochs,
        known=part_of_system(wanted.system, nodes, wanted.ranks_per_node),
        room_shares=wanted.near_room,
    )
    layouts = _names("--layout", wanted.layout, LAYOUTS)
    return _Wish(layout, batches, _shuffles(wanted, nodes), layouts, networks)


def _shuffles(wanted: ShufflingOptions, nodes: int) -> tuple[Shuffle, ...]:
    """From all nodes to a single rank."""
    names = _names("--shuffle", wanted.shuffle, SHUFFLES)
    shuffles = [Shuffle(GLOBAL)] if GLOBAL in names else []
    if CHUNKED in names:
        chunks = [chunk for chunk in CHUNKS if chunk < nodes] or [1]
        if wanted.shuffle_nodes is not None:
            chunks = sorted(set(option_values.read_counts("--shuffle-nodes", wanted.shuffle_nodes)), reverse=True)
        if chunks[0] > nodes:
            raise UserError(f"--shuffle-nodes {wanted.shuffle_nodes}: {counted(wanted.ranks, 'rank')} {'is' if wanted.ranks == 1 else 'are'} on {counted(nodes, 'node')}; give at most {nodes}")  # fmt: skip
        if len(chunks) > MOST_CHUNKS:
            raise UserError(f"--shuffle-nodes {wanted.shuffle_nodes}: at most {MOST_CHUNKS} chunk sizes can be distinguished; remove some")  # fmt: skip
        shuffles += [Shuffle(CHUNKED, chunk) for chunk in chunks]
    return (*shuffles, *([Shuffle(LOCAL)] if LOCAL in names else []))


def _names(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            guess = closest(name, known)
            hint = f"did you mean {guess}?" if guess else f"known: {', '.join(known)}"
            raise UserError(f"{option} {text}: '{name}' is unknown; {hint}")
    return names


@dataclass(frozen=True, slots=True)
class WrittenShuffling:
    paths: tuple[str, ...]
    problem: str  # why there is no PNG; empty: there is


def write_shuffling(result: Shuffling, folder: str) -> WrittenShuffling:
    """The JSON and the figures; those of an earlier call give way."""
    files = {_JSON: json_bytes(shuffling_json(result)), **figure_files(draw_shuffling(result), inside="")}
    names = [f"{KIND}-{network}" for network in NETWORKS]
    return WrittenShuffling(tuple(write_files(folder, files, names, inside="")), png_problem())
