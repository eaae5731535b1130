#define _GNU_SOURCE
#include "engine.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- paths: the rule of tiers/files.py, without printf ----------------------------------------------------------- */

static char *put_number(char *at, uint64_t number, unsigned digits)
{
    char reversed[20];
    unsigned used = 0;
    for (; number || used < digits; number /= 10) reversed[used++] = (char)('0' + number % 10);
    while (used) *at++ = reversed[--used];
    return at;
}

void ts_build_path(const ts_engine *engine, char *path, int64_t tier, int64_t file)
{
    const ts_folder_config *folder = &engine->config.folders[tier];
    memcpy(path, folder->prefix, engine->prefix_bytes[tier]);
    char *at = path + engine->prefix_bytes[tier];
    if (folder->subfolders) {
        at = put_number(at, (uint64_t)file % folder->subfolders, 6);
        *at++ = '/';
    }
    at = put_number(at, (uint64_t)file, 9);
    memcpy(at, folder->suffix, engine->suffix_bytes[tier] + 1);
}

/* --- the list of operations -------------------------------------------------------------------------------------- */

int ts_flush_list(ts_reader *reader)
{
    ts_engine *engine = reader->engine;
    if (!reader->list || !reader->list->used) return 0;
    const char *from = (const char *)reader->list->rows;
    size_t left = reader->list->used * sizeof(ts_op);
    pthread_mutex_lock(&engine->ops_lock); /* a write may come in two parts: nobody else's between them */
    while (left && !engine->ops_error) {
        long written = syscall(SYS_write, engine->config.ops_fd, from, left);
        if (written < 0) {
            if (errno != EINTR) engine->ops_error = errno;
        } else {
            from += written;
            left -= (size_t)written;
        }
    }
    pthread_mutex_unlock(&engine->ops_lock);
    reader->list->used = 0;
    reader->now = 0; /* writing took its time: that is not the next operation's */
    return engine->ops_error;
}

void ts_note_op(ts_reader *reader, const ts_batch *batch, uint32_t sample, unsigned kind, uint64_t offset,
                uint64_t bytes, ts_span span, uint64_t end)
{
    unsigned cell = (unsigned)batch->tiers[sample] * TS_KINDS + kind;
    ts_end_at(&reader->engine->wall, reader->lane, span, end, cell, bytes);
    if (!reader->list) return;
    ts_op row = {
        .epoch = reader->lane->epoch,
        .lane = (int32_t)reader->lane->number,
        .step = batch->step,
        .tier = (int16_t)batch->tiers[sample],
        .kind = (int16_t)kind,
        .file = batch->files[sample],
        .offset = (int64_t)offset,
        .bytes = (int64_t)bytes,
        .start_ns = (int64_t)span.start_ns,
        .busy_ns = (int64_t)(end > span.start_ns ? end - span.start_ns : 0),
    };
    reader->list->rows[reader->list->used++] = row;
    if (reader->list->used == TS_LIST_ROWS) ts_flush_list(reader);
}

/* --- an extent, piece by piece ----------------------------------------------------------------------------------- */

/* Several extents with O_DIRECT: each is read behind the slot, in whole blocks, and copied to its place in it. */
static inline bool reads_aside(const ts_engine *engine) { return engine->align > 1 && engine->config.extents > 1; }

static inline uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

static unsigned char *place_of(const ts_engine *engine, const ts_batch *batch, uint32_t sample, uint32_t extent)
{
    unsigned char *slot = batch->memory + sample * engine->config.stride;
    for (uint32_t before = 0; before < extent; before++) slot += engine->config.extent[before].bytes;
    return slot;
}

ts_window ts_window_of(const ts_engine *engine, const ts_batch *batch, uint32_t sample, uint32_t extent)
{
    const ts_extent_config *wanted = &engine->config.extent[extent];
    uint64_t offset = wanted->first + (uint64_t)batch->inside[sample] * wanted->step, align = engine->align;
    ts_window window = {.offset = offset, .wanted = wanted->bytes, .start = offset, .end = offset + wanted->bytes};
    window.into = place_of(engine, batch, sample, extent);
    if (align > 1) {
        window.start = offset / align * align;
        window.end = round_up(window.end, align);
        if (reads_aside(engine)) {
            window.into = place_of(engine, batch, sample, 0) + round_up(engine->config.slot_bytes, align);
        }
    }
    return window;
}

