"""Everything that changes during an epoch, as tables; and the numbers that do not change."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tierscope.predict.engine.inputs import (
    NONE,
    BoolArray,
    FloatArray,
    IntArray,
    LoaderInputs,
    Records,
    Requests,
    StartInputs,
    SystemInputs,
    record,
    table,
)

# What a lane does: it waits for a fetcher, has nothing to do, is between two samples, opens; READING + row: reads, and a fetcher's write behind them.
AWAITING, IDLE, BETWEEN, OPENING, READING = -2, -1, 0, 1, 2
NOT_BEGUN, ON_ITS_WAY, THERE = 0, 1, 2  # how far the fetching of a sample's file is
# Why a consumer acts: its batch is complete, its step is computed, all ranks are at the barrier.
COMPLETE, COMPUTED, PASSED = 1, 2, 3
_OTHER_VISITS = 4  # of an operation, beside those of stripes: three links and a metadata server

EVENT = record(
    ("when", np.float64),
    ("order", np.int64),  # events planned before this one
    ("place", np.int64),  # in the heap, NONE: the entity waits for no event
)
STATION = record(
    ("per_op", np.float64),
    ("per_byte", np.float64),
    ("log_mean", np.float64),  # of the factor by which its services vary
    ("log_deviation", np.float64),
    ("speed", np.float64),
    ("worked", np.float64),  # seconds of work that were asked of it
    ("served", np.int64),  # operations
    ("free", np.float64),  # FIFO: when it has served all who came so far
    ("sharing", np.int64),
    ("clock", np.float64),  # sharing: work received by each of those present, as of `updated`
    ("updated", np.float64),
    ("present", np.int64),
    ("root", np.int64),  # the part that is done next, NONE: nobody is there
)
PART = record(  # what an operation has at one sharing station: a node of that station's skew heap
    ("target", np.float64),  # the station's clock when it is done
    ("left", np.int64),
    ("right", np.int64),
)
LANE = record(
    ("doing", np.int64),
    ("sample", np.int64),  # that it reads, or the next one
    ("begun", np.float64),  # when its operation began
    ("latency", np.float64),  # of its operation, behind the last station
    ("waiting", np.int64),  # sharing stations that still serve its operation
    ("ready", np.float64),  # when all others have
    ("part_end", np.int64),  # the sample behind its part of a batch
    ("part_batch", np.int64),  # whose part it reads, or NONE
    ("wall_begun", np.float64),  # the rank's wall clock when its operation began
)
RANK = record(
    ("node", np.int64),
    ("start", np.float64),
    ("launched", np.int64),  # batches that have had memory so far
    ("next_batch", np.int64),  # of which the next part is to be taken
    ("next_part", np.int64),
    ("wanted", np.int64),  # the batch that the consumer waits for or uses
    ("asked", np.float64),  # since when
    ("stall", np.float64),
    ("seconds", np.float64),
    ("active", np.int64),  # threads in an operation
    ("wall_clock", np.float64),  # runs at 1/active
    ("wall_updated", np.float64),
    ("window", np.int64),  # files fetched ahead, at most
    ("ahead", np.int64),  # files on tier 0, or on their way, that are not read yet
    ("next_fetch", np.int64),  # the first sample that no fetcher has looked at
)
SLOT = record(  # memory for a batch
    ("parts_left", np.int64),  # parts that are not read
    ("read_begun", np.float64),
    ("read_ended", np.float64),
)
TURN = record(("rank", np.int64), ("why", np.int64))
COUNTS = record(
    ("events", np.int64),  # in the heap
    ("planned", np.int64),  # events so far
    ("turns", np.int64),  # consumers that are to act
    ("at_barrier", np.int64),  # ranks
    ("parts", np.int64),  # of sharing stations that are taken, by lanes for good and by fills
)


class Sizes(NamedTuple):
    """Entities are numbered: readers, fetchers, consumers, stations."""

    ranks: int
    samples: int  # of a rank
    batches: int  # of a rank
    slots: int  # of a rank
    readers: int  # reading threads of all ranks
    lanes: int  # readers, then as many fetchers, where files are fetched
    first_station: int  # the entity of station 0
    reads: int  # of a sample; also the row of a copy
    home: int  # the last tier: all files are there
    visits: int  # of an operation, at most: so many parts belong to each lane
    fills: bool
    fetches: bool


class Heap(NamedTuple):
    """`entities[:counts[0].events]` is a binary heap, the earliest event first; `events[entities[place]].place == place`."""

    entities: IntArray
    events: Records  # of EVENT, by entity
    counts: Records  # the epoch's


class Epoch(NamedTuple):
    """All of it, to be handed on as one argument."""

    requests: Requests
    loader: LoaderInputs
    sizes: Sizes
    tiers: Records  # of TIER
    nbytes: FloatArray  # see System
    ops: FloatArray  # see System
    heap: Heap
    stations: Records  # of STATION
    parts: Records  # of PART: first those of lanes
    lanes: Records  # of LANE: readers, then fetchers
    ranks: Records  # of RANK
    slots: Records  # of SLOT, by (rank, batch modulo slots)
    turns: Records  # of TURN: a stack
    counts: Records  # of COUNTS: one row
    fetch: npt.NDArray[np.int8]  # by (rank, sample): how far it is
    busy: FloatArray  # see Result
    wall: FloatArray
    steps: FloatArray


def new_epoch(requests: Requests, start: StartInputs, system: SystemInputs, loader: LoaderInputs) -> Epoch:
    sizes = _sizes(requests, system, loader)
    ranks, stations = sizes.ranks, len(system.per_op)
    counts = table(COUNTS, 1, parts=sizes.lanes * sizes.visits)
    entities = sizes.first_station + stations
    return Epoch(
        requests=requests,
        loader=loader,
        sizes=sizes,
        tiers=system.tiers,
        nbytes=system.nbytes,
        ops=system.ops,
        heap=Heap(np.empty(entities, np.int64), table(EVENT, entities, place=NONE), counts),
        stations=table(
            STATION, stations, per_op=system.per_op, per_byte=system.per_byte, log_mean=system.log_mean,
            log_deviation=system.log_deviation,
            speed=system.speed, sharing=system.sharing, root=NONE,
        ),
        parts=table(PART, _parts(sizes, system.sharing, requests.fills), left=NONE, right=NONE),
        lanes=table(LANE, sizes.lanes, doing=IDLE, part_batch=NONE),
        ranks=table(
            RANK, ranks, node=start.nodes, start=start.seconds, asked=start.seconds,
            window=start.window if sizes.fetches else 0,
        ),
        slots=table(SLOT, ranks, sizes.slots),
        turns=table(TURN, 2 * ranks + 2),
        counts=counts,
        fetch=np.full(requests.fetched.shape, NOT_BEGUN, np.int8),
        busy=np.zeros((ranks, len(system.tiers), 2)),
        wall=np.zeros((ranks, len(system.tiers), 2)),
        steps=np.zeros((ranks if loader.keep_steps else 0, sizes.batches, 3)),
    )  # fmt: skip


def _sizes(requests: Requests, system: SystemInputs, loader: LoaderInputs) -> Sizes:
    ranks, samples = requests.tiers.shape
    tiers, rows, stripes = system.nbytes.shape
    readers = ranks * loader.threads
    fetches = len(requests.fetched) > 0
    lanes = 2 * readers if fetches else readers
    return Sizes(
        ranks=ranks,
        samples=samples,
        batches=-(-samples // loader.batch),
        slots=loader.prefetch + 1,
        readers=readers,
        lanes=lanes,
        first_station=lanes + ranks,
        reads=rows - 1,
        home=tiers - 1,
        visits=stripes + _OTHER_VISITS,
        fills=len(requests.fills) > 0,
        fetches=fetches,
    )


def _parts(sizes: Sizes, sharing: BoolArray, fills: BoolArray) -> int:
    """Those of lanes, and for every fill those of its two operations; one where no station shares."""
    return int(sizes.visits * (sizes.lanes + 2 * fills.sum())) if sharing.any() else 1
