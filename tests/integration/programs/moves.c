/* Moves known bytes in one way: `moves WAY FILE`. FILE has at least 2 MiB. Whatever the way, the kernel's counters are the truth. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MIB = 1 << 20, PIECE = 50000 };
static char buffer[MIB];

static int is(const char *way, const char *name) { return !strcmp(way, name); }

static void by_descriptor(const char *way, int fd)
{
    struct iovec parts[2] = {{buffer, 1000}, {buffer + 1000, PIECE - 1000}};
    for (int i = 0; i < 30; i++) {
        if (is(way, "read")) read(fd, buffer, PIECE);
        if (is(way, "pread")) pread(fd, buffer, PIECE, i * 1000);
        if (is(way, "readv")) readv(fd, parts, 2);
        if (is(way, "preadv")) preadv(fd, parts, 2, i * 1000);
        if (is(way, "preadv2")) preadv2(fd, parts, 2, i * 1000, 0);
    }
}

static void by_copy(const char *way, int fd, const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.copy", path);
    int out = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), ends[2];
    if (is(way, "sendfile")) sendfile(out, fd, NULL, MIB);
    if (is(way, "copy_file_range")) copy_file_range(fd, NULL, out, NULL, MIB, 0);
    if (is(way, "splice") && !pipe(ends))
        for (int i = 0; i < 20; i++) {
            splice(fd, NULL, ends[1], NULL, 65536, 0);
            splice(ends[0], NULL, out, NULL, 65536, 0);
        }
    if (is(way, "write"))
        for (int i = 0; i < 20; i++) write(out, buffer, PIECE);
    if (is(way, "pwritev")) {
        struct iovec parts[2] = {{buffer, 1000}, {buffer, PIECE}};
        for (int i = 0; i < 20; i++) pwritev(out, parts, 2, i * 1000);
    }
    close(out);
}

static void by_pipe(const char *way)
{
    int ends[2];
    if (is(way, "pipe") ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) exit(3);
    int from = is(way, "pipe") ? 0 : 1, to = 1 - from;
    for (int i = 0; i < 60; i++) {
        if (is(way, "recv")) send(ends[to], buffer, 30000, 0), recv(ends[from], buffer, 30000, MSG_WAITALL);
        else write(ends[to], buffer, 30000), read(ends[from], buffer, 30000);
    }
}

static void by_stream(const char *way, const char *path)
{
    char name[4096], *line = NULL;
    size_t room = 0;
    snprintf(name, sizeof name, is(way, "popen") ? "cat %s" : is(way, "fwrite") || is(way, "fprintf") ? "%s.copy" : "%s", path);
    FILE *stream = is(way, "popen") ? popen(name, "r") : fopen(name, strstr(name, ".copy") ? "w" : "r");
    if (!stream) exit(3);
    if (is(way, "fread") || is(way, "popen"))
        for (int i = 1; i < 400; i++) fread(buffer, 1, (size_t)(i * 37 % 9000), stream);
    if (is(way, "fgets"))
        while (fgets(buffer, 3000, stream)) continue;
    if (is(way, "getline"))
        while (getline(&line, &room, stream) > 0) continue;
    if (is(way, "getc"))
        for (int i = 0; i < 2 * MIB && getc_unlocked(stream) >= 0; i++) continue;
    if (is(way, "fscanf"))
        for (int i = 0, number; i < 200000 && fscanf(stream, "%d", &number) == 1; i++) continue;
    if (is(way, "fseek"))
        for (long i = 1; i < 400; i++) fseek(stream, i * 7919 * 13 % (2 * MIB), SEEK_SET), fread(buffer, 1, 100, stream);
    if (is(way, "fwrite"))
        for (int i = 1; i < 400; i++) fwrite(buffer, 1, (size_t)(i * 37 % 9000), stream);
    if (is(way, "fprintf"))
        for (int i = 1; i < 90000; i++) fprintf(stream, "number %d\n", i);
    if (!is(way, "fprintf")) is(way, "popen") ? pclose(stream) : fclose(stream); /* else the end of the process does */
    free(line);
}

static void by_map(int fd, int pages)
{
    struct stat about;
    fstat(fd, &about);
    volatile char *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    for (off_t at = 0; at < about.st_size && pages; at += 4096, pages--) (void)memory[at];
}

static void by_ring(int fd)
{
    struct io_uring_params about = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 8, &about);
    if (ring < 0) exit(77);
    char *queue = mmap(NULL, about.sq_off.array + about.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = (void *)syscall(SYS_mmap, NULL, about.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    unsigned *tail = (unsigned *)(queue + about.sq_off.tail);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .addr = (unsigned long)buffer, .len = MIB};
    ((unsigned *)(queue + about.sq_off.array))[0] = 0;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    close(fd); /* before the ring, as programs do */
    syscall(SYS_close, ring);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const char *way = argv[1];
    int fd = open(argv[2], O_RDONLY);
    if (fd < 0) return 3;
    if (strchr("rp", way[0]) && strstr(way, "read")) by_descriptor(way, fd);
    else if (is(way, "sendfile") || is(way, "copy_file_range") || is(way, "splice") || strstr(way, "write") == way || is(way, "pwritev")) by_copy(way, fd, argv[2]);
    else if (is(way, "pipe") || is(way, "socket") || is(way, "recv")) by_pipe(way);
    else if (is(way, "map")) by_map(fd, 1 << 30);
    else if (is(way, "map a little")) by_map(fd, 2);
    else if (is(way, "ring")) by_ring(fd);
    else if (is(way, "direct"))
        while (syscall(SYS_read, fd, buffer, PIECE) > 0) continue;
    else by_stream(way, argv[2]);
    return 0;
}
