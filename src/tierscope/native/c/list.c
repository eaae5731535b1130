#define _GNU_SOURCE
#include "life.h"
#include "raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* At an offset, or (offset < 0) at the end. */
static bool write_to(const char *suffix, const void *data, size_t bytes, int64_t offset)
{
    char *path = ts_borrow();
    struct stat about;
    if (!path) return false;
    snprintf(path, TS_LOAN, "%s.%s", ts_life->stem, suffix);
    int fd = raw_open(path, O_WRONLY | O_CREAT | (offset < 0 ? O_APPEND : 0));
    ts_give_back(path);
    if (fd < 0) return false;
    bool known = offset >= 0 || syscall(SYS_fstat, fd, &about) == 0;
    bool done = known && raw_may_grow_to((uint64_t)(offset < 0 ? about.st_size : offset) + bytes) && raw_write(fd, data, bytes, offset);
    raw_close(fd);
    return done;
}

/* A kill ends a write halfway: each has its place, and the rows stay with the note where that is until they are all there. */
static void write_block(ts_list_chunk *chunk)
{
    const size_t bytes = sizeof chunk->list.rows;
    uint32_t block = atomic_fetch_add(&ts_life->blocks, 1);
    chunk->block = block + 1;
    atomic_signal_fence(memory_order_seq_cst);
    chunk->list.used = 0;
    if (!write_to("ops", chunk->list.rows, bytes, (int64_t)(block * bytes))) atomic_fetch_add(&ts_life->head->lost_rows, TS_LIST_ROWS);
    atomic_signal_fence(memory_order_seq_cst);
    chunk->block = 0;
}

/* A list that a thread left behind goes on with the next one. */
static ts_list_chunk *take_list(void)
{
    uint32_t thread = (uint32_t)syscall(SYS_gettid);
    ts_list_chunk *found = NULL;
    if (!ts_lock()) return NULL;
    uint64_t used = atomic_load(&ts_life->head->used);
    for (uint64_t at = TS_HEAD_BYTES; at < used && !found;) {
        ts_list_chunk *chunk = (ts_list_chunk *)(ts_life->base + at);
        uint32_t free = 0;
        if (chunk->magic == TS_LIST_MAGIC && atomic_compare_exchange_strong(&chunk->owner, &free, thread)) found = chunk;
        if (!chunk->bytes) break;
        at += chunk->bytes;
    }
    if (!found && (found = ts_add_chunk(sizeof *found))) {
        found->bytes = sizeof *found;
        atomic_store(&found->owner, thread);
        found->magic = TS_LIST_MAGIC;
        ts_publish_chunk(sizeof *found);
    }
    ts_unlock();
    return found;
}

void ts_append_row(ts_thread *self, const ts_lane *lane, ts_span span, uint64_t end, const ts_done *done)
{
    if (self->depth > 1 || (!self->list && !(self->list = take_list()))) { /* a signal handler's sums are kept, its row is not */
        atomic_fetch_add(&ts_life->head->lost_rows, 1);
        return;
    }
    ts_list *list = &self->list->list;
    ts_op row = {lane->epoch, (int32_t)lane->number, 0, (int16_t)done->tier, (int16_t)done->kind,
                 (int64_t)done->file, done->offset, (int64_t)done->bytes, (int64_t)span.start_ns, (int64_t)(end - span.start_ns)};
    list->rows[list->used] = row;
    atomic_signal_fence(memory_order_seq_cst);
    list->used++;
    if (list->used >= TS_LIST_ROWS) write_block(self->list);
}

uint64_t ts_name_file(const char *path)
{
    if (!(ts_conf->options & (TS_OPTION_OPS | TS_OPTION_REREADS))) return 0;
    uint64_t number = 0xcbf29ce484222325u; /* FNV-1a */
    size_t length = strlen(path);
    for (size_t i = 0; i < length; i++) number = (number ^ (unsigned char)path[i]) * 0x100000001b3u;
    number = (number & INT64_MAX) | 1; /* fits a signed column, and is never 0 */
    if ((ts_conf->options & TS_OPTION_OPS) && ts_be_alive()) {
        static _Atomic uint64_t recent[4096]; /* names written lately: saves most of the repetitions */
        if (atomic_exchange(&recent[number >> 8 & 4095], number) != number) {
            char *record = ts_borrow();
            if (!record) return number;
            uint32_t bytes = (uint32_t)(length < TS_PATH ? length : TS_PATH);
            memcpy(record, &number, 8);
            memcpy(record + 8, &bytes, 4);
            memcpy(record + 12, path, bytes);
            write_to("names", record, 12 + bytes, -1);
            ts_give_back(record);
        }
    }
    return number;
}

