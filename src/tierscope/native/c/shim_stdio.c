/* Buffered input and output. The C library's streams call the kernel from inside, where no wrapper sees it. What they did there
   follows from the stream's buffer before and after, and from how far the kernel's file position moved: these wrappers
   change nothing, they work that out. */
#define _GNU_SOURCE
#ifndef __NO_INLINE__
#define __NO_INLINE__ /* headers shall declare the calls that are defined here, not define them */
#endif
#include "seen.h"
#include "shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))
enum { NO_READS = 0x4, AT_END = 0x10, IN_BACKUP = 0x100, LINE_BUFFERED = 0x200 }; /* of FILE._flags */

/* A call on a tier's stream that may reach the kernel. */
typedef struct {
    ts_fd what;
    int fd;
    bool ended; /* the stream had seen the end of the file: it asks no more by itself */
    int64_t position;
    ts_span span;
} stream_call;

static int64_t position_of(int fd) { return syscall(SYS_lseek, fd, 0, SEEK_CUR); }

/* Streams in memory and such have other functions behind them, and no descriptor: theirs may be anything. */
static const void *functions_of(const FILE *stream) { return *(const void *const *)(stream + 1); }

static bool on_tier(FILE *stream, stream_call *call)
{
    if (!ts_recording() || !stream || functions_of(stream) != functions_of(stdout)) return false;
    call->fd = stream->_fileno;
    return call->fd >= 0 && ts_fd_find(call->fd, &call->what);
}

/* From before the call until what it did is worked out, nobody else may use the stream; also when the thread is cancelled in between. */
static FILE *hold(FILE *stream, bool locks)
{
    if (locks) flockfile(stream);
    return locks ? stream : NULL;
}
static void let_go(FILE **held)
{
    if (*held) funlockfile(*held);
}
#define HOLD(stream, locks) __attribute__((cleanup(let_go), unused)) FILE *held = hold(stream, locks)

static void begin(stream_call *call, const FILE *stream)
{
    int kept = errno;
    call->ended = stream->_flags & AT_END;
    call->position = position_of(call->fd);
    errno = kept;
    call->span = ts_op_begin();
}

/* What was put back with ungetc is in a buffer of its own, and the usual one waits beside it. */
static uint64_t buffered(const FILE *stream)
{
    uint64_t waiting = stream->_flags & IN_BACKUP ? (uint64_t)(stream->_IO_save_end - stream->_IO_save_base) : 0;
    return (uint64_t)(stream->_IO_read_end - stream->_IO_read_ptr) + waiting;
}

static uint64_t room(const FILE *stream) { return (uint64_t)(stream->_IO_buf_end - stream->_IO_buf_base); }
static uint64_t pending(const FILE *stream) { return (uint64_t)(stream->_IO_write_ptr - stream->_IO_write_base); }

/* ---- streams of no tier: how many bytes the kernel moved for them ---- */

/* That follows from what the caller got or gave, and from what the buffer holds before and after; nobody holds the stream, so that it may
   be wrong where threads share it, but never by more than a buffer. */
typedef struct {
    bool counted;
    uint64_t buffered, pending;
    int64_t offset;
} other_call;

static const void *_Atomic pipe_functions; /* of streams that popen made */

static other_call begin_other(const FILE *stream)
{
    other_call call = {.counted = false};
    if (!ts_recording() || !stream || !ts_seen) return call;
    const void *functions = functions_of(stream);
    call.counted = (functions == functions_of(stdout) || (functions && functions == pipe_functions)) && stream->_fileno >= 0;
    if (call.counted) call.buffered = buffered(stream), call.pending = pending(stream), call.offset = stream->_offset;
    return call;
}

static uint64_t within(int64_t value, uint64_t most) { return value < 0 ? 0 : (uint64_t)value < most ? (uint64_t)value : most; }

static void end_other_read(const other_call *call, const FILE *stream, uint64_t consumed)
{
    if (!call->counted) return;
    int64_t moved = (int64_t)(consumed + buffered(stream)) - (int64_t)call->buffered;
    if (moved) ts_saw((int64_t)within(moved, consumed + room(stream)), 0);
}

