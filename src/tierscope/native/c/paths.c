#define _GNU_SOURCE
#include "paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REMEMBERED = 1024, REMEMBER_NS = 1000000000 };

int ts_tier_of_text(const char *path)
{
    int tier = TS_NO_TIER;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < ts_conf->prefixes; i++) {
        const ts_prefix *prefix = &ts_prefixes[i];
        if (tier != TS_NO_TIER && prefix->length < longest) continue;
        if (strncmp(path, prefix->path, prefix->length)) continue;
        char next = path[prefix->length];
        if (next && next != '/') continue;
        tier = (int)prefix->tier, longest = prefix->length;
    }
    return tier;
}

/* Of one component. */
static bool is_dots(const char *name) { return name[0] == '.' && (name[1] == '/' || !name[1] || (name[1] == '.' && (name[2] == '/' || !name[2]))); }

bool ts_is_plain(const char *path)
{
    if (!path[0] || (path[0] != '/' && is_dots(path))) return false;
    for (const char *c = path; *c; c++)
        if (*c == '/' && (c[1] == '/' || is_dots(c + 1))) return false;
    return true;
}

bool ts_path_of_fd(int fd, char path[TS_PATH])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long got = syscall(SYS_readlinkat, AT_FDCWD, link, path, TS_PATH - 1);
    if (got <= 0) return false;
    path[got] = 0;
    return path[0] == '/';
}

/* A folder and what was found out about it; `changing` is odd while a thread fills it in. */
typedef struct {
    _Atomic uint32_t changing;
    _Atomic int32_t tier;
    _Atomic uint64_t hash, until_ns;
} memory;
static memory remembered[REMEMBERED];

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

static bool recall(uint64_t hash, uint64_t now, int *tier)
{
    memory *slot = &remembered[hash % REMEMBERED];
    uint32_t before = atomic_load(&slot->changing);
    bool found = !(before & 1) && atomic_load(&slot->hash) == hash && atomic_load(&slot->until_ns) > now;
    *tier = atomic_load(&slot->tier);
    return found && atomic_load(&slot->changing) == before;
}

static void remember(uint64_t hash, uint64_t until, int tier)
{
    memory *slot = &remembered[hash % REMEMBERED];
    uint32_t before = atomic_load(&slot->changing);
    if ((before & 1) || !atomic_compare_exchange_strong(&slot->changing, &before, before + 1)) return;
    atomic_store(&slot->hash, hash);
    atomic_store(&slot->until_ns, until);
    atomic_store(&slot->tier, tier);
    atomic_store(&slot->changing, before + 2);
}

/* How much of a path names the folder of its last component; all of it if that is "." or "..", which are no names. */
static size_t folder_of(const char *path, size_t length)
{
    size_t end = length, begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin && path[begin - 1] != '/'; begin--) {}
    size_t name = end - begin;
    return !name || (path[begin] == '.' && (name == 1 || (name == 2 && path[begin + 1] == '.'))) ? length : begin;
}

/* Where the kernel finds a folder; an empty text is `dir` itself. */
static bool resolve(int dir, char *text)
{
    if (!text[0] && dir == AT_FDCWD) return syscall(SYS_getcwd, text, TS_PATH) > 0 && text[0] == '/';
    if (!text[0]) return ts_path_of_fd(dir, text);
    int fd = (int)syscall(SYS_openat, dir, text, O_PATH | O_CLOEXEC);
    if (fd < 0) return false;
    bool known = ts_path_of_fd(fd, text);
    syscall(SYS_close, fd);
    return known;
}

/* Whether a tier begins right below this folder: then the names in it differ. */
static bool holds_prefix(const char *folder, size_t length)
{
    for (uint32_t i = 0; i < ts_conf->prefixes; i++) {
        const char *path = ts_prefixes[i].path;
        if (!strncmp(path, folder, length) && path[length] == '/' && !strchr(path + length + 1, '/')) return true;
    }
    return false;
}

static int tier_of_path(int dir, const char *path, char text[TS_LOAN])
{
    size_t all = strnlen(path, TS_PATH), folder = folder_of(path, all), kept = folder;
    if (all >= TS_PATH) return TS_NO_TIER;
    int tier;
    bool absolute = path[0] == '/';
    uint64_t hash = hash_of(path, folder), now = ts_now();
    if (absolute && recall(hash, now, &tier)) return tier;
    memcpy(text, path, kept);
    text[kept] = 0;
    while (!resolve(dir, text)) { /* a folder that is not there would be below one that is */
        size_t above = folder_of(path, kept);
        if (above == kept || (absolute && !above)) return absolute ? ts_tier_of_text(path) : TS_NO_TIER;
        kept = above;
        memcpy(text, path, kept);
        text[kept] = 0;
    }
    size_t length = strlen(text);
    while (length && text[length - 1] == '/') length--;
    bool lasts = kept == folder && folder < all && !holds_prefix(text, length);
    while (path[kept] == '/') kept++;
    snprintf(text + length, TS_LOAN - length, "/%s", path + kept); /* what does not fit is beyond any prefix */
    tier = ts_tier_of_text(text);
    if (absolute && lasts) remember(hash, now + REMEMBER_NS, tier);
    return tier;
}

int ts_tier_of_path(int dir, const char *path)
{
    char *text = ts_borrow();
    int tier = text ? tier_of_path(dir, path, text) : TS_NO_TIER;
    ts_give_back(text);
    return tier;
}
