/* Calls that fail and calls that do not: errors FOLDER FILE. Prints result and errno of each; the shim must change neither. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define TRY(call)                                             \
    do {                                                      \
        errno = 77;                                           \
        long result = (long)(call);                           \
        int error = errno;                                    \
        printf("%-60s %ld %d\n", #call, result, error);       \
    } while (0)
#define TRY_POINTER(call) TRY((call) != NULL)

static void *volatile WILD = (void *)0x10; /* volatile: the compiler shall not know better */
static volatile int below_zero = -1, too_many = 5000;
static void *volatile nothing = NULL;
static char buffer[10000];

static void opens(const char *file, const char *missing, const char *folder)
{
    TRY(open(file, O_RDONLY));
    TRY(open(missing, O_RDONLY));
    TRY(open(file, O_RDWR | O_CREAT | O_EXCL, 0600));
    TRY(open(file, O_DIRECTORY));
    TRY(open(folder, O_RDWR));
    TRY(open(folder, O_TMPFILE | O_RDWR, 0600));
    TRY(open(folder, O_TMPFILE | O_RDONLY, 0600));
    TRY(open(file, O_PATH | O_RDWR | O_CREAT | O_TRUNC, 0600));
    TRY(open(file, O_RDONLY | 0x40000000));
    TRY(open(file, O_RDONLY | O_CREAT, 0170777));
    TRY(open("", O_RDONLY));
    TRY(open(nothing, O_RDONLY));
    TRY(open(WILD, O_RDONLY));
    TRY(open(nothing, O_TMPFILE | O_RDONLY, 0600));
    TRY(open(WILD, O_DIRECTORY | O_CREAT, 0600));
    TRY(openat(-1, "x", O_RDONLY));
    TRY(openat(12345, "x", O_RDONLY));
    TRY(openat(0, WILD, O_RDONLY));
    TRY(creat(WILD, 0600));
    TRY(creat(folder, 0600));
    TRY_POINTER(fopen(missing, "r"));
    TRY_POINTER(fopen(file, "nonsense"));
    TRY_POINTER(fopen(WILD, "r"));
    TRY_POINTER(fopen(folder, "w"));
    TRY_POINTER(opendir(missing));
    TRY_POINTER(opendir(file));
    TRY(mkstemp(strcpy(buffer, "no pattern")));
    TRY(mkstemp(strcpy(buffer, "/missing/x-XXXXXX")));
    memset(buffer, 'x', sizeof buffer - 1);
    TRY(open(buffer, O_RDONLY));
    buffer[0] = '/';
    TRY(open(buffer, O_RDONLY));
    TRY(access(buffer, F_OK));
    buffer[300] = 0;
    TRY(open(buffer, O_RDONLY));
}

static void moves(int fd, int bad)
{
    struct iovec parts[2] = {{buffer, 10}, {buffer + 10, 20}}, wild[1] = {{WILD, 10}};
    TRY(read(fd, buffer, 10));
    TRY(read(fd, WILD, 10));
    TRY(read(fd, buffer, 0));
    TRY(read(fd, nothing, 0));
    TRY(read(bad, buffer, 10));
    TRY(read(-1, buffer, 10));
    TRY(read(-2000000000, buffer, 10));
    TRY(read(2000000000, buffer, 10));
    TRY(readv(fd, parts, 2));
    TRY(readv(fd, WILD, 2));
    TRY(readv(fd, parts, below_zero));
    TRY(readv(fd, parts, too_many));
    TRY(readv(fd, wild, 1));
    TRY(pread(fd, buffer, 10, -1));
    TRY(pread(fd, buffer, 10, 1L << 60));
    TRY(pread(fd, WILD, 10, 0));
    TRY(preadv(fd, parts, 2, 3));
    TRY(preadv2(fd, parts, 2, 3, 0));
    TRY(preadv2(fd, parts, 2, 3, 0x4000));
    TRY(write(fd, buffer, 10));
    TRY(write(fd, WILD, 10));
    TRY(pwrite(fd, buffer, 10, -5));
    TRY(writev(fd, parts, 2));
    TRY(pwritev(bad, parts, 2, 0));
    TRY(pwritev2(fd, parts, 2, 0, 0x4000));
    TRY(sendfile(fd, fd, NULL, 10));
    TRY(sendfile(bad, fd, WILD, 10));
    TRY(copy_file_range(fd, WILD, bad, NULL, 10, 0));
    TRY(copy_file_range(fd, NULL, fd, NULL, 10, 7));
    TRY(splice(fd, NULL, fd, NULL, 10, 0));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(lseek(fd, -1, SEEK_SET));
    TRY(lseek(fd, 0, 99));
    TRY(lseek(bad, 0, SEEK_SET));
    TRY(fsync(fd));
    TRY(fsync(bad));
    TRY(fdatasync(bad));
    TRY(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    TRY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 1) == MAP_FAILED);
    TRY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, bad, 0) == MAP_FAILED);
    TRY(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    TRY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    TRY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}

