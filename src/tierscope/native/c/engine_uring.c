/* Reading with io_uring: a thread keeps up to DEPTH files in flight, each a chain of open, reads and close in which one
   operation follows when the one before is done. No library is needed: two system calls and two rings in shared memory.
   An operation's time runs from its submission to the moment when we see that it is done; the recorder shares the wall
   clock among those that are in flight. Evicting a file is a step of its chain that is not recorded: done in between by this thread, it would
   keep it from seeing what is done. */
#include "engine.h"

#include <errno.h>

#if __has_include(<linux/io_uring.h>)

#include <fcntl.h>
#include <linux/fadvise.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 32, MOST_ACTIVE = 4000 }; /* MOST_ACTIVE: operations of a rank that the recorder's clock can count */
enum { LARGEST_READ = 1 << 30 };         /* lengths have 32 bits */
enum { BEGIN_COLD = TS_KINDS, END_COLD };  /* steps of a chain that nobody records */

/* Neighbouring samples of one file, and how far their reading has got. */
typedef struct {
    ts_batch *batch;
    uint32_t first, sample, stop, extent; /* first and stop of the group; the extent that comes next */
    int fd;
    unsigned operation;                   /* in flight */
    uint64_t bytes;                       /* that it asks for */
    ts_window window;
    ts_span span;
    uint64_t began, cold_since;
    char *path;
} ts_chain;

static inline bool is_recorded(const ts_chain *chain) { return chain->operation < BEGIN_COLD; }

struct ts_ring {
    int fd;
    void *rings[2];
    size_t ring_bytes[2], sqe_bytes;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    unsigned *sq_tail, *sq_array, sq_mask, *cq_head, *cq_tail, cq_mask;
    uint32_t depth, idle, prepared;       /* chains in all; not in use; with an operation that waits for submission */
    bool failed;                          /* one of our chains did */
    uint32_t idle_chains[DEPTH], prepared_chains[DEPTH];
    ts_chain chains[DEPTH];
};

/* --- the rings --------------------------------------------------------------------------------------------------- */

static void *map_ring(int fd, size_t bytes, long where)
{
    long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, where);
    return at == -1 ? NULL : (void *)at;
}