/* Bytes of the next read. */
uint64_t ts_window_next(const ts_engine *engine, const ts_window *window)
{
    uint64_t left = window->end - window->start - window->at;
    return left < engine->transfer ? left : engine->transfer;
}

/* A filesystem may give less than asked for; only what brings us no further is the end of the file. */
int ts_window_got(const ts_engine *engine, ts_window *window, uint64_t wanted, uint64_t got)
{
    uint64_t needed = window->offset + window->wanted - window->start;
    if (window->at + got >= needed) {
        window->at += got;
        return TS_WHOLE;
    }
    uint64_t usable = got == wanted ? got : got / engine->align * engine->align;
    window->at += usable;
    return usable ? TS_MORE : TS_CUT;
}

ts_result ts_window_cut(const ts_window *window, uint64_t got)
{
    uint64_t shift = window->offset - window->start, all = window->at + got;
    ts_result result = {TS_TRUNCATED, 0, window->offset, window->wanted, all > shift ? all - shift : 0};
    return result;
}

void ts_window_done(const ts_engine *engine, const ts_batch *batch, uint32_t sample, uint32_t extent,
                    const ts_window *window)
{
    if (!reads_aside(engine)) return;
    memcpy(place_of(engine, batch, sample, extent), window->into + (window->offset - window->start), window->wanted);
}

/* --- one operation after another --------------------------------------------------------------------------------- */

static inline ts_span begin(ts_reader *reader)
{
    return ts_begin_at(&reader->engine->wall, reader->now ? reader->now : ts_now());
}

static bool fail(ts_reader *reader, uint32_t sample, ts_span span, unsigned operation)
{
    ts_result result = {.operation = (int32_t)operation, .error = errno};
    reader->batch->results[sample] = result;
    ts_abandon(&reader->engine->wall, span);
    reader->now = 0;
    return false;
}

static void finish(ts_reader *reader, uint32_t sample, ts_span span, unsigned kind, uint64_t offset, uint64_t bytes)
{
    uint64_t end = reader->now = ts_now();
    ts_note_op(reader, reader->batch, sample, kind, offset, bytes, span, end);
}

static int real_open(const ts_engine *engine, const char *path)
{
    if (engine->config.storage == TS_NOTHING) return 0;
    if (engine->config.storage == TS_NULL_DEVICE) path = "/dev/null";
    long fd;
    do fd = ts_recording() ? open(path, engine->open_flags) : syscall(SYS_openat, AT_FDCWD, path, engine->open_flags);
    while (fd < 0 && errno == EINTR);
    return (int)fd;
}

static int64_t real_read(const ts_engine *engine, int fd, void *into, uint64_t bytes, uint64_t offset)
{
    if (engine->config.storage == TS_NOTHING) return (int64_t)bytes;
    long got;
    do got = ts_recording() ? pread(fd, into, bytes, (off_t)offset) : syscall(SYS_pread64, fd, into, bytes, offset);
    while (got < 0 && errno == EINTR);
    return engine->config.storage == TS_NULL_DEVICE ? (int64_t)bytes : got;
}

/* Linux frees the descriptor whatever close reports; EINTR says nothing about the data. */
static int real_close(const ts_engine *engine, int fd)
{
    if (engine->config.storage == TS_NOTHING) return 0;
    return (ts_recording() ? close(fd) : syscall(SYS_close, fd)) < 0 && errno != EINTR ? -1 : 0;
}

/* Without a record: after an error the file is not read to its end. */
void ts_drop_file(ts_reader *reader)
{
    if (reader->fd >= 0) real_close(reader->engine, reader->fd);
    reader->fd = -1;
}

