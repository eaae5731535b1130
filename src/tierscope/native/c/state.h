/* The files through which a recorded process and `tierscope trace` talk. All are in one folder, which the environment
   variable TIERSCOPE_RECORD names. Everything is in the byte order of the machine; native/state.py reads and writes the same.

     config              written before the command starts: tiers, path prefixes, emulated stations
     board               the emulated stations' shared numbers (ts_slot each)
     seen                what went through wrappers on files of no tier (seen.h)
     lost                what those processes could not record that could not make a file of their own (two counters, mapped at their start)
     HOST-PID-NS.state   one per process that touched a tier, made when it first did; mapped and shared, so that nothing is lost
                         when the process is killed: a head, then chunks (lanes, epochs, lists) one after another
     HOST-PID-NS.ops     with OPTION_OPS: the operation list (ts_op), in blocks of TS_LIST_ROWS rows
     HOST-PID-NS.names   with OPTION_OPS: which path a file number means: uint64 number, uint32 length, path
     rank-NAME           shared by the processes of one rank on a host: its current epoch, its clock, and what it read (life.h) */
#ifndef TIERSCOPE_STATE_H
#define TIERSCOPE_STATE_H

#include "queues.h"
#include "record.h"

enum { TS_VERSION = 1, TS_MAX_PREFIXES = 64, TS_MAX_STATIONS = 4096, TS_PATH = 4096 };
enum { TS_EPOCH_MAGIC = 0x434f5045, TS_LIST_MAGIC = 0x5453494c };
enum { TS_OPTION_OPS = 1, TS_OPTION_REREADS = 2, TS_OPTION_EVICT = 4 }; /* EVICT: of real tiers, what is opened to be read, then and before its close */

static const char TS_CONFIG_MAGIC[8] = "TSCONF01";
static const char TS_STATE_MAGIC[8] = "TSSTAT01";

/* config: this head, then `prefixes` × ts_prefix, then `servers` × ts_station. crc: ts_crc32 of all that follows it. */
typedef struct {
    char magic[8];
    uint32_t crc, bytes; /* bytes: of the whole file */
    uint32_t version, options, tiers, prefixes, servers, slots;
    char boot[40]; /* the emulated stations are in the memory of this boot of this host */
    ts_tier tier[TS_MAX_TIERS];
} ts_config;

typedef struct {
    uint32_t tier, length; /* length of path, without a slash at its end */
    char path[TS_PATH - 8];
} ts_prefix;

/* What a process spent since its first operation on a tier, as noted at end_ns; 0: it ended before. CPU of all its threads, the delay of its main thread. */
enum { TS_USAGE_NS = 50000000, TS_TORCH = 1, TS_TENSORFLOW = 2 };
typedef struct {
    _Atomic uint64_t next_ns; /* not noted before */
    uint64_t end_ns, notes;
    uint64_t user_start_ns, user_ns, system_start_ns, system_ns;
    uint64_t delay_start_ns, delay_ns; /* ready to run, and no core was free */
    uint64_t has_delay, worker, framework; /* worker: of torch's DataLoader, by its name; framework: whose library it has loaded */
} ts_usage;

/* state: the head of the file, a page of its own. crc: of the bytes from `version` to before `used`. */
typedef struct {
    char magic[8];
    uint32_t crc, unused;
    uint32_t version, tiers, kinds, bins;
    uint32_t pid, parent;
    uint64_t start_ns, start_realtime_ns;
    char host[64], boot[40], command[256];
    char variables[1024]; /* NAME=value lines of the launcher's variables that were set */
    _Atomic uint64_t used;  /* bytes of the file that hold chunks, this head included */
    _Atomic uint64_t lost_ops;   /* that could not be kept: no space, or a signal inside a signal */
    _Atomic uint64_t mapped_ops; /* mmaps of a tier's files: their page faults are not seen */
    _Atomic uint64_t unemulated; /* the config asks for emulation, but this is another host */
    _Atomic uint64_t lost_rows;  /* of the operation list that could not be written */
    _Atomic uint64_t shares_clock; /* its operations share time with its rank's; 0: among themselves at most */
    ts_usage usage;
} ts_head;

enum { TS_HEAD_BYTES = 4096 };
_Static_assert(sizeof(ts_head) <= TS_HEAD_BYTES, "the head is one page");

/* A chunk begins with magic and bytes; lanes are chunks (record.h). An epoch that was marked, with its phases: */
enum { TS_PHASES = 8, TS_PHASE_NAME = 24 };
typedef struct {
    char name[TS_PHASE_NAME];
    uint64_t ns, count;
} ts_phase;

typedef struct {
    uint32_t magic, bytes;
    int32_t epoch;
    uint32_t unused;
    uint64_t begin_ns, end_ns; /* end 0: not marked; it lasted until the rank's last operation in it, or this process's last phase */
    uint64_t last_ns;          /* when the last phase in it ended */
    ts_phase phases[TS_PHASES];
} ts_epoch;

/* Rows of the operation list that were not yet written to the .ops file. */
typedef struct {
    uint32_t magic, bytes;
    _Atomic uint32_t owner; /* thread id; 0 when the thread is gone */
    uint32_t block;         /* not 0: all rows are just being written to the .ops file, as its (block - 1)th TS_LIST_ROWS rows; after a kill these count */
    ts_list list;
} ts_list_chunk;

#endif
