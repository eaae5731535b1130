"""What shuffling buys: accuracy against epochs of a small real task, beside the I/O time of the same order on a system.

Accuracies are medians over seeds with their whole range. A shuffle *costs* accuracy where its range after the last epoch lies below that of
global shuffle; where ranges overlap, seeds differ as much as shuffles do. I/O seconds are simulated, those of the slowest process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject

SCHEMA_VERSION = 1
KIND = "shuffling"
TARGET = 0.9  # accuracy to be reached
GLOBAL, CHUNKED, LOCAL = "global", "chunked", "local"
FEWEST_SEEDS = 3  # fewer have no range to speak of


@dataclass(frozen=True, slots=True)
class Shuffle:
    """`nodes`: that share a chunk; None where it is not chunked."""

    name: str
    nodes: int | None = None

    @property
    def text(self) -> str:
        return self.name if self.nodes is None else f"{self.name}, {self.nodes} node{'' if self.nodes == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Io:
    """Of an epoch, simulated. `seconds`: of the slowest process, one for each seed and epoch that was simulated."""

    seconds: tuple[float, ...]
    needed_bytes: int  # of a node's near tier, to hold all that its ranks may ever read
    held_bytes: int  # of that, what the near tier holds: there may be less room
    near_share: float  # of samples, read from the near tier

    @property
    def median(self) -> float:
        return _median(self.seconds)


@dataclass(frozen=True, slots=True)
class ShuffleRow:
    """`accuracy`: after every epoch, a row for each seed."""

    network: str
    layout: str
    batch: int
    shuffle: Shuffle
    accuracy: tuple[tuple[float, ...], ...]
    io: Io

    @property
    def case(self) -> tuple[str, str, int]:
        return self.network, self.layout, self.batch

    @property
    def medians(self) -> list[float]:
        return [_median(values) for values in zip(*self.accuracy, strict=True)]

    @property
    def lows(self) -> list[float]:
        return [min(values) for values in zip(*self.accuracy, strict=True)]

    @property
    def highs(self) -> list[float]:
        return [max(values) for values in zip(*self.accuracy, strict=True)]

    @property
    def last(self) -> float:
        return self.medians[-1]

    @property
    def epochs_to_target(self) -> int | None:
        """The first epoch after which the median reaches it; None: it never does."""
        return next((epoch for epoch, value in enumerate(self.medians, start=1) if value >= TARGET), None)

    @property
    def io_to_target(self) -> float | None:
        return None if self.epochs_to_target is None else self.epochs_to_target * self.io.median

    def falls_short_of(self, other: "ShuffleRow") -> bool:
        """By more than seeds explain."""
        return self.highs[-1] < other.lows[-1]


@dataclass(frozen=True, slots=True)
class LearntData:
    """What was learnt from."""

    name: str
    train_samples: int
    test_samples: int
    split_seed: int
    files: int
    samples_per_file: int


@dataclass(frozen=True, slots=True)
class LearningSetup:
    """By what it was learnt."""

    hidden: int
    learning_rate: float
    momentum: float
    epochs: int
    ranks_per_node: int


@dataclass(frozen=True, slots=True)
class SimulatedPart:
    """Where its I/O was simulated; `simulated`: by which method."""

    simulated: str
    system: str
    nodes: int
    sample_bytes: int
    near_room_shares: float
    epochs: int


@dataclass(frozen=True, slots=True)
class Shuffling:
    ranks: int
    ranks_per_node: int
    epochs: int
    seeds: int
    system: str
    sample_bytes: int
    data: LearntData
    training: LearningSetup
    storage: SimulatedPart
    rows: tuple[ShuffleRow, ...]

    @property
    def cases(self) -> list[tuple[str, str, int]]:
        return list(dict.fromkeys(row.case for row in self.rows))

    def of_case(self, case: tuple[str, str, int]) -> dict[Shuffle, ShuffleRow]:
        return {row.shuffle: row for row in self.rows if row.case == case}

    @property
    def shuffles(self) -> list[Shuffle]:
        return list(dict.fromkeys(row.shuffle for row in self.rows))


def about_shuffling(shuffling: Shuffling) -> list[Finding]:
    """What local shuffle costs each network, which chunk is enough, and what it saves; the worst batch stands for all."""
    findings: list[Finding] = []
    if shuffling.seeds >= FEWEST_SEEDS and Shuffle(GLOBAL) in shuffling.shuffles:
        for network, layout in dict.fromkeys((network, layout) for network, layout, _ in shuffling.cases):
            findings += _about_local(shuffling, network, layout)
    if shuffling.seeds < FEWEST_SEEDS:
        findings.append(Finding("shuffle_few_seeds", {"seeds": shuffling.seeds, "enough": FEWEST_SEEDS}))
    return [*findings, *_about_io(shuffling)]


def _about_local(shuffling: Shuffling, network: str, layout: str) -> Iterator[Finding]:
    cases = [shuffling.of_case(case) for case in shuffling.cases if case[:2] == (network, layout)]
    beside = [(rows[Shuffle(GLOBAL)], rows[Shuffle(LOCAL)], rows) for rows in cases if Shuffle(LOCAL) in rows]
    if not beside:
        return
    whole, local, rows = max(beside, key=lambda pair: pair[0].last - pair[1].last)
    evidence = {
        "network": _NETWORKS.get(network, network),
        "layout": layout,
        "batch": whole.batch,
        "ranks": shuffling.ranks,
        "global_percent": 100 * whole.last,
        "local_percent": 100 * local.last,
        "seeds": shuffling.seeds,
    }
    if not local.falls_short_of(whole):
        yield Finding("shuffle_local_enough", evidence)
        return
    yield Finding("shuffle_local_costs", evidence)
    enough = [
        row
        for shuffle, row in rows.items()
        if shuffle.nodes is not None and not any(case[shuffle].falls_short_of(case[Shuffle(GLOBAL)]) for case in cases)
    ]
    if enough:  # at every batch
        chunk = min(enough, key=lambda row: row.shuffle.nodes or 0)
        yield Finding(
            "shuffle_chunk_enough",
            {
                "network": _NETWORKS.get(network, network),
                "layout": layout,
                "batch": whole.batch,
                "nodes": chunk.shuffle.nodes,
                "chunk": chunk.shuffle.text,
                "percent": 100 * chunk.last,
                "global_percent": 100 * whole.last,
                "seeds": shuffling.seeds,
                "chunk_bytes": chunk.io.needed_bytes,
                "whole_bytes": whole.io.needed_bytes,
            },
        )


def _about_io(shuffling: Shuffling) -> Iterator[Finding]:
    """Of the batch at which global shuffle takes longest."""
    whole = [row for row in shuffling.rows if row.shuffle == Shuffle(GLOBAL)]
    if not whole or Shuffle(LOCAL) not in shuffling.shuffles:
        return
    longest = max(whole, key=lambda row: row.io.median)
    local = shuffling.of_case(longest.case)[Shuffle(LOCAL)]
    evidence = {
        "system": shuffling.system,
        "batch": longest.batch,
        "sample_bytes": shuffling.sample_bytes,
        "global_seconds": longest.io.median,
        "local_seconds": local.io.median,
        "global_bytes": longest.io.needed_bytes,
        "local_bytes": local.io.needed_bytes,
    }
    yield Finding("shuffle_io_saved" if local.io.median < longest.io.median else "shuffle_io_not_saved", evidence)


def shuffling_json(shuffling: Shuffling) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "data": asdict(shuffling.data),
        "training": asdict(shuffling.training),
        "io": asdict(shuffling.storage),
        "rows": [_row_json(shuffling, row) for row in shuffling.rows],
        "findings": [finding_json(finding) for finding in about_shuffling(shuffling)],
    }


def _row_json(shuffling: Shuffling, row: ShuffleRow) -> JsonObject:
    return {
        "shuffle": row.shuffle.name,
        "shuffle_nodes": row.shuffle.nodes,
        "batch": row.batch,
        "ranks": shuffling.ranks,
        "layout": row.layout,
        "network": row.network,
        "seeds": shuffling.seeds,
        "accuracy": row.medians,
        "accuracy_low": row.lows,
        "accuracy_high": row.highs,
        "epochs_to_target": row.epochs_to_target,
        "io_seconds": row.io.median,
        "io_seconds_low": min(row.io.seconds),
        "io_seconds_high": max(row.io.seconds),
        "io_seconds_to_target": row.io_to_target,
        "near_bytes_per_node": row.io.needed_bytes,
        "near_held_bytes_per_node": row.io.held_bytes,
        "near_share": row.io.near_share,
    }


_NETWORKS = {"ghost": "batch normalisation within each rank", "plain": "no batch normalisation"}


def network_text(name: str) -> str:
    return _NETWORKS[name]


def _median(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
