/* One recorded process: what it was told to record, its shared state file, and its threads' lanes.

   Nothing here takes a lock on the way of an operation, allocates with malloc or keeps a file descriptor: the host program
   must not notice us. All of a process's own state is in pages that the kernel wipes in a forked child, which so starts anew. */
#ifndef TIERSCOPE_PROCESS_H
#define TIERSCOPE_PROCESS_H

#include "clock.h"
#include "state.h"

#include <stdbool.h>

#define TS_EXPORT __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Read from the config file, never changed afterwards; NULL: nothing is to be recorded. */
extern const ts_config *ts_conf;
extern const ts_prefix *ts_prefixes;
extern const ts_station *ts_servers;
extern ts_slot *ts_board; /* NULL: no tier is emulated here */

/* What a thread knows. `vforked`: this is the child of a vfork, on borrowed memory: it must leave no trace. */
typedef struct {
    uint64_t born;
    ts_lane *lane[2]; /* the second is for signal handlers that interrupt the making of a record */
    ts_list_chunk *list;
    int32_t epoch;
    uint32_t depth;
    ts_seat *seat, own_seat; /* operations in the clock: one, and those of signal handlers; NULL: none yet */
    bool standing;   /* all seats were taken: its operations have no place in the clock */
    bool watched;    /* the end of this thread will be noticed */
    bool on_tier;    /* its last operation by path was a tier's */
    bool linked;     /* its last open went through a symbolic link, probably */
    uint32_t phases;
    uint64_t phase_start[8];
    char phase_name[8][TS_PHASE_NAME];
} ts_thread;

extern _Thread_local ts_thread ts_self;
extern _Thread_local uint32_t ts_vforked;

static inline bool ts_recording(void) { return unlikely(ts_conf != NULL) && likely(!ts_vforked); }

/* Memory for a path or a record: the host's stacks may be small. NULL: all of it is in use. */
enum { TS_LOAN = TS_PATH + 512, TS_LOANS = 64 };
char *ts_borrow(void);
void ts_give_back(char *loan);

/* An operation begins: its start, and its place in the clock that active operations share. */
ts_span ts_op_begin(void);

/* The same for one whose file is not known yet: it has a place in the clock only if this thread's last such operation was a tier's. */
ts_span ts_op_begin_unsure(void);

/* It reached no tier; and (by its path) this thread's next will not either, probably. */
void ts_op_cancel(ts_span span);
void ts_op_not_ours(ts_span span);

/* It is over. On an emulated tier this is where it sleeps until its turn has passed: `moved` are the bytes that a server moved for
   it, `asks_metadata` whether the metadata server was asked. */
typedef struct {
    unsigned tier, kind;
    uint64_t server; /* of the file on an emulated tier */
    uint64_t file;   /* a number for its path */
    int64_t offset;
    uint64_t bytes;
    uint64_t end_ns; /* when the real work was over; 0: now */
    bool asks_metadata;
} ts_done;
void ts_op_end(ts_span span, const ts_done *done);

/* A path's number in the operation list; writes down which path it is, where such a list is kept. */
uint64_t ts_name_file(const char *path);

/* rereads.c, with TS_OPTION_REREADS: an operation is over; the next epoch may begin with it. */
void ts_note_read(const ts_done *done);

void ts_note_mapping(void);

#endif