/* A seek that leads out of the buffer reads a block. */
static void end_other_seek(const other_call *call, const FILE *stream)
{
    if (!call->counted) return;
    bool read = stream->_offset != call->offset && stream->_IO_read_end > stream->_IO_buf_base;
    ts_saw(read ? (int64_t)within(stream->_IO_read_end - stream->_IO_buf_base, room(stream)) : 0, (int64_t)call->pending);
}

static void end_other_write(const other_call *call, const FILE *stream, uint64_t given)
{
    if (!call->counted) return;
    int64_t moved = (int64_t)(given + call->pending) - (int64_t)pending(stream);
    if (moved) ts_saw(0, (int64_t)within(moved, given + call->pending));
}

/* One of several operations that the call consisted of: it gets its share of the call's time. */
static void record(stream_call *call, unsigned kind, uint64_t bytes, uint64_t start, uint64_t end, int64_t offset, bool first)
{
    ts_span span = {start, first ? call->span.virtual_start : TS_OUTSIDE};
    ts_done done = {.tier = (unsigned)call->what.tier, .kind = kind, .server = call->what.server, .file = call->what.file,
                    .offset = offset, .bytes = bytes, .end_ns = end};
    ts_op_end(span, &done);
}

/* The next read of a call that moved `left` more bytes: it asked for so many, and got them as far as there were any. */
static uint64_t record_read(stream_call *call, uint64_t asked, uint64_t left, uint64_t *start, uint64_t end, int64_t *offset, bool first)
{
    uint64_t got = asked < left ? asked : left, until = got < left ? *start + (end - *start) * got / left : end;
    record(call, TS_READ, got, *start, until, *offset, first);
    *start = until, *offset += (int64_t)got;
    return got;
}

/* How the C library reads `want` bytes that are not in its buffer, when `moved` bytes came from the kernel: whole blocks straight to
   the caller, the rest through the buffer, and once more to learn that the file has ended. */
static void record_reads(stream_call *call, uint64_t want, uint64_t moved, uint64_t block, uint64_t end)
{
    uint64_t start = call->span.start_ns, got = 1;
    int64_t offset = call->position;
    bool first = true;
    while (want && got && !(call->ended && want < block)) {
        uint64_t asked = want < block ? block : want - (block >= 128 ? want % block : 0);
        got = record_read(call, asked, moved, &start, end, &offset, first);
        first = false;
        moved -= got, want -= got < want ? got : want;
    }
    if (first) ts_op_cancel(call->span);
}

static void end_reads(stream_call *call, FILE *stream, uint64_t want)
{
    int kept = errno;
    uint64_t end = ts_now();
    int64_t position = position_of(call->fd);
    if (call->position < 0 || position < call->position) ts_op_cancel(call->span);
    else record_reads(call, want, (uint64_t)(position - call->position), room(stream), end);
    errno = kept;
}

/* ---- open and close ---- */

HAS_REAL(fopen);
TS_EXPORT FILE *fopen(const char *path, const char *mode)
{
    if (!ts_recording()) return REAL(fopen)(path, mode);
    ts_span span = ts_op_begin_unsure();
    FILE *stream = REAL(fopen)(path, mode);
    if (!stream && errno == EINVAL) ts_op_cancel(span); /* the mode makes no sense: nothing was tried */
    else ts_finish_open(span, stream ? stream->_fileno : -1, AT_FDCWD, path, false);
    return stream;
}
ALIAS(fopen) FILE *fopen64(const char *, const char *);

/* A stream is about to be closed, and its descriptor with it: what that will be, and that the descriptor is free then. */
static bool begin_close(FILE *stream, stream_call *call, uint64_t *unwritten)
{
    bool seen = on_tier(stream, call);
    *unwritten = seen ? pending(stream) : 0;
    if (ts_recording() && stream && functions_of(stream) == functions_of(stdout) && stream->_fileno >= 0) ts_fd_forget(stream->_fileno);
    if (seen) call->span = ts_op_begin();
    return seen;
}

static void end_close(stream_call *call, uint64_t unwritten)
{
    int kept = errno;
    uint64_t end = ts_now(), start = call->span.start_ns;
    if (unwritten) record(call, TS_WRITE, unwritten, start, end, -1, true);
    record(call, TS_CLOSE, 0, unwritten ? end : start, end, 0, !unwritten);
    errno = kept;
}

