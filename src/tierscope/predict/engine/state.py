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
    SaveInputs,
    StartInputs,
    SystemInputs,
    record,
    table,
)

# What a lane does: it waits for a fetcher, has nothing to do, is between two samples, opens; READING + row: reads, and a fetcher's write behind them.
AWAITING, IDLE, BETWEEN, OPENING, READING = -2, -1, 0, 1, 2
# A reader that copies a file: it reads the rest of it, makes the copy, writes it.
COPY_REST, COPY_OPEN, COPY_WRITE = -3, -4, -5
SAVING, MEETING = (
    1,
    2,
)  # what a writer or a drain does, beside nothing: an operation of a checkpoint, or it waits for all others
NOT_BEGUN, ON_ITS_WAY, THERE = 0, 1, 2  # how far the fetching of a sample's file is
# Why a consumer acts: its batch is complete, its step is computed, all ranks are at the barrier, it need not wait for a checkpoint any more.
COMPLETE, COMPUTED, PASSED, SAVED = 1, 2, 3, 4
NOT_ENDING, END_SAVE, SETTLING = 0, 1, 2  # what a consumer whose last step is done stands still for
_OTHER_VISITS = 5  # of an operation, beside those of stripes: three links, a metadata server and a file's lock

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
    ("free", np.float64),  # FIFO: when it has served all who came so far; with credit it may lag behind the clock
    ("credit", np.float64),  # by so much at most
    ("period", np.float64),  # seconds in which what it allows is handed out, all at once; 0: no portions
    ("sharing", np.int64),
    ("clock", np.float64),  # sharing: work received by each of those present, as of `updated`
    ("updated", np.float64),
    ("present", np.int64),
    ("root", np.int64),  # the part that is done next, NONE: nobody is there
    ("write_per_op", np.float64),
    ("write_per_byte", np.float64),
)
PART = record(  # what an operation has at one sharing station: a node of that station's skew heap
    ("target", np.float64),  # the station's clock when it is done
    ("left", np.int64),
    ("right", np.int64),
)
LANE = record(
    ("doing", np.int64),
    ("sample", np.int64),  # that it reads, or the next one; of a writer: its operation
    ("begun", np.float64),  # when its operation began
    ("latency", np.float64),  # of its operation, behind the last station
    ("waiting", np.int64),  # sharing stations that still serve its operation
    ("ready", np.float64),  # when all others have
    ("part_end", np.int64),  # the sample behind its part of a batch; of a writer: the operation behind its last one
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
DATES = record(  # of an epoch; see SaveInputs
    ("every", np.int64),
    ("before", np.int64),
    ("at_end", np.int64),
    ("last", np.int64),
    ("background", np.int64),
)
SAVE = record(  # of a rank: what it does for a checkpoint (see SaveInputs), and how far it is
    *((name, np.int64) for name in ("first", "commit", "end", "drained")),
    ("awaits", np.int64),  # its consumer stands still
    ("launches", np.int64),  # and is to begin another save then
    ("ending", np.int64),
    ("unsettled", np.int64),  # a save that was begun does not count yet
    ("timed", np.int64),  # its writer writes files of a save
    ("number", np.int64),  # saves begun in this epoch
    ("begun", np.float64),  # when the last one was
    ("stood", np.float64),  # since when
    ("standstill", np.float64),
)
OPERATION = record(  # of a checkpoint; see SaveInputs
    *((name, np.int64) for name in ("kind", "tier", "file", "row", "length")), ("turns", np.float64)
)
WRITTEN = record(("busy", np.float64), ("ops", np.int64), ("moved", np.int64))
TURN = record(("rank", np.int64), ("why", np.int64))
COUNTS = record(
    ("events", np.int64),  # in the heap
    ("planned", np.int64),  # events so far
    ("turns", np.int64),  # consumers that are to act
    ("at_barrier", np.int64),  # ranks
    ("met", np.int64),  # ranks that wait for all others in a checkpoint
    ("done", np.int64),  # ranks whose epoch is over
    ("parts", np.int64),  # of sharing stations that are taken, by lanes for good and by fills
)


class Sizes(NamedTuple):
    """Entities are numbered: readers, fetchers, writers, drains, consumers, stations."""

    ranks: int
    samples: int  # of a rank
    batches: int  # of a rank
    slots: int  # of a rank
    readers: int  # reading threads of all ranks
    first_writer: int  # behind readers, and as many fetchers, where files are fetched
    first_drain: int  # behind a writer of each rank, where checkpoints are saved
    lanes: int  # of all
    until: int  # ranks whose end is the epoch's; more than there are: all that was begun is ended
    first_station: int  # the entity of station 0
    reads: int  # of a sample; also the row of a copy
    home: int  # the last tier: all files are there
    sample_bytes: float  # of mean size
    visits: int  # of an operation, at most: so many parts belong to each lane
    fills: bool
    fetches: bool
    saves: bool


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
    lanes: Records  # of LANE: readers, fetchers, writers, drains
    ranks: Records  # of RANK
    slots: Records  # of SLOT, by (rank, batch modulo slots)
    turns: Records  # of TURN: a stack
    counts: Records  # of COUNTS: one row
    fetch: npt.NDArray[np.int8]  # by (rank, sample): how far it is
    busy: FloatArray  # see EpochTimes
    wall: FloatArray
    steps: FloatArray
    saving: Records  # of DATES: one row
    saves: Records  # of SAVE, by rank
    operations: Records  # of OPERATION
    saved: Records  # of WRITTEN, as arrays of SaveTimes are
    longest: FloatArray  # see SaveTimes; first the one that an earlier epoch began


def new_epoch(
    requests: Requests, start: StartInputs, system: SystemInputs, loader: LoaderInputs, saving: SaveInputs
) -> Epoch:
    sizes = _sizes(requests, system, loader, saving)
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
            STATION, stations, per_op=system.per_op, per_byte=system.per_byte, write_per_op=system.write_per_op,
            write_per_byte=system.write_per_byte, log_mean=system.log_mean, log_deviation=system.log_deviation,
            speed=system.speed, sharing=system.sharing, root=NONE, credit=system.credit, free=0.0 - system.stock,
            period=system.period,
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
        busy=np.zeros((ranks, len(system.tiers), 3)),
        wall=np.zeros((ranks, len(system.tiers), 3)),
        steps=np.zeros((ranks if loader.keep_steps else 0, sizes.batches, 3)),
        saving=table(
            DATES, 1, every=saving.every, before=saving.before, at_end=saving.at_end, last=saving.last,
            background=saving.background,
        ),
        saves=table(
            SAVE, len(saving.first), first=saving.first, commit=saving.commit, end=saving.end, drained=saving.drained,
        ),
        operations=table(
            OPERATION, len(saving.kinds), kind=saving.kinds, tier=saving.tiers, file=saving.files, row=saving.rows,
            length=saving.nbytes, turns=saving.turns,
        ),
        saved=table(WRITTEN, 2 if sizes.saves else 0, ranks, len(system.tiers), 4),
        longest=np.zeros(saving.most + 1),
    )  # fmt: skip


