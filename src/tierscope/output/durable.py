"""Writing so that a kill at any moment leaves either the old file or the new one, and so that nobody can lead it elsewhere.

A folder is opened once, and everything else is asked of its descriptor: the temporary file is made there, handed out open, synced, and renamed
there. No name is looked up twice, so that whoever may write to the folder cannot put a link in between.

Whoever writes says from where on links are refused (`root`): a result may be reached through a link, but its own folders are none.
"""

import ctypes
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

TEMPORARY = r"\.tierscope-tmp-\d+-[0-9a-f]{16}"  # names of files that are being written; nobody else gives such names
PIPE_SECONDS = 5.0  # for the reader of a pipe to come
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(path: str, content: bytes, root: str | None = None, make: bool = True) -> None:
    """As `replacing` does it."""
    with replacing(path, root, make) as out:
        out.write(content)


@contextmanager
def replacing(path: str, root: str | None = None, make: bool = True) -> Iterator[BinaryIO]:
    """An open file: it becomes `path`, durably, when the block ends well, and goes away when not.

    With `make`, folders below `root` are made where they are missing. `root` None: the folder of `path` is there, and may be a link.
    """
    folder, name = os.path.split(path)
    with opened_folder(folder or ".", root, make) as fd:
        temporary = temporary_name()
        try:
            with os.fdopen(os.open(temporary, _NEW, 0o666, dir_fd=fd), "w+b") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
            os.fsync(fd)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=fd)
            if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
                error.filename, error.filename2 = path, None  # what the reader knows it by
            raise


@contextmanager
def created(path: str, root: str) -> Iterator[str]:
    """A new file for a library that asks for a name: one that means the open file, wherever `path` leads by then."""
    folder, name = os.path.split(path)
    with opened_folder(folder, root) as fd:
        new = os.open(name, _NEW, 0o644, dir_fd=fd)
    try:
        yield f"/proc/self/fd/{new}"
    finally:
        os.close(new)


def temporary_name() -> str:
    """One that nobody can guess."""
    return f".tierscope-tmp-{os.getpid()}-{secrets.token_hex(8)}"


@contextmanager
def opened_folder(path: str, root: str | None = None, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder. From `root` on no link is followed (ELOOP), and with `make` what is missing below it is made."""
    fd = enter_folder(path, root, make)
    try:
        yield fd
    finally:
        os.close(fd)


def enter_folder(path: str, root: str | None = None, make: bool = False, mode: int = 0o777) -> int:
    """The same, to be closed by whoever asked. `mode`: of folders that are made."""
    root = path if root is None else root
    below = path.removeprefix(f"{root}/").split(os.sep) if path.startswith(f"{root}/") else [os.pardir]
    if os.pardir in below:  # or may be: what costs most, and hardly ever happens
        below = os.path.relpath(path, root).split(os.sep)
    if os.pardir in below:
        raise ValueError(f"{path} is not below {root}")
    fd, there = os.open(root, _FOLDER), root
    for name in (part for part in below if part not in ("", os.curdir)):
        there = os.path.join(there, name)
        try:
            inner = _entered(fd, name, mode if make else None)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), there) from None
        finally:
            os.close(fd)
        fd = inner
    return fd


def _entered(parent: int, name: str, mode: int | None) -> int:
    if mode is not None:
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=parent)
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except NotADirectoryError:  # which is what the system says of a link, too
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


@contextmanager
def writing_named(path: str) -> Iterator[BinaryIO]:
    """An open file for what the user named (`--csv`, `-o`): complete in the end, or as it was.

    A link is the user's: what it leads to is replaced, in its own folder, and keeps its mode. Pipes, terminals and other devices hold nothing that
    could be lost: they are written to as they are.
    """
    stream = _stream(path)
    if stream is not None:
        with stream:
            yield stream
        return
    target = os.path.realpath(path)
    try:
        with replacing(target) as out:
            with suppress(FileNotFoundError):
                os.fchmod(out.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            yield out
    except OSError as error:
        if error.filename == target:
            error.filename = path
        raise


def open_appending(path: str, new: bool) -> int:
    """A descriptor whose writes go to the end of a file that the user named: a new one, or one that is there. Nothing of it is ever cut off."""
    how = os.O_CREAT | os.O_EXCL if new else os.O_NONBLOCK | os.O_NOCTTY
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | how, 0o666)


def is_stream(path: str) -> bool:
    """Whether something is there that is no file and no folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return _own_descriptor(path) is not None or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _stream(path: str) -> BinaryIO | None:
    if not is_stream(path):
        return None
    number = _own_descriptor(path)
    return os.fdopen(_opened_stream(path) if number is None else os.dup(number), "wb")


def _opened_stream(path: str) -> int:
    """A pipe must have a reader, or soon: opening it would wait for one without end."""
    until = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() >= until:
                raise OSError(errno.ENXIO, "this pipe has no reader; start its reader first", path) from None
            time.sleep(0.05)
        else:
            os.set_blocking(fd, True)
            return fd


def _own_descriptor(path: str) -> int | None:
    """Behind what was printed before, where standard output is a file."""
    match = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d{1,6})", path)
    return int(match[1]) if match else {"/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def remove_file(path: str, root: str | None = None) -> None:
    """A file of ours; one that is gone is gone. No link is followed, as `replacing` has it."""
    folder, name = os.path.split(path)
    with suppress(FileNotFoundError), opened_folder(folder or ".", root) as fd:
        os.unlink(name, dir_fd=fd)


def move_file(path: str, target: str, root: str) -> None:
    """To a place below `root` on the same file system; folders are made there."""
    folder, name = os.path.split(target)
    with opened_folder(folder, root, make=True) as fd:
        os.replace(path, name, dst_dir_fd=fd)


def link_file(path: str, target: str, root: str) -> None:
    """Also there; a file that has this name stays."""
    folder, name = os.path.split(target)
    with opened_folder(folder, root, make=True) as fd, suppress(FileExistsError):
        os.link(path, name, dst_dir_fd=fd, follow_symlinks=False)


def make_folders(path: str, root: str, mode: int = 0o777) -> str:
    """Those below `root`, none of them through a link."""
    os.close(enter_folder(path, root, True, mode))
    return path


def lock_file(path: str) -> int:
    """A descriptor that holds the lock of a file until it is closed, or the process ends.

    BlockingIOError if somebody else holds it. A filesystem without locks gives none, and the descriptor all the same.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:
        pass
    return fd


def sync_filesystem(path: str) -> None:
    """Everything written to the filesystem of this directory reaches its device (one call for many files)."""
    with opened_folder(path) as fd:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)


def boot_id() -> str:
    """Changes when the machine restarts, and with it the page cache is lost."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return "unknown"