HAS_REAL(freopen);
TS_EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    stream_call call;
    uint64_t unwritten;
    if (!ts_recording() || !path || !stream) return REAL(freopen)(path, mode, stream);
    bool closes = begin_close(stream, &call, &unwritten);
    ts_span span = ts_op_begin_unsure();
    FILE *result = REAL(freopen)(path, mode, stream);
    if (closes) end_close(&call, unwritten);
    ts_finish_open(span, result ? result->_fileno : -1, AT_FDCWD, path, false);
    return result;
}
ALIAS(freopen) FILE *freopen64(const char *, const char *, FILE *);

HAS_REAL(fclose);
TS_EXPORT int fclose(FILE *stream)
{
    stream_call call;
    uint64_t unwritten;
    other_call other = begin_other(stream);
    bool seen = begin_close(stream, &call, &unwritten);
    int result = REAL(fclose)(stream);
    if (seen) end_close(&call, unwritten);
    else if (other.counted) ts_saw(0, (int64_t)other.pending);
    return result;
}

HAS_REAL(popen);
TS_EXPORT FILE *popen(const char *command, const char *mode)
{
    FILE *stream = REAL(popen)(command, mode);
    if (stream) pipe_functions = functions_of(stream);
    return stream;
}

/* These close a descriptor of their own, whose number may be a tier's next. */
HAS_REAL(pclose);
TS_EXPORT int pclose(FILE *stream)
{
    other_call other = begin_other(stream);
    if (other.counted) ts_saw(0, (int64_t)other.pending);
    if (ts_recording() && stream && stream->_fileno >= 0) ts_fd_forget(stream->_fileno);
    return REAL(pclose)(stream);
}

/* ---- reading ---- */

#undef fread_unlocked
HAS_REAL(fread);
HAS_REAL(fread_unlocked);

static size_t really_read(void *to, size_t size, size_t count, FILE *stream, bool locked)
{
    return locked ? REAL(fread)(to, size, count, stream) : REAL(fread_unlocked)(to, size, count, stream);
}

static __attribute__((noinline)) size_t read_other(void *to, size_t size, size_t count, FILE *stream, bool locked)
{
    other_call other = begin_other(stream);
    size_t got = really_read(to, size, count, stream, locked);
    end_other_read(&other, stream, got * size);
    return got;
}

static size_t read_blocks(void *to, size_t size, size_t count, FILE *stream, bool locked)
{
    stream_call call;
    size_t want = 0;
    bool is_tiers = on_tier(stream, &call), seen = !__builtin_mul_overflow(size, count, &want) && want;
    if (!is_tiers && seen && stream && want > (size_t)(stream->_IO_read_end - stream->_IO_read_ptr))
        return read_other(to, size, count, stream, locked);
    seen = seen && is_tiers;
    HOLD(stream, seen && locked);
    uint64_t have = seen ? buffered(stream) : 0;
    seen = seen && have < want;
    if (seen) begin(&call, stream);
    size_t got = really_read(to, size, count, stream, locked);
    if (seen) end_reads(&call, stream, want - have);
    return got;
}

TS_EXPORT size_t fread(void *to, size_t size, size_t count, FILE *stream) { return read_blocks(to, size, count, stream, true); }
TS_EXPORT size_t fread_unlocked(void *to, size_t size, size_t count, FILE *stream) { return read_blocks(to, size, count, stream, false); }

extern void __chk_fail(void) __attribute__((noreturn));
TS_EXPORT size_t __fread_chk(void *to, size_t space, size_t size, size_t count, FILE *stream)
{
    size_t want;
    if (__builtin_mul_overflow(size, count, &want) || want > space) __chk_fail();
    return fread(to, size, count, stream);
}

/* The others fill the buffer when it is empty, and only then. */
static bool must_fill(FILE *stream, stream_call *call, int until, uint64_t most)
{
    uint64_t first = (uint64_t)(stream->_IO_read_end - stream->_IO_read_ptr);
    if (buffered(stream) >= most || (first && until >= 0 && memchr(stream->_IO_read_ptr, until, first))) return false;
    begin(call, stream);
    return true;
}

