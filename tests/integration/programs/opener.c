/* Opens what it is told to: opener LIST. The list: folder to be in, path, each ended by a zero byte. Of the file with number n it
   reads n + 1 bytes, so that the operation list tells which one was meant. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char list[1 << 22], buffer[1 << 16];

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    FILE *source = fopen(arguments[1], "rb");
    char *end = list + fread(list, 1, sizeof list - 1, source), *next = list;
    fclose(source);
    for (size_t number = 0; next < end; number++) {
        char *folder = next, *path = folder + strlen(folder) + 1;
        next = path + strlen(path) + 1;
        if (chdir(folder)) return 3;
        int beside = open(folder, O_RDONLY | O_DIRECTORY), fd = -1;
        FILE *stream = NULL;
        switch (number % 4) {
        case 0: fd = open(path, O_RDONLY); break;
        case 1: fd = openat(beside, path, O_RDONLY | O_CLOEXEC); break;
        case 2: fd = (stream = fopen(path, "rb")) ? fileno(stream) : -1; break;
        case 3: fd = open(path, O_RDONLY | O_NOFOLLOW); if (fd < 0) fd = open(path, O_RDONLY); break;
        }
        if (fd < 0) return 4;
        if (number % 3 == 0) { /* and the descriptor alone must be enough */
            int copy = dup(fd);
            if (stream) fclose(stream), stream = NULL;
            else close(fd);
            fd = copy;
        }
        if (pread(fd, buffer, number + 1, 0) != (ssize_t)number + 1) return 5;
        if (stream) fclose(stream);
        else close(fd);
        close(beside);
    }
    return 0;
}
