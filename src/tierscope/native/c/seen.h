/* The bytes that went through our wrappers on files of no tier, of all processes of a command: with the tiers' own sums they are what was
   seen of the bytes that the kernel counts in rchar and wchar of /proc/PID/io. Shared and mapped, so that a kill loses nothing.

   The kernel counts read, write, their vectors and positions, sendfile and copy_file_range, on any descriptor. It does not count splice, recv and
   send, page faults of mapped files, io_uring and libaio. */
#ifndef TIERSCOPE_SEEN_H
#define TIERSCOPE_SEEN_H

#include "process.h"

#include <sys/types.h>

/* The file `seen` of the record folder. A thread has a slot of its own as far as there are enough. Less than 0: a tier's sums hold what the
   kernel does not count. */
enum { TS_SEEN_SLOTS = 64 };
typedef struct {
    _Atomic int64_t read, written, unused[6];
} ts_seen_slot;
typedef struct {
    _Atomic uint64_t processes; /* that our library was loaded into: each exec counts */
    _Atomic uint64_t rings;     /* processes that touched a tier and had an io_uring */
    _Atomic uint64_t early_faults; /* page faults of processes before they first mapped a tier's file */
    _Atomic uint64_t own_written; /* by ourselves, for our records: the kernel counts that too */
    _Atomic uint64_t writable; /* bytes of a tier's files that were mapped shared and writable: page faults may write them */
    uint64_t unused[3];
    ts_seen_slot slots[TS_SEEN_SLOTS];
} ts_seen_page;
_Static_assert(sizeof(ts_seen_page) == 64 * (1 + TS_SEEN_SLOTS), "the page is part of the file format");

extern ts_seen_page *ts_seen; /* NULL: there is none */

void ts_open_seen(void);
void ts_saw(int64_t read, int64_t written);
void ts_saw_own(int64_t written);

/* What a read or write on no tier's descriptor returned. */
static inline ssize_t ts_saw_moved(unsigned kind, ssize_t got)
{
    if (got > 0) ts_saw(kind == TS_READ ? got : 0, kind == TS_READ ? 0 : got);
    return got;
}

/* What was copied inside the kernel: a tier's side is in the tier's sums. `counted`: the kernel counts such copies. */
static inline void ts_saw_copied(bool counted, bool reads, bool writes, ssize_t got)
{
    if (got > 0 && counted) ts_saw(reads ? 0 : got, writes ? 0 : got);
    if (got > 0 && !counted) ts_saw(reads ? -got : 0, writes ? -got : 0);
}

/* A tier's file was closed, or the process ends: now and then, see whether it has an io_uring. */
void ts_look_for_rings(bool ends);

/* A tier's file was mapped; `writable`: so many bytes of it can be written through the mapping. */
void ts_saw_mapping(uint64_t writable);

/* A descriptor that was mapped where the rings of an io_uring are. */
void ts_may_be_ring(int fd);

#endif
