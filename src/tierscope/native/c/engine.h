/* The read engine: threads that read batches of samples into memory that is given to them, each operation recorded.

   engine.c        the pool: who reads which part of which batch, and who waits for it
   engine_read.c   one thread's way through a part: open, read, close, one after another
   engine_uring.c  the same with many samples of a thread in flight at once
   engine_cold.c   files out of the page cache, through the descriptors that read them
   api.c           small calls for Python that are no part of the engine

   The consumer hands over a batch (submit), the threads share it in equal parts, and the consumer waits for it (wait).
   Without threads the consumer reads by itself while it waits. The structures with `config` in their name and
   ts_engine_outcome are those of native/engine.py. */
#ifndef TIERSCOPE_ENGINE_H
#define TIERSCOPE_ENGINE_H

#include <pthread.h>
#include <stdbool.h>

#include "queues.h"
#include "record.h"

#define TS_PUBLIC __attribute__((visibility("default")))

/* What stands behind the tiers: files; nothing, to see what we cost ourselves; or system calls that do no work. */
enum { TS_FILES, TS_NOTHING, TS_NULL_DEVICE };
enum { TS_PREAD, TS_URING };
enum { TS_DIRECT_ALIGN = 4096 }; /* of offset, length and memory: enough for any device */

/* Where a tier's files lie: PREFIX 000000042 SUFFIX, or PREFIX 000002/000000042 SUFFIX with subfolders. `looks`, `evicts`: whether the page
   cache is asked about them when their reading begins, and whether they are taken out of it then and in the end. */
typedef struct {
    const char *prefix, *suffix;
    uint64_t subfolders;
    uint32_t looks, evicts;
} ts_folder_config;

/* A stretch of a file that sample number `inside` of it needs: at first + inside × step. */
typedef struct {
    uint64_t first, step, bytes;
} ts_extent_config;

typedef struct {
    uint32_t threads, batches, batch_size, tiers, extents;
    uint32_t storage, io, direct;
    uint32_t buffered;              /* samples that follow one another in a file are cut from reads of transfer_bytes */
    int32_t epoch, ops_fd;          /* ops_fd < 0: no list of operations */
    uint64_t transfer_bytes;        /* largest single read */
    uint64_t slot_bytes, stride;    /* of a sample: its extents one after another; distance to the next sample's */
    const ts_folder_config *folders;
    const ts_extent_config *extent; /* `extents` of them */
    const ts_tier *stations;
    const ts_station *servers;
    uint64_t all_servers;
    const char *board;              /* NULL: no tier is emulated */
    void *const *memory;            /* of each batch */
    _Atomic uint32_t *left;         /* of each file: reads to come, TS_FIRST, TS_LAST (plan/uses.py); NULL: every file is read once */
    uint64_t file_bytes;            /* of every file */
    uint64_t most_checked;          /* files of a tier that the page cache is asked about */
} ts_engine_config;

#define TS_FIRST UINT32_C(0x80000000) /* nobody of this node has opened it yet */
#define TS_LAST UINT32_C(0x40000000)  /* nobody of this node will read it after us */

/* What was seen of a tier's files when their reading began, and what evicting and looking took. `unknown`: files of which the kernel cannot tell. */
typedef struct {
    _Atomic uint64_t files, checked_bytes, resident_bytes, unknown, nanoseconds;
} ts_cold;

/* How the reading of a sample went; operation < 0: well. */
enum { TS_FINE = -1, TS_SKIPPED = -2, TS_TRUNCATED = -3 };
typedef struct {
    int32_t operation;             /* that failed (TS_OPEN, TS_READ, TS_CLOSE), or one of the above */
    int32_t error;                 /* errno */
    uint64_t offset, wanted, got;  /* of the extent, when a read failed */
} ts_result;

typedef struct {
    uint64_t began, ended;
    int64_t failed;                /* the first sample that could not be read, or -1 */
    ts_result result;              /* of that one */
} ts_engine_outcome;

/* A batch and the memory for it; used again and again. */
typedef struct {
    int64_t step;
    uint32_t count;                /* samples */
    uint32_t share, taken, left;   /* samples per part; handed out so far; not yet finished */
    uint64_t began, ended;
    int64_t *files, *inside, *tiers;
    ts_result *results;
    unsigned char *memory;
} ts_batch;

