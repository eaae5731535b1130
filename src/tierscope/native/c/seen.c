#define _GNU_SOURCE
#include "life.h"
#include "raw.h"
#include "seen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_LOOKED_AT = 4096, MOST_AT_START = 1 << 16 };

ts_seen_page *ts_seen;
static _Thread_local ts_seen_slot *slot; /* a forked child may share its parent's */
static _Atomic uint32_t closes, has_ring;

/* What the kernel counted until now: the exec, the loader and we ourselves read our way here. A process that was here before an exec may have read
   more, which is not to be forgiven. */
static int64_t read_before_us(void)
{
    char text[64];
    raw_read_line("/proc/self/io", text, sizeof text); /* rchar is the first line */
    int64_t count = strncmp(text, "rchar: ", 7) ? 0 : (int64_t)atoll(text + 7);
    return count < MOST_AT_START ? count : MOST_AT_START;
}

void ts_open_seen(void)
{
    char path[TS_FOLDER + 20];
    snprintf(path, sizeof path, "%s/seen", ts_folder);
    int fd = raw_open(path, O_RDWR);
    if (fd < 0) return;
    ts_seen = raw_has_bytes(fd, sizeof *ts_seen) ? raw_map(fd, sizeof *ts_seen) : NULL;
    raw_close(fd);
    if (!ts_seen) return;
    atomic_fetch_add_explicit(&ts_seen->processes, 1, memory_order_relaxed);
    ts_saw(read_before_us(), 0);
}

void ts_saw(int64_t read, int64_t written)
{
    if (unlikely(!ts_seen)) return;
    if (unlikely(!slot)) slot = &ts_seen->slots[syscall(SYS_gettid) % TS_SEEN_SLOTS];
    if (read) atomic_fetch_add_explicit(&slot->read, read, memory_order_relaxed);
    if (written) atomic_fetch_add_explicit(&slot->written, written, memory_order_relaxed);
}

void ts_saw_own(int64_t written)
{
    if (ts_seen) atomic_fetch_add_explicit(&ts_seen->own_written, (uint64_t)written, memory_order_relaxed);
}

/* A forked child has the faults of its own only, and a mapping that it was given. */
void ts_saw_mapping(uint64_t writable)
{
    static _Atomic uint32_t maps;
    struct rusage used;
    if (ts_seen && writable) atomic_fetch_add_explicit(&ts_seen->writable, writable, memory_order_relaxed);
    if (!ts_seen || atomic_load_explicit(&maps, memory_order_relaxed) || atomic_exchange(&maps, 1)) return;
    int kept = errno;
    if (syscall(SYS_getrusage, RUSAGE_SELF, &used) == 0) atomic_fetch_add(&ts_seen->early_faults, (uint64_t)(used.ru_minflt + used.ru_majflt));
    errno = kept;
}

static bool is_ring(const char *link_of_fd)
{
    static const char RING[] = "anon_inode:[io_uring]";
    char target[sizeof RING];
    long length = syscall(SYS_readlinkat, AT_FDCWD, link_of_fd, target, sizeof target);
    return length == sizeof RING - 1 && !memcmp(target, RING, sizeof RING - 1);
}

static void found_ring(void)
{
    if (!atomic_exchange(&has_ring, 1)) atomic_fetch_add(&ts_seen->rings, 1);
}

void ts_may_be_ring(int fd)
{
    char link_of_fd[40];
    int kept = errno;
    if (!ts_seen || atomic_load_explicit(&has_ring, memory_order_relaxed)) return;
    snprintf(link_of_fd, sizeof link_of_fd, "/proc/self/fd/%d", fd);
    if (is_ring(link_of_fd)) found_ring();
    errno = kept;
}

/* Libraries make and map their rings by system calls of their own, so that nothing but the open descriptor tells. */
static void look_at_descriptors(void)
{
    _Alignas(8) char entries[1024];
    char link_of_fd[40];
    int looked_at = 0, folder = raw_open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    if (folder < 0) return;
    for (long got; looked_at < MOST_LOOKED_AT && (got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
        for (long at = 0; at < got; looked_at++) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            snprintf(link_of_fd, sizeof link_of_fd, "/proc/self/fd/%.10s", entry->d_name);
            if (is_ring(link_of_fd)) {
                found_ring();
                raw_close(folder);
                return;
            }
        }
    }
    raw_close(folder);
}

void ts_look_for_rings(bool ends)
{
    if (!ts_seen || atomic_load_explicit(&has_ring, memory_order_relaxed)) return;
    uint32_t count = ends ? 0 : atomic_fetch_add_explicit(&closes, 1, memory_order_relaxed) + 1;
    if (count & (count - 1)) return; /* after 1, 2, 4, 8 … */
    int kept = errno;
    look_at_descriptors();
    errno = kept;
}
