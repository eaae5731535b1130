#define _GNU_SOURCE
#include "fds.h"
#include "paths.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 1024, PAGES = 1024, INHERITED = 64 }; /* what a program finds open at its start has small numbers */

/* A word per descriptor: 0 unknown, 1 no tier's, else tier + 2 in the low byte and the server above. One word, so that a thread
   never sees half of it. The file's number is only for operation lists. */
typedef struct {
    _Atomic uint64_t word, file;
} entry;
static entry *_Atomic pages[PAGES];

static entry *entry_of(int fd, bool make)
{
    if (fd < 0 || fd >= PAGE * PAGES) return NULL;
    entry *page = atomic_load_explicit(&pages[fd / PAGE], memory_order_acquire);
    if (unlikely(!page)) {
        if (!make) return NULL;
        void *fresh = (void *)syscall(SYS_mmap, NULL, PAGE * sizeof(entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) return NULL;
        if (atomic_compare_exchange_strong(&pages[fd / PAGE], &page, fresh)) page = fresh;
        else syscall(SYS_munmap, fresh, PAGE * sizeof(entry));
    }
    return &page[fd % PAGE];
}

static inline bool unpack(uint64_t word, uint64_t file, ts_fd *found)
{
    if (word < 2) return false;
    found->tier = (int)(word & 255) - 2;
    found->server = word >> 8;
    found->file = file;
    return true;
}

ts_fd ts_fd_describe(const char *path)
{
    ts_fd what = {.tier = ts_tier_of_text(path)};
    if (what.tier == TS_NO_TIER) return what;
    if (ts_conf->tier[what.tier].emulated) what.server = ts_server_index(path, ts_conf->tier[what.tier].servers);
    what.file = ts_name_file(path);
    return what;
}

static __attribute__((noinline)) void ask_kernel(int fd)
{
    int kept = errno;
    char *path = ts_borrow();
    ts_fd what = {.tier = TS_NO_TIER};
    if (path && ts_path_of_fd(fd, path)) what = ts_fd_describe(path);
    if (path) ts_fd_set(fd, &what);
    ts_give_back(path);
    errno = kept;
}

bool ts_fd_find(int fd, ts_fd *found)
{
    entry *known = entry_of(fd, true);
    if (unlikely(!known)) return false;
    uint64_t word = atomic_load_explicit(&known->word, memory_order_acquire);
    if (unlikely(!word)) {
        ask_kernel(fd);
        word = atomic_load(&known->word);
    }
    return unpack(word, atomic_load_explicit(&known->file, memory_order_relaxed), found);
}

bool ts_fd_close(int fd, ts_fd *was)
{
    entry *known = entry_of(fd, fd < INHERITED);
    if (!known) return false;
    if (fd < INHERITED) ts_fd_find(fd, was);
    uint64_t file = atomic_load_explicit(&known->file, memory_order_relaxed);
    if (!atomic_load_explicit(&known->word, memory_order_relaxed)) return false;
    return unpack(atomic_exchange(&known->word, 0), file, was);
}

void ts_fd_set(int fd, const ts_fd *what)
{
    entry *known = entry_of(fd, true);
    if (!known) return;
    atomic_store_explicit(&known->file, what->file, memory_order_relaxed);
    uint64_t word = what->tier == TS_NO_TIER ? 1 : (what->server << 8 | (uint64_t)(what->tier + 2));
    atomic_store_explicit(&known->word, word, memory_order_release);
}

void ts_fd_forget(int fd)
{
    entry *known = entry_of(fd, false);
    if (known && atomic_load_explicit(&known->word, memory_order_relaxed)) atomic_store_explicit(&known->word, 0, memory_order_release);
}

void ts_fd_copy(int from, int to)
{
    entry *known = entry_of(from, false), *other = entry_of(to, true);
    if (!other || from == to) return;
    atomic_store(&other->file, known ? atomic_load(&known->file) : 0);
    atomic_store(&other->word, known ? atomic_load(&known->word) : 0);
}

void ts_fd_forget_range(unsigned first, unsigned last)
{
    for (unsigned page = first / PAGE; page < PAGES && page <= last / PAGE; page++) {
        if (!atomic_load(&pages[page])) continue;
        unsigned from = page == first / PAGE ? first : page * PAGE, to = page == last / PAGE ? last : page * PAGE + PAGE - 1;
        for (unsigned fd = from; fd <= to; fd++) ts_fd_forget((int)fd);
    }
}
