/* Small calls for Python that are no part of the engine. */
#include "engine.h"

#include <stdlib.h>

/* Queue up at a station for so long; when the service will be over. The clock is the caller's, and not at 0. */
TS_PUBLIC int64_t ts_api_join(ts_slot *slot, int64_t now, int64_t service)
{
    const ts_station station = {.per_op_ns = (double)service};
    return (int64_t)ts_join(slot, &station, 0, (uint64_t)now);
}

TS_PUBLIC uint64_t ts_api_server_index(const char *path, uint64_t servers) { return ts_server_index(path, servers); }

/* What the recorder itself adds: nanoseconds for so many operations, clock readings included; 0: no memory. */
TS_PUBLIC uint64_t ts_api_record_cost(uint64_t repeats)
{
    ts_lane *lane = calloc(1, ts_lane_bytes(1));
    ts_wall wall = {0};
    if (!lane) return 0;
    ts_lane_init(lane, 1, 1, 0, 0);
    uint64_t start = ts_now();
    for (uint64_t repeat = 0; repeat < repeats; repeat++) {
        ts_span span = ts_begin_at(&wall, ts_now());
        ts_end_at(&wall, lane, span, ts_now(), TS_READ, repeat & 4095);
    }
    uint64_t cost = ts_now() - start;
    free(lane);
    return cost ? cost : 1;
}
