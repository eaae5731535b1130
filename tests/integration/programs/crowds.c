/* Threads and children that come and go: crowds FOLDER threads|forks|both|leaving AMOUNT. Each of them reads once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd;
static _Atomic int stop;

static void *read_once(void *unused)
{
    char buffer[10];
    (void)unused;
    pread(fd, buffer, sizeof buffer, 0);
    return NULL;
}

static void *read_on(void *unused)
{
    long done = 0;
    while (!stop) read_once(unused), done++;
    return (void *)done;
}

static void threads(int amount)
{
    pthread_t crowd[4];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN + 16384); /* ours must not be what makes it overflow */
    for (int i = 0; i < amount; i += 4) {
        for (int j = 0; j < 4; j++) pthread_create(&crowd[j], &small, read_once, NULL);
        for (int j = 0; j < 4; j++) pthread_join(crowd[j], NULL);
    }
}

static int forks(int amount)
{
    int bad = 0, status;
    for (int i = 0; i < amount; i++) {
        if (fork() == 0) read_once(NULL), _exit(0);
        if (i % 20 == 19)
            for (int j = 0; j < 20; j++) wait(&status), bad += status != 0;
    }
    return bad;
}

/* A thread forks, and its child ends by leaving the thread: what ran at the end of threads runs there. */
static void *fork_and_leave(void *result)
{
    int status = 0;
    read_once(NULL);
    pid_t child = fork();
    if (child == 0) return NULL;
    waitpid(child, &status, 0);
    *(int *)result = status;
    return NULL;
}

int main(int count, char **arguments)
{
    char path[4096];
    if (count < 4) return 2;
    int amount = atoi(arguments[3]), bad = 0;
    long beside = 0;
    snprintf(path, sizeof path, "%s/data.bin", arguments[1]);
    fd = open(path, O_RDONLY);
    pthread_t others[3];
    if (!strcmp(arguments[2], "threads")) threads(amount);
    if (!strcmp(arguments[2], "forks")) bad = forks(amount);
    if (!strcmp(arguments[2], "both")) {
        for (int i = 0; i < 3; i++) pthread_create(&others[i], NULL, read_on, NULL);
        bad = forks(amount);
        stop = 1;
        for (int i = 0; i < 3; i++) {
            void *done;
            pthread_join(others[i], &done);
            beside += (long)done;
        }
    }
    if (!strcmp(arguments[2], "leaving")) {
        for (int i = 0; i < amount; i++) {
            int status = -1;
            pthread_create(&others[0], NULL, fork_and_leave, &status);
            pthread_join(others[0], NULL);
            bad += status != 0;
        }
    }
    printf("%d %ld\n", bad, beside);
    return 0;
}
