/* A file system behind a token bucket: a folder seen through FUSE, with reads and opens slowed down.
 *
 *   token_fs FOLDER MOUNT_POINT RATE BURST OPEN_BYTES OPEN_SECONDS TRIP_SECONDS STREAM_RATE
 *
 * RATE: bytes per second that all reads (and OPEN_BYTES of every open) take from one bucket of BURST bytes. OPEN_SECONDS, TRIP_SECONDS:
 * what an open and a request of a read take besides, at the same time as others'. STREAM_RATE: bytes per second of one open file; 0: any.
 * Writes and everything else are not slowed down. Runs in the foreground until it is unmounted. The kernel caches pages and reads ahead as it
 * does for any FUSE file system.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MOST_WAITING 64 /* requests at a time */
#define CACHED_SECONDS 60.0

struct bucket {
    double rate, burst, tokens, last;
    pthread_mutex_t lock;
};

struct stream {
    int fd;
    struct bucket own;
};

static struct bucket all;
static double open_bytes, open_seconds, trip_seconds, stream_rate;
static int root;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

static void sleep_until(double when) {
    struct timespec at = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
}

static void fill(struct bucket *bucket, double rate, double burst) {
    pthread_mutex_init(&bucket->lock, NULL);
    bucket->rate = rate;
    bucket->burst = bucket->tokens = burst;
    bucket->last = now();
}

/* When so many bytes are there, first come, first served. */
static double take(struct bucket *bucket, double bytes) {
    double at = now(), done = at;
    if (bucket->rate <= 0) return at;
    pthread_mutex_lock(&bucket->lock);
    at = now();
    bucket->tokens += (at - bucket->last) * bucket->rate;
    if (bucket->tokens > bucket->burst) bucket->tokens = bucket->burst;
    bucket->last = at;
    bucket->tokens -= bytes;
    done = bucket->tokens >= 0 ? at : at - bucket->tokens / bucket->rate;
    pthread_mutex_unlock(&bucket->lock);
    return done;
}

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }
static int told(int result) { return result < 0 ? -errno : 0; }
static struct stream *of(struct fuse_file_info *info) { return (struct stream *)(uintptr_t)info->fh; }

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config) {
    connection->max_background = connection->congestion_threshold = MOST_WAITING;
    config->entry_timeout = config->attr_timeout = CACHED_SECONDS;
    return NULL;
}

static int get_attributes(const char *path, struct stat *found, struct fuse_file_info *info) {
    (void)info;
    return told(fstatat(root, below(path), found, AT_SYMLINK_NOFOLLOW));
}

static int list(const char *path, void *buffer, fuse_fill_dir_t add, off_t from, struct fuse_file_info *info,
                enum fuse_readdir_flags flags) {
    (void)from, (void)info, (void)flags;
    int fd = openat(root, below(path), O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) return -errno;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (add(buffer, entry->d_name, NULL, 0, 0)) break;
    closedir(folder);
    return 0;
}

static int keep(int fd, struct fuse_file_info *info) {
    struct stream *stream = fd < 0 ? NULL : calloc(1, sizeof *stream);
    if (!stream) return fd < 0 ? -errno : -ENOMEM;
    stream->fd = fd;
    fill(&stream->own, stream_rate, 0);
    info->fh = (uintptr_t)stream;
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *info) {
    sleep_until(take(&all, open_bytes) + open_seconds);
    return keep(openat(root, below(path), info->flags & ~(O_CREAT | O_EXCL)), info);
}

static int create_file(const char *path, mode_t mode, struct fuse_file_info *info) {
    return keep(openat(root, below(path), info->flags | O_CREAT, mode), info);
}

static int read_file(const char *path, char *buffer, size_t bytes, off_t from, struct fuse_file_info *info) {
    (void)path;
    struct stream *stream = of(info);
    ssize_t found = pread(stream->fd, buffer, bytes, from);
    if (found < 0) return -errno;
    double together = take(&all, (double)found), alone = take(&stream->own, (double)found);
    sleep_until((together > alone ? together : alone) + trip_seconds);
    return (int)found;
}

static int write_file(const char *path, const char *buffer, size_t bytes, off_t from, struct fuse_file_info *info) {
    (void)path;
    ssize_t written = pwrite(of(info)->fd, buffer, bytes, from);
    return written < 0 ? -errno : (int)written;
}

static int release_file(const char *path, struct fuse_file_info *info) {
    (void)path;
    struct stream *stream = of(info);
    close(stream->fd);
    pthread_mutex_destroy(&stream->own.lock);
    free(stream);
    return 0;
}

static int sync_file(const char *path, int data, struct fuse_file_info *info) {
    (void)path, (void)data;
    return told(fsync(of(info)->fd));
}

static int sync_folder(const char *path, int data, struct fuse_file_info *info) {
    (void)path, (void)data, (void)info;
    return 0; /* files of a bed need not outlive it */
}

static int make_folder(const char *path, mode_t mode) { return told(mkdirat(root, below(path), mode)); }
static int remove_file(const char *path) { return told(unlinkat(root, below(path), 0)); }
static int remove_folder(const char *path) { return told(unlinkat(root, below(path), AT_REMOVEDIR)); }

static int rename_file(const char *from, const char *to, unsigned flags) {
    return told(renameat2(root, below(from), root, below(to), flags));
}

static int change_mode(const char *path, mode_t mode, struct fuse_file_info *info) {
    (void)info;
    return told(fchmodat(root, below(path), mode, 0));
}

static int change_times(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    (void)info;
    return told(utimensat(root, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int cut(const char *path, off_t bytes, struct fuse_file_info *info) {
    if (info) return told(ftruncate(of(info)->fd, bytes));
    int fd = openat(root, below(path), O_WRONLY);
    int result = fd < 0 ? -errno : told(ftruncate(fd, bytes));
    if (fd >= 0) close(fd);
    return result;
}

static int space(const char *path, struct statvfs *found) {
    (void)path;
    return told(fstatvfs(root, found));
}

static const struct fuse_operations operations = {
    .init = begin, .getattr = get_attributes, .readdir = list, .open = open_file, .create = create_file, .read = read_file,
    .write = write_file, .release = release_file, .fsync = sync_file, .fsyncdir = sync_folder, .mkdir = make_folder,
    .unlink = remove_file, .rmdir = remove_folder, .rename = rename_file, .chmod = change_mode, .utimens = change_times,
    .truncate = cut, .statfs = space,
};

int main(int count, char **words) {
    if (count != 9) {
        fprintf(stderr, "usage: %s FOLDER MOUNT_POINT RATE BURST OPEN_BYTES OPEN_SECONDS TRIP_SECONDS STREAM_RATE\n", words[0]);
        return 2;
    }
    root = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        perror(words[1]);
        return 1;
    }
    umask(0);
    fill(&all, atof(words[3]), atof(words[4]));
    open_bytes = atof(words[5]), open_seconds = atof(words[6]), trip_seconds = atof(words[7]), stream_rate = atof(words[8]);
    char *options[] = {words[0], "-o", "fsname=token_fs,allow_other,default_permissions"};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, options);
    struct fuse *fuse = fuse_new(&arguments, &operations, sizeof operations, NULL);
    if (!fuse || fuse_mount(fuse, words[2])) return 1;
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, MOST_WAITING);
    fuse_loop_cfg_set_idle_threads(loop, MOST_WAITING);
    int ended = fuse_loop_mt(fuse, loop);
    fuse_unmount(fuse);
    fuse_destroy(fuse);
    return ended < 0;
}
