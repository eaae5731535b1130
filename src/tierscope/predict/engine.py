"""The discrete-event engine: one epoch of all ranks on the stations of a system, compiled with numba.

A closed network. Every reading thread (lane) of every rank works off its part of each batch: open, reads, close, the next
sample. An operation joins all stations on its way at once and ends when the last of them has served it, plus the tier's
latency. A station that serves one after another is one number, the time at which it will be free; one that shares itself among all is a
clock of work that runs slower the more are there. A rank's consumer takes batches in order, computes, and gives memory back, so
that at most `prefetch` batches are read ahead of the one in use. Events at the same time happen in the order in which they
were planned, so that a seed gives the same result everywhere.

A sample may be filled: when it is read, its file is written to the near tier, and nobody waits for that. It may be fetched ahead: every
rank has as many fetching threads as reading ones, which copy its files from the last tier to the near one in order, beginning with batches
that the readers have no memory for yet, at most `window` files ahead. A reader whose file is on its way waits, and that time is READ of the last
tier; one whose file nobody has begun to fetch reads it from the last tier itself. What is still being written when the last rank is done is not
waited for.
"""

import numpy as np
from numba import njit

OPEN, READ = 0, 1  # what busy and wall seconds are told apart by
# What a lane does; _READING + p: piece p, and behind the last piece a fetcher's write.
_AWAITING, _IDLE, _BETWEEN, _OPENING, _READING = -2, -1, 0, 1, 2
_NOT_BEGUN, _ON_ITS_WAY, _THERE = 0, 1, 2  # how far the fetching of a sample is
_NO = -1


def _jit(function):  # type: ignore[no-untyped-def]
    """Compiled once for all, where there is a place to keep that."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


@_jit
def _before(a, b, when, order):  # type: ignore[no-untyped-def]
    return when[a] < when[b] or (when[a] == when[b] and order[a] < order[b])


@_jit
def _up(place, heap, where, when, order):  # type: ignore[no-untyped-def]
    entity = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        other = heap[parent]
        if not _before(entity, other, when, order):
            break
        heap[place] = other
        where[other] = place
        place = parent
    heap[place] = entity
    where[entity] = place


@_jit
def _down(place, size, heap, where, when, order):  # type: ignore[no-untyped-def]
    entity = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], when, order):
            child += 1
        other = heap[child]
        if not _before(other, entity, when, order):
            break
        heap[place] = other
        where[other] = place
        place = child
    heap[place] = entity
    where[entity] = place


@_jit
def _plan(entity, time, heap, where, when, order, counts):  # type: ignore[no-untyped-def]
    """The entity's next event is at this time; counts[0]: size of the heap, counts[1]: events planned so far."""
    earlier = where[entity] < 0 or time < when[entity]
    when[entity] = time
    order[entity] = counts[1]
    counts[1] += 1
    if where[entity] < 0:
        heap[counts[0]] = entity
        counts[0] += 1
        _up(counts[0] - 1, heap, where, when, order)
    elif earlier:
        _up(where[entity], heap, where, when, order)
    else:
        _down(where[entity], counts[0], heap, where, when, order)


@_jit
def _forget(entity, heap, where, when, order, counts):  # type: ignore[no-untyped-def]
    """The entity has no next event."""
    place = where[entity]
    if place < 0:
        return
    where[entity] = _NO
    counts[0] -= 1
    last = heap[counts[0]]
    if last != entity:
        heap[place] = last
        where[last] = place
        _up(place, heap, where, when, order)
        _down(where[last], counts[0], heap, where, when, order)


@_jit
def _merge(a, b, left, right, target):  # type: ignore[no-untyped-def]
    """Two skew heaps of what a sharing station serves, by the work at which each is done."""
    if a < 0:
        return b
    if b < 0:
        return a
    if target[b] < target[a] or (target[b] == target[a] and b < a):
        a, b = b, a
    root = current = a
    while True:
        rest = right[current]
        right[current] = left[current]
        if rest < 0:
            left[current] = b
            return root
        if target[b] < target[rest] or (target[b] == target[rest] and b < rest):
            rest, b = b, rest
        left[current] = rest
        current = rest


