#define _GNU_SOURCE /* O_DIRECT */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where ts_engine_create may fail. */
enum { AT_MEMORY = 1, AT_BOARD = 2, AT_RING = 3 };

enum { LANE_ALIGN = 128 }; /* threads do not share cache lines */

static void *zeroed(size_t count, size_t bytes)
{
    size_t rounded = (count * bytes + LANE_ALIGN - 1) / LANE_ALIGN * LANE_ALIGN;
    void *memory = aligned_alloc(LANE_ALIGN, rounded ? rounded : LANE_ALIGN);
    if (memory) memset(memory, 0, rounded);
    return memory;
}

static void *copied(const void *from, size_t count, size_t bytes)
{
    void *memory = zeroed(count, bytes);
    if (memory && count) memcpy(memory, from, count * bytes);
    return memory;
}

/* The configuration with everything that it points to. */
static bool copy_config(ts_engine *engine, const ts_engine_config *given)
{
    ts_engine_config *own = &engine->config;
    *own = *given;
    own->board = NULL; /* is mapped */
    own->memory = NULL; /* is in the batches */
    own->extent = copied(given->extent, given->extents, sizeof *given->extent);
    own->stations = copied(given->stations, given->tiers, sizeof *given->stations);
    own->servers = copied(given->servers, given->all_servers, sizeof *given->servers);
    engine->cold = zeroed(given->tiers, sizeof *engine->cold);
    engine->prefix_bytes = zeroed(given->tiers, sizeof(size_t));
    engine->suffix_bytes = zeroed(given->tiers, sizeof(size_t));
    ts_folder_config *folders = zeroed(given->tiers, sizeof *folders);
    own->folders = folders;
    if (!own->extent || !own->stations || !own->servers || !folders) return false;
    if (!engine->prefix_bytes || !engine->suffix_bytes || !engine->cold) return false;
    for (uint32_t tier = 0; tier < given->tiers; tier++) {
        folders[tier].subfolders = given->folders[tier].subfolders;
        folders[tier].looks = given->storage == TS_FILES && given->folders[tier].looks;
        folders[tier].evicts = folders[tier].looks && given->folders[tier].evicts;
        folders[tier].prefix = strdup(given->folders[tier].prefix);
        folders[tier].suffix = strdup(given->folders[tier].suffix);
        if (!folders[tier].prefix || !folders[tier].suffix) return false;
        engine->prefix_bytes[tier] = strlen(folders[tier].prefix);
        engine->suffix_bytes[tier] = strlen(folders[tier].suffix);
        size_t numbers = 48; /* two of 64 bits and a slash */
        size_t longest = engine->prefix_bytes[tier] + numbers + engine->suffix_bytes[tier];
        if (longest > engine->path_bytes) engine->path_bytes = longest;
    }
    return true;
}

static bool make_batches(ts_engine *engine, void *const *memory)
{
    uint32_t samples = engine->config.batch_size;
    engine->batches = zeroed(engine->config.batches, sizeof *engine->batches);
    engine->queue = zeroed(engine->config.batches, sizeof *engine->queue);
    if (!engine->batches || !engine->queue) return false;
    for (uint32_t number = 0; number < engine->config.batches; number++) {
        ts_batch *batch = &engine->batches[number];
        batch->memory = memory[number];
        batch->files = zeroed(samples, sizeof(int64_t));
        batch->inside = zeroed(samples, sizeof(int64_t));
        batch->tiers = zeroed(samples, sizeof(int64_t));
        batch->results = zeroed(samples, sizeof(ts_result));
        if (!batch->files || !batch->inside || !batch->tiers || !batch->results) return false;
    }
    return true;
}

/* A read ends with its part of a batch, so that no buffer is larger than that. */
static unsigned char *make_buffer(const ts_engine_config *config, uint32_t lanes)
{
    uint64_t part = (config->batch_size + lanes - 1) / lanes * config->extent[0].bytes;
    return zeroed(1, config->transfer_bytes < part ? config->transfer_bytes : part);
}

