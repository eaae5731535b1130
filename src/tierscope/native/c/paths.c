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

long ts_working_folder(char path[TS_PATH])
{
    long length = syscall(SYS_getcwd, path, TS_PATH);
    return length > 0 && path[0] == '/' ? length : 0;
}

/* What the names in a folder belong to: its own tier, but for those at which another one begins (a bit for each such prefix). */
typedef struct {
    int tier;
    uint64_t below;
} belongs;

/* A folder and what was found out about it; `changing` is odd while a thread fills it in. */
typedef struct {
    _Atomic uint32_t changing;
    _Atomic int32_t tier;
    _Atomic uint64_t hash, until_ns, below;
} memory;
static memory remembered[REMEMBERED];

static uint64_t hash_of(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static bool recall(uint64_t hash, uint64_t now, belongs *found)
{
    memory *slot = &remembered[hash % REMEMBERED];
    uint32_t before = atomic_load(&slot->changing);
    bool known = !(before & 1) && atomic_load(&slot->hash) == hash && atomic_load(&slot->until_ns) > now;
    found->tier = atomic_load(&slot->tier);
    found->below = atomic_load(&slot->below);
    return known && atomic_load(&slot->changing) == before;
}

static void remember(uint64_t hash, uint64_t until, belongs found)
{
    memory *slot = &remembered[hash % REMEMBERED];
    uint32_t before = atomic_load(&slot->changing);
    if ((before & 1) || !atomic_compare_exchange_strong(&slot->changing, &before, before + 1)) return;
    atomic_store(&slot->hash, hash);
    atomic_store(&slot->until_ns, until);
    atomic_store(&slot->tier, found.tier);
    atomic_store(&slot->below, found.below);
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
    if (!text[0] && dir == AT_FDCWD) return ts_working_folder(text) > 0;
    if (!text[0]) return ts_path_of_fd(dir, text);
    int fd = (int)syscall(SYS_openat, dir, text, O_PATH | O_CLOEXEC);
    if (fd < 0) return false;
    bool known = ts_path_of_fd(fd, text);
    syscall(SYS_close, fd);
    return known;
}

static belongs look_at(const char *folder)
{
    belongs found = {.tier = ts_tier_of_text(folder)};
    size_t length = folder[1] ? strlen(folder) : 0; /* the root's slash is the one before a name */
    for (uint32_t i = 0; i < ts_conf->prefixes; i++) {
        const char *path = ts_prefixes[i].path;
        if (!strncmp(path, folder, length) && path[length] == '/' && !strchr(path + length + 1, '/')) found.below |= UINT64_C(1) << i;
    }
    return found;
}

/* `name` has slashes at its end only. */
static int tier_of_name(belongs folder, const char *name, size_t length)
{
    int tier = folder.tier;
    while (length && name[length - 1] == '/') length--;
    for (uint64_t left = folder.below; left; left &= left - 1) {
        const ts_prefix *prefix = &ts_prefixes[__builtin_ctzll(left)];
        const char *last = prefix->path + prefix->length - length;
        if (prefix->length > length && last[-1] == '/' && !memcmp(last, name, length)) tier = (int)prefix->tier;
    }
    return tier;
}

/* Some of the path's folders are not there: it would be below one that is. */
static int tier_of_missing(int dir, const char *path, size_t folder, char text[TS_LOAN])
{
    for (size_t kept = folder;;) {
        size_t above = folder_of(path, kept);
        if (above == kept || (path[0] == '/' && !above)) return path[0] == '/' ? ts_tier_of_text(path) : TS_NO_TIER;
        kept = above;
        memcpy(text, path, kept);
        text[kept] = 0;
        if (!resolve(dir, text)) continue;
        size_t length = text[1] ? strlen(text) : 0;
        while (path[kept] == '/') kept++;
        snprintf(text + length, TS_LOAN - length, "/%s", path + kept); /* what does not fit is beyond any prefix */
        return ts_tier_of_text(text);
    }
}

/* The working folder is asked for every time (half a microsecond): it may be renamed, and every way to change it noticed by nobody. */
static int tier_of_path(int dir, const char *path, uint64_t now, char text[TS_LOAN])
{
    size_t all = strnlen(path, TS_PATH), folder = folder_of(path, all);
    uint64_t hash = 0xcbf29ce484222325u;
    bool keeps = path[0] == '/';
    belongs found;
    if (all >= TS_PATH) return TS_NO_TIER;
    if (!keeps && dir == AT_FDCWD) {
        long length = ts_working_folder(text);
        keeps = length > 0;
        if (keeps && !folder) return tier_of_name(look_at(text), path, all);
        if (keeps) hash = hash_of(hash, text, (size_t)length); /* with its end: no absolute path has one */
    }
    hash = hash_of(hash, path, folder);
    if (keeps && recall(hash, now, &found)) return tier_of_name(found, path + folder, all - folder);
    memcpy(text, path, folder);
    text[folder] = 0;
    if (!resolve(dir, text)) return tier_of_missing(dir, path, folder, text);
    found = look_at(text);
    if (keeps) remember(hash, now + REMEMBER_NS, found);
    return tier_of_name(found, path + folder, all - folder);
}

int ts_tier_of_path(int dir, const char *path, uint64_t now)
{
    char *text = ts_borrow();
    int tier = text ? tier_of_path(dir, path, now, text) : TS_NO_TIER;
    ts_give_back(text);
    return tier;
}
