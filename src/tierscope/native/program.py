"""Whether a preloaded library gets into a program: the loader of statically linked and of privileged programs takes none."""

import os
import shutil
import stat
import struct

from tierscope.plain_files import open_plain

_ELF = b"\x7fELF"
_PT_INTERP = 3
_DEEPEST = 4  # scripts whose interpreter is a script


def why_unseen(path: str) -> str | None:
    """Why the operations of this program would not be recorded, or None when they will. For a script: of its interpreter."""
    for _ in range(_DEEPEST):
        try:
            with open_plain(path, follow=True) as file:
                start = file.read(4096)
                about = os.fstat(file.fileno())
                if start.startswith(_ELF):
                    return _why_unseen_elf(path, start, about)
        except OSError:
            return None  # cannot be looked into: may still work
        interpreter = _interpreter(start)
        if interpreter is None:
            return None
        path = interpreter
    return None


def _why_unseen_elf(path: str, start: bytes, about: os.stat_result) -> str | None:
    """`start` must hold the program's headers, as the first page of any real program does."""
    with_class = 4
    if len(start) < 64 or start[with_class] != struct.calcsize("P") // 4:
        return f"{path} is built for another CPU architecture"
    if not _names_a_loader(start):
        return f"{path} is statically linked"
    gains_user = about.st_mode & stat.S_ISUID and about.st_uid != os.getuid()
    gains_group = about.st_mode & stat.S_ISGID and about.st_gid != os.getgid()
    return f"{path} runs with another user's rights (setuid)" if gains_user or gains_group else None


def _names_a_loader(start: bytes) -> bool:
    (table,) = struct.unpack_from("=Q", start, 32)
    size, count = struct.unpack_from("=HH", start, 54)
    places = [place for place in range(table, table + size * count, max(1, size)) if place + 4 <= len(start)]
    return any(struct.unpack_from("=I", start, place)[0] == _PT_INTERP for place in places)


def _interpreter(start: bytes) -> str | None:
    """The program that runs a script; behind `env`, the one that env would find."""
    if not start.startswith(b"#!"):
        return None
    words = os.fsdecode(start[2:].partition(b"\n")[0]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return shutil.which(words[0]) if words else None


def why_not_run(path: str) -> str | None:
    """Why the system would not start this file, with what to do about it; None: for no reason that can be seen in it."""
    try:
        with open_plain(path, follow=True) as file:
            start = file.read(4096)
    except OSError:
        return None
    if not start.startswith(b"#!"):
        text = b"\0" not in start
        return "has no '#!' line; add one (#!/bin/sh), or name the interpreter: sh FILE" if text else None
    line = os.fsdecode(start[2:].partition(b"\n")[0])
    words = line.split()
    if not words:
        return "its '#!' line names no interpreter; add one: #!/bin/sh"
    if line.endswith("\r"):
        return "its '#!' line has a Windows line ending (CR LF); convert the file, e.g. with dos2unix"
    if not os.path.exists(words[0]):
        return f"its interpreter {words[0]} is missing; install it, or correct the '#!' line"
    return None


def processes_recording(folder: str) -> list[int]:
    """Processes of this host that were started to record into the folder and still run, but for ourselves."""
    return processes_with("TIERSCOPE_RECORD", folder)


def processes_with(name: str, path: str) -> list[int]:
    """Processes of this host with a variable that names this path, but for ourselves."""
    variable, place = os.fsencode(f"{name}="), os.path.realpath(os.fsencode(path))
    pids = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as source:
                values = [line for line in source.read().split(b"\0") if line.startswith(variable)]
                if any(os.path.realpath(value.removeprefix(variable)) == place for value in values):
                    pids.append(int(pid))
        except OSError:
            continue  # another user's, or it has ended
    return sorted(pids)


def still_recorded(pid: int, folder: str) -> bool:
    """Whether this process runs and records into the folder; another one may have got its number by now."""
    for about in ("environ", "maps"):  # a program may have written over either its environment or its title
        try:
            with open(f"/proc/{pid}/{about}", "rb") as source:
                if os.fsencode(folder) in source.read():
                    return True
        except OSError:
            continue
    return False
