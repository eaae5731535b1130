/* Every call that moves data or asks about a file, at least once: on two tiers, by several spellings. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char buffer[1 << 20];

static const char *in(const char *root, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void reads(const char *root)
{
    int fd = open(in(root, "one/data.bin"), O_RDONLY);
    struct iovec parts[3] = {{buffer, 10}, {buffer + 10, 1000}, {buffer + 2000, 77}};
    for (size_t bytes = 0; bytes < 70000; bytes = bytes * 2 + 1) read(fd, buffer, bytes);
    readv(fd, parts, 3);
    pread(fd, buffer, 5000, 299000); /* cut by the end of the file */
    preadv(fd, parts, 2, 5);
    preadv2(fd, parts, 3, -1, 0);
    preadv2(fd, parts, 3, 200, 0);
    lseek(fd, 0, SEEK_END);
    read(fd, buffer, 1); /* nothing left */
    lseek(fd, 0, SEEK_SET);
    void *memory = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 4096);
    munmap(memory, 8192);
    write(fd, buffer, 10); /* not for writing: an operation that fails */
    close(fd);
}

static void writes(const char *root)
{
    int fd = open(in(root, "two/made"), O_RDWR | O_CREAT | O_TRUNC, 0640);
    struct iovec parts[2] = {{buffer, 3000}, {buffer, 12}};
    write(fd, buffer, 12345);
    writev(fd, parts, 2);
    pwrite(fd, buffer, 10, 100000);
    pwritev(fd, parts, 2, 0);
    pwritev2(fd, parts, 1, 50, 0);
    fsync(fd);
    fdatasync(fd);
    close(fd);
    fd = open(in(root, "two/made"), O_WRONLY | O_APPEND);
    write(fd, buffer, 5);
    close(fd);
    close(creat(in(root, "two/created"), 0600));
}

static void copies(const char *root)
{
    int from = open(in(root, "one/data.bin"), O_RDONLY), to = open(in(root, "two/copy"), O_RDWR | O_CREAT, 0600);
    int beside = open(in(root, "outside/copy"), O_RDWR | O_CREAT, 0600);
    off_t at = 10;
    sendfile(to, from, &at, 1000);
    sendfile(to, from, NULL, 50);
    sendfile(beside, from, NULL, 60);
    loff_t here = 0, there = 5000;
    copy_file_range(from, &here, to, &there, 4096, 0);
    copy_file_range(beside, &here, to, NULL, 4, 0);
    int ends[2];
    pipe(ends);
    splice(from, NULL, ends[1], NULL, 500, 0);
    splice(ends[0], NULL, to, NULL, 500, 0);
    close(ends[0]), close(ends[1]), close(from), close(to), close(beside);
}

static void descriptors(const char *root)
{
    int fd = open(in(root, "one/data.bin"), O_RDONLY | O_CLOEXEC), copy = dup(fd);
    int third = dup2(fd, 70), fourth = dup3(copy, 71, O_CLOEXEC), fifth = fcntl(fd, F_DUPFD, 80), sixth = fcntl(fd, F_DUPFD_CLOEXEC, 90);
    int all[] = {fd, copy, third, fourth, fifth, sixth};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) read(all[i], buffer, 10 + i);
    dup2(fd, fd);
    read(fd, buffer, 3);
    int other = open(in(root, "two/other"), O_RDWR | O_CREAT, 0600);
    dup2(other, copy); /* one of the first tier becomes one of the second */
    write(copy, buffer, 40);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) close(all[i]);
    close(other);
    close(other);
    int nobody = open("/dev/null", O_RDONLY); /* the same number, no tier's */
    read(nobody, buffer, 10);
    close(nobody);
}

static void stats(const char *root)
{
    struct stat about;
    struct statx more;
    int fd = open(in(root, "one/data.bin"), O_RDONLY), folder = open(in(root, "one"), O_RDONLY);
    stat(in(root, "one/data.bin"), &about);
    stat(in(root, "one/missing"), &about);
    lstat(in(root, "two/inner/x"), &about);
    fstat(fd, &about);
    fstat(0, &about);
    fstatat(folder, "data.bin", &about, 0);
    fstatat(folder, "sub/deep/../deep/file.bin", &about, AT_SYMLINK_NOFOLLOW);
    fstatat(fd, "", &about, AT_EMPTY_PATH);
    statx(folder, "data.bin", 0, STATX_BASIC_STATS, &more);
    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more);
    statx(AT_FDCWD, in(root, "two/none"), 0, STATX_BASIC_STATS, &more);
    access(in(root, "one/data.bin"), R_OK);
    access(in(root, "one/missing"), F_OK);
    faccessat(folder, "data.bin", R_OK, 0);
    faccessat(folder, "data.bin", R_OK, AT_EACCESS);
    stat(in(root, "one"), &about);
    stat(in(root, "one/"), &about);
    stat(in(root, "one/.."), &about);
    stat(in(root, "two/inner/.."), &about);
    stat(in(root, "two/../one"), &about);
    stat(in(root, "two//inner"), &about);
    stat(in(root, "outside"), &about);
    close(folder), close(fd);
}

static void oddities(const char *root)
{
    char name[4096];
    int fd = open(in(root, "one"), O_TMPFILE | O_RDWR, 0600);
    write(fd, buffer, 99);
    close(fd);
    fd = open(in(root, "one/data.bin"), O_PATH);
    read(fd, buffer, 1); /* fails: only a place */
    close(fd);
    snprintf(name, sizeof name, "%s/two/temporary-XXXXXX", root);
    fd = mkstemp(name);
    write(fd, buffer, 7);
    unlink(name);
    lseek(fd, 0, SEEK_SET);
    read(fd, buffer, 100);
    close(fd);
    open(in(root, "one/missing"), O_RDONLY);
    open(in(root, "one/data.bin/below"), O_RDONLY);
    open(in(root, "one/data.bin"), O_RDWR | O_CREAT | O_EXCL, 0600);
    open(in(root, "outside/missing"), O_RDONLY);
    fd = open(in(root, "two/fresh"), O_RDWR | O_CREAT | O_EXCL, 0600);
    read(fd, buffer, 1);
    close(fd);
    int folder = open(in(root, "two"), O_RDONLY);
    fd = openat(folder, "inner/x", O_RDONLY);
    read(fd, buffer, 20);
    close(fd);
    fd = openat(folder, "../one/data.bin", O_RDONLY);
    read(fd, buffer, 21);
    close(fd), close(folder);
    chdir(in(root, "one/sub"));
    fd = open("deep/file.bin", O_RDONLY);
    read(fd, buffer, 22);
    close(fd);
    fd = open("./..//../two/./x", O_RDONLY);
    read(fd, buffer, 23);
    close(fd);
    open("missing", O_RDONLY);
    open("../../two/missing", O_RDONLY);
}

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    const char *root = arguments[1];
    reads(root);
    writes(root);
    copies(root);
    descriptors(root);
    stats(root);
    oddities(root);
    return 0;
}
