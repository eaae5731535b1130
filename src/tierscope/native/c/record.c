#include "record.h"

enum { ACTIVE_BITS = 12, ACTIVE_MASK = (1 << ACTIVE_BITS) - 1, FRACTION = 16 };

/* Sixteen bytes at once; no library call. */
static inline _Bool swap(ts_wall *wall, uint64_t *state, uint64_t *last, uint64_t new_state, uint64_t new_last)
{
#if defined(__x86_64__)
    _Bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*wall), "+a"(*state), "+d"(*last)
                         : "b"(new_state), "c"(new_last)
                         : "memory");
    return done;
#elif defined(__aarch64__)
    uint64_t low, high;
    uint32_t failed;
    __asm__ __volatile__("ldaxp %0, %1, %3" : "=&r"(low), "=&r"(high), "=&r"(failed) : "Q"(*wall) : "memory");
    if (low != *state || high != *last) {
        *state = low, *last = high;
        return 0;
    }
    __asm__ __volatile__("stlxp %w0, %2, %3, %1" : "=&r"(failed), "=Q"(*wall) : "r"(new_state), "r"(new_last) : "memory");
    return failed == 0;
#else
#error "Tierscope's native part is for x86-64 and aarch64"
#endif
}

/* Whoever writes it is the only one at that time; others read along. */
static inline uint64_t peek(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_relaxed); }
static inline void put(_Atomic uint64_t *word, uint64_t value) { atomic_store_explicit(word, value, memory_order_relaxed); }

/* Advance to `now` and change the number of active operations by `step`; the virtual time. */
static inline uint64_t move(ts_wall *wall, uint64_t now, int64_t step)
{
    uint64_t state = peek(&wall->state), last = peek(&wall->last_ns);
    for (;;) {
        uint64_t active = state & ACTIVE_MASK, virtual = state >> ACTIVE_BITS;
        uint64_t latest = now > last ? now : last, next = step > 0 || active >= (uint64_t)-step ? active + (uint64_t)step : 0; /* one too many may have been taken out */
        if (active) virtual += active == 1 ? (latest - last) * FRACTION : (latest - last) * FRACTION / active; /* a division takes its time */
        if (swap(wall, &state, &last, virtual << ACTIVE_BITS | (next & ACTIVE_MASK), latest)) {
            if (step > 0 && !active) {
                put(&wall->idle_ns, peek(&wall->idle_ns) + latest - last);
                put(&wall->busy_since_ns, latest);
            }
            return virtual;
        }
    }
}

ts_span ts_begin_at(ts_wall *wall, uint64_t now)
{
    ts_span span = {now, move(wall, now, +1)};
    return span;
}

void ts_abandon(ts_wall *wall, ts_span span) { move(wall, span.start_ns, -1); }

void ts_take_out(ts_wall *wall, uint64_t now, uint32_t operations) { move(wall, now, -(int64_t)operations); }

static inline unsigned bin_of(uint64_t value)
{
    unsigned bin = value ? 64 - (unsigned)__builtin_clzll(value) : 0;
    return bin < TS_BINS ? bin : TS_BINS - 1;
}

void ts_add(ts_lane *lane, unsigned number, uint64_t bytes, uint64_t busy_ns, uint64_t wall_ns)
{
    ts_cell *cell = &lane->cells[number];
    uint64_t sequence = atomic_load_explicit(&lane->sequence, memory_order_relaxed);
    atomic_store_explicit(&lane->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    cell->ops++;
    cell->bytes += bytes;
    cell->busy_ns += busy_ns;
    cell->wall_ns += wall_ns;
    cell->sizes[bin_of(bytes)]++;
    cell->latencies[bin_of(busy_ns)]++;
    lane->check += 3 + bytes + busy_ns + wall_ns;
    atomic_store_explicit(&lane->sequence, sequence + 2, memory_order_release);
}

/* A share is never more than the whole: a thread may be held up between `end` and its leaving the clock. */
static void add(ts_lane *lane, uint64_t start, uint64_t end, unsigned cell, uint64_t bytes, uint64_t share)
{
    uint64_t busy = end > start ? end - start : 0;
    if (!lane->first_ns) lane->first_ns = start;
    lane->last_ns = end;
    ts_add(lane, cell, bytes, busy, share < busy ? share : busy);
}

void ts_end_at(ts_wall *wall, ts_lane *lane, ts_span span, uint64_t end, unsigned cell, uint64_t bytes)
{
    const uint64_t mask = UINT64_MAX >> ACTIVE_BITS;
    uint64_t share = ((move(wall, end, -1) - span.virtual_start) & mask) / FRACTION;
    add(lane, span.start_ns, end, cell, bytes, share);
}

/* How much time had been idle at an instant; exact since the last idle time began, too much before. */
static inline uint64_t idle_at(const ts_wall *wall, uint64_t now)
{
    uint64_t state = peek(&wall->state), last = peek(&wall->last_ns);
    uint64_t idle = peek(&wall->idle_ns), busy_since = peek(&wall->busy_since_ns);
    if (now >= last) return idle + (state & ACTIVE_MASK ? 0 : now - last);
    return now < busy_since ? idle - (busy_since - now) : idle;
}

ts_span ts_begin_outside(const ts_wall *wall, uint64_t now)
{
    ts_span span = {now, TS_OUTSIDE | idle_at(wall, now)};
    return span;
}

/* Where several overlap, the first that ends takes the time, and the others what is left. Only the last stretch that was taken is remembered,
   and all before it counts as taken when the next begins: no time is given twice, and some to nobody where a long operation overlaps several. */
void ts_end_outside(ts_wall *wall, ts_lane *lane, ts_span span, uint64_t end, unsigned cell, uint64_t bytes)
{
    uint64_t until = idle_at(wall, end), from = span.virtual_start & ~TS_OUTSIDE;
    uint64_t since = atomic_load(&wall->claimed[0]), claimed = atomic_load(&wall->claimed[1]), spent = atomic_load(&wall->claimed[2]);
    if (!from) from = idle_at(wall, span.start_ns);
    uint64_t first = from > spent ? from : spent, last = until < since ? until : since;
    uint64_t before = first < last ? last - first : 0;
    uint64_t after = until > claimed ? until - (from > claimed ? from : claimed) : 0;
    while (claimed < until && !atomic_compare_exchange_weak(&wall->claimed[1], &claimed, until)) {}
    if (from > claimed) atomic_store(&wall->claimed[2], claimed);
    if (from < since || from > claimed) atomic_store(&wall->claimed[0], from);
    add(lane, span.start_ns, end, cell, bytes, before + after);
}
