/* Which tier a path or a file descriptor belongs to. */
#ifndef TIERSCOPE_PATHS_H
#define TIERSCOPE_PATHS_H

#include "process.h"

enum { TS_NO_TIER = -1 };

/* By the text alone, which must be absolute: the longest prefix wins. */
int ts_tier_of_text(const char *path);

/* Whether the text says where it leads, but for symbolic links: no "..", "." or "//" in it. */
bool ts_is_plain(const char *path);

/* The path as the kernel resolved it, for an open descriptor of a file; false for pipes, sockets and the like. */
bool ts_path_of_fd(int fd, char path[TS_PATH]);

/* Of the calling thread, with the bytes of its text and end; 0: it has no path. */
long ts_working_folder(char path[TS_PATH]);

/* For a path that was not opened (stat, or an open that failed): symbolic links are resolved but for the last component. Where folders
   lead to is remembered for a second (but not below a descriptor), so that a walk over many files asks once for each. */
int ts_tier_of_path(int dir, const char *path, uint64_t now);

#endif
