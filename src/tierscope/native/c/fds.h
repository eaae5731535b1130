/* What is known of every file descriptor: two levels of a table, so that a process with few files needs little. */
#ifndef TIERSCOPE_FDS_H
#define TIERSCOPE_FDS_H

#include "process.h"

typedef struct {
    int tier; /* TS_NO_TIER: none */
    uint64_t server, file;
} ts_fd;

/* Which tier's file this is; asks the kernel once for a descriptor that came by another way than through us. */
bool ts_fd_find(int fd, ts_fd *found);

/* It has just been opened. */
void ts_fd_set(int fd, const ts_fd *what);

/* It is about to be closed: forget it. Whether it was a tier's; nobody asks the kernel about large numbers, which some programs close by the million. */
bool ts_fd_close(int fd, ts_fd *was);

/* Its number may soon be another file's. */
void ts_fd_forget(int fd);

void ts_fd_copy(int from, int to);
void ts_fd_forget_range(unsigned first, unsigned last);

/* Of a resolved path. */
ts_fd ts_fd_describe(const char *path);

#endif
