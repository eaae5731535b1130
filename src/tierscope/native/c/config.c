#define _GNU_SOURCE
#include "life.h"
#include "raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20 };
#define LONGEST_LATENCY_NS (3600ull * 1000000000ull)

static bool station_is_sane(const ts_station *station, uint32_t slots)
{
    bool reads = station->per_op_ns >= 0 && station->per_op_ns < 1e15 && station->per_byte_ns >= 0 && station->per_byte_ns < 1e12;
    bool writes = station->write_per_op_ns >= 0 && station->write_per_op_ns < 1e15 && station->write_per_byte_ns >= 0 && station->write_per_byte_ns < 1e12;
    return station->number < 0 || (reads && writes && station->number < (int64_t)slots);
}

static bool is_path(const ts_prefix *prefix)
{
    return prefix->length < sizeof prefix->path && strnlen(prefix->path, sizeof prefix->path) == prefix->length && (!prefix->length || prefix->path[0] == '/');
}

static bool config_is_sane(const ts_config *config, size_t bytes)
{
    if (bytes < sizeof *config || memcmp(config->magic, TS_CONFIG_MAGIC, 8) || config->bytes != bytes) return false;
    const char *checked = (const char *)&config->bytes;
    if (ts_crc32(0, checked, bytes - (size_t)(checked - (const char *)config)) != config->crc) return false;
    if (config->version != TS_VERSION || config->tiers < 1 || config->tiers > TS_MAX_TIERS) return false;
    if (config->prefixes < 1 || config->prefixes > TS_MAX_PREFIXES || config->servers > TS_MAX_STATIONS) return false;
    if (config->slots > 3 * TS_MAX_STATIONS || config->boot[sizeof config->boot - 1]) return false;
    if (bytes != sizeof *config + config->prefixes * sizeof(ts_prefix) + config->servers * sizeof(ts_station)) return false;
    const ts_prefix *prefixes = (const ts_prefix *)(config + 1);
    const ts_station *servers = (const ts_station *)(prefixes + config->prefixes);
    for (uint32_t i = 0; i < config->prefixes; i++)
        if (prefixes[i].tier >= config->tiers || !is_path(&prefixes[i])) return false;
    for (uint32_t i = 0; i < config->servers; i++)
        if (!station_is_sane(&servers[i], config->slots)) return false;
    for (uint32_t i = 0; i < config->tiers; i++) {
        const ts_tier *tier = &config->tier[i];
        if (!tier->emulated) continue;
        if (!station_is_sane(&tier->metadata, config->slots) || !station_is_sane(&tier->link, config->slots)) return false;
        if (!tier->servers || tier->servers > config->servers || tier->first_server > config->servers - tier->servers) return false;
        if (tier->latency_ns > LONGEST_LATENCY_NS || tier->metadata_latency_ns > LONGEST_LATENCY_NS) return false;
        if (!(tier->stream_per_byte_ns >= 0 && tier->stream_per_byte_ns < 1e12)) return false;
    }
    return true;
}

const ts_config *ts_read_config(void)
{
    char path[TS_FOLDER + 20];
    struct stat about;
    snprintf(path, sizeof path, "%s/config", ts_folder);
    int fd = raw_open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return NULL;
    const ts_config *config = NULL;
    void *memory = MAP_FAILED;
    size_t bytes = 0;
    if (syscall(SYS_fstat, fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 && about.st_size <= CONFIG_MAX) {
        bytes = (size_t)about.st_size;
        memory = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED && syscall(SYS_pread64, fd, memory, bytes, 0) == (long)bytes && config_is_sane(memory, bytes)) config = memory;
    }
    raw_close(fd);
    if (!config && memory != MAP_FAILED) syscall(SYS_munmap, memory, bytes);
    return config;
}

/* The stations' numbers are in this host's memory: another host of the job cannot share them. */
ts_slot *ts_open_board(const ts_config *config)
{
    char path[TS_FOLDER + 20], boot[64];
    struct stat about;
    bool emulated = false;
    for (uint32_t i = 0; i < config->tiers; i++) emulated |= config->tier[i].emulated != 0;
    if (!emulated) return NULL;
    raw_read_boot(boot, sizeof boot);
    if (strcmp(boot, config->boot)) return NULL;
    snprintf(path, sizeof path, "%s/board", ts_folder);
    int fd = raw_open(path, O_RDWR);
    if (fd < 0) return NULL;
    void *memory = NULL;
    size_t bytes = (config->slots ? config->slots : 1) * sizeof(ts_slot);
    if (syscall(SYS_fstat, fd, &about) == 0 && S_ISREG(about.st_mode) && (size_t)about.st_size >= bytes) memory = raw_map(fd, bytes);
    raw_close(fd);
    return memory;
}

bool ts_wants_emulation(void)
{
    for (uint32_t i = 0; i < ts_conf->tiers; i++)
        if (ts_conf->tier[i].emulated) return true;
    return false;
}

lost_page *ts_open_lost(void)
{
    char path[TS_FOLDER + 20];
    snprintf(path, sizeof path, "%s/lost", ts_folder);
    int fd = raw_open(path, O_RDWR);
    if (fd < 0) return NULL;
    void *memory = raw_has_bytes(fd, sizeof(lost_page)) ? raw_map(fd, sizeof(lost_page)) : NULL;
    raw_close(fd);
    return memory;
}