static bool make_readers(ts_engine *engine)
{
    engine->lanes = engine->config.threads ? engine->config.threads : 1;
    engine->readers = zeroed(engine->lanes, sizeof *engine->readers);
    if (!engine->readers) return false;
    for (uint32_t number = 0; number < engine->lanes; number++) {
        ts_reader *reader = &engine->readers[number];
        reader->engine = engine;
        reader->fd = -1;
        reader->path = zeroed(1, engine->path_bytes);
        reader->lane = zeroed(1, ts_lane_bytes(engine->config.tiers));
        reader->list = engine->config.ops_fd >= 0 ? zeroed(1, sizeof *reader->list) : NULL;
        if (engine->config.buffered && !(reader->buffer = make_buffer(&engine->config, engine->lanes))) return false;
        if (!reader->path || !reader->lane || (engine->config.ops_fd >= 0 && !reader->list)) return false;
        ts_lane_init(reader->lane, engine->config.tiers, engine->config.epoch, number, 0);
    }
    return true;
}

/* Raw system calls: if this library is also preloaded as a recorder, the engine's own calls are not for it to see. */
static bool map_board(ts_engine *engine, const char *path)
{
    struct stat about;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    bool mapped = false;
    if (fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof(ts_slot)) {
        engine->board_bytes = (size_t)about.st_size;
        long at = syscall(SYS_mmap, NULL, engine->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        mapped = at != -1;
        if (mapped) engine->board = (ts_slot *)at;
    }
    int error = errno;
    syscall(SYS_close, fd);
    errno = error;
    return mapped;
}

static void make_locks(ts_engine *engine)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_mutex_init(&engine->ops_lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    pthread_cond_init(&engine->done, &clock);
    pthread_condattr_destroy(&clock);
}

TS_PUBLIC void ts_engine_destroy(ts_engine *engine);

/* NULL on failure: then errno says why, and *at what could not be had: memory, the board, or an io_uring. */
TS_PUBLIC ts_engine *ts_engine_create(const ts_engine_config *config, int32_t *at)
{
    *at = AT_MEMORY;
    ts_engine *engine = zeroed(1, sizeof *engine);
    if (!engine) return NULL;
    make_locks(engine);
    bool fine = copy_config(engine, config) && make_batches(engine, config->memory) && make_readers(engine);
    engine->align = config->direct ? TS_DIRECT_ALIGN : 1;
    uint64_t aligned = config->transfer_bytes / engine->align * engine->align;
    engine->transfer = aligned ? aligned : engine->align;
    engine->open_flags = O_RDONLY | O_CLOEXEC | (config->direct && config->storage == TS_FILES ? O_DIRECT : 0);
    if (fine && config->board) {
        *at = AT_BOARD;
        fine = map_board(engine, config->board);
    }
    for (uint32_t number = 0; fine && config->io == TS_URING && number < engine->lanes; number++) {
        *at = AT_RING;
        fine = (errno = ts_ring_open(&engine->readers[number])) == 0;
    }
    if (fine) return engine;
    int error = errno;
    ts_engine_destroy(engine);
    errno = error ? error : ENOMEM;
    return NULL;
}

static void *serve(void *argument)
{
    ts_reader *reader = argument;
    ts_sharpen_sleep();
    atomic_store_explicit(&reader->lane->owner, (uint32_t)syscall(SYS_gettid), memory_order_relaxed);
    if (reader->ring) ts_serve_ring(reader);
    else ts_serve_parts(reader);
    atomic_store_explicit(&reader->lane->owner, 0, memory_order_relaxed);
    return NULL;
}

/* Start the threads; errno. Signals are left to the threads of the interpreter. */
TS_PUBLIC int ts_engine_start(ts_engine *engine)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!error && engine->running < engine->config.threads) {
        ts_reader *reader = &engine->readers[engine->running];
        error = pthread_create(&reader->thread, NULL, serve, reader);
        if (!error) engine->running++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* After a failure or at the end nobody wants what was not begun. Called with the lock held. */
static void skip_queued(ts_engine *engine)
{
    for (; engine->queued; engine->queued--, engine->head = (engine->head + 1) % engine->config.batches) {
        ts_batch *batch = &engine->batches[engine->queue[engine->head]];
        batch->left -= batch->count - batch->taken;
        for (; batch->taken < batch->count; batch->taken++) batch->results[batch->taken].operation = TS_SKIPPED;
    }
    pthread_cond_broadcast(&engine->done);
}

/* Hand over a batch; its memory must be free. The columns are copied. */
TS_PUBLIC void ts_engine_submit(ts_engine *engine, uint32_t number, int64_t step, uint32_t count, const int64_t *files,
                                const int64_t *inside, const int64_t *tiers)
{
    ts_batch *batch = &engine->batches[number];
    uint32_t lanes = engine->lanes;
    memcpy(batch->files, files, count * sizeof *files);
    memcpy(batch->inside, inside, count * sizeof *inside);
    memcpy(batch->tiers, tiers, count * sizeof *tiers);
    for (uint32_t sample = 0; sample < count; sample++) batch->results[sample].operation = TS_FINE;
    batch->step = step;
    batch->count = batch->left = count;
    batch->share = (count + lanes - 1) / lanes;
    batch->taken = 0;
    batch->began = UINT64_MAX;
    batch->ended = 0;
    pthread_mutex_lock(&engine->lock);
    engine->queue[(engine->head + engine->queued++) % engine->config.batches] = number;
    if (engine->failed) skip_queued(engine); /* perhaps no thread is left to do it */
    pthread_mutex_unlock(&engine->lock);
    pthread_cond_broadcast(&engine->work); /* after the lock is free: who wakes up would only wait for it */
}

/* The next part for a reader; false: there is none, or (if it was ready to wait) there will be none. */
bool ts_engine_take(ts_reader *reader, bool wait)
{
    ts_engine *engine = reader->engine;
    bool found = false;
    pthread_mutex_lock(&engine->lock);
    while (!found) {
        bool stopping = atomic_load_explicit(&engine->stopping, memory_order_relaxed);
        if (stopping || engine->failed) skip_queued(engine);
        if (stopping) break;
        if (engine->queued) {
            ts_batch *batch = &engine->batches[engine->queue[engine->head]];
            reader->batch = batch;
            reader->next = batch->taken;
            reader->stop = batch->count - batch->taken < batch->share ? batch->count : batch->taken + batch->share;
            batch->taken = reader->stop;
            if (batch->taken == batch->count) {
                engine->head = (engine->head + 1) % engine->config.batches;
                engine->queued--;
            }
            found = true;
        } else if (wait) {
            pthread_cond_wait(&engine->work, &engine->lock);
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return found;
}

void ts_engine_finished(ts_engine *engine, ts_batch *batch, uint32_t samples, uint64_t began, uint64_t ended,
                        bool failed)
{
    pthread_mutex_lock(&engine->lock);
    if (began < batch->began) batch->began = began;
    if (ended > batch->ended) batch->ended = ended;
    batch->left -= samples;
    if (failed) {
        engine->failed = true;
        skip_queued(engine);
    }
    bool done = !batch->left;
    pthread_mutex_unlock(&engine->lock);
    if (done) pthread_cond_broadcast(&engine->done);
}

static void report(const ts_batch *batch, ts_engine_outcome *outcome)
{
    outcome->began = batch->began;
    outcome->ended = batch->ended;
    outcome->failed = -1;
    for (uint32_t sample = 0; sample < batch->count; sample++) {
        const ts_result *result = &batch->results[sample];
        if (result->operation == TS_FINE) continue;
        bool known = outcome->failed >= 0;
        if (!known || (outcome->result.operation == TS_SKIPPED && result->operation != TS_SKIPPED)) {
            outcome->failed = sample; /* the first that failed says more than one that was given up for it */
            outcome->result = *result;
        }
    }
}

static bool read_by_ourselves(ts_engine *engine, uint64_t deadline)
{
    ts_reader *reader = engine->readers;
    if (!reader->batch && !ts_engine_take(reader, false)) return false;
    return ts_read_part(reader, deadline);
}

/* Wait until the batch is read, but not for ever: the interpreter must see to its signals. Whether it is read. */
TS_PUBLIC int ts_engine_wait(ts_engine *engine, uint32_t number, uint32_t milliseconds, ts_engine_outcome *outcome)
{
    ts_batch *batch = &engine->batches[number];
    uint64_t deadline = ts_now() + milliseconds * UINT64_C(1000000);
    struct timespec until = {(time_t)(deadline / 1000000000u), (long)(deadline % 1000000000u)};
    if (!engine->config.threads) {
        while (batch->left && read_by_ourselves(engine, deadline)) {}
    }
    pthread_mutex_lock(&engine->lock);
    bool late = !engine->config.threads;
    while (batch->left && !late) late = pthread_cond_timedwait(&engine->done, &engine->lock, &until) == ETIMEDOUT;
    bool done = !batch->left;
    if (done) report(batch, outcome);
    pthread_mutex_unlock(&engine->lock);
    return done;
}

/* End all threads; what they have at hand they give up after the current sample. May be called again. */
TS_PUBLIC void ts_engine_stop(ts_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    atomic_store_explicit(&engine->stopping, true, memory_order_relaxed);
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    for (; engine->running; engine->running--) pthread_join(engine->readers[engine->running - 1].thread, NULL);
    pthread_mutex_lock(&engine->lock);
    if (engine->queue) skip_queued(engine); /* somebody may still wait for these */
    pthread_mutex_unlock(&engine->lock);
    for (uint32_t number = 0; engine->readers && number < engine->lanes; number++) {
        ts_ring_close(&engine->readers[number]);
    }
}

/* After stop: write what is left of the list of operations; errno of that or of any earlier writing. */
TS_PUBLIC int ts_engine_flush(ts_engine *engine)
{
    for (uint32_t number = 0; number < engine->lanes; number++) ts_flush_list(&engine->readers[number]);
    return engine->ops_error;
}

/* What a thread recorded: a lane of record.h. */
TS_PUBLIC const void *ts_engine_lane(const ts_engine *engine, uint32_t number) { return engine->readers[number].lane; }

/* What was seen of a tier's files in the page cache. */
TS_PUBLIC const void *ts_engine_cold(const ts_engine *engine, uint32_t tier) { return &engine->cold[tier]; }

static void free_readers(ts_engine *engine)
{
    for (uint32_t number = 0; engine->readers && number < engine->lanes; number++) {
        ts_reader *reader = &engine->readers[number];
        if (!reader->engine) break; /* the making of them was cut short */
        ts_drop_file(reader);
        free(reader->path);
        free(reader->lane);
        free(reader->list);
        free(reader->buffer);
    }
    free(engine->readers);
}

static void free_config(ts_engine *engine)
{
    ts_engine_config *own = &engine->config;
    for (uint32_t tier = 0; own->folders && tier < own->tiers; tier++) {
        free((void *)own->folders[tier].prefix);
        free((void *)own->folders[tier].suffix);
    }
    free((void *)own->folders);
    free((void *)own->extent);
    free((void *)own->stations);
    free((void *)own->servers);
    free(engine->cold);
    free(engine->prefix_bytes);
    free(engine->suffix_bytes);
}

TS_PUBLIC void ts_engine_destroy(ts_engine *engine)
{
    ts_engine_stop(engine);
    free_readers(engine);
    for (uint32_t number = 0; engine->batches && number < engine->config.batches; number++) {
        ts_batch *batch = &engine->batches[number];
        free(batch->files);
        free(batch->inside);
        free(batch->tiers);
        free(batch->results);
    }
    free(engine->batches);
    free(engine->queue);
    free_config(engine);
    if (engine->board) syscall(SYS_munmap, engine->board, engine->board_bytes);
    pthread_cond_destroy(&engine->done);
    pthread_cond_destroy(&engine->work);
    pthread_mutex_destroy(&engine->ops_lock);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}
