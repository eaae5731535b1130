/* What the wrappers share. */
#ifndef TIERSCOPE_SHIM_H
#define TIERSCOPE_SHIM_H

#include "fds.h"
#include "paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The function that the program would have called without us. All are looked up when we are loaded (later, the loader's lock may be held by
   a thread that waits for ours), or when first needed: wrappers may be called before any constructor. */
typedef struct {
    void *_Atomic *slot;
    const char *name;
} ts_wrapped;
/* Linkers that drop what nothing names would drop this section. */
#if defined(__clang__) && __has_attribute(retain)
#define TS_KEPT used, retain
#else
#define TS_KEPT used
#endif
#define REAL(name) ((__typeof__(&name))ts_real(&real_##name, #name))
#define HAS_REAL(name)                \
    static void *_Atomic real_##name; \
    static const ts_wrapped wrapped_##name __attribute__((TS_KEPT, section("ts_wrapped"))) = {&real_##name, #name}

static inline void *ts_real(void *_Atomic *slot, const char *name)
{
    void *found = atomic_load_explicit(slot, memory_order_relaxed);
    if (unlikely(!found)) {
        found = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(slot, found, memory_order_relaxed);
    }
    return found;
}

/* An operation on a known file is over; errno stays as the real function left it. */
static inline void ts_finish(ts_span span, const ts_fd *what, unsigned kind, int64_t offset, uint64_t bytes, bool asks_metadata)
{
    int kept = errno;
    ts_done done = {.tier = (unsigned)what->tier, .kind = kind, .server = what->server, .file = what->file,
                    .offset = offset, .bytes = bytes, .asks_metadata = asks_metadata};
    ts_op_end(span, &done);
    errno = kept;
}

/* The kernel may have refused before it looked at the path: it must not be ours to crash on a wild pointer. */
static inline bool ts_may_look_at(const char *path, int error)
{
    if (error != EFAULT && error != EINVAL) return true;
    return path && (syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 || errno != EFAULT);
}

/* A file was opened, or was not (fd < 0): find out whose it is and record that. `text` is the path that was asked for, and is the resolved
   one if `resolved`. */
void ts_finish_open(ts_span span, int fd, int dir, const char *text, bool resolved);

/* All opens and stats by path but those of streams. */
int ts_open_at(int dir, const char *path, int flags, mode_t mode);
struct stat;
int ts_stat_path(int dir, const char *path, struct stat *about, int flags);

#endif