def _sizes(requests: Requests, system: SystemInputs, loader: LoaderInputs, saving: SaveInputs) -> Sizes:
    ranks, samples = requests.tiers.shape
    tiers, _, stripes = system.nbytes.shape
    readers = ranks * loader.threads
    fetches, saves = len(requests.fetched) > 0, len(saving.first) > 0
    first_writer = 2 * readers if fetches else readers
    first_drain = first_writer + (ranks if saves else 0)
    lanes = first_drain + (ranks if saves else 0)
    return Sizes(
        ranks=ranks,
        samples=samples,
        batches=-(-samples // loader.batch),
        slots=loader.prefetch + 1,
        readers=readers,
        first_writer=first_writer,
        first_drain=first_drain,
        lanes=lanes,
        until=ranks if saves else ranks + 1,
        first_station=lanes + ranks,
        reads=system.reads,
        home=tiers - 1,
        sample_bytes=float(system.nbytes[-1, : system.reads].sum()),
        visits=stripes + _OTHER_VISITS,
        fills=len(requests.fills) > 0,
        fetches=fetches,
        saves=saves,
    )


def _parts(sizes: Sizes, sharing: BoolArray, fills: BoolArray) -> int:
    """Those of lanes, and for every fill those of its two operations; one where no station shares."""
    return int(sizes.visits * (sizes.lanes + 2 * fills.sum())) if sharing.any() else 1
