/* A small honest program: little FILE. Whatever happens around it, it says the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;

static void *look(void *unused)
{
    static char buffer[1000];
    struct stat about;
    (void)unused;
    int fd = open(path, O_RDONLY);
    long got = read(fd, buffer, sizeof buffer), state = stat(path, &about);
    printf("%d %ld %ld %ld %d\n", fd, got, state, state ? 0 : (long)about.st_size, fd < 0 ? errno : close(fd));
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count < 2) return 2;
    path = arguments[1];
    for (int i = 0; i < 3; i++) look(NULL);
    if (pthread_create(&thread, NULL, look, NULL) == 0) pthread_join(thread, NULL);
    fprintf(stderr, "%s\n", strerror(errno));
    return 42;
}
