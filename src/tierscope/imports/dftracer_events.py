"""One line of a trace of DFTracer: what it says, and which of our kinds of operation a traced call is.

Lines are JSON, an event each. Nearly all have one of two shapes, and for these a regular expression is two to three times faster than a JSON
decoder (`LINE`); it takes only what is valid JSON and means the same. Version 1 writes phases as letters and hashes as
numbers, version 2 phases as numbers and hashes as text.
"""

import json
import re
from typing import Any

from tierscope.trace.ops import KINDS

IO_CATEGORIES = frozenset((b"POSIX", b"STDIO"))
COMPLETE, METADATA = ("X", 1), ("M", 4)
SUMMED = ("C", "A", 2, 3)  # counters, and events that DFTracer has summed up itself
MOST_BYTES = 1 << 48  # of one call; what a process can address
MOST_NUMBER = 1 << 63
UNIT_NS = {"NS": 1, "US": 1_000, "MS": 1_000_000, "SEC": 1_000_000_000}
LONGEST_NS = 366 * 86_400 * 10**9  # a call or span; beyond it a clock was set back
LATEST_NS = 2**63 - 1  # the year 2262

Process = tuple[str, int]  # hash of its host, pid

_NUMBER = rb"(?:[1-9][0-9]{0,19}+|0)(?![0-9.eE])"
_VALUE = rb"(?:-?+" + _NUMBER + rb'|"[^"\\\x00-\x1f\x80-\xff]*+")'
# Groups: name, category, pid, tid, ts, dur, host, file, ret of a complete event; name and hash of a file; a line of any other shape.
LINE = re.compile(
    rb'(?:\{(?:"id":-?+%(number)s,)?+"name":"([^"\\\x00-\x1f]*+)","cat":"([^"\\\x00-\x1f]*+)",(?:"type":%(number)s,)?+'
    rb'"pid":(%(number)s),"tid":(%(number)s),"ts":(%(number)s),"dur":(%(number)s),"ph":(?:"X"|1)'
    rb'(?:,"args":\{"hhash":(%(value)s)(?:,"(?:fhash":(%(value)s)|ret":(%(value)s)|(?!hhash"|fname")\w++":%(value)s))*+\})?+\},?+\r?+'
    rb'|\{(?:"id":-?+%(number)s,)?+"name":"FH","cat":"dftracer",(?:"type":%(number)s,)?+"pid":%(number)s,"tid":%(number)s,"ph":(?:"M"|4)'
    rb',"args":\{"hhash":%(value)s,"name":"([^"\\\x00-\x1f]*+)","value":(%(value)s)\}\},?+\r?+'
    rb"|([^\n]++))\n" % {b"number": _NUMBER, b"value": _VALUE}
)

# What says how many bytes a call moved.
RESULT, ITEMS, ONE, MAPPED, NOTHING = "ret", "ret × size", "1 if ret ≥ 0", "length", ""
_MAP_FAILED = 2**64 - 1
_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "open": (("open openat creat fopen freopen fdopen opendir", NOTHING),),
    "read": (
        ("read pread readv preadv preadv2", RESULT),
        ("fread", ITEMS),
        ("fgets", "ret_len"),
        ("fgetc getc", ONE),
        ("getline getdelim", RESULT),
    ),
    "close": (("close fclose closedir", NOTHING),),
    "stat": (
        ("stat fstat lstat fstatat newfstatat statx", NOTHING),
        ("__xstat __fxstat __lxstat __fxstatat access faccessat", NOTHING),
    ),
    "write": (
        ("write pwrite writev pwritev pwritev2", RESULT),
        ("fwrite", ITEMS),
        ("fputs", "str_len"),
        ("fputc putc", ONE),
        ("fprintf vfprintf", RESULT),
    ),
    "seek": (("lseek fseek fseeko rewind fsetpos", NOTHING),),
    "mmap": (("mmap", MAPPED),),
    "sync": (("fsync fdatasync fflush sync_file_range msync", NOTHING),),
}
# name of a call → number of its kind, and what says its bytes
CALLS: dict[bytes, tuple[int, str]] = {
    (name + ending).encode(): (KINDS.index(kind), moved)
    for kind, groups in _CALLS.items()
    for names, moved in groups
    for name in names.split()
    for ending in ("", "64", "_unlocked")
}
# The same for calls whose bytes are no question: whether they are what the call returned.
FAST_CALLS = {name: (kind, moved == RESULT) for name, (kind, moved) in CALLS.items() if moved in (RESULT, NOTHING)}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")  # half a sign, which no file can hold
_decode = json.JSONDecoder(strict=False).raw_decode  # a file's name may hold any sign


def event_of(line: bytes) -> dict[str, Any] | None:
    """None: the line is broken. Empty: it holds no event, as the brackets around all of them."""
    text = line.decode("utf-8", "replace").strip(" \t\r\n,")
    if text in ("", "[", "]"):
        return {}
    if "\\u" in text:
        text = _SURROGATE.sub(r"\\ufffd", text)
    try:
        event, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or not isinstance(event, dict):
        return None
    args = event.setdefault("args", {})
    named = isinstance(event.get("name"), str) and isinstance(args, dict)
    return event if named and number(event.get("pid")) is not None else None


def number(value: object) -> int | None:
    """A whole number from 0 on, if it is one."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_NUMBER
    return value if good else None  # type: ignore[return-value]


def result(value: object) -> int | None:
    """What a call returned. Early versions write it as text."""
    if isinstance(value, str | bytes):
        text = value.strip('"') if isinstance(value, str) else value.strip(b'"').decode("utf-8", "replace")
        return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def hashed(value: object) -> bytes:
    """A hash as both versions write it; nothing when there is none."""
    return str(value).encode("utf-8", "replace") if isinstance(value, str | int) else b""


def file_of(args: dict[str, Any]) -> bytes:
    """The hash of a call's file; early versions give its name instead."""
    name = args.get("fname")
    if "fhash" not in args and isinstance(name, str):
        return b"\0" + name.encode("utf-8", "replace")
    return hashed(args.get("fhash"))


def bytes_of(args: dict[str, Any], moved: str) -> int | None:
    """None: not said. A call that failed moved nothing."""
    if moved == NOTHING:
        return 0
    returned = result(args.get("ret"))
    if moved == ONE:
        return None if returned is None else int(returned >= 0)
    if moved in (RESULT, ITEMS):
        if returned is None:
            return None
        size = result(args.get("size")) if moved == ITEMS else 1
        return None if size is None else max(0, returned) * max(0, size)
    if moved == MAPPED and args.get("address") == _MAP_FAILED:
        return 0
    return max(0, result(args.get(moved)) or 0)


def host_of(args: dict[str, Any], default: str) -> str:
    """Early versions write a host's name where others have its hash."""
    return hashed(args.get("hhash", args.get("hostname"))).decode() or default


def sensible(ts: int, dur: int, unit_ns: int) -> bool:
    return ts * unit_ns <= LATEST_NS and dur * unit_ns <= LONGEST_NS


def times_of(event: dict[str, Any], unit_ns: int) -> tuple[int, int] | None:
    ts, dur = number(event.get("ts")), number(event.get("dur"))
    return None if ts is None or dur is None or not sensible(ts, dur, unit_ns) else (ts, dur)
