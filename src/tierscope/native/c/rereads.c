#define _GNU_SOURCE
#include "life.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 200, NAPS = 10000, HALF = TS_REREAD_SLOTS / 2 };

static _Thread_local uint64_t recent[2];
static _Thread_local bool looking; /* a signal handler's reads in between are not looked at */

/* A holder that was killed never gives it back: then nobody waits for it again. */
static bool lock(ts_rereads *page)
{
    const struct timespec nap = {0, 100000};
    for (int i = 0; i < SPINS + NAPS && !atomic_load_explicit(&page->gave_up, memory_order_relaxed); i++) {
        uint32_t open = 0;
        if (atomic_compare_exchange_weak(&page->locked, &open, 1)) return true;
        if (i < SPINS) sched_yield();
        else syscall(SYS_nanosleep, &nap, NULL);
    }
    uint32_t none = 0;
    atomic_compare_exchange_strong(&page->gave_up, &none, TS_GAVE_UP_LOCK);
    return false;
}

static uint64_t key_of(const ts_done *done)
{
    uint64_t key = done->file ^ ((uint64_t)done->offset << 1 | (done->kind == TS_MMAP)) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u; /* splitmix64 */
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    return (key ^ key >> 31) | UINT64_C(1) << 63;
}

/* The unit's slot, or the free one where it belongs: half of all slots are free. NULL: somebody else wrote to the page. */
static ts_unit *find(ts_rereads *page, uint64_t key)
{
    for (uint64_t i = 0, at = key >> 40; i < TS_REREAD_SLOTS; i++) {
        ts_unit *unit = &page->table[(at + i) & (TS_REREAD_SLOTS - 1)];
        if (unit->key == key || !unit->key) return unit;
    }
    return NULL;
}

/* Forget every second unit. From a free slot on, so that each is put where a search for it ends. */
static void thin(ts_rereads *page)
{
    uint32_t mask = atomic_load(&page->mask) << 1 | 1, first = 0;
    atomic_store(&page->mask, mask);
    page->units = page->covered = 0;
    page->unheard /= 2, page->run /= 2, page->longest_run /= 2;
    while (first < TS_REREAD_SLOTS && page->table[first].key) first++;
    for (uint32_t i = 1; i <= TS_REREAD_SLOTS; i++) {
        ts_unit *slot = &page->table[(first + i) & (TS_REREAD_SLOTS - 1)], unit = *slot;
        *slot = (ts_unit){0};
        if (!unit.key || (unit.key & mask)) continue;
        *find(page, unit.key) = unit; /* the one that was just emptied is free */
        page->units++;
        page->covered += unit.last >= page->epoch_start;
    }
}

/* The run is the next epoch's, but for as many reads as the end of this one may have. Lanes change only now: they are late by the run. */
static void begin_epoch(rank_page *rank, ts_rereads *page)
{
    int32_t current = page->generation ? (int32_t)(TS_GENERATION + page->generation) : 0;
    if (page->boundaries >= TS_REREAD_EPOCHS) return (void)atomic_store(&page->gave_up, TS_GAVE_UP_EPOCHS);
    if (!atomic_compare_exchange_strong(&rank->epoch, &current, (int32_t)(TS_GENERATION + page->generation + 1)))
        return (void)atomic_store(&page->gave_up, TS_MARKED_INSTEAD);
    page->boundary[page->boundaries++] = ++page->generation;
    if (page->latest < page->run - 1) page->latest = page->run - 1;
    page->epoch_start = page->run_start + page->longest_run;
    page->run = page->unheard = page->covered = 0;
    for (uint32_t i = 0; i < TS_REREAD_SLOTS; i++) {
        bool met = page->table[i].key && page->table[i].last >= page->epoch_start;
        page->table[i].passes += met, page->covered += met;
    }
}

/* Too much comes that was never read before: all of it was the first epoch. */
static void withdraw(ts_rereads *page)
{
    uint32_t run = page->first_unheard - page->epoch_start;
    if (page->longest_run < run) page->longest_run = run;
    for (uint32_t i = 0; i < TS_REREAD_SLOTS; i++) page->table[i].passes = page->table[i].key != 0;
    page->boundaries = page->epoch_start = page->latest = page->unheard = 0;
    page->covered = page->units;
}

static void meet_again(rank_page *rank, ts_rereads *page, ts_unit *unit)
{
    if (!page->run++) page->run_start = page->clock;
    unit->last = page->clock;
    if (page->run > page->longest_run + page->longest_run / 4 && (uint64_t)page->covered * 100 >= (uint64_t)page->units * TS_REREAD_PERCENT) begin_epoch(rank, page);
}

static void meet_new(ts_rereads *page, ts_unit *unit, uint64_t key)
{
    bool unheard = !unit->key;
    unit->key = key, unit->last = page->clock;
    unit->passes++; /* no more than there are epochs */
    if (page->longest_run < page->run) page->longest_run = page->run;
    page->run = 0, page->covered++, page->units += unheard;
    if (unheard && !page->unheard++) page->first_unheard = page->clock;
    if (unheard && page->boundaries && (uint64_t)page->unheard * 20 > page->units) withdraw(page);
    if (page->units > HALF) thin(page);
}

static void look_at(rank_page *rank, uint64_t key, uint64_t bytes)
{
    ts_rereads *page = rank->rereads;
    if (!lock(page)) return;
    if (++page->clock == UINT32_MAX) atomic_store(&page->gave_up, TS_GAVE_UP_CLOCK);
    ts_unit *unit = find(page, key);
    unsigned size = 64 - (unsigned)__builtin_clzll(bytes);
    if (!unit) {
        atomic_store(&page->gave_up, TS_GAVE_UP_LOCK);
    } else {
        if (unit->reads < UINT16_MAX) unit->reads++;
        if (unit->size < size) unit->size = size & 63;
        if (unit->key && unit->last >= page->epoch_start) meet_again(rank, page, unit);
        else meet_new(page, unit, key);
    }
    atomic_store(&page->locked, 0);
}

void ts_note_read(const ts_done *done)
{
    if ((done->kind != TS_READ && done->kind != TS_MMAP) || !done->bytes || looking || !ts_be_alive()) return;
    rank_page *rank = ts_life->rank;
    if (rank == &ts_private_rank) {
        int32_t unmarked = 0;
        atomic_compare_exchange_strong(&rank->epoch, &unmarked, TS_NO_PAGE);
        return;
    }
    uint64_t key = key_of(done);
    if ((key & atomic_load_explicit(&rank->rereads->mask, memory_order_relaxed)) || atomic_load_explicit(&rank->rereads->gave_up, memory_order_relaxed)) return;
    if (key == recent[0] || key == recent[1]) {
        if (!atomic_load_explicit(&rank->rereads->nearly, memory_order_relaxed)) atomic_store(&rank->rereads->nearly, 1);
        return;
    }
    recent[1] = recent[0], recent[0] = key;
    looking = true;
    atomic_signal_fence(memory_order_seq_cst);
    look_at(rank, key, done->bytes);
    atomic_signal_fence(memory_order_seq_cst);
    looking = false;
}
