#define _GNU_SOURCE
#include "life.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static ts_epoch *add_epoch(int32_t epoch, uint64_t begin)
{
    ts_epoch *chunk = ts_add_chunk(sizeof *chunk);
    if (!chunk) return NULL;
    chunk->bytes = sizeof *chunk;
    chunk->epoch = epoch;
    chunk->begin_ns = begin;
    chunk->magic = TS_EPOCH_MAGIC;
    ts_publish_chunk(sizeof *chunk);
    return chunk;
}

TS_EXPORT void ts_mark_epoch(int32_t epoch)
{
    if (!ts_recording() || epoch < 1) return;
    int kept = errno;
    uint64_t now = ts_now();
    if (ts_be_alive() && ts_lock()) {
        if (!ts_life->epoch || ts_life->epoch->epoch != epoch || !ts_life->epoch->begin_ns) {
            if (ts_life->epoch && ts_life->epoch->begin_ns) ts_life->epoch->end_ns = now;
            ts_life->epoch = add_epoch(epoch, now);
            atomic_store(&ts_life->rank->epoch, epoch);
        }
        ts_unlock();
    }
    errno = kept;
}

TS_EXPORT void ts_phase_begin(const char *name)
{
    ts_thread *self = &ts_self;
    if (!ts_recording() || !name) return;
    if (self->phases < 8) {
        snprintf(self->phase_name[self->phases], TS_PHASE_NAME, "%s", name);
        self->phase_start[self->phases] = ts_now();
    }
    self->phases++;
}

static void add_phase(const char *name, uint64_t start, uint64_t end)
{
    if (!ts_be_alive() || !ts_lock()) return;
    int32_t epoch = ts_current_epoch();
    if (!ts_life->epoch || ts_life->epoch->epoch != epoch) ts_life->epoch = add_epoch(epoch, 0);
    for (int i = 0; ts_life->epoch && i < TS_PHASES; i++) {
        ts_phase *phase = &ts_life->epoch->phases[i];
        if (phase->count && strcmp(phase->name, name)) continue;
        if (!phase->count) snprintf(phase->name, sizeof phase->name, "%s", name);
        phase->ns += end - start, phase->count++;
        ts_life->epoch->last_ns = end;
        break;
    }
    ts_unlock();
}

TS_EXPORT void ts_phase_end(void)
{
    ts_thread *self = &ts_self;
    if (!ts_recording() || !self->phases) return;
    int kept = errno;
    self->phases--;
    if (self->phases < 8) add_phase(self->phase_name[self->phases], self->phase_start[self->phases], ts_now());
    errno = kept;
}