typedef struct ts_engine ts_engine;
typedef struct ts_ring ts_ring;

/* What one thread has to itself. */
typedef struct {
    ts_engine *engine;
    ts_lane *lane;
    ts_list *list;                 /* NULL: no list of operations */
    char *path;
    const ts_station *server;      /* of the open file */
    unsigned char *buffer;         /* NULL: not buffered; what it holds of the open file: */
    uint64_t held_at, held;
    uint32_t run_stop;             /* the sample behind those of the part at hand that follow one another in the open file */
    ts_batch *batch;               /* the part at hand, and the next sample in it */
    uint32_t next, stop;
    int fd;                        /* -1: no file is open */
    int64_t open_file, open_tier;
    uint32_t reads;                /* samples that came through the open file */
    uint64_t now;                  /* when the last operation ended; 0: too long ago for the next one to begin then */
    pthread_t thread;
    ts_ring *ring;
} ts_reader;

struct ts_engine {
    ts_engine_config config;
    ts_wall wall;
    ts_slot *board;
    size_t board_bytes;
    size_t *prefix_bytes, *suffix_bytes;
    size_t path_bytes;             /* room for any path */
    uint64_t align, transfer;      /* 1, or as O_DIRECT wants it */
    int open_flags;
    ts_batch *batches;
    ts_reader *readers;
    ts_cold *cold;                 /* of each tier */
    uint32_t lanes, running;       /* readers; threads that were started */
    uint32_t *queue;               /* ring of batches with parts to be handed out */
    uint32_t queued, head;
    bool failed;                   /* a sample could not be read: no part is begun any more */
    atomic_bool stopping;
    int ops_error;
    pthread_mutex_t lock, ops_lock;
    pthread_cond_t work, done;
};

/* engine.c */
bool ts_engine_take(ts_reader *reader, bool wait);
void ts_engine_finished(ts_engine *engine, ts_batch *batch, uint32_t samples, uint64_t began, uint64_t ended,
                        bool failed);

/* engine_read.c */
void ts_build_path(const ts_engine *engine, char *path, int64_t tier, int64_t file);
void ts_note_op(ts_reader *reader, const ts_batch *batch, uint32_t sample, unsigned kind, uint64_t offset,
                uint64_t bytes, ts_span span, uint64_t end);
int ts_flush_list(ts_reader *reader);
void ts_serve_parts(ts_reader *reader);
bool ts_read_part(ts_reader *reader, uint64_t deadline);
void ts_drop_file(ts_reader *reader);

/* engine_cold.c: whether a file that was just opened, or of which so many more samples were read and that is about to be closed, is to be evicted;
   and doing it. Nothing of it is recorded. */
bool ts_cold_begins(const ts_engine *engine, int64_t tier, int64_t file);
bool ts_cold_ends(const ts_engine *engine, int64_t tier, int64_t file, uint32_t reads);
void ts_cold_evict(ts_engine *engine, int64_t tier, int fd);
void ts_cold_look(ts_engine *engine, int64_t tier, int fd);

/* The part of a file that an extent needs, read piece by piece; whole aligned blocks where O_DIRECT wants them. */
typedef struct {
    uint64_t offset, wanted;       /* the extent */
    uint64_t start, end, at;       /* blocks around it in the file; bytes of them that are read */
    unsigned char *into;
} ts_window;

enum { TS_MORE, TS_WHOLE, TS_CUT };
ts_window ts_window_of(const ts_engine *engine, const ts_batch *batch, uint32_t sample, uint32_t extent);
uint64_t ts_window_next(const ts_engine *engine, const ts_window *window);
int ts_window_got(const ts_engine *engine, ts_window *window, uint64_t wanted, uint64_t got);
void ts_window_done(const ts_engine *engine, const ts_batch *batch, uint32_t sample, uint32_t extent,
                    const ts_window *window);
ts_result ts_window_cut(const ts_window *window, uint64_t got);

/* engine_uring.c */
int ts_ring_open(ts_reader *reader);
void ts_ring_close(ts_reader *reader);
void ts_serve_ring(ts_reader *reader);

#endif