static void stats(int fd, int bad, const char *file, const char *missing)
{
    struct stat about;
    struct statx more;
    TRY(stat(file, &about));
    TRY(stat(file, WILD));
    TRY(stat(WILD, &about));
    TRY(stat(nothing, &about));
    TRY(stat(missing, &about));
    TRY(stat("", &about));
    TRY(lstat(WILD, &about));
    TRY(fstat(fd, &about));
    TRY(fstat(fd, WILD));
    TRY(fstat(bad, &about));
    TRY(fstat(-1, &about));
    TRY(fstatat(fd, "x", &about, 0));
    TRY(fstatat(fd, "", &about, 0));
    TRY(fstatat(fd, "", &about, AT_EMPTY_PATH));
    TRY(fstatat(AT_FDCWD, "", &about, AT_EMPTY_PATH));
    TRY(fstatat(fd, nothing, &about, AT_EMPTY_PATH));
    TRY(fstatat(AT_FDCWD, nothing, &about, AT_EMPTY_PATH));
    TRY(fstatat(fd, WILD, &about, AT_EMPTY_PATH));
    TRY(fstatat(fd, WILD, &about, 0x7fff0000));
    TRY(fstatat(AT_FDCWD, WILD, &about, 0));
    TRY(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &more));
    TRY(statx(fd, nothing, AT_EMPTY_PATH, STATX_ALL, &more));
    TRY(statx(AT_FDCWD, nothing, AT_EMPTY_PATH, STATX_ALL, &more));
    TRY(statx(fd, WILD, 0x7fff0000, STATX_ALL, &more));
    TRY(statx(fd, WILD, AT_EMPTY_PATH | 0x7fff0000, STATX_ALL, &more));
    TRY(statx(AT_FDCWD, file, 0, STATX__RESERVED, &more));
    TRY(statx(AT_FDCWD, file, 0, STATX_ALL, WILD));
    TRY(access(file, R_OK));
    TRY(access(file, 99));
    TRY(access(WILD, 99));
    TRY(access(missing, F_OK));
    TRY(access(nothing, F_OK));
    TRY(faccessat(fd, "x", R_OK, 0));
    TRY(faccessat(AT_FDCWD, file, R_OK, AT_EACCESS));
    TRY(faccessat(AT_FDCWD, WILD, R_OK, 0x7fff0000));
    TRY(faccessat(bad, "x", R_OK, 0));
}

static void descriptors(int fd, int bad)
{
    struct flock lock = {.l_type = F_RDLCK};
    TRY(dup(bad));
    TRY(dup(-1));
    TRY(dup2(fd, -1));
    TRY(dup2(bad, 40));
    TRY(dup2(fd, fd));
    TRY(dup3(fd, fd, 0));
    TRY(dup3(fd, 41, 99));
    TRY(dup3(fd, 41, O_CLOEXEC));
    TRY(fcntl(fd, F_DUPFD, 42));
    TRY(fcntl(fd, F_DUPFD_CLOEXEC, 1 << 30));
    TRY(fcntl(fd, F_DUPFD, -1));
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(41, F_GETFD));
    TRY(fcntl(fd, F_GETFL));
    TRY(fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY(fcntl(fd, F_SETLK, &lock));
    TRY(fcntl(fd, F_SETLK, WILD));
    TRY(fcntl(fd, 12345));
    TRY(fcntl(bad, F_GETFL));
    TRY(close_range(10, 5, 0));
    TRY(close_range(50, 60, 99));
    TRY(close_range(41, 60, CLOSE_RANGE_CLOEXEC));
    TRY(close_range(41, 60, 0));
    TRY(close(41));
    TRY(close(bad));
    TRY(close(-1));
    TRY(close(2000000000));
    TRY(close(fd));
    TRY(close(fd));
}

static void streams(const char *file, const char *missing)
{
    FILE *stream = fopen(file, "r");
    TRY(fread(buffer, 1, 10, stream));
    TRY(fread(buffer, 0, 10, stream));
    TRY(fread(buffer, 1, 9000, stream));
    TRY(fseek(stream, -1, SEEK_SET));
    TRY(fseek(stream, 10, 99));
    TRY(fseek(stream, 5, SEEK_SET));
    TRY(fwrite(buffer, 1, 10, stream));
    TRY(fputc('x', stream));
    TRY(fprintf(stream, "x"));
    TRY(ferror(stream) != 0);
    clearerr(stream);
    TRY(fflush(stream));
    TRY_POINTER(fgets(buffer, 10, stream));
    TRY_POINTER(freopen(missing, "r", stream));
    TRY(fclose(fopen(file, "r")));
    stream = fopen("/dev/full", "w");
    TRY(fprintf(stream, "x"));
    TRY(fflush(stream));
    TRY(fclose(stream));
}

int main(int count, char **arguments)
{
    char missing[4096];
    if (count < 3) return 2;
    snprintf(missing, sizeof missing, "%s/missing", arguments[1]);
    opens(arguments[2], missing, arguments[1]);
    int fd = open(arguments[2], O_RDONLY);
    moves(fd, 999);
    stats(fd, 999, arguments[2], missing);
    descriptors(fd, 999);
    streams(arguments[2], missing);
    return 0;
}