/* Every time the buffer was filled, and once for the end of the file. */
static void end_fills(stream_call *call, FILE *stream)
{
    int kept = errno;
    uint64_t end = ts_now(), block = room(stream) ? room(stream) : 1, start = call->span.start_ns;
    int64_t position = position_of(call->fd), offset = call->position;
    bool first = true, to_the_end = !call->ended && (stream->_flags & AT_END);
    while (call->position >= 0 && offset < position) {
        record_read(call, block, (uint64_t)(position - offset), &start, end, &offset, first);
        first = false;
    }
    if (to_the_end) record(call, TS_READ, 0, start, end, offset, first);
    else if (first) ts_op_cancel(call->span);
    errno = kept;
}

/* consumed: the bytes that the caller got. */
#define FILLS(result_type, locks, name, parameters, arguments, until, most, consumed)    \
    HAS_REAL(name);                                                             \
    TS_EXPORT result_type name parameters                                       \
    {                                                                           \
        stream_call call;                                                       \
        if (!on_tier(stream, &call)) {                                          \
            other_call other = begin_other(stream);                             \
            result_type result = REAL(name) arguments;                          \
            end_other_read(&other, stream, consumed);                           \
            return result;                                                      \
        }                                                                       \
        HOLD(stream, locks);                                                    \
        if (!must_fill(stream, &call, until, most)) return REAL(name) arguments; \
        result_type result = REAL(name) arguments;                              \
        end_fills(&call, stream);                                               \
        return result;                                                          \
    }

extern int __uflow(FILE *), __underflow(FILE *);
#undef getc
#undef fgetc
#undef getc_unlocked
#undef fgetc_unlocked
#undef fgets_unlocked
FILLS(int, true, fgetc, (FILE *stream), (stream), -1, 1, result >= 0)
FILLS(int, true, getc, (FILE *stream), (stream), -1, 1, result >= 0)
FILLS(int, false, fgetc_unlocked, (FILE *stream), (stream), -1, 1, result >= 0)
FILLS(int, false, getc_unlocked, (FILE *stream), (stream), -1, 1, result >= 0)
FILLS(int, false, __uflow, (FILE *stream), (stream), -1, 1, result >= 0)
FILLS(int, false, __underflow, (FILE *stream), (stream), -1, 1, 0)
FILLS(char *, true, fgets, (char *to, int size, FILE *stream), (to, size, stream), '\n', size > 0 ? (uint64_t)size - 1 : 0, result ? strlen(result) : 0)
FILLS(char *, false, fgets_unlocked, (char *to, int size, FILE *stream), (to, size, stream), '\n', size > 0 ? (uint64_t)size - 1 : 0, result ? strlen(result) : 0)
FILLS(ssize_t, true, getline, (char **to, size_t *size, FILE *stream), (to, size, stream), '\n', UINT64_MAX, result > 0 ? (uint64_t)result : 0)
FILLS(ssize_t, true, getdelim, (char **to, size_t *size, int end, FILE *stream), (to, size, end, stream), end, UINT64_MAX, result > 0 ? (uint64_t)result : 0)
FILLS(ssize_t, true, __getdelim, (char **to, size_t *size, int end, FILE *stream), (to, size, end, stream), end, UINT64_MAX, result > 0 ? (uint64_t)result : 0)

extern char *__fgets_chk(char *to, size_t space, int size, FILE *stream), *__fgets_unlocked_chk(char *to, size_t space, int size, FILE *stream);
FILLS(char *, true, __fgets_chk, (char *to, size_t space, int size, FILE *stream), (to, space, size, stream), '\n', size > 0 ? (uint64_t)size - 1 : 0, result ? strlen(result) : 0)
FILLS(char *, false, __fgets_unlocked_chk, (char *to, size_t space, int size, FILE *stream), (to, space, size, stream), '\n', size > 0 ? (uint64_t)size - 1 : 0, result ? strlen(result) : 0)

/* What a scan took out of the buffer, which it filled once at most. */
static uint64_t scanned(const other_call *call, const FILE *stream)
{
    uint64_t left = buffered(stream);
    return left <= call->buffered ? call->buffered - left : call->buffered + (uint64_t)(stream->_IO_read_ptr - stream->_IO_read_base);
}

