/* What is kept of every operation, and how it is added up.

   A lane holds the sums and histograms of one thread in one epoch: a cell per tier and kind. Only its thread writes to it, so
   there are no locks and no atomic additions. `sequence` is odd while a record is being made and `check` is the sum of all
   counters, so that whoever reads a lane (also one of a process that was killed) knows whether it is whole.

   Wall seconds share each instant equally among the operations of a rank that are then active: a virtual clock advances by
   dt / active, and an operation's share is its advance. The clock is one 16-byte word, moved by compare-and-swap; whose operations
   share one is said in clock.h. */
#ifndef TIERSCOPE_RECORD_H
#define TIERSCOPE_RECORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The order is that of KINDS in trace/ops.py. */
enum { TS_OPEN, TS_READ, TS_CLOSE, TS_STAT, TS_WRITE, TS_SEEK, TS_MMAP, TS_SYNC, TS_KINDS };
enum { TS_BINS = 48, TS_MAX_TIERS = 8, TS_LANE_MAGIC = 0x454e414c };

typedef struct {
    uint64_t ops, bytes, busy_ns, wall_ns;
    uint64_t sizes[TS_BINS], latencies[TS_BINS]; /* bin b counts 2^(b-1) <= value < 2^b; bin 0 counts zeros */
} ts_cell;

/* One row of the operation list: OP_ROW of trace/ops.py. */
typedef struct __attribute__((packed)) {
    int32_t epoch, lane;
    int64_t step;
    int16_t tier, kind;
    int64_t file, offset, bytes, start_ns, busy_ns;
} ts_op;

/* Operations that wait to be written to a file; in memory that outlives the process where that matters. */
enum { TS_LIST_ROWS = 512 };
typedef struct {
    uint64_t used;
    ts_op rows[TS_LIST_ROWS];
} ts_list;

typedef struct {
    uint32_t magic, bytes; /* of the lane with all its cells */
    int32_t epoch;
    uint32_t number;                      /* which lane of its process */
    _Atomic uint32_t owner;               /* thread id; 0 when the thread is gone */
    uint32_t tiers;
    _Atomic uint64_t sequence;            /* odd while a record is being made */
    uint64_t check;                       /* sum of all counters of all cells */
    uint64_t limited_ops, late_ops, late_ns; /* emulated: limited by a rate; of those, really slower; by how much */
    uint64_t first_ns, last_ns;           /* start of the first operation, end of the last (CLOCK_MONOTONIC) */
    int64_t step;
    uint64_t under_way_ns;                /* when the operation began that has not ended; 0: none */
    uint64_t unused[4];
    ts_cell cells[];                      /* tier × TS_KINDS + kind */
} ts_lane;

_Static_assert(sizeof(ts_lane) == 128, "the lane's head is part of the file format");
_Static_assert(sizeof(ts_cell) == 800 && sizeof(ts_op) == 60, "cells and rows are part of the file format");

static inline size_t ts_lane_bytes(unsigned tiers) { return sizeof(ts_lane) + (size_t)tiers * TS_KINDS * sizeof(ts_cell); }

static inline uint64_t ts_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock that slows down: active operations in the low 12 bits, virtual sixteenths of a nanosecond above, and the last event.
   `idle_ns`: time without an active operation, up to `busy_since_ns`, when one last began after such a time; whoever begins that one
   adds to it, and nobody else can until that one has ended. `claimed`: the part of the idle time that operations without a place in the
   clock have taken last, from and until; and what counts as taken before. */
typedef struct {
    _Alignas(16) _Atomic uint64_t state;
    _Atomic uint64_t last_ns, idle_ns, busy_since_ns, claimed[3];
} ts_wall;

/* An operation without a place in the clock has TS_OUTSIDE in virtual_start: alone, or with how much time was idle when it began. */
typedef struct {
    uint64_t start_ns, virtual_start;
} ts_span;
#define TS_OUTSIDE (UINT64_C(1) << 63)

ts_span ts_begin_at(ts_wall *wall, uint64_t now);

/* The operation leaves no record: it was not one of a tier. */
void ts_abandon(ts_wall *wall, ts_span span);

/* So many operations will never end: whoever began them is gone. */
void ts_take_out(ts_wall *wall, uint64_t now, uint32_t operations);

/* The operation was over at `end`; adds it to the lane. Returns its wall share. */
void ts_end_at(ts_wall *wall, ts_lane *lane, ts_span span, uint64_t end, unsigned cell, uint64_t bytes);

/* The same for one that had no place in the clock: it gets the time that is nobody's yet. */
ts_span ts_begin_outside(const ts_wall *wall, uint64_t now);
void ts_end_outside(ts_wall *wall, ts_lane *lane, ts_span span, uint64_t end, unsigned cell, uint64_t bytes);

/* Adds rows of an operation that shares its time with one already recorded (sendfile: a read and a write). */
void ts_add(ts_lane *lane, unsigned cell, uint64_t bytes, uint64_t busy_ns, uint64_t wall_ns);

static inline void ts_lane_init(ts_lane *lane, unsigned tiers, int32_t epoch, uint32_t number, uint32_t owner)
{
    lane->bytes = (uint32_t)ts_lane_bytes(tiers);
    lane->epoch = epoch;
    lane->number = number;
    lane->tiers = tiers;
    atomic_store_explicit(&lane->owner, owner, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    lane->magic = TS_LANE_MAGIC; /* last: from here on it is a lane */
}

#endif
