/* Checksums of samples: CRC-32C, with the processor's instruction where it has one; those of generated samples, from
   checksums of what they are slices of; and the table that they are compared with (storage/sums.py). The table lies on a tier: raw system calls, so that no recorder takes our own reads for the
   program's. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

enum { POLYNOMIAL = 0x82f63b78, LANE_BYTES = 256, CACHE_LINE = 64, AHEAD = 8 };

static uint32_t table[8][256];           /* of 8 bytes at once */
static uint32_t behind[2][4][256];       /* what becomes of a checksum behind one and two lanes of zeros */
static uint32_t powers[32];              /* x^8, x^16, x^32, … of the field that checksums are numbers of */
static bool in_hardware;

static uint32_t by_table(uint32_t crc, const unsigned char *data, uint64_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; bytes >= 8; bytes -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        word ^= crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++) crc ^= table[7 - byte][word >> 8 * byte & 255];
    }
#endif
    for (; bytes; bytes--) crc = crc >> 8 ^ table[0][(crc ^ *data++) & 255];
    return crc;
}

/* clang has names of its own for the instruction: the feature on x86, the function on aarch64. */
#if defined(__x86_64__)
#ifdef __clang__
#define HARDWARE __attribute__((target("sse4.2,crc32")))
#else
#define HARDWARE __attribute__((target("sse4.2")))
#endif
#define WORD(crc, word) __builtin_ia32_crc32di(crc, word)
static bool has_instruction(void)
{
    unsigned int a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#ifdef __clang__
#define HARDWARE __attribute__((target("crc")))
#define WORD(crc, word) __builtin_arm_crc32cd((uint32_t)(crc), word)
#else
#define HARDWARE __attribute__((target("+crc")))
#define WORD(crc, word) __builtin_aarch64_crc32cx((uint32_t)(crc), word)
#endif
static bool has_instruction(void) { return getauxval(AT_HWCAP) & (1 << 7); } /* HWCAP_CRC32 */
#else
static bool has_instruction(void) { return false; }
#endif

#ifdef HARDWARE
static inline uint64_t word_at(const unsigned char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

static inline uint32_t moved(const uint32_t by[4][256], uint32_t crc)
{
    return by[0][crc & 255] ^ by[1][crc >> 8 & 255] ^ by[2][crc >> 16 & 255] ^ by[3][crc >> 24];
}

/* The instruction takes three cycles, but one can begin in every cycle: so three lanes at a time. Checksums up to the end
   of each. */
HARDWARE static inline void three_lanes(uint32_t crc, const unsigned char *data, uint32_t ends[3])
{
    uint64_t first = crc, second = 0, third = 0;
    for (int at = 0; at < LANE_BYTES; at += 8) {
        first = WORD(first, word_at(data + at));
        second = WORD(second, word_at(data + LANE_BYTES + at));
        third = WORD(third, word_at(data + 2 * LANE_BYTES + at));
    }
    ends[0] = (uint32_t)first;
    ends[1] = moved(behind[0], (uint32_t)first) ^ (uint32_t)second;
    ends[2] = moved(behind[1], (uint32_t)first) ^ moved(behind[0], (uint32_t)second) ^ (uint32_t)third;
}

HARDWARE static uint32_t by_instruction(uint32_t crc, const unsigned char *data, uint64_t bytes)
{
    for (; bytes >= 3 * LANE_BYTES; bytes -= 3 * LANE_BYTES, data += 3 * LANE_BYTES) {
        uint32_t ends[3];
        three_lanes(crc, data, ends);
        crc = ends[2];
    }
    uint64_t one = crc;
    for (; bytes >= 8; bytes -= 8, data += 8) one = WORD(one, word_at(data));
    return by_table((uint32_t)one, data, bytes);
}
#else
static uint32_t by_instruction(uint32_t crc, const unsigned char *data, uint64_t bytes)
{
    return by_table(crc, data, bytes);
}
#endif

/* Of two numbers of the field: bit 31 is 1, bit 30 is x, and so on. */
static uint32_t product(uint32_t one, uint32_t two)
{
    uint32_t sum = 0;
    for (int bit = 31; bit >= 0; bit--) {
        sum ^= two & -(one >> bit & 1);
        two = two >> 1 ^ ((uint32_t)POLYNOMIAL & -(two & 1));
    }
    return sum;
}

/* x^(8 · bytes): what a checksum is multiplied by when so many zeros follow; below 2^32 bytes. */
static uint32_t power_of(uint64_t bytes)
{
    uint32_t power = UINT32_C(1) << 31;
    for (int bit = 0; bit < 32; bit++) {
        if (bytes >> bit & 1) power = product(power, powers[bit]);
    }
    return power;
}

static void prepare_tables(void)
{
    static const unsigned char zeros[LANE_BYTES];
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? (uint32_t)POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (int more = 1; more < 8; more++) {
        for (int byte = 0; byte < 256; byte++) {
            table[more][byte] = table[more - 1][byte] >> 8 ^ table[0][table[more - 1][byte] & 255];
        }
    }
    for (int bit = 0; bit < 32; bit++) {
        uint32_t one = by_table(UINT32_C(1) << bit, zeros, LANE_BYTES), two = by_table(one, zeros, LANE_BYTES);
        for (uint32_t byte = 0; byte < 256; byte++) { /* linear: what becomes of a byte is what becomes of its bits */
            if (!(byte >> bit % 8 & 1)) continue;
            behind[0][bit / 8][byte] ^= one;
            behind[1][bit / 8][byte] ^= two;
        }
    }
    powers[0] = UINT32_C(1) << (31 - 8);
    for (int bit = 1; bit < 32; bit++) powers[bit] = product(powers[bit - 1], powers[bit - 1]);
    in_hardware = has_instruction();
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_tables);
}

static uint32_t continued(uint32_t before, const void *data, uint64_t bytes)
{
    return ~(in_hardware ? by_instruction : by_table)(~before, data, bytes);
}

/* CRC-32C of bytes that follow on others, whose checksum is given (0: none). */
TS_PUBLIC uint32_t ts_crc32c(uint32_t before, const void *data, uint64_t bytes)
{
    prepare();
    return continued(before, data, bytes);
}

/* --- slices of one long memory ----------------------------------------------------------------------------------- */

/* Checksums of the first 0, 1, 2, … steps of so many bytes; how many these are, which is all where `steps` is NULL. */
TS_PUBLIC uint64_t ts_sums_steps(const void *whole, uint64_t bytes, uint32_t *steps)
{
    const unsigned char *data = whole;
    uint64_t count = bytes / LANE_BYTES + 1;
    if (!steps) return count;
    prepare();
    *steps = 0;
#ifdef HARDWARE
    for (; in_hardware && bytes >= 3 * LANE_BYTES; bytes -= 3 * LANE_BYTES, data += 3 * LANE_BYTES, steps += 3) {
        three_lanes(~*steps, data, steps + 1);
        for (int lane = 1; lane <= 3; lane++) steps[lane] = ~steps[lane];
    }
#endif
    for (; bytes >= LANE_BYTES; bytes -= LANE_BYTES, data += LANE_BYTES, steps++) {
        steps[1] = continued(*steps, data, LANE_BYTES);
    }
    return count;
}

/* Up to a place, of which only what is behind the last step is read. */
static uint32_t up_to(const unsigned char *whole, const uint32_t *steps, uint64_t end)
{
    uint64_t step = end / LANE_BYTES;
    return continued(steps[step], whole + step * LANE_BYTES, end % LANE_BYTES);
}

/* Slices begin anywhere, and the memory is larger than the processor's cache: have what is read of a later one brought. */
static inline void fetch(const unsigned char *whole, const uint32_t *steps, uint64_t end)
{
    uint64_t step = end / LANE_BYTES;
    __builtin_prefetch(steps + step);
    for (uint64_t at = step * LANE_BYTES; at < end; at += CACHE_LINE) __builtin_prefetch(whole + at);
}

/* Continue every checksum behind one slice of the memory. A CRC is linear: crc(A + B) = crc(A) · x^(8 · bytes of B) + crc(B).
   With checksums up to where a slice begins and up to where it ends, crc(A + slice) = (crc(A) + begin) · x^(8 · bytes) + end,
   and hardly a byte is read. Short slices, and all where `steps` is NULL, are read. */
TS_PUBLIC void ts_sums_extend(const void *memory, const uint32_t *steps, uint64_t count, const int64_t *starts,
                              const int64_t *lengths, uint32_t *sums)
{
    const unsigned char *whole = memory;
    uint64_t known = 0;
    uint32_t factor = 0;
    prepare();
    for (uint64_t at = 0; at < count; at++) {
        uint64_t start = (uint64_t)starts[at], bytes = (uint64_t)lengths[at];
        if (steps && at + AHEAD < count) {
            uint64_t next = (uint64_t)starts[at + AHEAD];
            fetch(whole, steps, next);
            fetch(whole, steps, next + (uint64_t)lengths[at + AHEAD]);
        }
        if (!steps || bytes <= 2 * LANE_BYTES) {
            sums[at] = continued(sums[at], whole + start, bytes);
            continue;
        }
        if (bytes != known) factor = power_of(known = bytes);
        sums[at] = product(sums[at] ^ up_to(whole, steps, start), factor) ^ up_to(whole, steps, start + bytes);
    }
}

/* --- the table --------------------------------------------------------------------------------------------------- */

/* A plain file to read, and its size; a descriptor, or -1 and errno. Nothing is waited for, and no link followed. */
TS_PUBLIC int ts_sums_open(const char *path, int64_t *bytes)
{
    struct stat about;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return -1;
    int error = fstat(fd, &about) < 0 ? errno : S_ISREG(about.st_mode) ? 0 : EINVAL;
    if (!error) {
        *bytes = about.st_size;
        return fd;
    }
    syscall(SYS_close, fd);
    errno = error;
    return -1;
}

TS_PUBLIC void ts_sums_close(int fd) { syscall(SYS_close, fd); }

/* Bytes that were read: fewer only at the end of the file; or -1 and errno. */
TS_PUBLIC int64_t ts_sums_read(int fd, void *into, uint64_t bytes, uint64_t at)
{
    uint64_t done = 0;
    while (done < bytes) {
        long got = syscall(SYS_pread64, fd, (char *)into + done, bytes - done, at + done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (!got) break;
        done += (uint64_t)got;
    }
    return (int64_t)done;
}

enum { SUMS_FINE = -1, SUMS_UNREAD = -2 };

/* Compare samples with the table, whose first number is at `first`: the first sample that differs, with both checksums;
   or one of the above (SUMS_UNREAD: errno, or 0 where the table ends before). A checksum begins with the sample's
   number, so that another sample's bytes differ; 0 stands for none. */
TS_PUBLIC int64_t ts_sums_verify(int fd, uint64_t first, uint64_t count, const int64_t *samples,
                                 const void *const *payloads, const uint64_t *bytes, uint32_t *stored, uint32_t *found)
{
    for (uint64_t at = 0; at < count; at++) {
        uint64_t number = (uint64_t)samples[at];
        int64_t got = ts_sums_read(fd, stored, sizeof *stored, first + number * sizeof *stored);
        if (got != sizeof *stored) {
            if (got >= 0) errno = 0;
            return SUMS_UNREAD;
        }
        *found = ts_crc32c(ts_crc32c(0, &number, sizeof number), payloads[at], bytes[at]);
        if (!*found) *found = 1;
        if (*found != *stored) return (int64_t)at;
    }
    return SUMS_FINE;
}
