/* Reads a file in ways that differ between processors: after a vfork, from four threads, in a forked child.
   usage: mixed FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *read_often(void *path)
{
    char buffer[65536];
    for (int i = 0; i < 50; i++) {
        int fd = open(path, O_RDONLY);
        while (read(fd, buffer, sizeof buffer) > 0) {}
        close(fd);
    }
    return NULL;
}

int main(int count, char **words)
{
    char buffer[100];
    pthread_t threads[4];
    if (count != 2) return 2;
    int fd = open(words[1], O_RDONLY), status = 0;
    pid_t child = vfork();
    if (!child) {
        close(fd); /* its own, not its parent's */
        _exit(3);
    }
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) return 1;
    if (read(fd, buffer, sizeof buffer) != sizeof buffer || close(fd)) return 1;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, read_often, words[1]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    if (!fork()) {
        read_often(words[1]);
        _exit(0);
    }
    return wait(&status) < 0 || status;
}