static bool map_rings(ts_ring *ring, const struct io_uring_params *params)
{
    ring->ring_bytes[0] = params->sq_off.array + params->sq_entries * sizeof(unsigned);
    ring->ring_bytes[1] = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    ring->sqe_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    const long where[] = {IORING_OFF_SQ_RING, IORING_OFF_CQ_RING};
    for (int which = 0; which < 2; which++) {
        if (!(ring->rings[which] = map_ring(ring->fd, ring->ring_bytes[which], where[which]))) return false;
    }
    if (!(ring->sqes = map_ring(ring->fd, ring->sqe_bytes, IORING_OFF_SQES))) return false;
    char *sq = ring->rings[0], *cq = ring->rings[1];
    ring->sq_tail = (unsigned *)(sq + params->sq_off.tail);
    ring->sq_mask = *(unsigned *)(sq + params->sq_off.ring_mask);
    ring->sq_array = (unsigned *)(sq + params->sq_off.array);
    ring->cq_head = (unsigned *)(cq + params->cq_off.head);
    ring->cq_tail = (unsigned *)(cq + params->cq_off.tail);
    ring->cq_mask = *(unsigned *)(cq + params->cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(cq + params->cq_off.cqes);
    return true;
}

int ts_ring_open(ts_reader *reader)
{
    ts_engine *engine = reader->engine;
    struct io_uring_params params = {0};
    ts_ring *ring = reader->ring = calloc(1, sizeof *ring);
    if (!ring) return ENOMEM;
    ring->fd = (int)syscall(SYS_io_uring_setup, DEPTH, &params);
    if (ring->fd < 0) return errno;
    if (!(params.features & IORING_FEAT_RW_CUR_POS)) return ENOSYS; /* before Linux 5.6 rings could not open files */
    if (!map_rings(ring, &params)) return errno;
    ring->depth = MOST_ACTIVE / engine->lanes < DEPTH ? MOST_ACTIVE / engine->lanes : DEPTH;
    if (!ring->depth) ring->depth = 1;
    for (uint32_t number = 0; number < ring->depth; number++) {
        ring->chains[number].path = malloc(engine->path_bytes);
        if (!ring->chains[number].path) return ENOMEM;
        ring->idle_chains[ring->idle++] = number;
    }
    if (engine->transfer > LARGEST_READ) engine->transfer = LARGEST_READ;
    return 0;
}

void ts_ring_close(ts_reader *reader)
{
    ts_ring *ring = reader->ring;
    if (!ring) return;
    if (ring->sqes) syscall(SYS_munmap, ring->sqes, ring->sqe_bytes);
    for (int which = 0; which < 2; which++) {
        if (ring->rings[which]) syscall(SYS_munmap, ring->rings[which], ring->ring_bytes[which]);
    }
    if (ring->fd >= 0) syscall(SYS_close, ring->fd);
    for (uint32_t number = 0; number < DEPTH; number++) free(ring->chains[number].path);
    free(ring);
    reader->ring = NULL;
}

/* A place for the next operation of a chain; there is always one, for a chain has one operation at a time. */
static struct io_uring_sqe *prepare(ts_ring *ring, ts_chain *chain, unsigned operation, unsigned code)
{
    unsigned tail = *ring->sq_tail + ring->prepared, at = tail & ring->sq_mask;
    uint32_t number = (uint32_t)(chain - ring->chains);
    struct io_uring_sqe *sqe = &ring->sqes[at];
    *sqe = (struct io_uring_sqe){.opcode = (__u8)code, .fd = chain->fd, .user_data = number};
    ring->sq_array[at] = at;
    ring->prepared_chains[ring->prepared++] = number;
    chain->operation = operation;
    return sqe;
}

/* Submit what is prepared and wait for at least one completion. What cannot be submitted has failed; its number. */
static uint32_t submit_and_wait(ts_reader *reader, uint32_t failed[DEPTH])
{
    ts_ring *ring = reader->ring;
    uint32_t left = ring->prepared;
    uint64_t now = ts_now();
    for (uint32_t number = 0; number < left; number++) {
        ts_chain *chain = &ring->chains[ring->prepared_chains[number]];
        if (is_recorded(chain)) chain->span = ts_begin_at(&reader->engine->wall, now);
        else chain->cold_since = now;
    }
    __atomic_store_n(ring->sq_tail, *ring->sq_tail + left, __ATOMIC_RELEASE);
    for (;;) {
        long taken = syscall(SYS_io_uring_enter, ring->fd, left, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (taken >= 0) left -= (uint32_t)taken;
        bool again = taken >= 0 ? left : errno == EINTR || errno == EAGAIN || errno == EBUSY;
        if (!again) break;
    }
    const uint32_t *lost = ring->prepared_chains + ring->prepared - left; /* the last of those that were prepared */
    memcpy(failed, lost, left * sizeof *lost);
    if (left) __atomic_store_n(ring->sq_tail, *ring->sq_tail - left, __ATOMIC_RELEASE);
    ring->prepared = 0;
    return left;
}

/* --- a chain ----------------------------------------------------------------------------------------------------- */

static inline unsigned code_of(const ts_engine *engine, unsigned code)
{
    return engine->config.storage == TS_NOTHING ? IORING_OP_NOP : code;
}

static void prepare_open(ts_reader *reader, ts_chain *chain)
{
    ts_engine *engine = reader->engine;
    chain->fd = AT_FDCWD;
    struct io_uring_sqe *sqe = prepare(reader->ring, chain, TS_OPEN, code_of(engine, IORING_OP_OPENAT));
    if (engine->config.storage == TS_NOTHING) return;
    sqe->addr = (uintptr_t)(engine->config.storage == TS_NULL_DEVICE ? "/dev/null" : chain->path);
    sqe->open_flags = (__u32)engine->open_flags;
}

static void prepare_read(ts_reader *reader, ts_chain *chain)
{
    chain->bytes = ts_window_next(reader->engine, &chain->window);
    struct io_uring_sqe *sqe = prepare(reader->ring, chain, TS_READ, code_of(reader->engine, IORING_OP_READ));
    if (reader->engine->config.storage == TS_NOTHING) return;
    sqe->addr = (uintptr_t)(chain->window.into + chain->window.at);
    sqe->len = (__u32)chain->bytes;
    sqe->off = chain->window.start + chain->window.at;
}

static void prepare_cold(ts_reader *reader, ts_chain *chain, unsigned step)
{
    struct io_uring_sqe *sqe = prepare(reader->ring, chain, step, IORING_OP_FADVISE);
    sqe->fadvise_advice = POSIX_FADV_DONTNEED;
}

static void prepare_close(ts_reader *reader, ts_chain *chain)
{
    prepare(reader->ring, chain, TS_CLOSE, code_of(reader->engine, IORING_OP_CLOSE));
}

/* The next extent of this sample or the next one; after the last the file is closed. */
static void prepare_next(ts_reader *reader, ts_chain *chain)
{
    while (chain->sample < chain->stop) {
        if (chain->extent == reader->engine->config.extents) {
            chain->sample++;
            chain->extent = 0;
            continue;
        }
        chain->window = ts_window_of(reader->engine, chain->batch, chain->sample, chain->extent);
        if (chain->window.wanted) {
            prepare_read(reader, chain);
            return;
        }
        chain->extent++;
    }
    const ts_batch *batch = chain->batch;
    int64_t tier = batch->tiers[chain->first], file = batch->files[chain->first];
    if (ts_cold_ends(reader->engine, tier, file, chain->stop - chain->first)) prepare_cold(reader, chain, END_COLD);
    else prepare_close(reader, chain);
}

/* A file was opened: the first of its reads comes next, or what comes before that. */
static void prepare_first(ts_reader *reader, ts_chain *chain)
{
    ts_engine *engine = reader->engine;
    int64_t tier = chain->batch->tiers[chain->first];
    if (!ts_cold_begins(engine, tier, chain->batch->files[chain->first])) {
        prepare_next(reader, chain);
    } else if (engine->config.folders[tier].evicts) {
        prepare_cold(reader, chain, BEGIN_COLD);
    } else {
        ts_cold_look(engine, tier, chain->fd);
        prepare_next(reader, chain);
    }
}

/* A file was evicted, or could not be, which is then seen. Chains that were in flight meanwhile share the time. */
static void cold_done(ts_reader *reader, ts_chain *chain, uint64_t now)
{
    int64_t tier = chain->batch->tiers[chain->first];
    uint32_t flying = reader->ring->depth - reader->ring->idle;
    uint64_t spent = (now - chain->cold_since) / (flying ? flying : 1);
    atomic_fetch_add_explicit(&reader->engine->cold[tier].nanoseconds, spent, memory_order_relaxed);
    if (chain->operation == END_COLD) {
        prepare_close(reader, chain);
        return;
    }
    ts_cold_look(reader->engine, tier, chain->fd);
    prepare_next(reader, chain);
}

/* The next group of neighbours of the part at hand. */
static void begin_chain(ts_reader *reader)
{
    ts_ring *ring = reader->ring;
    ts_batch *batch = reader->batch;
    ts_chain *chain = &ring->chains[ring->idle_chains[--ring->idle]];
    uint32_t first = reader->next, stop = first + 1;
    const int64_t *files = batch->files, *tiers = batch->tiers;
    while (stop < reader->stop && files[stop] == files[first] && tiers[stop] == tiers[first]) stop++;
    chain->batch = batch;
    chain->first = chain->sample = first;
    chain->stop = reader->next = stop;
    chain->extent = 0;
    chain->began = ts_now();
    reader->lane->step = batch->step;
    ts_build_path(reader->engine, chain->path, batch->tiers[first], batch->files[first]);
    prepare_open(reader, chain);
}

static void end_chain(ts_reader *reader, ts_chain *chain, uint64_t now, bool failed)
{
    ts_ring *ring = reader->ring;
    ring->idle_chains[ring->idle++] = (uint32_t)(chain - ring->chains);
    ts_engine_finished(reader->engine, chain->batch, chain->stop - chain->first, chain->began, now, failed);
}

static void fail_chain(ts_reader *reader, ts_chain *chain, ts_result result, uint64_t now)
{
    uint32_t failed = chain->operation == TS_CLOSE ? chain->stop - 1 : chain->sample;
    chain->batch->results[failed] = result;
    for (uint32_t rest = failed + 1; rest < chain->stop; rest++) chain->batch->results[rest].operation = TS_SKIPPED;
    if (chain->operation == TS_READ && reader->engine->config.storage != TS_NOTHING) syscall(SYS_close, chain->fd);
    reader->ring->failed = true;
    end_chain(reader, chain, now, true);
}

static void read_came(ts_reader *reader, ts_chain *chain, uint64_t got, uint64_t now)
{
    const ts_engine *engine = reader->engine;
    uint64_t offset = chain->window.start + chain->window.at;
    if (engine->config.storage != TS_FILES) got = chain->bytes;
    ts_note_op(reader, chain->batch, chain->sample, TS_READ, offset, got, chain->span, now);
    switch (ts_window_got(engine, &chain->window, chain->bytes, got)) {
    case TS_CUT:
        fail_chain(reader, chain, ts_window_cut(&chain->window, got), now);
        break;
    case TS_MORE:
        prepare_read(reader, chain);
        break;
    default:
        ts_window_done(engine, chain->batch, chain->sample, chain->extent, &chain->window);
        chain->extent++;
        prepare_next(reader, chain);
    }
}

/* An operation is over: `result` as a system call in the kernel returns it. */
static void complete(ts_reader *reader, ts_chain *chain, int32_t result, uint64_t now)
{
    uint32_t last = chain->stop - 1;
    if (!is_recorded(chain)) {
        cold_done(reader, chain, now);
        return;
    }
    if (result < 0 && !(chain->operation == TS_CLOSE && result == -EINTR)) {
        ts_abandon(&reader->engine->wall, chain->span);
        if (result == -EINTR || result == -EAGAIN) {
            if (chain->operation == TS_OPEN) prepare_open(reader, chain);
            else prepare_read(reader, chain);
            return;
        }
        ts_result failure = {.operation = (int32_t)chain->operation, .error = -result};
        if (chain->operation == TS_READ) {
            failure.offset = chain->window.start + chain->window.at;
            failure.wanted = chain->bytes;
        }
        fail_chain(reader, chain, failure, now);
        return;
    }
    switch (chain->operation) {
    case TS_OPEN:
        chain->fd = result;
        ts_note_op(reader, chain->batch, chain->first, TS_OPEN, 0, 0, chain->span, now);
        prepare_first(reader, chain);
        break;
    case TS_READ:
        read_came(reader, chain, (uint64_t)result, now);
        break;
    default:
        ts_note_op(reader, chain->batch, last, TS_CLOSE, 0, 0, chain->span, now);
        end_chain(reader, chain, now, false);
    }
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

static void give_up_part(ts_reader *reader)
{
    ts_batch *batch = reader->batch;
    uint32_t left = reader->stop - reader->next;
    uint64_t now = ts_now();
    for (; reader->next < reader->stop; reader->next++) batch->results[reader->next].operation = TS_SKIPPED;
    if (left) ts_engine_finished(reader->engine, batch, left, now, now, false);
}

/* Begin as many chains as there may be; none after a failure, which is one of this part or of one before it. */
static void fill(ts_reader *reader)
{
    while (reader->ring->idle && !reader->ring->failed) {
        if (reader->next == reader->stop && !ts_engine_take(reader, reader->ring->idle == reader->ring->depth)) return;
        if (atomic_load_explicit(&reader->engine->stopping, memory_order_relaxed)) reader->ring->failed = true;
        else begin_chain(reader);
    }
}

void ts_serve_ring(ts_reader *reader)
{
    ts_ring *ring = reader->ring;
    for (;;) {
        uint32_t lost[DEPTH];
        fill(reader);
        if (ring->failed) give_up_part(reader);
        if (ring->idle == ring->depth) return; /* the engine stops, or nothing is read after a failure */
        uint32_t unsubmitted = submit_and_wait(reader, lost);
        int error = errno;
        uint64_t now = ts_now();
        for (uint32_t number = 0; number < unsubmitted; number++) {
            complete(reader, &ring->chains[lost[number]], -error, now);
        }
        unsigned head = *ring->cq_head, tail = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
        for (; head != tail; head++) {
            const struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
            complete(reader, &ring->chains[cqe->user_data], cqe->res, now);
        }
        __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
    }
}

#else

int ts_ring_open(ts_reader *reader) { (void)reader; return ENOSYS; }
void ts_ring_close(ts_reader *reader) { (void)reader; }
void ts_serve_ring(ts_reader *reader) { (void)reader; }

#endif
