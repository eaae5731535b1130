/* To be killed: worker FOLDER PROCESSES THREADS. Every thread opens, reads, writes and closes, and says so with a byte each time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

static void *work(void *number)
{
    char path[4096], own[4096], buffer[4096];
    snprintf(path, sizeof path, "%s/data.bin", folder);
    snprintf(own, sizeof own, "%s/own-%d-%ld", folder, getpid(), (long)number);
    for (;;) {
        int fd = open(path, O_RDONLY), mine = open(own, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || mine < 0) abort();
        pread(fd, buffer, 100, 0);
        pwrite(mine, buffer, 10, 0);
        close(fd), close(mine);
        if (write(1, "x", 1) != 1) return NULL;
    }
}

int main(int count, char **arguments)
{
    if (count < 4) return 2;
    folder = arguments[1];
    for (int processes = atoi(arguments[2]); processes > 1; processes--)
        if (fork() == 0) break;
    pthread_t thread;
    for (long number = 1; number < atoi(arguments[3]); number++) pthread_create(&thread, NULL, work, (void *)number);
    work(NULL);
    return 1;
}
