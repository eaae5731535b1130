/* What a recorded process spends beside I/O: CPU, waiting for a core, and whether it is a loader's worker, or has loaded a framework. Noted a few times a second at most, at the end of
   an operation: a process that is killed loses no more than the last of these. */
#define _GNU_SOURCE
#include "life.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAPS_BLOCK = 1024, NAME_LENGTH = 16, FIRST_BLOCKS = 1 << 12 };

static uint64_t in_ns(struct timeval time) { return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u; }

/* Seconds that the main thread was ready and no core was free; the second number of schedstat. Not there: nothing is noted. */
static bool read_delay(uint64_t *ns)
{
    char line[128] = "";
    raw_read_line("/proc/self/schedstat", line, sizeof line);
    char *second = strchr(line, ' ');
    if (!second) return false;
    *ns = strtoull(second + 1, NULL, 10);
    return true;
}

/* torch gives workers of its DataLoader this name. */
static bool is_worker(void)
{
    char name[32] = "";
    raw_read_line("/proc/self/comm", name, sizeof name);
    return !strncmp(name, "pt_data_worker", 14);
}

/* A library's name may lie across two blocks: the end of one is kept in front of the next. */
static uint32_t framework_in_maps(void)
{
    char text[MAPS_BLOCK + NAME_LENGTH + 1];
    size_t kept = 0;
    uint32_t framework = 0;
    int fd = raw_open("/proc/self/maps", O_RDONLY);
    if (fd < 0) return 0;
    for (int block = 0; block < FIRST_BLOCKS && !framework; block++) {
        long got = syscall(SYS_read, fd, text + kept, MAPS_BLOCK);
        if (got <= 0) break;
        size_t used = kept + (size_t)got;
        text[used] = 0;
        if (strstr(text, "libtorch_")) framework = TS_TORCH;
        if (strstr(text, "libtensorflow_")) framework = TS_TENSORFLOW;
        kept = used < NAME_LENGTH ? used : NAME_LENGTH;
        memmove(text, text + used - kept, kept);
    }
    raw_close(fd);
    return framework;
}

static void read_usage(uint64_t *user, uint64_t *system)
{
    struct rusage usage;
    if (syscall(SYS_getrusage, RUSAGE_SELF, &usage)) return;
    *user = in_ns(usage.ru_utime), *system = in_ns(usage.ru_stime);
}

void ts_begin_usage(ts_head *head, uint64_t now)
{
    read_usage(&head->usage.user_start_ns, &head->usage.system_start_ns);
    head->usage.has_delay = read_delay(&head->usage.delay_start_ns);
    atomic_store(&head->usage.next_ns, now + TS_USAGE_NS);
}

/* Whoever comes first notes it; for the others, and for a signal's handler meanwhile, it is not due. */
void ts_note_usage(ts_head *head, uint64_t now)
{
    uint64_t due = atomic_load(&head->usage.next_ns);
    if (now < due || !atomic_compare_exchange_strong(&head->usage.next_ns, &due, UINT64_MAX)) return;
    int kept = errno;
    read_usage(&head->usage.user_ns, &head->usage.system_ns);
    if (head->usage.has_delay) read_delay(&head->usage.delay_ns);
    uint64_t count = ++head->usage.notes;
    if (!(count & (count - 1))) {
        if (!head->usage.framework) head->usage.framework = framework_in_maps();
        if (!head->usage.worker) head->usage.worker = is_worker();
    }
    head->usage.end_ns = now;
    atomic_store(&head->usage.next_ns, now + TS_USAGE_NS);
    errno = kept;
}