static bool open_file(ts_reader *reader, uint32_t sample)
{
    const ts_engine *engine = reader->engine;
    int64_t file = reader->batch->files[sample], number = reader->batch->tiers[sample];
    const ts_tier *tier = &engine->config.stations[number];
    bool emulated = engine->board && tier->emulated;
    ts_build_path(engine, reader->path, number, file);
    reader->server = emulated && tier->servers
                         ? &engine->config.servers[tier->first_server + ts_server_index(reader->path, tier->servers)]
                         : NULL;
    reader->now = 0; /* making a path is not opening a file */
    ts_span span = begin(reader);
    uint64_t until = emulated ? ts_join_metadata(engine->board, tier, span.start_ns) : 0;
    int fd = real_open(engine, reader->path);
    if (fd < 0) return fail(reader, sample, span, TS_OPEN);
    ts_sleep_until(reader->lane, until);
    finish(reader, sample, span, TS_OPEN, 0, 0);
    reader->fd = fd;
    reader->open_file = file;
    reader->open_tier = number;
    reader->held = reader->run_stop = 0;
    reader->reads = 0;
    if (ts_cold_begins(engine, number, file)) {
        ts_cold_evict(reader->engine, number, fd);
        ts_cold_look(reader->engine, number, fd);
        reader->now = 0; /* neither is reading */
    }
    return true;
}

/* `sample` is the last one that was read from it. */
static bool close_file(ts_reader *reader, uint32_t sample)
{
    int fd = reader->fd;
    if (ts_cold_ends(reader->engine, reader->open_tier, reader->open_file, reader->reads)) {
        ts_cold_evict(reader->engine, reader->open_tier, fd);
        reader->now = 0; /* that is not closing */
    }
    ts_span span = begin(reader);
    reader->fd = -1;
    if (real_close(reader->engine, fd) < 0) return fail(reader, sample, span, TS_CLOSE);
    finish(reader, sample, span, TS_CLOSE, 0, 0);
    return true;
}

/* One read of the open file; below 0: it failed. */
static int64_t read_once(ts_reader *reader, uint32_t sample, unsigned char *into, uint64_t bytes, uint64_t offset)
{
    const ts_engine *engine = reader->engine;
    const ts_tier *tier = &engine->config.stations[reader->open_tier];
    bool emulated = engine->board && tier->emulated;
    ts_span span = begin(reader);
    uint64_t until = emulated ? ts_join_read(engine->board, tier, reader->server, bytes, span.start_ns) : 0;
    int64_t got = real_read(engine, reader->fd, into, bytes, offset);
    if (got < 0) {
        ts_result *result = &reader->batch->results[sample];
        fail(reader, sample, span, TS_READ);
        result->offset = offset;
        result->wanted = bytes;
        return got;
    }
    ts_sleep_until(reader->lane, until);
    finish(reader, sample, span, TS_READ, offset, (uint64_t)got);
    return got;
}

static bool read_extent(ts_reader *reader, uint32_t sample, uint32_t extent)
{
    const ts_engine *engine = reader->engine;
    ts_window window = ts_window_of(engine, reader->batch, sample, extent);
    int state = window.wanted ? TS_MORE : TS_WHOLE;
    while (state == TS_MORE) {
        uint64_t bytes = ts_window_next(engine, &window), offset = window.start + window.at;
        int64_t got = read_once(reader, sample, window.into + window.at, bytes, offset);
        if (got < 0) return false;
        state = ts_window_got(engine, &window, bytes, (uint64_t)got);
        if (state == TS_CUT) reader->batch->results[sample] = ts_window_cut(&window, (uint64_t)got);
    }
    if (reads_aside(engine) && state == TS_WHOLE) {
        ts_window_done(engine, reader->batch, sample, extent, &window);
        reader->now = 0; /* copying is not reading */
    }
    return state == TS_WHOLE;
}

/* The end of what the part at hand wants of the open file without a gap, from this sample on. */
static uint64_t run_end(ts_reader *reader, uint32_t sample)
{
    const ts_batch *batch = reader->batch;
    const ts_extent_config *extent = reader->engine->config.extent;
    if (sample >= reader->run_stop) {
        uint32_t stop = sample + 1;
        while (stop < reader->stop && batch->files[stop] == batch->files[sample] &&
               batch->tiers[stop] == batch->tiers[sample] && batch->inside[stop] == batch->inside[stop - 1] + 1) stop++;
        reader->run_stop = stop;
    }
    return extent->first + (uint64_t)batch->inside[reader->run_stop - 1] * extent->step + extent->bytes;
}

