/* Processes and threads that read at the same time: together FILE PROCESSES THREADS READS. Each thread waits for all of its process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd, reads;
static pthread_barrier_t all;

static void *work(void *unused)
{
    char buffer[10];
    pthread_barrier_wait(&all);
    for (int i = 0; i < reads; i++)
        if (pread(fd, buffer, sizeof buffer, 0) != sizeof buffer) abort();
    return unused;
}

int main(int count, char **arguments)
{
    if (count < 5) return 2;
    int threads = atoi(arguments[3]), bad = 0, status;
    pthread_t *crowd = calloc((size_t)threads, sizeof *crowd);
    pthread_attr_t small;
    reads = atoi(arguments[4]);
    for (int i = 1; i < atoi(arguments[2]); i++)
        if (fork() == 0) {
            bad = -1;
            break;
        }
    fd = open(arguments[1], O_RDONLY);
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN + 16384);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&crowd[i], &small, work, NULL)) abort();
    for (int i = 0; i < threads; i++) pthread_join(crowd[i], NULL);
    if (bad) return 0;
    while (wait(&status) > 0) bad += status != 0;
    return bad;
}