/* The newer standards' scanf under the names that the headers give it. */
#define SCANS(name, listed)                                                     \
    extern int listed(FILE *, const char *, va_list);                          \
    extern int name(FILE *, const char *, ...);                                \
    FILLS(int, true, listed, (FILE *stream, const char *format, va_list rest), (stream, format, rest), -1, UINT64_MAX, scanned(&other, stream)) \
    TS_EXPORT int name(FILE *stream, const char *format, ...)                   \
    {                                                                           \
        va_list rest;                                                           \
        va_start(rest, format);                                                 \
        int result = listed(stream, format, rest);                              \
        va_end(rest);                                                           \
        return result;                                                          \
    }
SCANS(__isoc99_fscanf, __isoc99_vfscanf)
SCANS(__isoc23_fscanf, __isoc23_vfscanf)

/* ---- seeking ---- */

/* How far the buffer reached before the call. */
typedef struct {
    int64_t first, end; /* offsets in the file; end < 0: unknown */
    uint64_t unwritten;
    bool blind; /* the stream knows not where it stands, and so not where a step from there leads */
} window;

static window window_of(const FILE *stream, int whence)
{
    window known = {.end = -1, .unwritten = pending(stream), .blind = whence == SEEK_CUR && stream->_offset < 0};
    if (stream->_offset < 0 || !stream->_IO_read_base) return known;
    known.end = stream->_offset;
    known.first = known.end - ((stream->_flags & IN_BACKUP ? stream->_IO_save_end : stream->_IO_read_end) - stream->_IO_buf_base);
    return known;
}

/* Out of the buffer's reach the C library moves to the beginning of a block, and reads it up to where the caller wants to be at least.
   Nothing is left in the buffer when the file ended before. The bytes that it then got, or -1 if it did not read. */
static int64_t read_by_seek(const stream_call *call, const FILE *stream, const window *before, int64_t position)
{
    int64_t block = (int64_t)room(stream), target = position - (int64_t)buffered(stream);
    if (target < 0 || (before->end >= 0 && target >= before->first && target < before->end)) return -1;
    if ((stream->_flags & NO_READS) || before->blind || block <= 0) return -1;
    int64_t from = target & ~(block - 1), skipped = target - from;
    if (!skipped || skipped > block) return -1;
    if (stream->_IO_read_end > stream->_IO_buf_base) return stream->_IO_read_end - stream->_IO_buf_base;
    struct stat about;
    if (syscall(SYS_fstat, call->fd, &about) || about.st_size <= from) return 0;
    return about.st_size - from < skipped ? about.st_size - from : skipped;
}

static void end_seek(stream_call *call, FILE *stream, const window *before, bool worked)
{
    int kept = errno;
    uint64_t end = ts_now(), start = call->span.start_ns;
    int64_t position = position_of(call->fd), got = worked ? read_by_seek(call, stream, before, position) : -1;
    bool first = true;
    if (before->unwritten) record(call, TS_WRITE, before->unwritten, start, end, -1, true), first = false;
    if (worked && (got >= 0 || position != call->position)) record(call, TS_SEEK, 0, start, got >= 0 ? start : end, 0, first), first = false;
    if (got >= 0) record(call, TS_READ, (uint64_t)got, start, end, position - got, first), first = false;
    if (first) ts_op_cancel(call->span);
    errno = kept;
}

#define SEEKS(result_type, name, parameters, arguments, whence, call_it)  \
    HAS_REAL(name);                                               \
    TS_EXPORT result_type name parameters                         \
    {                                                             \
        stream_call call;                                         \
        int result = 0;                                           \
        if (!on_tier(stream, &call)) {                            \
            other_call other = begin_other(stream);               \
            call_it;                                              \
            end_other_seek(&other, stream);                       \
            return (result_type)result;                           \
        }                                                         \
        HOLD(stream, true);                                       \
        window before = window_of(stream, whence);                \
        begin(&call, stream);                                     \
        call_it;                                                  \
        end_seek(&call, stream, &before, result == 0);            \
        return (result_type)result;                               \
    }

