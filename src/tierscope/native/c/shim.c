/* The wrappers around the C library's input and output. Each does what the program asked for, through the real function, and
   records it if it was about a tier's file. errno is what the real function left. */
#define _GNU_SOURCE
#include "seen.h"
#include "shim.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))

extern const ts_wrapped __start_ts_wrapped[] __attribute__((visibility("hidden"))), __stop_ts_wrapped[] __attribute__((visibility("hidden")));
__attribute__((constructor(101))) static void look_all_up(void)
{
    int kept = errno;
    for (const ts_wrapped *wrapped = __start_ts_wrapped; wrapped < __stop_ts_wrapped; wrapped++) ts_real(wrapped->slot, wrapped->name);
    errno = kept;
}

/* Pages of a tier's file out of the page cache, where that is asked for: through the descriptor that reads it, between two operations. */
static void evict(int fd, int tier)
{
    if (likely(!(ts_conf->options & TS_OPTION_EVICT)) || ts_conf->tier[tier].emulated) return;
    int kept = errno;
    syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED);
    errno = kept;
}

/* ---- open ---- */

HAS_REAL(openat);

static bool takes_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

/* Open unless a symbolic link is in the way: then the text of a plain path is where the file is, and nobody has to ask.
   As in the C library, a thread can be cancelled while it waits (for a FIFO's other end). -2: cannot be told this way. */
static int open_without_links(int dir, const char *path, int flags, mode_t mode)
{
    static _Atomic bool lacking;
    if (atomic_load_explicit(&lacking, memory_order_relaxed)) return -2;
    struct open_how how = {.flags = (unsigned)flags, .mode = takes_mode(flags) ? mode & 07777 : 0, .resolve = RESOLVE_NO_SYMLINKS};
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    pthread_setcanceltype(before, &before);
    if (fd >= 0) return fd;
    switch (errno) {
    case ENOSYS: atomic_store(&lacking, true); return -2;
    case ELOOP: case EINVAL: case E2BIG: case EPERM: case EACCES: case EAGAIN: case EXDEV: return -2; /* a sandbox may have its own answer */
    default: return -1;
    }
}

/* A path that is relative to the working directory. */
static bool below_here(const char *text, char path[TS_LOAN])
{
    long length = ts_working_folder(path);
    if (!length) return false;
    if (length == 2) length = 1; /* the root's slash is enough */
    snprintf(path + length - 1, TS_LOAN - (size_t)length, "/%s", text);
    return true;
}

void ts_finish_open(ts_span span, int fd, int dir, const char *text, bool resolved)
{
    int kept = errno;
    uint64_t end = ts_now();
    ts_fd what = {.tier = TS_NO_TIER};
    if (fd < 0) {
        if (ts_may_look_at(text, kept)) what.tier = ts_tier_of_path(dir, text, end);
    } else if (resolved && text[0] == '/') {
        what = ts_fd_describe(text);
        ts_fd_set(fd, &what);
    } else {
        char *path = ts_borrow();
        bool known = path && (resolved ? below_here(text, path) : ts_path_of_fd(fd, path));
        if (known) what = ts_fd_describe(path);
        if (known && !resolved) ts_self.linked = text[0] == '/' && strcmp(path, text); /* a guess: the next open tries */
        if (path) ts_fd_set(fd, &what);
        ts_give_back(path);
    }
    if (what.tier == TS_NO_TIER) {
        ts_op_not_ours(span);
    } else {
        ts_done done = {.tier = (unsigned)what.tier, .kind = TS_OPEN, .file = what.file, .end_ns = end, .asks_metadata = true};
        ts_op_end(span, &done);
        if (fd >= 0) evict(fd, what.tier);
    }
    errno = kept;
}

int ts_open_at(int dir, const char *path, int flags, mode_t mode)
{
    if (!ts_recording()) return REAL(openat)(dir, path, flags, mode);
    int before = errno;
    bool direct = ts_self.on_tier || !ts_self.linked;
    ts_span span = ts_op_begin_unsure();
    int fd = direct ? open_without_links(dir, path, flags, mode) : -2;
    const char *text = path;
    if (fd == -2) {
        errno = before;
        fd = REAL(openat)(dir, path, flags, mode);
        direct = false;
    } else if (fd >= 0) {
        while (text[0] == '.' && text[1] == '/' && text[2] != '/') text += 2;
    }
    ts_finish_open(span, fd, dir, text, direct && fd >= 0 && ts_is_plain(text) && (path[0] == '/' || dir == AT_FDCWD));
    return fd;
}

