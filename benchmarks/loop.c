/* The bound for reading files: open, read into reused memory, close; nothing else.
   usage: loop FOLDER SUFFIX FILES BYTES [BUFFERS]   prints nanoseconds for one pass over all files
   BUFFERS: take turns among so many (1), as a loader that reads ahead must; one may stay in the processor's cache. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    long files = atol(argv[3]), buffers = argc > 5 ? atol(argv[5]) : 1;
    size_t bytes = (size_t)atol(argv[4]), stride = (bytes + 4095) / 4096 * 4096, all = stride * (size_t)buffers;
    char *memory = aligned_alloc(4096, all);
    char path[4096];
    struct timespec start, end;
    if (!memory) return 2;
    for (size_t i = 0; i < all; i += 4096) memory[i] = 1; /* fault the pages in before timing */
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long file = 0; file < files; file++) {
        snprintf(path, sizeof path, "%s/%09ld%s", argv[1], file, argv[2]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, memory + stride * (size_t)(file % buffers), bytes) != (ssize_t)bytes) return 1;
        close(fd);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec));
    return 0;
}
