#define _GNU_SOURCE
#include "queues.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_NS 1e15 /* eleven days: whoever waits that long has other troubles */

static uint64_t join(ts_slot *board, const ts_station *station, double wanted, uint64_t arrived)
{
    int64_t service = wanted < LONGEST_NS ? (int64_t)wanted : (int64_t)LONGEST_NS;
    ts_slot *slot = &board[station->number];
    int64_t free_at = atomic_load_explicit(slot, memory_order_relaxed), done;
    do {
        int64_t now = (int64_t)(arrived ? arrived : ts_now());
        int64_t begin = now > free_at ? now : free_at, latest = now + (int64_t)LONGEST_NS;
        done = (begin < latest ? begin : latest) + service; /* and so no sum overflows */
    } while (!atomic_compare_exchange_weak(slot, &free_at, done));
    return (uint64_t)done;
}

uint64_t ts_join(ts_slot *board, const ts_station *station, uint64_t bytes, uint64_t arrived)
{
    return join(board, station, station->per_op_ns + (double)bytes * station->per_byte_ns + 0.5, arrived);
}

static uint64_t join_to_write(ts_slot *board, const ts_station *station, uint64_t bytes, uint64_t arrived)
{
    return join(board, station, station->write_per_op_ns + (double)bytes * station->write_per_byte_ns + 0.5, arrived);
}

uint64_t ts_join_metadata(ts_slot *board, const ts_tier *tier, uint64_t arrived)
{
    uint64_t done = tier->metadata.number >= 0 ? ts_join(board, &tier->metadata, 0, arrived) : 0;
    if (!done && tier->metadata_latency_ns) done = arrived ? arrived : ts_now();
    return done ? done + tier->metadata_latency_ns : 0;
}

/* Data streams through server and link at once: the read or write ends when both are done, and the stream could carry it. */
static inline uint64_t join_data(ts_slot *board, const ts_tier *tier, const ts_station *server, uint64_t bytes, uint64_t arrived, bool writes)
{
    uint64_t done = 0;
    if (server && server->number >= 0) done = (writes ? join_to_write : ts_join)(board, server, bytes, arrived);
    if (tier->link.number >= 0) {
        uint64_t through = (writes ? join_to_write : ts_join)(board, &tier->link, bytes, arrived);
        if (through > done) done = through;
    }
    if (tier->stream_per_byte_ns > 0) {
        double wanted = (double)bytes * tier->stream_per_byte_ns + 0.5;
        uint64_t alone = (arrived ? arrived : ts_now()) + (uint64_t)(wanted < LONGEST_NS ? wanted : LONGEST_NS);
        if (alone > done) done = alone;
    }
    if (!done && tier->latency_ns) done = arrived ? arrived : ts_now();
    return done ? done + tier->latency_ns : 0;
}

uint64_t ts_join_read(ts_slot *board, const ts_tier *tier, const ts_station *server, uint64_t bytes, uint64_t arrived)
{
    return join_data(board, tier, server, bytes, arrived, false);
}

uint64_t ts_join_write(ts_slot *board, const ts_tier *tier, const ts_station *server, uint64_t bytes, uint64_t arrived)
{
    return join_data(board, tier, server, bytes, arrived, true);
}

/* By the kernel's own call: the C library's may be cancelled, and the operation is already done. */
int64_t ts_sleep(uint64_t done)
{
    uint64_t now = ts_now();
    struct timespec until = {(time_t)(done / 1000000000u), (long)(done % 1000000000u)};
    while (now < done && syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) && errno == EINTR) {}
    return (int64_t)(now - done);
}

void ts_note_punctuality(ts_lane *lane, int64_t late)
{
    lane->limited_ops++;
    if (late < 0) return;
    lane->late_ops++;
    lane->late_ns += (uint64_t)late;
}

void ts_sleep_until(ts_lane *lane, uint64_t done)
{
    if (done) ts_note_punctuality(lane, ts_sleep(done));
}

void ts_sharpen_sleep(void) { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

uint32_t ts_crc32(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *next = data;
    crc = ~crc;
    while (bytes--) {
        crc ^= *next++;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

uint64_t ts_server_index(const char *path, uint64_t servers)
{
    if (servers <= 1) return 0;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *end = name + strlen(name);
    while (end > name && (end[-1] < '0' || end[-1] > '9')) end--;
    if (end == name) return ts_crc32(0, name, strlen(name)) % servers; /* whatever its folder */
    const char *digit = end;
    while (digit > name && digit[-1] >= '0' && digit[-1] <= '9') digit--;
    uint64_t number = 0;
    for (; digit < end; digit++) number = (number * 10 + (uint64_t)(*digit - '0')) % servers;
    return number;
}
