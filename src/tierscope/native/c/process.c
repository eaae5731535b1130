#define _GNU_SOURCE
#include "life.h"
#include "raw.h"
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAP_BYTES = 64 << 20, SPINS = 1000, NAPS = 100000 };

const ts_config *ts_conf;
const ts_prefix *ts_prefixes;
const ts_station *ts_servers;
ts_slot *ts_board;
_Thread_local ts_thread ts_self;
_Thread_local uint32_t ts_vforked;
life_page *ts_life;
char ts_folder[TS_FOLDER + 1];
rank_page ts_private_rank;
lost_page *ts_lost;

static pthread_key_t thread_end;

static char loans[TS_LOANS][TS_LOAN]; /* untouched pages cost nothing */

char *ts_borrow(void)
{
    for (int attempt = 0; attempt < SPINS; attempt++) {
        for (int i = 0; i < TS_LOANS; i++) {
            _Atomic uint64_t *word = &ts_life->loans[i / 64];
            uint64_t bit = UINT64_C(1) << i % 64;
            if (!(atomic_load_explicit(word, memory_order_relaxed) & bit) && !(atomic_fetch_or(word, bit) & bit)) return loans[i];
        }
        sched_yield();
    }
    return NULL;
}

void ts_give_back(char *loan)
{
    if (!loan) return;
    int i = (int)((loan - loans[0]) / TS_LOAN);
    atomic_fetch_and(&ts_life->loans[i / 64], ~(UINT64_C(1) << i % 64));
}

static void leave_lanes(void *thread)
{
    ts_thread *self = thread;
    self->watched = false;
    if (self->born != atomic_load(&ts_life->born)) return; /* a forked child: they are its parent's */
    if (self->seat) {
        for (ts_span span = {.start_ns = ts_now()}; self->seat->active; ts_rise(self->seat)) ts_abandon(ts_life->wall, span); /* it was cancelled in the middle */
        ts_free_seat(self->seat);
        self->seat = NULL;
    }
    for (int i = 0; i < 2; i++)
        if (self->lane[i]) atomic_store(&self->lane[i]->owner, 0);
    if (self->list) atomic_store(&self->list->owner, 0);
    self->born = 0;
}

static void start_anew(void) { memset(ts_life, 0, sizeof *ts_life); }

__attribute__((constructor)) static void start(void)
{
    int kept = errno;
    const char *given = secure_getenv("TIERSCOPE_RECORD");
    if (!given || given[0] != '/' || strlen(given) > TS_FOLDER) return;
    strcpy(ts_folder, given);
    const ts_config *config = ts_read_config();
    if (!config) return (void)(errno = kept);
    ts_life = (void *)syscall(SYS_mmap, NULL, sizeof *ts_life, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ts_life != MAP_FAILED && pthread_key_create(&thread_end, leave_lanes) == 0) {
        syscall(SYS_madvise, ts_life, sizeof *ts_life, MADV_WIPEONFORK); /* whichever way the child is made, ... */
        pthread_atfork(NULL, NULL, start_anew);                          /* ... and where the kernel cannot */
        ts_prefixes = (const ts_prefix *)(config + 1);
        ts_servers = (const ts_station *)(ts_prefixes + config->prefixes);
        ts_board = ts_open_board(config);
        ts_lost = ts_open_lost();
        ts_open_seen();
        ts_conf = config; /* last: now operations are recorded */
    }
    errno = kept;
}

/* ---- the state file ---- */

