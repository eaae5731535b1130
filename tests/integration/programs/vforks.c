/* Children on borrowed memory: vforks ROOT. What they close, open and duplicate is theirs; the parent's files stay known. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096], other[4096], buffer[100];

static void child(int way, int fd, int second, char *self)
{
    switch (way) {
    case 0: close(fd), close(second); break;
    case 1: dup2(second, fd); break;
    case 2: close(fd), open("/dev/null", O_RDONLY); break;
    case 3: closefrom(3); break;
    case 4: close_range(3, ~0u, 0); break;
    case 5: dup2(fd, 0), execl(self, self, "child", NULL); break;
    case 6: execl("/nonexistent", "x", NULL); break;
    case 7: /* a child of the child, which the address sanitizer's own vfork does not survive */
#ifndef __SANITIZE_ADDRESS__
        if (vfork() == 0) close(fd), _exit(0);
#endif
        close(second), close(fd);
        break;
    case 8: read(fd, buffer, 5), open(other, O_RDONLY); break;
    }
    _exit(way);
}

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    if (!strcmp(arguments[1], "child")) return read(0, buffer, 33) == 33 ? 0 : 1;
    snprintf(path, sizeof path, "%s/one/data.bin", arguments[1]);
    snprintf(other, sizeof other, "%s/two/x", arguments[1]);
    for (int way = 0; way < 9; way++) {
        int fd = open(path, O_RDONLY), second = open(other, O_RDONLY), status = 0;
        pid_t pid = vfork();
        if (pid == 0) child(way, fd, second, arguments[0]);
        waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) != (way == 5 ? 0 : way)) return 100 + way;
        read(fd, buffer, 10 + (size_t)way), read(second, buffer, 50 + (size_t)way);
        close(second), close(fd);
        pid = fork(); /* a real one is seen again */
        if (pid == 0) {
            fd = open(path, O_RDONLY), read(fd, buffer, 3), close(fd);
            _exit(0);
        }
        waitpid(pid, &status, 0);
    }
    return 0;
}
