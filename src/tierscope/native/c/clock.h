/* The clock that a rank's operations share, over all threads and processes of the rank on one host.

   Wall seconds share each instant equally among the operations then active (record.h). The clock is in the page that the processes of a
   rank map. Each thread has a seat there, which says how many operations it has in the clock. A process that is killed in the middle of
   one leaves its seat behind: whoever begins an operation looks at most every TS_LOOK_NS whether the owners of operations older than that
   still live, and takes the dead's out. So a dead operation takes its share of the others' time for at most 2 × TS_LOOK_NS, as long as
   the rank begins operations.

   A seat counts an operation before it enters the clock, and until after it has left: a kill in between takes out one too many, never
   one too few, and that is over when the rank next has no operation under way. */
#ifndef TIERSCOPE_CLOCK_H
#define TIERSCOPE_CLOCK_H

#include "record.h"

#include <stdbool.h>

enum { TS_SEATS = 1024, TS_LOOK_NS = 100000000 };

/* Only its thread writes here, until it is gone. The process is known by its number, and by when it and its program were started. */
typedef union {
    struct {
        _Atomic uint32_t active, pid; /* pid 0: free */
        _Atomic uint64_t since_ns;    /* when its last operation began */
        _Atomic uint64_t start, stack; /* 0: not known */
    };
    _Atomic uint64_t whose; /* active and pid in one */
    char line[64];          /* of the processor's cache */
} ts_seat;

typedef struct {
    _Alignas(64) ts_wall wall;
    _Alignas(64) _Atomic uint64_t place; /* where process numbers and clock readings are the same; 0: nobody was here yet */
    _Atomic uint64_t looked_ns;          /* for dead processes */
    _Atomic uint32_t used;               /* seats that were ever taken are before this one */
    _Alignas(64) ts_seat seats[TS_SEATS];
} ts_clock;

/* A process and the program in it, as far as its number does not say; 0: not known. */
typedef struct {
    uint64_t start, stack;
} ts_identity;

/* Whether this process may share the clock, and as whom: not from another host, nor where it could not tell whether the others live. */
bool ts_may_share(ts_clock *clock, ts_identity *self);

/* For this thread; NULL: all are taken. */
ts_seat *ts_take_seat(ts_clock *clock, const ts_identity *self);
void ts_free_seat(ts_seat *seat);

/* Take out the operations of processes that are gone. */
void ts_look_around(ts_clock *clock, uint64_t now);

static inline void ts_sit(ts_seat *seat, uint64_t now)
{
    atomic_store_explicit(&seat->since_ns, now, memory_order_relaxed);
    atomic_store_explicit(&seat->active, atomic_load_explicit(&seat->active, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void ts_rise(ts_seat *seat)
{
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t active = atomic_load_explicit(&seat->active, memory_order_relaxed);
    if (active) atomic_store_explicit(&seat->active, active - 1, memory_order_relaxed);
}

#endif