/* Cut a sample from what is held of its file; what is missing is read transfer_bytes at a time, up to the end of the run. */
static bool cut_sample(ts_reader *reader, uint32_t sample)
{
    const ts_engine *engine = reader->engine;
    const ts_extent_config *extent = engine->config.extent;
    uint64_t offset = extent->first + (uint64_t)reader->batch->inside[sample] * extent->step, done = 0;
    uint64_t end = run_end(reader, sample);
    unsigned char *slot = place_of(engine, reader->batch, sample, 0);
    while (done < extent->bytes) {
        uint64_t at = offset + done, left = extent->bytes - done;
        if (at >= reader->held_at && at < reader->held_at + reader->held) {
            uint64_t here = reader->held_at + reader->held - at, taken = here < left ? here : left;
            memcpy(slot + done, reader->buffer + (at - reader->held_at), taken);
            reader->now = 0; /* copying is not reading */
            done += taken;
            continue;
        }
        uint64_t bytes = end - at < engine->transfer ? end - at : engine->transfer;
        bool straight = bytes <= left; /* nothing of it is another sample's */
        int64_t got = read_once(reader, sample, straight ? slot + done : reader->buffer, bytes, at);
        if (got < 0) return false;
        if (!got) {
            ts_result cut = {TS_TRUNCATED, 0, offset, extent->bytes, done};
            reader->batch->results[sample] = cut;
            return false;
        }
        if (straight) {
            done += (uint64_t)got;
        } else {
            reader->held_at = at;
            reader->held = (uint64_t)got;
        }
    }
    return true;
}

/* Neighbours in one file share an open. */
static bool read_sample(ts_reader *reader, uint32_t sample)
{
    const ts_batch *batch = reader->batch;
    if (reader->fd >= 0 && (reader->open_file != batch->files[sample] || reader->open_tier != batch->tiers[sample])) {
        if (!close_file(reader, sample - 1)) return false;
    }
    if (reader->fd < 0 && !open_file(reader, sample)) return false;
    if (reader->buffer && !cut_sample(reader, sample)) return false;
    for (uint32_t extent = 0; !reader->buffer && extent < reader->engine->config.extents; extent++) {
        if (!read_extent(reader, sample, extent)) return false;
    }
    reader->reads++;
    return true;
}

static void give_up(ts_reader *reader)
{
    for (; reader->next < reader->stop; reader->next++) {
        ts_result *result = &reader->batch->results[reader->next];
        if (result->operation == TS_FINE) result->operation = TS_SKIPPED;
    }
    ts_drop_file(reader);
}

/* Read the part at hand, or as much of it as can be begun before the deadline (0: all); whether it is over. */
bool ts_read_part(ts_reader *reader, uint64_t deadline)
{
    ts_engine *engine = reader->engine;
    ts_batch *batch = reader->batch;
    uint32_t first = reader->next;
    uint64_t began = reader->now = ts_now();
    bool fine = true;
    reader->lane->step = batch->step;
    while (fine && reader->next < reader->stop) {
        if (atomic_load_explicit(&engine->stopping, memory_order_relaxed)) fine = false;
        else if (deadline && reader->next > first && reader->now >= deadline) break;
        else if ((fine = read_sample(reader, reader->next))) reader->next++;
    }
    bool over = !fine || reader->next == reader->stop;
    if (fine && over && reader->fd >= 0) fine = close_file(reader, reader->stop - 1);
    if (!fine) give_up(reader);
    if (over) reader->batch = NULL;
    ts_engine_finished(engine, batch, reader->next - first, began, reader->now ? reader->now : ts_now(), !fine);
    return over;
}

void ts_serve_parts(ts_reader *reader)
{
    while (ts_engine_take(reader, true)) ts_read_part(reader, 0);
}
