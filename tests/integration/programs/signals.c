/* Signal handlers that read while the program reads: signals FOLDER READS. Prints how many reads both made. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static int fd;
static _Atomic long handled;
static char path[4096];

static void on_alarm(int signal)
{
    char buffer[10];
    (void)signal;
    if (pread(fd, buffer, sizeof buffer, 0) == sizeof buffer) handled++;
    int own = open(path, O_RDONLY); /* not only on a known descriptor */
    close(own);
}

static void *work(void *amount)
{
    char buffer[100];
    for (long i = 0; i < (long)amount; i++) pread(fd, buffer, sizeof buffer, i);
    return NULL;
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    long amount = atol(arguments[2]);
    snprintf(path, sizeof path, "%s/data.bin", arguments[1]);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL); /* before the first operation: also while the state file is being made */
    while ((fd = open(path, O_RDONLY)) < 0) {}
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)amount);
    work((void *)amount);
    pthread_join(thread, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld %ld\n", 2 * amount, (long)handled);
    return 0;
}
