/* Files by raw system calls: what we do ourselves is never recorded. errno is not kept: callers do that. */
#ifndef TIERSCOPE_RAW_H
#define TIERSCOPE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int raw_open(const char *path, int flags); /* O_CLOEXEC is added */
void raw_close(int fd);

/* All of it, at an offset or (offset < 0) where the file stands. */
bool raw_write(int fd, const void *data, size_t bytes, int64_t offset);

/* A write past the limit on file sizes would end the host program with a signal. */
bool raw_may_grow_to(uint64_t bytes);

/* Real blocks before mapped memory is touched: a full disk must not become a SIGBUS. */
bool raw_fill_with_zeros(int fd, uint64_t offset, uint64_t bytes);

void *raw_map(int fd, size_t bytes); /* shared; NULL when it fails */
bool raw_has_bytes(int fd, uint64_t bytes); /* a regular file of at least this size */
void raw_read_line(const char *path, char *text, size_t room);
void raw_read_host(char *host, size_t room); /* fit for a file's name */
void raw_read_boot(char *boot, size_t room);

#endif