SEEKS(int, fseek, (FILE *stream, long at, int whence), (stream, at, whence), whence, result = REAL(fseek)(stream, at, whence))
SEEKS(int, fseeko, (FILE *stream, off_t at, int whence), (stream, at, whence), whence, result = REAL(fseeko)(stream, at, whence))
SEEKS(int, fsetpos, (FILE *stream, const fpos_t *at), (stream, at), SEEK_SET, result = REAL(fsetpos)(stream, at))
SEEKS(void, rewind, (FILE *stream), (stream), SEEK_SET, REAL(rewind)(stream))
ALIAS(fseeko) int fseeko64(FILE *, off64_t, int);
ALIAS(fsetpos) int fsetpos64(FILE *, const fpos64_t *);

/* ---- writing ---- */

/* What a call on a stream that writes may do: nothing while its bytes fit into the buffer. Else the buffer is filled and written, then whole
   blocks of the rest in one piece. */
typedef struct {
    stream_call call;
    uint64_t unwritten, space;
} put_call;

static bool begin_put(FILE *stream, put_call *put, uint64_t bytes)
{
    put->unwritten = pending(stream);
    put->space = stream->_IO_write_end > stream->_IO_write_ptr ? (uint64_t)(stream->_IO_write_end - stream->_IO_write_ptr) : 0;
    if (bytes <= put->space && !(stream->_flags & LINE_BUFFERED)) return false;
    begin(&put->call, stream);
    return true;
}

static void end_put(put_call *put, const FILE *stream, uint64_t bytes)
{
    int kept = errno;
    uint64_t end = ts_now(), start = put->call.span.start_ns;
    uint64_t front = put->unwritten + (bytes < put->space ? bytes : put->space), written = put->unwritten + bytes - pending(stream);
    if (!written || written > put->unwritten + bytes) {
        ts_op_cancel(put->call.span);
    } else if (!front || written <= front) {
        record(&put->call, TS_WRITE, written, start, end, put->call.position, true);
    } else {
        uint64_t middle = start + (end - start) * front / written;
        record(&put->call, TS_WRITE, front, start, middle, put->call.position, true);
        record(&put->call, TS_WRITE, written - front, middle, end, put->call.position + (int64_t)front, false);
    }
    errno = kept;
}

#define PUTS(result_type, locks, name, parameters, arguments, expected, done)       \
    HAS_REAL(name);                                                                 \
    TS_EXPORT result_type name parameters                                           \
    {                                                                               \
        put_call put;                                                               \
        if (!on_tier(stream, &put.call)) {                                          \
            other_call other = begin_other(stream);                                 \
            result_type result = REAL(name) arguments;                              \
            end_other_write(&other, stream, done);                                  \
            return result;                                                          \
        }                                                                           \
        HOLD(stream, locks);                                                        \
        if (!begin_put(stream, &put, expected)) return REAL(name) arguments;        \
        result_type result = REAL(name) arguments;                                  \
        end_put(&put, stream, done);                                                \
        return result;                                                              \
    }

extern int __overflow(FILE *, int), __vfprintf_chk(FILE *, int, const char *, va_list), __fprintf_chk(FILE *, int, const char *, ...);
#undef fputc
#undef putc
#undef putc_unlocked
#undef fputc_unlocked
#undef fwrite_unlocked
#undef fputs_unlocked
PUTS(size_t, true, fwrite, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, stream), size * count, size * result)
PUTS(size_t, false, fwrite_unlocked, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, stream), size * count, size * result)
PUTS(int, true, fputs, (const char *text, FILE *stream), (text, stream), strlen(text), result < 0 ? 0 : strlen(text))
PUTS(int, false, fputs_unlocked, (const char *text, FILE *stream), (text, stream), strlen(text), result < 0 ? 0 : strlen(text))
PUTS(int, true, fputc, (int sign, FILE *stream), (sign, stream), 1, result >= 0)
PUTS(int, true, putc, (int sign, FILE *stream), (sign, stream), 1, result >= 0)
PUTS(int, false, fputc_unlocked, (int sign, FILE *stream), (sign, stream), 1, result >= 0)
PUTS(int, false, putc_unlocked, (int sign, FILE *stream), (sign, stream), 1, result >= 0)
PUTS(int, false, __overflow, (FILE *stream, int sign), (stream, sign), 1, result >= 0)
PUTS(int, true, vfprintf, (FILE *stream, const char *format, va_list rest), (stream, format, rest), UINT64_MAX, result < 0 ? 0 : (uint64_t)result)
PUTS(int, true, __vfprintf_chk, (FILE *stream, int flag, const char *format, va_list rest), (stream, flag, format, rest), UINT64_MAX, result < 0 ? 0 : (uint64_t)result)