/* No signal handler may come in between: it would wait for the thread that it interrupted. */
bool ts_lock(void)
{
    const uint64_t all = UINT64_MAX;
    const struct timespec nap = {0, 100000};
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    for (int i = 0; i < SPINS + NAPS; i++) {
        uint32_t open = 0;
        if (atomic_compare_exchange_strong(&ts_life->locked, &open, 1)) {
            ts_life->signals = before;
            return true;
        }
        if (i < SPINS) sched_yield();
        else syscall(SYS_nanosleep, &nap, NULL);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return false; /* the state folder's disk hangs: do without */
}

void ts_unlock(void)
{
    uint64_t before = ts_life->signals;
    atomic_store(&ts_life->locked, 0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

/* A new chunk at the end of the state file, or NULL. With the lock held. */
void *ts_add_chunk(size_t bytes)
{
    uint64_t used = atomic_load(&ts_life->head->used);
    if (used + bytes > ts_life->mapped) return NULL;
    snprintf(ts_life->path, sizeof ts_life->path, "%s.state", ts_life->stem);
    int fd = raw_open(ts_life->path, O_RDWR);
    if (fd < 0) return NULL;
    bool grown = raw_fill_with_zeros(fd, used, bytes);
    raw_close(fd);
    return grown ? ts_life->base + used : NULL;
}

void ts_publish_chunk(size_t bytes) { atomic_fetch_add(&ts_life->head->used, bytes); }

static const char *const VARIABLES[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK",
    "PALS_RANKID", "JSM_NAMESPACE_RANK", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODEID", "SLURMD_NODENAME",
};
enum { FIRST_LAUNCHER = 3, LAST_LAUNCHER = 10 };

/* As recording/collect.py reads it: -1 is none. */
static int64_t number_in(const char *variable)
{
    const char *value = getenv(variable);
    size_t digits = value ? strspn(value, "0123456789") : 0;
    uint64_t number = digits && !value[digits] ? strtoull(value, NULL, 10) : UINT64_MAX;
    return number <= INT32_MAX ? (int64_t)number : -1;
}

/* Agents of a launcher may have another's number: the variable belongs to the name. */
static void name_rank(char *name, size_t room)
{
    const char *variable = "RANK";
    int64_t rank = getenv("WORLD_SIZE") ? number_in(variable) : -1;
    for (int i = FIRST_LAUNCHER; rank < 0 && i <= LAST_LAUNCHER; i++) rank = number_in(variable = VARIABLES[i]);
    if (rank < 0) snprintf(name, room, "all-");
    else snprintf(name, room, "%s-%lld", variable, (long long)rank);
}

static void fill_head(ts_head *head, uint64_t now)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    head->version = TS_VERSION, head->tiers = ts_conf->tiers, head->kinds = TS_KINDS, head->bins = TS_BINS;
    head->pid = (uint32_t)syscall(SYS_getpid), head->parent = (uint32_t)syscall(SYS_getppid);
    head->start_ns = now;
    head->start_realtime_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    raw_read_host(head->host, sizeof head->host);
    raw_read_boot(head->boot, sizeof head->boot);
    int fd = raw_open("/proc/self/cmdline", O_RDONLY);
    if (fd >= 0) {
        long got = syscall(SYS_read, fd, head->command, sizeof head->command - 1);
        for (long i = 0; i + 1 < got; i++)
            if (!head->command[i]) head->command[i] = ' ';
        raw_close(fd);
    }
    size_t used = 0;
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        const char *value = getenv(VARIABLES[i]);
        if (!value || strlen(value) > 64 || strchr(value, '\n')) continue;
        if (used + strlen(VARIABLES[i]) + strlen(value) + 3 > sizeof head->variables) break;
        used += (size_t)snprintf(head->variables + used, sizeof head->variables - used, "%s=%s\n", VARIABLES[i], value);
    }
    atomic_store(&head->used, TS_HEAD_BYTES);
    if (ts_wants_emulation() && !ts_board) atomic_store(&head->unemulated, 1);
    head->crc = ts_crc32(0, &head->version, offsetof(ts_head, used) - offsetof(ts_head, version));
    memcpy(head->magic, TS_STATE_MAGIC, 8);
}

/* The page that all processes of a rank share. It appears complete, under its name, or not at all. With the lock held. */
static rank_page *open_rank_page(bool may_make)
{
    char host[64], rank[80], *path = ts_life->path, *fresh = ts_life->other;
    bool finds_rereads = ts_conf->options & TS_OPTION_REREADS;
    size_t bytes = sizeof(rank_page) + (finds_rereads ? sizeof(ts_rereads) : 0);
    raw_read_host(host, sizeof host);
    name_rank(rank, sizeof rank);
    if (ts_life->peeked && !strcmp(rank, ts_life->rank_name)) return ts_life->peeked;
    atomic_store(&ts_life->has_moved, ts_life->peeked != NULL);
    snprintf(ts_life->rank_name, sizeof ts_life->rank_name, "%s", rank);
    snprintf(path, sizeof ts_life->path, "%s/rank-%s-%s", ts_folder, host, rank);
    int fd = raw_open(path, O_RDWR);
    if (fd < 0) {
        if (!may_make) return NULL;
        snprintf(fresh, sizeof ts_life->other, "%s/rank-%s-%s.%ld", ts_folder, host, rank, syscall(SYS_gettid));
        fd = raw_open(fresh, O_RDWR | O_CREAT | O_EXCL);
        if (fd < 0) return NULL;
        bool whole = raw_fill_with_zeros(fd, 0, bytes);
        raw_close(fd);
        if (whole) syscall(SYS_linkat, AT_FDCWD, fresh, AT_FDCWD, path, 0); /* fails when another was first: good too */
        syscall(SYS_unlinkat, AT_FDCWD, fresh, 0);
        fd = raw_open(path, O_RDWR);
        if (fd < 0) return NULL;
    }
    struct stat about;
    rank_page *page = NULL;
    if (syscall(SYS_fstat, fd, &about) == 0 && (size_t)about.st_size >= bytes) page = raw_map(fd, bytes);
    raw_close(fd);
    return page;
}

/* How much of the address space may be ours, where that is limited. */
static size_t bytes_to_map(void)
{
    struct rlimit limit;
    bool limited = syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited && limit.rlim_cur / 64 < MAP_BYTES ? limit.rlim_cur / 64 & ~4095ull : MAP_BYTES;
}

/* Make this process's state file, which gets its name when its head is whole. With the lock held. */
static bool bear(void)
{
    char host[64], *path = ts_life->path, *fresh = ts_life->other;
    size_t bytes = bytes_to_map();
    uint64_t now = ts_now();
    raw_read_host(host, sizeof host);
    snprintf(ts_life->stem, sizeof ts_life->stem, "%s/%s-%ld-%llu", ts_folder, host, syscall(SYS_getpid), (unsigned long long)now);
    snprintf(path, sizeof ts_life->path, "%s.state", ts_life->stem);
    snprintf(fresh, sizeof ts_life->other, "%s.new", ts_life->stem);
    int fd = raw_open(fresh, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) return true; /* the program has all descriptors in use: later perhaps */
    if (fd < 0) return false;
    char *base = bytes >= 4 * TS_HEAD_BYTES && raw_fill_with_zeros(fd, 0, TS_HEAD_BYTES) ? raw_map(fd, bytes) : NULL;
    raw_close(fd);
    if (base) {
        fill_head((ts_head *)base, now);
        ts_begin_usage((ts_head *)base, now);
    }
    if (!base || syscall(SYS_renameat, AT_FDCWD, fresh, AT_FDCWD, path)) {
        if (base) syscall(SYS_munmap, base, bytes);
        syscall(SYS_unlinkat, AT_FDCWD, fresh, 0);
        return false;
    }
    syscall(SYS_madvise, base, bytes, MADV_DONTFORK); /* a forked child makes its own */
    ts_life->base = base;
    ts_life->mapped = bytes;
    ts_life->head = (ts_head *)base;
    ts_life->rank = open_rank_page(true);
    if (!ts_life->rank) ts_life->rank = &ts_private_rank;
    bool shares = ts_life->rank != &ts_private_rank && ts_may_share(&ts_life->rank->clock, &ts_life->identity);
    ts_life->clock = shares ? &ts_life->rank->clock : NULL;
    ts_life->wall = shares ? &ts_life->clock->wall : &ts_life->own_wall;
    atomic_store(&ts_life->head->shares_clock, shares);
    atomic_fetch_add(&ts_life->head->lost_ops, atomic_exchange(&ts_life->lost_ops, 0));
    atomic_store(&ts_life->born, now);
    return true;
}

uint64_t ts_be_alive(void)
{
    uint64_t born = atomic_load_explicit(&ts_life->born, memory_order_acquire);
    if (likely(born) || atomic_load(&ts_life->refused)) return born;
    if (!ts_lock()) return 0;
    born = atomic_load(&ts_life->born);
    if (!born && !bear()) {
        atomic_store(&ts_life->refused, 1);
        if (ts_lost) atomic_fetch_add(&ts_lost->processes, 1);
    }
    ts_unlock();
    return atomic_load(&ts_life->born);
}

/* ---- lanes ---- */

int32_t ts_current_epoch(void)
{
    int32_t epoch = atomic_load_explicit(&ts_life->rank->epoch, memory_order_relaxed);
    return epoch ? epoch : 1;
}

/* A chunk of this kind that a thread left behind, or a new one. With the lock held. */
static ts_lane *find_free_lane(int32_t epoch, uint32_t thread)
{
    uint64_t used = atomic_load(&ts_life->head->used);
    for (uint64_t at = TS_HEAD_BYTES; at < used;) {
        ts_lane *lane = (ts_lane *)(ts_life->base + at);
        uint32_t free = 0;
        if (lane->magic == TS_LANE_MAGIC && lane->epoch == epoch && atomic_compare_exchange_strong(&lane->owner, &free, thread)) return lane;
        if (!lane->bytes) return NULL;
        at += lane->bytes;
    }
    return NULL;
}

static ts_lane *take_lane(int32_t epoch)
{
    uint32_t thread = (uint32_t)syscall(SYS_gettid);
    if (!ts_lock()) return NULL;
    ts_lane *lane = find_free_lane(epoch, thread);
    if (!lane && (lane = ts_add_chunk(ts_lane_bytes(ts_conf->tiers)))) {
        ts_lane_init(lane, ts_conf->tiers, epoch, ts_life->lanes++, thread);
        ts_publish_chunk(lane->bytes);
    }
    ts_unlock();
    return lane;
}

static void find_seat(ts_thread *self)
{
    if (!ts_life->clock) {
        ts_free_seat(&self->own_seat);
        self->seat = &self->own_seat;
        return;
    }
    if (!ts_lock()) return;
    if (!self->seat) self->seat = ts_take_seat(ts_life->clock, &ts_life->identity);
    self->standing = !self->seat;
    ts_unlock();
}

static ts_lane *attach(ts_thread *self)
{
    uint64_t born = ts_be_alive();
    if (!born) return NULL;
    if (self->born != born) {
        self->lane[0] = self->lane[1] = NULL;
        self->list = NULL;
        self->seat = NULL;
        self->standing = false;
        self->born = born;
        if (ts_board) ts_sharpen_sleep();
    }
    if (!self->seat && !self->standing) find_seat(self);
    int32_t epoch = ts_current_epoch();
    if (self->epoch != epoch) {
        self->lane[0] = self->lane[1] = NULL;
        self->epoch = epoch;
    }
    ts_lane **lane = &self->lane[self->depth ? 1 : 0];
    if (!*lane && self->depth < 2) *lane = take_lane(epoch);
    return self->depth < 2 ? *lane : NULL;
}

static inline ts_lane *lane_of(ts_thread *self)
{
    uint64_t born = atomic_load_explicit(&ts_life->born, memory_order_acquire);
    if (likely(born && self->born == born && !self->depth && self->lane[0] && self->epoch == ts_current_epoch()))
        return self->lane[0];
    return attach(self);
}

/* ---- operations ---- */

/* A child that was forked in the middle of an operation has its parent's: not its own. */
static inline bool is_seated(const ts_thread *self)
{
    return self->seat && self->born == atomic_load_explicit(&ts_life->born, memory_order_relaxed);
}

static bool be_seated(ts_thread *self)
{
    int kept = errno;
    attach(self);
    errno = kept;
    return is_seated(self);
}

/* The rank's clock before this process has a state file. */
static const ts_wall *peek_at_clock(void)
{
    if (unlikely(!atomic_load_explicit(&ts_life->has_peeked, memory_order_acquire))) {
        int kept = errno;
        if (ts_lock()) {
            if (!atomic_load(&ts_life->born)) ts_life->peeked = open_rank_page(false);
            atomic_store(&ts_life->has_peeked, 1);
            ts_unlock();
        }
        errno = kept;
    }
    return ts_life->peeked ? &ts_life->peeked->clock.wall : NULL;
}

static ts_span begin_outside(void)
{
    const ts_wall *wall = likely(atomic_load_explicit(&ts_life->born, memory_order_acquire)) ? ts_life->wall : peek_at_clock();
    uint64_t now = ts_now();
    return wall ? ts_begin_outside(wall, now) : (ts_span){now, TS_OUTSIDE};
}

ts_span ts_op_begin(void)
{
    ts_thread *self = &ts_self;
    if (unlikely(!self->watched)) self->watched = pthread_setspecific(thread_end, self) == 0;
    if (unlikely(!is_seated(self)) && !be_seated(self)) return begin_outside();
    uint64_t now = ts_now();
    if (likely(self->lane[0])) self->lane[0]->under_way_ns = now;
    if (likely(ts_life->clock) && unlikely(now > atomic_load_explicit(&ts_life->clock->looked_ns, memory_order_relaxed) + TS_LOOK_NS))
        ts_look_around(ts_life->clock, now);
    ts_sit(self->seat, now);
    return ts_begin_at(ts_life->wall, now);
}

ts_span ts_op_begin_unsure(void)
{
    return ts_self.on_tier ? ts_op_begin() : begin_outside();
}

static inline void is_over(ts_thread *self)
{
    if (self->lane[0]) self->lane[0]->under_way_ns = 0;
}

/* It leaves the clock without a record. */
static void leave_clock(ts_thread *self, ts_span span)
{
    ts_abandon(ts_life->wall, span);
    ts_rise(self->seat);
}

void ts_op_cancel(ts_span span)
{
    ts_thread *self = &ts_self;
    if (span.virtual_start & TS_OUTSIDE || !is_seated(self)) return;
    is_over(self);
    leave_clock(self, span);
}

void ts_op_not_ours(ts_span span)
{
    ts_self.on_tier = false;
    ts_op_cancel(span);
}

static void lose(uint64_t born)
{
    atomic_fetch_add(born ? &ts_life->head->lost_ops : &ts_life->lost_ops, 1);
    if (ts_lost && atomic_load(&ts_life->refused)) atomic_fetch_add(&ts_lost->ops, 1);
}

void ts_op_end(ts_span span, const ts_done *done)
{
    uint64_t end = done->end_ns ? done->end_ns : ts_now(); /* before anything of ours that may take time */
    ts_thread *self = &ts_self;
    const ts_tier *tier = &ts_conf->tier[done->tier];
    int64_t late = -1;
    bool limited = false;
    self->on_tier |= done->kind == TS_OPEN || done->kind == TS_STAT;
    if (unlikely(ts_board && tier->emulated)) {
        uint64_t until = 0;
        if (done->asks_metadata) until = ts_join_metadata(ts_board, tier, span.start_ns);
        if ((done->kind == TS_READ || done->kind == TS_WRITE) && done->bytes)
            until = (done->kind == TS_WRITE ? ts_join_write : ts_join_read)(
                ts_board, tier, &ts_servers[tier->first_server + done->server], done->bytes, span.start_ns);
        limited = until != 0;
        if (limited) late = ts_sleep(until);
        end = ts_now();
    }
    bool outside = span.virtual_start & TS_OUTSIDE || !is_seated(self);
    if (likely(!outside)) is_over(self);
    if (unlikely(ts_conf->options & TS_OPTION_REREADS)) ts_note_read(done);
    ts_lane *lane = lane_of(self); /* not before it slept: a signal handler may have forked meanwhile */
    if (unlikely(!lane)) {
        if (!outside) leave_clock(self, span);
        lose(atomic_load(&ts_life->born));
        return;
    }
    if (unlikely(limited)) ts_note_punctuality(lane, late);
    self->depth++;
    atomic_signal_fence(memory_order_seq_cst);
    unsigned cell = done->tier * TS_KINDS + done->kind;
    if (likely(!outside)) {
        ts_end_at(ts_life->wall, lane, span, end, cell, done->bytes);
        ts_rise(self->seat);
    } else {
        bool elsewhere = !(span.virtual_start & TS_OUTSIDE) || atomic_load(&ts_life->has_moved) || !ts_life->clock; /* it began in another clock */
        ts_end_outside(ts_life->wall, lane, (ts_span){span.start_ns, elsewhere ? TS_OUTSIDE : span.virtual_start}, end, cell, done->bytes);
    }
    if (unlikely(ts_conf->options & TS_OPTION_OPS)) ts_append_row(self, lane, span, end, done);
    if (unlikely(end >= atomic_load_explicit(&ts_life->head->usage.next_ns, memory_order_relaxed))) ts_note_usage(ts_life->head, end);
    atomic_signal_fence(memory_order_seq_cst);
    self->depth--;
}

void ts_note_mapping(void)
{
    if (atomic_load(&ts_life->born)) atomic_fetch_add(&ts_life->head->mapped_ops, 1);
}

