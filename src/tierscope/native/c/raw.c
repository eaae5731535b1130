#define _GNU_SOURCE
#include "raw.h"
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int raw_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644); }
void raw_close(int fd) { syscall(SYS_close, fd); }

bool raw_write(int fd, const void *data, size_t bytes, int64_t offset)
{
    const char *next = data;
    while (bytes) {
        long done = offset < 0 ? syscall(SYS_write, fd, next, bytes) : syscall(SYS_pwrite64, fd, next, bytes, offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        next += done, bytes -= (size_t)done;
        ts_saw_own(done);
        if (offset >= 0) offset += done;
    }
    return true;
}

bool raw_may_grow_to(uint64_t bytes)
{
    struct rlimit limit;
    return syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

bool raw_fill_with_zeros(int fd, uint64_t offset, uint64_t bytes)
{
    static const char zeros[1 << 16];
    if (!raw_may_grow_to(offset + bytes)) return false;
    while (bytes) {
        size_t part = bytes < sizeof zeros ? bytes : sizeof zeros;
        if (!raw_write(fd, zeros, part, (int64_t)offset)) return false;
        offset += part, bytes -= part;
    }
    return true;
}

void *raw_map(int fd, size_t bytes)
{
    void *memory = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void raw_read_line(const char *path, char *text, size_t room)
{
    text[0] = 0;
    int fd = raw_open(path, O_RDONLY);
    if (fd < 0) return;
    long got = syscall(SYS_read, fd, text, room - 1);
    text[got > 0 ? got : 0] = 0;
    raw_close(fd);
    text[strcspn(text, "\n")] = 0;
}

void raw_read_host(char *host, size_t room)
{
    raw_read_line("/proc/sys/kernel/hostname", host, room);
    for (char *c = host; *c; c++)
        if (*c == '/') *c = '_';
}

void raw_read_boot(char *boot, size_t room) { raw_read_line("/proc/sys/kernel/random/boot_id", boot, room); }

bool raw_has_bytes(int fd, uint64_t bytes)
{
    struct stat about;
    return syscall(SYS_fstat, fd, &about) == 0 && S_ISREG(about.st_mode) && (uint64_t)about.st_size >= bytes;
}
