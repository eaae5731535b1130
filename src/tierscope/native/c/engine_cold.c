#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CACHESTAT = 451 }; /* the same number on every architecture of Linux >= 6.5 */

bool ts_cold_begins(const ts_engine *engine, int64_t tier, int64_t file)
{
    if (!engine->config.folders[tier].looks) return false;
    _Atomic uint32_t *left = engine->config.left;
    return !left || (atomic_fetch_and_explicit(&left[file], ~TS_FIRST, memory_order_relaxed) & TS_FIRST);
}

/* Whichever of the threads takes the last read off is done last: all others were before. */
bool ts_cold_ends(const ts_engine *engine, int64_t tier, int64_t file, uint32_t reads)
{
    if (!engine->config.folders[tier].evicts) return false;
    _Atomic uint32_t *left = engine->config.left;
    if (!left) return true;
    uint32_t now = atomic_fetch_sub_explicit(&left[file], reads, memory_order_acq_rel) - reads;
    return (now & TS_LAST) && !(now & (TS_LAST - 1));
}

/* Pages that are not on the device yet, or are mapped, stay: whether any did is looked at. */
void ts_cold_evict(ts_engine *engine, int64_t tier, int fd)
{
    if (!engine->config.folders[tier].evicts) return;
    uint64_t start = ts_now();
    syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED);
    atomic_fetch_add_explicit(&engine->cold[tier].nanoseconds, ts_now() - start, memory_order_relaxed);
}

void ts_cold_look(ts_engine *engine, int64_t tier, int fd)
{
    ts_cold *cold = &engine->cold[tier];
    if (atomic_load_explicit(&cold->files, memory_order_relaxed) >= engine->config.most_checked) return;
    if (atomic_fetch_add_explicit(&cold->files, 1, memory_order_relaxed) >= engine->config.most_checked) {
        atomic_fetch_sub_explicit(&cold->files, 1, memory_order_relaxed);
        return;
    }
    uint64_t start = ts_now(), bytes = engine->config.file_bytes, range[2] = {0, 0}, pages[5] = {0};
    if (syscall(CACHESTAT, fd, range, pages, 0) == 0) {
        uint64_t cached = pages[0] * (uint64_t)sysconf(_SC_PAGESIZE);
        atomic_fetch_add_explicit(&cold->resident_bytes, cached < bytes ? cached : bytes, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&cold->unknown, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&cold->checked_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&cold->nanoseconds, ts_now() - start, memory_order_relaxed);
}