TS_EXPORT int fprintf(FILE *stream, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int result = vfprintf(stream, format, rest);
    va_end(rest);
    return result;
}

TS_EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int result = __vfprintf_chk(stream, flag, format, rest);
    va_end(rest);
    return result;
}

/* What goes to the standard output, which may be a tier's file. */
TS_EXPORT int vprintf(const char *format, va_list rest) { return vfprintf(stdout, format, rest); }
extern int __vprintf_chk(int, const char *, va_list), __printf_chk(int, const char *, ...);
TS_EXPORT int __vprintf_chk(int flag, const char *format, va_list rest) { return __vfprintf_chk(stdout, flag, format, rest); }

TS_EXPORT int printf(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int result = vfprintf(stdout, format, rest);
    va_end(rest);
    return result;
}

TS_EXPORT int __printf_chk(int flag, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int result = __vfprintf_chk(stdout, flag, format, rest);
    va_end(rest);
    return result;
}

#undef putchar
TS_EXPORT int putchar(int sign) { return putc(sign, stdout); }

HAS_REAL(puts);
TS_EXPORT int puts(const char *text)
{
    put_call put;
    if (!on_tier(stdout, &put.call)) {
        other_call other = begin_other(stdout);
        int result = REAL(puts)(text);
        end_other_write(&other, stdout, result < 0 ? 0 : strlen(text) + 1);
        return result;
    }
    HOLD(stdout, true);
    begin_put(stdout, &put, UINT64_MAX);
    int result = REAL(puts)(text);
    end_put(&put, stdout, result < 0 ? 0 : strlen(text) + 1);
    return result;
}

/* ---- flushing ---- */

/* All streams of the process are about to be flushed, which takes its time where nobody can see it. */
extern FILE *_IO_list_all __attribute__((weak));
extern void _IO_list_lock(void) __attribute__((weak)), _IO_list_unlock(void) __attribute__((weak));
static void record_flush_of_all(void)
{
    if (!ts_recording() || !&_IO_list_all || !_IO_list_lock || !_IO_list_unlock) return;
    stream_call call;
    int kept = errno;
    _IO_list_lock();
    for (FILE *stream = _IO_list_all; stream; stream = stream->_chain) {
        uint64_t unwritten = stream->_mode <= 0 ? pending(stream) : 0;
        if (!unwritten) continue;
        if (on_tier(stream, &call)) ts_finish(ts_op_begin(), &call.what, TS_WRITE, -1, unwritten, false);
        else if (begin_other(stream).counted) ts_saw(0, (int64_t)unwritten);
    }
    _IO_list_unlock();
    errno = kept;
}

__attribute__((destructor)) static void finish(void)
{
    record_flush_of_all();
    if (ts_recording()) ts_look_for_rings(true);
}

#undef fflush_unlocked
#define FLUSHES(name, locks)                                                        \
    HAS_REAL(name);                                                                 \
    TS_EXPORT int name(FILE *stream)                                                \
    {                                                                               \
        stream_call call;                                                           \
        if (!stream) record_flush_of_all();                                         \
        if (!on_tier(stream, &call)) {                                              \
            other_call other = begin_other(stream);                                 \
            int result = REAL(name)(stream);                                        \
            if (stream) end_other_write(&other, stream, 0);                         \
            return result;                                                          \
        }                                                                           \
        HOLD(stream, locks);                                                        \
        uint64_t unwritten = pending(stream);                                       \
        if (!unwritten) return REAL(name)(stream);                                 \
        call.span = ts_op_begin();                                                  \
        int result = REAL(name)(stream);                                           \
        ts_finish(call.span, &call.what, TS_WRITE, -1, unwritten, false);           \
        return result;                                                              \
    }
FLUSHES(fflush, true)
FLUSHES(fflush_unlocked, false)