#define MODE_OF(flags, mode)              \
    mode_t mode = 0;                      \
    if (takes_mode(flags)) {              \
        va_list rest;                     \
        va_start(rest, flags);            \
        mode = va_arg(rest, mode_t);      \
        va_end(rest);                     \
    }

TS_EXPORT int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return ts_open_at(AT_FDCWD, path, flags, mode);
}

TS_EXPORT int openat(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return ts_open_at(dir, path, flags, mode);
}

TS_EXPORT int creat(const char *path, mode_t mode) { return ts_open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
TS_EXPORT int __open_2(const char *path, int flags) { return ts_open_at(AT_FDCWD, path, flags, 0); }
TS_EXPORT int __openat_2(int dir, const char *path, int flags) { return ts_open_at(dir, path, flags, 0); }
HAS_REAL(mkostemps);
static int make_temporary(char *path, int suffix, int flags)
{
    if (!ts_recording()) return REAL(mkostemps)(path, suffix, flags);
    ts_span span = ts_op_begin_unsure();
    int fd = REAL(mkostemps)(path, suffix, flags);
    if (fd < 0 && errno == EINVAL) ts_op_cancel(span); /* no pattern: nothing was tried */
    else ts_finish_open(span, fd, AT_FDCWD, path, false);
    return fd;
}

TS_EXPORT int mkstemp(char *path) { return make_temporary(path, 0, 0); }
TS_EXPORT int mkostemp(char *path, int flags) { return make_temporary(path, 0, flags); }
TS_EXPORT int mkstemps(char *path, int suffix) { return make_temporary(path, suffix, 0); }
TS_EXPORT int mkostemps(char *path, int suffix, int flags) { return make_temporary(path, suffix, flags); }
ALIAS(mkstemp) int mkstemp64(char *);
ALIAS(mkostemp) int mkostemp64(char *, int);
ALIAS(mkstemps) int mkstemps64(char *, int);
ALIAS(mkostemps) int mkostemps64(char *, int, int);
ALIAS(open) int open64(const char *, int, ...);
ALIAS(openat) int openat64(int, const char *, int, ...);
ALIAS(creat) int creat64(const char *, mode_t);
ALIAS(__open_2) int __open64_2(const char *, int);
ALIAS(__openat_2) int __openat64_2(int, const char *, int);

/* ---- read and write ---- */

static ssize_t moved(ts_span span, int fd, const ts_fd *what, unsigned kind, int64_t offset, ssize_t got)
{
    if (unlikely(offset < 0 && (ts_conf->options & (TS_OPTION_OPS | TS_OPTION_REREADS)) && got >= 0)) {
        int kept = errno;
        offset = syscall(SYS_lseek, fd, 0, SEEK_CUR) - got;
        errno = kept;
    }
    ts_finish(span, what, kind, offset, got > 0 ? (uint64_t)got : 0, false);
    return got;
}

#define MOVES(kind, offset, name, parameters, arguments)                               \
    HAS_REAL(name);                                                                     \
    TS_EXPORT ssize_t name parameters                                                   \
    {                                                                                   \
        ts_fd what;                                                                     \
        if (!ts_recording()) return REAL(name) arguments;                              \
        if (!ts_fd_find(fd, &what)) return ts_saw_moved(kind, REAL(name) arguments);   \
        ts_span span = ts_op_begin();                                                   \
        return moved(span, fd, &what, kind, offset, REAL(name) arguments);             \
    }

MOVES(TS_READ, -1, read, (int fd, void *buffer, size_t bytes), (fd, buffer, bytes))
MOVES(TS_READ, -1, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
MOVES(TS_READ, at, pread, (int fd, void *buffer, size_t bytes, off_t at), (fd, buffer, bytes, at))
MOVES(TS_READ, at, preadv, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
MOVES(TS_READ, at, preadv2, (int fd, const struct iovec *parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
MOVES(TS_WRITE, -1, write, (int fd, const void *buffer, size_t bytes), (fd, buffer, bytes))
MOVES(TS_WRITE, -1, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
MOVES(TS_WRITE, at, pwrite, (int fd, const void *buffer, size_t bytes, off_t at), (fd, buffer, bytes, at))
MOVES(TS_WRITE, at, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
MOVES(TS_WRITE, at, pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
ALIAS(pread) ssize_t pread64(int, void *, size_t, off64_t);
ALIAS(preadv) ssize_t preadv64(int, const struct iovec *, int, off64_t);
ALIAS(preadv2) ssize_t preadv64v2(int, const struct iovec *, int, off64_t, int);
ALIAS(pwrite) ssize_t pwrite64(int, const void *, size_t, off64_t);
ALIAS(pwritev) ssize_t pwritev64(int, const struct iovec *, int, off64_t);
ALIAS(pwritev2) ssize_t pwritev64v2(int, const struct iovec *, int, off64_t, int);

/* Programs that were compiled with buffer checks call these. */
extern void __chk_fail(void) __attribute__((noreturn));
TS_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    if (bytes > room) __chk_fail();
    return read(fd, buffer, bytes);
}
TS_EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t at, size_t room)
{
    if (bytes > room) __chk_fail();
    return pread(fd, buffer, bytes, at);
}
ALIAS(__pread_chk) ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);

/* Data that moves inside the kernel is read from one file and written to another in one operation: its time is the read's where
   a tier is read, else the write's; the other side gets its operation and bytes. */
static ssize_t copied(ts_span span, bool reads, const ts_fd *source, bool writes, const ts_fd *target, bool counted, ssize_t got)
{
    uint64_t bytes = got > 0 ? (uint64_t)got : 0;
    if (reads) ts_finish(span, source, TS_READ, -1, bytes, false);
    if (writes) ts_finish(reads ? ts_op_begin() : span, target, TS_WRITE, -1, bytes, false);
    ts_saw_copied(counted, reads, writes, got);
    return got;
}

/* counted: by the kernel, as bytes that were read and written. */
#define COPIES(name, counted, in, out, parameters, arguments)                                                    \
    HAS_REAL(name);                                                                                              \
    TS_EXPORT ssize_t name parameters                                                                            \
    {                                                                                                            \
        ts_fd source, target;                                                                                    \
        if (!ts_recording()) return REAL(name) arguments;                                                       \
        bool reads = ts_fd_find(in, &source), writes = ts_fd_find(out, &target);                                 \
        if (!reads && !writes) {                                                                                 \
            ssize_t got = REAL(name) arguments;                                                                 \
            ts_saw_copied(counted, false, false, got);                                                           \
            return got;                                                                                          \
        }                                                                                                        \
        ts_span span = ts_op_begin();                                                                            \
        return copied(span, reads, &source, writes, &target, counted, REAL(name) arguments);                    \
    }

COPIES(sendfile, true, in, out, (int out, int in, off_t *at, size_t bytes), (out, in, at, bytes))
COPIES(splice, false, in, out, (int in, off64_t *from, int out, off64_t *to, size_t bytes, unsigned flags), (in, from, out, to, bytes, flags))
COPIES(copy_file_range, true, in, out, (int in, off64_t *from, int out, off64_t *to, size_t bytes, unsigned flags), (in, from, out, to, bytes, flags))
ALIAS(sendfile) ssize_t sendfile64(int, int, off64_t *, size_t);

/* ---- close, dup ---- */

HAS_REAL(close);
TS_EXPORT int close(int fd)
{
    ts_fd what;
    if (!ts_recording() || !ts_fd_close(fd, &what)) return REAL(close)(fd);
    evict(fd, what.tier);
    ts_span span = ts_op_begin();
    int result = REAL(close)(fd);
    ts_finish(span, &what, TS_CLOSE, 0, 0, false);
    ts_look_for_rings(false);
    return result;
}

/* Directories that are listed: opened and closed inside of the C library. */
HAS_REAL(opendir);
TS_EXPORT DIR *opendir(const char *path)
{
    if (!ts_recording()) return REAL(opendir)(path);
    ts_span span = ts_op_begin_unsure();
    DIR *folder = REAL(opendir)(path);
    ts_finish_open(span, folder ? dirfd(folder) : -1, AT_FDCWD, path, false);
    return folder;
}

HAS_REAL(closedir);
TS_EXPORT int closedir(DIR *folder)
{
    ts_fd what;
    if (!ts_recording() || !folder) return REAL(closedir)(folder);
    if (!ts_fd_close(dirfd(folder), &what)) return REAL(closedir)(folder);
    ts_span span = ts_op_begin();
    int result = REAL(closedir)(folder);
    ts_finish(span, &what, TS_CLOSE, 0, 0, false);
    return result;
}

/* What is forgotten too early is only asked for again. */
TS_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (ts_recording() && !(flags & 4 /* CLOSE_RANGE_CLOEXEC */) && first <= last) ts_fd_forget_range(first, last);
    return (int)syscall(SYS_close_range, first, last, flags);
}

HAS_REAL(closefrom);
TS_EXPORT void closefrom(int first)
{
    if (ts_recording() && first >= 0) ts_fd_forget_range((unsigned)first, ~0u);
    REAL(closefrom)(first);
}

static int copied_to(int from, int to)
{
    if (to >= 0 && ts_recording()) ts_fd_copy(from, to);
    return to;
}

HAS_REAL(dup);
TS_EXPORT int dup(int fd) { return copied_to(fd, REAL(dup)(fd)); }
HAS_REAL(dup2);
TS_EXPORT int dup2(int fd, int to) { return copied_to(fd, REAL(dup2)(fd, to)); }
HAS_REAL(dup3);
TS_EXPORT int dup3(int fd, int to, int flags) { return copied_to(fd, REAL(dup3)(fd, to, flags)); }

HAS_REAL(fcntl);
TS_EXPORT int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int result = REAL(fcntl)(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied_to(fd, result) : result;
}
ALIAS(fcntl) int fcntl64(int, int, ...);

/* What is new cannot be a tier's file, whatever had its number before: some programs close behind our back. */
static int is_new(int fd)
{
    if (fd >= 0 && ts_recording()) ts_fd_forget(fd);
    return fd;
}

static int are_new(int result, const int fds[2])
{
    if (result == 0) is_new(fds[0]), is_new(fds[1]);
    return result;
}

#define MAKES(name, parameters, arguments) \
    HAS_REAL(name);                        \
    TS_EXPORT int name parameters { return is_new(REAL(name) arguments); }

MAKES(socket, (int family, int type, int protocol), (family, type, protocol))
MAKES(accept, (int fd, struct sockaddr *peer, socklen_t *bytes), (fd, peer, bytes))
MAKES(accept4, (int fd, struct sockaddr *peer, socklen_t *bytes, int flags), (fd, peer, bytes, flags))
MAKES(eventfd, (unsigned count, int flags), (count, flags))
MAKES(epoll_create, (int size), (size))
MAKES(epoll_create1, (int flags), (flags))
MAKES(timerfd_create, (clockid_t clock, int flags), (clock, flags))
MAKES(signalfd, (int fd, const sigset_t *signals, int flags), (fd, signals, flags))
MAKES(inotify_init, (void), ())
MAKES(inotify_init1, (int flags), (flags))
MAKES(memfd_create, (const char *name, unsigned flags), (name, flags))
HAS_REAL(pipe);
TS_EXPORT int pipe(int fds[2]) { return are_new(REAL(pipe)(fds), fds); }
HAS_REAL(pipe2);
TS_EXPORT int pipe2(int fds[2], int flags) { return are_new(REAL(pipe2)(fds, flags), fds); }
HAS_REAL(socketpair);
TS_EXPORT int socketpair(int family, int type, int protocol, int fds[2]) { return are_new(REAL(socketpair)(family, type, protocol, fds), fds); }

/* ---- stat and its relatives: straight to the kernel, whose structure is the same for all spellings ---- */

static int path_done(ts_span span, int dir, const char *path, int result)
{
    int kept = errno;
    uint64_t end = ts_now();
    int tier = result == 0 || ts_may_look_at(path, kept) ? ts_tier_of_path(dir, path, end) : TS_NO_TIER;
    if (tier == TS_NO_TIER) {
        ts_op_not_ours(span);
    } else {
        ts_done done = {.tier = (unsigned)tier, .kind = TS_STAT, .end_ns = end, .asks_metadata = true};
        ts_op_end(span, &done);
    }
    errno = kept;
    return result;
}

static int stat_fd(int fd, struct stat *about)
{
    ts_fd what;
    if (!ts_recording() || !ts_fd_find(fd, &what)) return (int)syscall(SYS_fstat, fd, about);
    ts_span span = ts_op_begin();
    int result = (int)syscall(SYS_fstat, fd, about);
    ts_finish(span, &what, TS_STAT, 0, 0, false); /* an open file's attributes came with its open: no metadata server is asked */
    return result;
}

/* With AT_EMPTY_PATH a question may be about the descriptor itself; newer kernels take no path at all for that. */
static int stat_done(ts_span span, int dir, const char *path, int flags, int result)
{
    int kept = errno;
    ts_fd what;
    bool of_descriptor = (flags & AT_EMPTY_PATH) && (!path || ((result == 0 || ts_may_look_at(path, kept)) && !path[0]));
    errno = kept;
    if (!of_descriptor || dir == AT_FDCWD) return path_done(span, dir, of_descriptor ? "." : path, result);
    bool seen = ts_fd_find(dir, &what);
    if (seen) ts_finish(span, &what, TS_STAT, 0, 0, false);
    else ts_op_cancel(span);
    return result;
}

int ts_stat_path(int dir, const char *path, struct stat *about, int flags)
{
    if (!ts_recording()) return (int)syscall(SYS_newfstatat, dir, path, about, flags);
    ts_span span = ts_op_begin_unsure();
    int result = (int)syscall(SYS_newfstatat, dir, path, about, flags);
    return stat_done(span, dir, path, flags, result);
}

TS_EXPORT int stat(const char *path, struct stat *about) { return ts_stat_path(AT_FDCWD, path, about, 0); }
TS_EXPORT int lstat(const char *path, struct stat *about) { return ts_stat_path(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW); }
TS_EXPORT int fstat(int fd, struct stat *about) { return stat_fd(fd, about); }
TS_EXPORT int fstatat(int dir, const char *path, struct stat *about, int flags) { return ts_stat_path(dir, path, about, flags); }
ALIAS(stat) int stat64(const char *, struct stat64 *);
ALIAS(lstat) int lstat64(const char *, struct stat64 *);
ALIAS(fstat) int fstat64(int, struct stat64 *);
ALIAS(fstatat) int fstatat64(int, const char *, struct stat64 *, int);

/* As glibc before 2.33 spelled them. */
TS_EXPORT int __xstat(int version, const char *path, struct stat *about) { return (void)version, stat(path, about); }
TS_EXPORT int __lxstat(int version, const char *path, struct stat *about) { return (void)version, lstat(path, about); }
TS_EXPORT int __fxstat(int version, int fd, struct stat *about) { return (void)version, fstat(fd, about); }
TS_EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *about, int flags)
{
    return (void)version, fstatat(dir, path, about, flags);
}
ALIAS(__xstat) int __xstat64(int, const char *, struct stat64 *);
ALIAS(__lxstat) int __lxstat64(int, const char *, struct stat64 *);
ALIAS(__fxstat) int __fxstat64(int, int, struct stat64 *);
ALIAS(__fxstatat) int __fxstatat64(int, int, const char *, struct stat64 *, int);

TS_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *about)
{
    if (!ts_recording()) return (int)syscall(SYS_statx, dir, path, flags, mask, about);
    ts_span span = ts_op_begin_unsure();
    int result = (int)syscall(SYS_statx, dir, path, flags, mask, about);
    return stat_done(span, dir, path, flags, result);
}

HAS_REAL(access);
TS_EXPORT int access(const char *path, int mode)
{
    if (!ts_recording()) return REAL(access)(path, mode);
    ts_span span = ts_op_begin_unsure();
    return path_done(span, AT_FDCWD, path, REAL(access)(path, mode));
}

HAS_REAL(faccessat);
TS_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
    if (!ts_recording()) return REAL(faccessat)(dir, path, mode, flags);
    ts_span span = ts_op_begin_unsure();
    return path_done(span, dir, path, REAL(faccessat)(dir, path, mode, flags));
}

/* ---- the rest ---- */

#define ON_FD(kind, result_type, name, parameters, arguments)                        \
    HAS_REAL(name);                                                                   \
    TS_EXPORT result_type name parameters                                             \
    {                                                                                 \
        ts_fd what;                                                                   \
        if (!ts_recording() || !ts_fd_find(fd, &what)) return REAL(name) arguments;  \
        ts_span span = ts_op_begin();                                                 \
        result_type result = REAL(name) arguments;                                   \
        ts_finish(span, &what, kind, 0, 0, false);                                    \
        return result;                                                                \
    }

ON_FD(TS_SEEK, off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
ON_FD(TS_SYNC, int, fsync, (int fd), (fd))
ON_FD(TS_SYNC, int, fdatasync, (int fd), (fd))
ALIAS(lseek) off64_t lseek64(int, off64_t, int);

enum { RING_ENTRIES = 0x10000000 }; /* IORING_OFF_SQES: where the entries of an io_uring are mapped */

/* Allocators map memory before anything else is ready: never through dlsym. */
TS_EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    ts_fd what;
    if ((flags & MAP_ANONYMOUS) || fd < 0 || !ts_recording() || !ts_fd_find(fd, &what)) {
        if (!(flags & MAP_ANONYMOUS) && offset == RING_ENTRIES && ts_recording()) ts_may_be_ring(fd);
        return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
    }
    ts_span span = ts_op_begin();
    void *result = (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
    ts_finish(span, &what, TS_MMAP, offset, result == MAP_FAILED ? 0 : bytes, false);
    bool writes = (flags & MAP_SHARED) && (protection & PROT_WRITE);
    if (result != MAP_FAILED) ts_note_mapping(), ts_saw_mapping(writes ? bytes : 0);
    return result;
}
ALIAS(mmap) void *mmap64(void *, size_t, int, int, int, off64_t);
