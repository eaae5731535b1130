/* Takes every descriptor there is, and goes on reading: exhausted FILE. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    struct rlimit few = {64, 64};
    char buffer[100];
    struct stat about;
    setrlimit(RLIMIT_NOFILE, &few);
    int fd, opened = 0, last = -1, reads = 0;
    while ((fd = dup(0)) >= 0) opened++, last = fd; /* before the first operation on a tier */
    printf("%d %d %d\n", opened, errno, open(arguments[1], O_RDONLY));
    printf("%d %d\n", stat(arguments[1], &about), access(arguments[1], R_OK));
    close(last);
    fd = open(arguments[1], O_RDONLY);
    for (int i = 0; i < 100; i++) reads += pread(fd, buffer, 10, i) == 10;
    printf("%d %d %d\n", fd, reads, open(arguments[1], O_RDONLY));
    close(fd), close(last - 1);
    fd = open(arguments[1], O_RDONLY);
    for (int i = 0; i < 100; i++) reads += pread(fd, buffer, 10, i) == 10;
    printf("%d %d\n", fd, reads);
    return 0;
}