@_jit
def _service(station, ops, nbytes, per_op, per_byte, variation):  # type: ignore[no-untyped-def]
    """Seconds of work, gamma-distributed where the station varies."""
    seconds = ops * per_op[station] + nbytes * per_byte[station]
    spread = variation[station]
    if spread > 0.0:
        shape = 1.0 / (spread * spread)
        seconds *= np.random.gamma(shape, 1.0 / shape)
    return seconds


@_jit
def _join(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    station, part, work, now, event,
    sharing, speed, free, clock, updated, present, root, left, right, target, heap, where, when, order, counts,
):  # fmt: skip
    """One more for a station: when it is done, or below 0 where that depends on who else comes."""
    if not sharing[station]:
        done = max(now, free[station]) + work / speed[station]
        free[station] = done
        return done
    if present[station] > 0:
        clock[station] += (now - updated[station]) * speed[station] / present[station]
    updated[station] = now
    target[part] = clock[station] + work
    left[part] = right[part] = _NO
    root[station] = _merge(root[station], part, left, right, target)
    present[station] += 1
    long = (target[root[station]] - clock[station]) * present[station] / speed[station]
    _plan(event, now + long, heap, where, when, order, counts)
    return -1.0


@_jit
def _on_the_way(join, tier, node, file, queues, stripe_count):  # type: ignore[no-untyped-def]
    """The station that is number `join` of those that data passes: servers, links, then the metadata server; or _NO."""
    per_device, per_gateway = queues[tier, 0], queues[tier, 1]
    if join < stripe_count:
        if queues[tier, 4] < 0:
            return _NO
        return queues[tier, 4] + node // per_device * queues[tier, 5] + (file + join) % queues[tier, 5]
    if join == stripe_count + 3:
        if queues[tier, 2] < 0:
            return _NO
        return queues[tier, 2] + node // per_device * queues[tier, 3] + file % queues[tier, 3]
    link = queues[tier, 6 + join - stripe_count]
    if link < 0:
        return _NO
    which = join - stripe_count
    return link + (node if which == 0 else node // per_device if which == 1 else node // per_gateway)


@_jit
def run_epoch(  # type: ignore[no-untyped-def]  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917
    tiers,  # int8[rank, sample]
    files,  # int64[rank, sample]
    opens,  # bool[rank, sample]: the file must be opened first
    nodes,  # int64[rank]
    starts,  # float64[rank]: when it begins
    first,  # int64[rank]: who comes first of those that begin together
    queues,  # int64[tier, 10]: see events.py
    latencies,  # float64[tier, 2]: of opens, of reads
    pieces,  # float64[tier, piece, stripe]: bytes of each read of a sample on each server
    per_op,
    per_byte,
    variation,
    sharing,
    speed,  # float64[station]: share of its time that is ours
    batch,
    threads,
    prefetch,
    compute,  # seconds of each step
    overhead,  # seconds after each sample
    step_barrier,
    keep_steps,
    seed,
    fills,  # bool[rank, sample], or nothing: the file is copied to tier 0 once it is read
    fetched,  # bool[rank, sample], or nothing: it may be fetched ahead from the last tier to tier 0; left are those that were, and so in tiers
    window,  # int64[rank]
    copied,  # float64[tier, stripe]: bytes of a copy written to tier 0, and read of the last one beyond the sample itself
    copy_ops,  # float64[tier]: operations of each
    first_stripes,  # int64[rank, sample], or nothing: on which stripe of its file a sample begins
):
    np.random.seed(seed)
    ranks, samples = tiers.shape
    tier_count, piece_count, stripe_count = pieces.shape
    stations = per_op.shape[0]
    lanes = ranks * threads
    any_fills, any_fetched = fills.shape[0] > 0, fetched.shape[0] > 0
    home = tier_count - 1
    workers = 2 * lanes if any_fetched else lanes  # readers, then fetchers
    batches = (samples + batch - 1) // batch
    slots = prefetch + 1

    # Events: lanes of readers and fetchers, then consumers, then stations that share themselves.
    entities = workers + ranks + stations
    heap = np.empty(entities, np.int64)
    where = np.full(entities, _NO, np.int64)
    when = np.zeros(entities)
    order = np.zeros(entities, np.int64)
    counts = np.zeros(2, np.int64)

    free = np.zeros(stations)
    worked = np.zeros(stations)  # seconds of work that were asked of it
    served = np.zeros(stations, np.int64)
    # Of stations that share themselves: work done for each of those present, how many they are, and when that was.
    clock = np.zeros(stations)
    present = np.zeros(stations, np.int64)
    updated = np.zeros(stations)
    root = np.full(stations, _NO, np.int64)
    owned_parts = workers * (stripe_count + 4)
    shared_parts = owned_parts if sharing.any() else 1
    if sharing.any() and any_fills:  # nobody waits for these
        shared_parts += 2 * (stripe_count + 4) * fills.sum()
    unowned = owned_parts
    left = np.full(shared_parts, _NO, np.int64)
    right = np.full(shared_parts, _NO, np.int64)
    target = np.zeros(shared_parts)

    doing = np.full(workers, _IDLE, np.int64)
    begun = np.zeros(workers)
    sample = np.zeros(workers, np.int64)
    part_end = np.zeros(lanes, np.int64)
    part_batch = np.zeros(lanes, np.int64)
    waiting = np.zeros(workers, np.int64)  # sharing stations that still serve its operation
    ready = np.zeros(workers)
    after = np.zeros(workers)  # latency of its operation
    wall_begun = np.zeros(lanes)

    next_batch = np.zeros(ranks, np.int64)  # of which the next part is to be taken
    next_part = np.zeros(ranks, np.int64)
    launched = np.zeros(ranks, np.int64)
    wanted = np.zeros(ranks, np.int64)
    asked = starts.copy()
    parts_left = np.zeros((ranks, slots), np.int64)
    read_begun = np.zeros((ranks, slots))
    read_ended = np.zeros((ranks, slots))
    active = np.zeros(ranks, np.int64)
    wall_clock = np.zeros(ranks)
    wall_updated = np.zeros(ranks)

    seconds = np.zeros(ranks)
    stall = np.zeros(ranks)
    busy = np.zeros((ranks, tier_count, 2))
    wall = np.zeros((ranks, tier_count, 2))
    steps = np.zeros((ranks if keep_steps else 0, batches, 3))

    fetch = np.full(fetched.shape, _NOT_BEGUN, np.int8)
    next_fetch = np.zeros(ranks, np.int64)  # the first sample that no fetcher has looked at
    ahead = np.zeros(ranks, np.int64)  # files on tier 0, or on their way, that are not read yet

    at_barrier = 0
    # Ranks whose consumer has to be looked at, and why: 1 a batch may be complete, 2 it is done with its step.
    todo_rank = np.empty(2 * ranks + 2, np.int64)
    todo_kind = np.empty(2 * ranks + 2, np.int64)
    # Lanes that are to take work.
    idle_lane = np.empty(lanes + 1, np.int64)

    first_batches = min(slots, batches)
    for rank in first:
        launched[rank] = first_batches
        for number in range(first_batches):
            size = min(batch, samples - number * batch)
            share = (size + threads - 1) // threads
            parts_left[rank, number] = (size + share - 1) // share
            read_begun[rank, number] = np.inf
        for thread in range(threads):
            lane = rank * threads + thread
            doing[lane] = _BETWEEN
            sample[lane] = part_end[lane] = 0
            part_batch[lane] = _NO
            _plan(lane, starts[rank], heap, where, when, order, counts)
            if any_fetched:
                doing[lanes + lane] = _BETWEEN
                _plan(lanes + lane, starts[rank], heap, where, when, order, counts)

    while counts[0] > 0:
        entity = heap[0]
        now = when[entity]
        todo = 0
        idle = 0
        lane = _NO
        if entity < lanes:
            lane = entity
        elif entity < workers:
            # A fetcher: open, reads, then the write to tier 0.
            rank = (entity - lanes) // threads
            if doing[entity] == _READING + piece_count:
                fetch[rank, sample[entity]] = _THERE
                for thread in range(threads):
                    other = rank * threads + thread
                    if doing[other] == _AWAITING and sample[other] == sample[entity]:
                        _plan(other, now, heap, where, when, order, counts)
                doing[entity] = _BETWEEN
            if doing[entity] == _BETWEEN:
                next_fetch[rank] = max(next_fetch[rank], min(samples, launched[rank] * batch))
                while next_fetch[rank] < samples and not fetched[rank, next_fetch[rank]]:
                    next_fetch[rank] += 1
                if next_fetch[rank] == samples or ahead[rank] >= window[rank]:
                    doing[entity] = _IDLE
                    _forget(entity, heap, where, when, order, counts)
                    continue
                sample[entity] = next_fetch[rank]
                fetch[rank, next_fetch[rank]] = _ON_ITS_WAY
                next_fetch[rank] += 1
                ahead[rank] += 1
            doing[entity] += 1
            piece = doing[entity] - _READING
            writes = piece == piece_count
            tier = 0 if writes else home
            after[entity] = latencies[tier, 0 if piece < 0 else 1]
            end = now
            pending = 0
            for join in range(stripe_count + 4):
                of_data = join < stripe_count + 3
                if of_data == (piece < 0) and not writes:
                    continue
                nbytes = 0.0
                if join < stripe_count:
                    nbytes = copied[0, join] if writes else pieces[tier, piece, join]
                    if nbytes <= 0.0 and join > 0:
                        continue
                elif of_data:
                    nbytes = copied[0].sum() if writes else pieces[tier, piece].sum()
                station = _on_the_way(join, tier, nodes[rank], files[rank, sample[entity]], queues, stripe_count)
                if station < 0:
                    continue
                ops = copy_ops[0] if writes and of_data else 1.0
                work = _service(station, ops, nbytes, per_op, per_byte, variation)
                worked[station] += work
                served[station] += int(ops)
                done = _join(
                    station, entity * (stripe_count + 4) + join, work, now, workers + ranks + station,
                    sharing, speed, free, clock, updated, present, root, left, right, target, heap, where, when, order, counts,
                )  # fmt: skip
                if done < 0.0:
                    pending += 1
                else:
                    end = max(end, done)
            waiting[entity] = pending
            if pending > 0:
                ready[entity] = end
                _forget(entity, heap, where, when, order, counts)
            else:
                _plan(entity, end + after[entity], heap, where, when, order, counts)
            continue
        elif entity < workers + ranks:
            _forget(entity, heap, where, when, order, counts)
            todo_rank[0] = entity - workers
            todo_kind[0] = 2
            todo = 1
        else:
            # A sharing station is done with the one that needed least.
            station = entity - workers - ranks
            clock[station] = target[root[station]]
            updated[station] = now
            part = root[station]
            root[station] = _merge(left[part], right[part], left, right, target)
            present[station] -= 1
            if present[station] > 0:
                long = (target[root[station]] - clock[station]) * present[station] / speed[station]
                _plan(entity, now + long, heap, where, when, order, counts)
            else:
                _forget(entity, heap, where, when, order, counts)
            if part >= owned_parts:
                continue
            owner = part // (stripe_count + 4)
            waiting[owner] -= 1
            ready[owner] = max(ready[owner], now)
            if waiting[owner] == 0:
                _plan(owner, ready[owner] + after[owner], heap, where, when, order, counts)
            continue

        while lane >= 0 or todo > 0:
            if lane >= 0:
                rank = lane // threads
                begin_open = False
                piece = _NO
                awaited = doing[lane] == _AWAITING
                if awaited:
                    busy[rank, home, READ] += now - begun[lane]
                    if threads > 1:
                        wall_clock[rank] += (now - wall_updated[rank]) / active[rank]
                        wall_updated[rank] = now
                        active[rank] -= 1
                        wall[rank, home, READ] += wall_clock[rank] - wall_begun[lane]
                elif doing[lane] >= _OPENING:  # an operation is over
                    tier = tiers[rank, sample[lane]]
                    kind = OPEN if doing[lane] == _OPENING else READ
                    busy[rank, tier, kind] += now - begun[lane]
                    if threads > 1:
                        wall_clock[rank] += (now - wall_updated[rank]) / active[rank]
                        wall_updated[rank] = now
                        active[rank] -= 1
                        wall[rank, tier, kind] += wall_clock[rank] - wall_begun[lane]
                    piece = doing[lane] - _OPENING
                    if piece == piece_count:  # the sample is read
                        piece = _NO
                        if any_fetched and fetched[rank, sample[lane]]:
                            ahead[rank] -= 1
                            for thread in range(threads):
                                other = lanes + rank * threads + thread
                                if doing[other] == _IDLE:
                                    doing[other] = _BETWEEN
                                    _plan(other, now, heap, where, when, order, counts)
                        elif any_fills and fills[rank, sample[lane]]:
                            file = files[rank, sample[lane]]
                            for side in range(2 if copy_ops[home] > 0.0 else 1):
                                # Written with a new entry; the rest of the file is read of what is open already.
                                tier = 0 if side == 0 else home
                                for join in range(stripe_count + 4 - side):
                                    nbytes = 0.0
                                    if join < stripe_count:
                                        nbytes = copied[tier, join]
                                        if nbytes <= 0.0 and join > 0:
                                            continue
                                    elif join < stripe_count + 3:
                                        nbytes = copied[tier].sum()
                                    station = _on_the_way(join, tier, nodes[rank], file, queues, stripe_count)
                                    if station < 0:
                                        continue
                                    ops = copy_ops[tier] if join < stripe_count + 3 else 1.0
                                    work = _service(station, ops, nbytes, per_op, per_byte, variation)
                                    worked[station] += work
                                    served[station] += int(ops)
                                    done = _join(
                                        station, unowned, work, now, workers + ranks + station,
                                        sharing, speed, free, clock, updated, present, root, left, right, target, heap, where, when, order, counts,
                                    )  # fmt: skip
                                    unowned += done < 0.0
                        sample[lane] += 1
                        doing[lane] = _BETWEEN
                        if overhead > 0.0:
                            _plan(lane, now + overhead, heap, where, when, order, counts)
                            lane = idle_lane[idle - 1] if idle > 0 else _NO
                            idle -= idle > 0
                            continue
                if piece < 0:  # the next sample
                    if not awaited and sample[lane] >= part_end[lane]:
                        if part_batch[lane] >= 0:  # its part of a batch is complete
                            slot = part_batch[lane] % slots
                            parts_left[rank, slot] -= 1
                            read_ended[rank, slot] = now
                            if parts_left[rank, slot] == 0 and part_batch[lane] == wanted[rank]:
                                todo_rank[todo] = rank
                                todo_kind[todo] = 1
                                todo += 1
                            part_batch[lane] = _NO
                        if next_batch[rank] >= launched[rank]:  # nothing to read yet
                            doing[lane] = _IDLE
                            _forget(lane, heap, where, when, order, counts)
                            lane = idle_lane[idle - 1] if idle > 0 else _NO
                            idle -= idle > 0
                            continue
                        number = next_batch[rank]
                        size = min(batch, samples - number * batch)
                        share = (size + threads - 1) // threads
                        start = next_part[rank] * share
                        sample[lane] = number * batch + start
                        part_end[lane] = number * batch + min(start + share, size)
                        part_batch[lane] = number
                        slot = number % slots
                        read_begun[rank, slot] = min(read_begun[rank, slot], now)
                        if start + share >= size:
                            next_batch[rank] += 1
                            next_part[rank] = 0
                        else:
                            next_part[rank] += 1
                    if any_fetched and fetched[rank, sample[lane]] and fetch[rank, sample[lane]] == _NOT_BEGUN:
                        fetched[rank, sample[lane]] = False
                        tiers[rank, sample[lane]] = home
                    if any_fetched and fetch[rank, sample[lane]] == _ON_ITS_WAY:
                        doing[lane] = _AWAITING
                        begun[lane] = now
                        if threads > 1:
                            if active[rank] > 0:
                                wall_clock[rank] += (now - wall_updated[rank]) / active[rank]
                            wall_updated[rank] = now
                            active[rank] += 1
                            wall_begun[lane] = wall_clock[rank]
                        _forget(lane, heap, where, when, order, counts)
                        lane = idle_lane[idle - 1] if idle > 0 else _NO
                        idle -= idle > 0
                        continue
                    if opens[rank, sample[lane]]:
                        begin_open = True
                    else:
                        piece = 0
                # An operation begins: all stations on its way at once.
                tier = tiers[rank, sample[lane]]
                file = files[rank, sample[lane]]
                node = nodes[rank]
                per_device, per_gateway, metadata, metadata_servers = (
                    queues[tier, 0],
                    queues[tier, 1],
                    queues[tier, 2],
                    queues[tier, 3],
                )
                begun[lane] = now
                if threads > 1:
                    if active[rank] > 0:
                        wall_clock[rank] += (now - wall_updated[rank]) / active[rank]
                    wall_updated[rank] = now
                    active[rank] += 1
                    wall_begun[lane] = wall_clock[rank]
                end = now
                pending = 0
                if begin_open:
                    doing[lane] = _OPENING
                    after[lane] = latencies[tier, 0]
                    joins = 1
                else:
                    doing[lane] = _READING + piece
                    after[lane] = latencies[tier, 1]
                    joins = stripe_count + 3
                for join in range(joins):
                    nbytes = 0.0
                    station = _NO
                    if begin_open:
                        if metadata >= 0:
                            station = metadata + node // per_device * metadata_servers + file % metadata_servers
                    elif join < stripe_count:
                        nbytes = pieces[tier, piece, join]
                        if queues[tier, 4] >= 0 and nbytes > 0.0:
                            stripe = join
                            if first_stripes.size > 0:
                                stripe = (join + first_stripes[rank, sample[lane]]) % queues[tier, 9]
                            station = (
                                queues[tier, 4]
                                + node // per_device * queues[tier, 5]
                                + (file + stripe) % queues[tier, 5]
                            )
                    else:
                        link = queues[tier, 6 + join - stripe_count]
                        if link >= 0:
                            for stripe in range(stripe_count):
                                nbytes += pieces[tier, piece, stripe]
                            which = join - stripe_count
                            station = link + (
                                node if which == 0 else node // per_device if which == 1 else node // per_gateway
                            )
                    if station < 0:
                        continue
                    work = _service(station, 1.0, nbytes, per_op, per_byte, variation)
                    worked[station] += work
                    served[station] += 1
                    done = _join(
                        station, lane * (stripe_count + 4) + join, work, now, workers + ranks + station,
                        sharing, speed, free, clock, updated, present, root, left, right, target, heap, where, when, order, counts,
                    )  # fmt: skip
                    if done < 0.0:
                        pending += 1
                    else:
                        end = max(end, done)
                waiting[lane] = pending
                if pending > 0:
                    ready[lane] = end
                    _forget(lane, heap, where, when, order, counts)
                else:
                    _plan(lane, end + after[lane], heap, where, when, order, counts)
                lane = idle_lane[idle - 1] if idle > 0 else _NO
                idle -= idle > 0
                continue

            # A consumer: is its batch complete, or is it done with it?
            todo -= 1
            rank, why = todo_rank[todo], todo_kind[todo]
            if why == 1:
                slot = wanted[rank] % slots
                stalled = now - asked[rank]
                stall[rank] += stalled
                if keep_steps:
                    steps[rank, wanted[rank], 0] = read_ended[rank, slot] - read_begun[rank, slot]
                    steps[rank, wanted[rank], 1] = stalled
                    steps[rank, wanted[rank], 2] = compute
                if compute > 0.0:
                    _plan(workers + rank, now + compute, heap, where, when, order, counts)
                    continue
            if step_barrier and why != 3:
                at_barrier += 1
                if at_barrier < ranks:
                    continue
                at_barrier = 0
                for other in range(ranks - 1, -1, -1):
                    todo_rank[todo] = other
                    todo_kind[todo] = 3
                    todo += 1
                continue
            if launched[rank] < batches:  # its memory takes the next batch
                number = launched[rank]
                size = min(batch, samples - number * batch)
                share = (size + threads - 1) // threads
                parts_left[rank, number % slots] = (size + share - 1) // share
                read_begun[rank, number % slots] = np.inf
                launched[rank] += 1
                for thread in range(threads - 1, -1, -1):
                    other = rank * threads + thread
                    if doing[other] == _IDLE:
                        doing[other] = _BETWEEN
                        idle_lane[idle] = other
                        idle += 1
            wanted[rank] += 1
            asked[rank] = now
            if wanted[rank] == batches:
                seconds[rank] = now - starts[rank]
            elif parts_left[rank, wanted[rank] % slots] == 0:
                todo_rank[todo] = rank
                todo_kind[todo] = 1
                todo += 1
            if lane < 0 and idle > 0:
                idle -= 1
                lane = idle_lane[idle]
    if threads == 1:
        wall[:] = busy
    return seconds, stall, busy, wall, steps, worked, served
