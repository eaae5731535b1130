/* Emulated tiers: every metadata server, object server and link is a FIFO queue in virtual time: one number, the time
   when it will be free. An operation moves that number on by its service time with one compare-and-swap, does its real
   work, and sleeps until its turn has passed. All processes of a host share the numbers; a kill leaves nothing behind. */
#ifndef TIERSCOPE_QUEUES_H
#define TIERSCOPE_QUEUES_H

#include "record.h"

/* number < 0: there is no such queue, no rate limits. */
typedef struct {
    int64_t number;
    double per_op_ns, per_byte_ns; /* of an open, a stat or a read */
    double write_per_op_ns, write_per_byte_ns;
} ts_station;

/* One tier as one node sees it. */
typedef struct {
    ts_station metadata, link;
    uint64_t latency_ns, metadata_latency_ns; /* of each read, of each open and stat; outside the queues */
    double stream_per_byte_ns; /* of a read or write, whoever else reads; 0: a stream has no limit of its own */
    uint64_t emulated;   /* 0: the rest means nothing */
    uint64_t first_server, servers; /* in the array of servers that goes with it */
} ts_tier;

typedef _Atomic int64_t ts_slot; /* on the board: when this station will be free */

/* Queue up; the time at which the service will be over. `arrived`: when the operation began, or 0 for now. An operation may also
   queue up when its real work is done, since only then it is known how much it was. */
uint64_t ts_join(ts_slot *board, const ts_station *station, uint64_t bytes, uint64_t arrived);

/* When an open or stat, or a read of these bytes from this server, will be over; 0 when no rate limits it. */
uint64_t ts_join_metadata(ts_slot *board, const ts_tier *tier, uint64_t arrived);
uint64_t ts_join_read(ts_slot *board, const ts_tier *tier, const ts_station *server, uint64_t bytes, uint64_t arrived);
uint64_t ts_join_write(ts_slot *board, const ts_tier *tier, const ts_station *server, uint64_t bytes, uint64_t arrived);

/* Sleep until then; the nanoseconds by which it was too late for that, or < 0. */
int64_t ts_sleep(uint64_t done);
void ts_note_punctuality(ts_lane *lane, int64_t late);

/* Both; done 0: return at once. */
void ts_sleep_until(ts_lane *lane, uint64_t done);

/* Sleeps of this thread end when they should: Linux may otherwise add 50 µs to each. */
void ts_sharpen_sleep(void);

/* The object server that holds a file: its number in turn, or a checksum for a name without a number. */
uint64_t ts_server_index(const char *path, uint64_t servers);

uint32_t ts_crc32(uint32_t crc, const void *data, size_t bytes);

#endif
