#define _GNU_SOURCE
#include "clock.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel says of a process. */
typedef struct {
    uint64_t pid, threads;
    ts_identity program;
    char state;
} process;

/* /proc/PID/stat: the name in brackets may hold anything; numbers of fields are those of proc(5). */
static bool read_process(const char *path, process *found)
{
    char text[512]; /* the host's stack may be small */
    int fd = raw_open(path, O_RDONLY);
    if (fd < 0) return false;
    long got = syscall(SYS_read, fd, text, sizeof text - 1);
    raw_close(fd);
    text[got > 0 ? got : 0] = 0;
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ') return false;
    *found = (process){.pid = strtoull(text, NULL, 10), .state = at[2]};
    for (int field = 3; at && (at = strchr(at + 1, ' ')); field++) {
        if (field == 20) found->threads = strtoull(at, NULL, 10);
        if (field == 22) found->program.start = strtoull(at, NULL, 10);
        if (field == 28) found->program.stack = strtoull(at, NULL, 10);
    }
    return found->program.start != 0;
}

/* A zombie is gone, unless only its first thread has ended; so is a program whose process now runs another one. */
static bool is_gone(uint32_t pid, ts_identity was)
{
    char path[40];
    process now;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (!read_process(path, &now)) return syscall(SYS_kill, pid, 0) < 0 && errno == ESRCH; /* it may only be hidden */
    if ((now.state == 'Z' || now.state == 'X') && now.threads <= 1) return true;
    ts_identity is = now.program;
    return (was.start && is.start != was.start) || (was.stack && is.stack && is.stack != was.stack);
}

static uint64_t mixed(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *next = data;
    while (bytes--) hash = (hash ^ *next++) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* This boot of this host, and where process numbers and clock readings are ours. */
static uint64_t here(void)
{
    char boot[64];
    struct stat about;
    uint64_t hash = 0xcbf29ce484222325u;
    raw_read_boot(boot, sizeof boot);
    hash = mixed(hash, boot, strlen(boot));
    const char *const places[] = {"/proc/self/ns/pid", "/proc/self/ns/time"};
    for (int i = 0; i < 2; i++)
        if (syscall(SYS_newfstatat, AT_FDCWD, places[i], &about, 0) == 0) hash = mixed(hash, &about.st_ino, sizeof about.st_ino);
    return hash | 1;
}

bool ts_may_share(ts_clock *clock, ts_identity *self)
{
    process found;
    uint64_t place = here(), first = 0;
    if (!read_process("/proc/self/stat", &found) || found.pid != (uint64_t)syscall(SYS_getpid)) return false; /* /proc is another place's */
    *self = found.program;
    return atomic_compare_exchange_strong(&clock->place, &first, place) || first == place;
}

void ts_free_seat(ts_seat *seat)
{
    atomic_store(&seat->start, 0);
    atomic_store(&seat->stack, 0);
    atomic_store(&seat->whose, 0);
}

/* Whoever frees it takes its operations out of the clock: nobody else does, and never those of a later owner. */
static void clear(ts_clock *clock, ts_seat *seat, uint64_t whose, uint64_t now)
{
    atomic_store(&seat->start, 0);
    atomic_store(&seat->stack, 0);
    if (atomic_compare_exchange_strong(&seat->whose, &whose, 0) && (uint32_t)whose) ts_take_out(&clock->wall, now, (uint32_t)whose);
}

/* Of seats that have an operation which began before `before`; or of all. */
static void clear_gone(ts_clock *clock, uint64_t now, uint64_t before, bool all)
{
    uint32_t used = atomic_load(&clock->used), asked = 0;
    ts_identity asked_of = {0};
    bool gone = false;
    for (uint32_t i = 0; i < used && i < TS_SEATS; i++) {
        ts_seat *seat = &clock->seats[i];
        uint64_t whose = atomic_load(&seat->whose);
        uint32_t pid = (uint32_t)(whose >> 32);
        if (!pid || !(all || ((uint32_t)whose && atomic_load(&seat->since_ns) < before))) continue;
        ts_identity was = {atomic_load(&seat->start), atomic_load(&seat->stack)};
        if (pid != asked || was.stack != asked_of.stack) gone = is_gone(pid, was); /* threads of a process often sit together */
        asked = pid, asked_of = was;
        if (gone) clear(clock, seat, whose, now);
    }
}

void ts_look_around(ts_clock *clock, uint64_t now)
{
    uint64_t looked = atomic_load(&clock->looked_ns);
    if (now < looked + TS_LOOK_NS || !atomic_compare_exchange_strong(&clock->looked_ns, &looked, now)) return;
    int kept = errno;
    clear_gone(clock, now, now - TS_LOOK_NS, false);
    errno = kept;
}

static ts_seat *take_free(ts_clock *clock)
{
    const uint64_t mine = (uint64_t)(uint32_t)syscall(SYS_getpid) << 32;
    for (uint32_t i = 0; i < TS_SEATS; i++) {
        ts_seat *seat = &clock->seats[i];
        uint64_t nobody = 0;
        if (atomic_load(&seat->whose) || !atomic_compare_exchange_strong(&seat->whose, &nobody, mine)) continue;
        uint32_t used = atomic_load(&clock->used);
        while (used <= i && !atomic_compare_exchange_weak(&clock->used, &used, i + 1)) {}
        return seat;
    }
    return NULL;
}

ts_seat *ts_take_seat(ts_clock *clock, const ts_identity *self)
{
    ts_seat *seat = take_free(clock);
    if (!seat) { /* those who ended as they should have left theirs, too */
        clear_gone(clock, ts_now(), 0, true);
        seat = take_free(clock);
    }
    if (!seat) return NULL;
    atomic_store(&seat->start, self->start);
    atomic_store(&seat->stack, self->stack);
    return seat;
}
