"""What a command may do to a user: end with a known code, say one line, print nothing that a terminal obeys, touch nothing of others."""

import hashlib
import json
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FRAME = re.compile(r'File "[^"]*?/(tierscope/[^"]+)", line (\d+), in (\S+)')


@dataclass(frozen=True, slots=True)
class Ended:
    """How a case ended. `code`: below zero for a signal; `stopped`: why we ended it, or an empty text."""

    code: int
    out: bytes
    err: bytes
    seconds: float
    cpu_seconds: float
    stopped: str = ""


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below it, by what it is and holds; times do not count."""
    contents = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = ""
        if stat.S_ISREG(about.st_mode) and about.st_size < 1 << 24:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if about.st_mode & 0o400 else "unreadable"
        elif stat.S_ISLNK(about.st_mode):
            content = str(path.readlink())
        contents[str(path.relative_to(folder))] = f"{stat.filemode(about.st_mode)[0]} {content}"
    return contents


def judge(
    arguments: list[str],
    keeps: tuple[str, ...],
    before: dict[str, str],
    after: dict[str, str],
    ended: Ended,
    makes: tuple[str, ...] = ("*",),
) -> str:
    """An empty text: all is well. Else the class of the worst mistake, the same for the same mistake."""
    said = next(_said(arguments, ended), "")
    crashed = said if said.startswith("traceback") else ""
    return ended.stopped or crashed or _lost(keeps, before, after) or _strewn(makes, before, after) or said


def _also_good(arguments: list[str]) -> set[int]:
    """A traced command's own exit codes, and that of a goal which `analyze` finds missed."""
    if arguments[:1] == ["trace"]:
        return {1, 126, 127}
    return {1} if arguments[:1] == ["analyze"] and "--goal" in arguments else set()


def _said(arguments: list[str], ended: Ended) -> Iterator[str]:
    err = ended.err.decode("utf-8", "backslashreplace")
    out = ended.out.decode("utf-8", "backslashreplace")
    if "Traceback (most recent call last)" in err:
        yield f"traceback: {_where(err)}"
    if ended.code not in {0, 2, 3} | _also_good(arguments):
        yield f"exit code {ended.code}"
    for sign in filter(_is_obeyed, out + err):
        yield f"raw {sign!a} on {'stdout' if sign in out else 'stderr'}"
    lines = [line for line in err.splitlines() if line.startswith("tierscope: ")]
    if ended.code in (2, 3) and len(lines) != 1:
        yield f"{len(lines)} lines of error"
    if ended.code == 2 and len(err.splitlines()) > 1:
        yield "more than one line of error"
    if ended.code == 0 and "--json" in arguments and arguments[0] != "trace":
        try:
            json.loads(out, parse_constant=_refuse)
        except ValueError:
            yield "no valid JSON"


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _is_obeyed(sign: str) -> bool:
    return sign in _BIDI or (unicodedata.category(sign) == "Cc" and sign not in "\n\t")


def _lost(keeps: tuple[str, ...], before: dict[str, str], after: dict[str, str]) -> str:
    for path, content in before.items():
        if content[0] == "d" or not any(fnmatchcase(path, pattern) for pattern in keeps):
            continue
        if path not in after:
            return f"deleted {_class_of(path)}"
        if after[path] != content:
            return f"changed {_class_of(path)}"
    return ""


def _strewn(makes: tuple[str, ...], before: dict[str, str], after: dict[str, str]) -> str:
    """What is new must be where the command was told to write."""
    for path in after:
        if path not in before and not any(fnmatchcase(path, pattern) for pattern in makes):
            return f"created {_class_of(path)}"
    return ""


def _class_of(path: str) -> str:
    return re.sub(r"\d{4}-r\d+", "N", path.rpartition("/")[2])


def _where(err: str) -> str:
    """The last frame of ours, and what was raised."""
    frames = _FRAME.findall(err)
    place = "{}:{} {}".format(*frames[-1]) if frames else "nowhere in tierscope"
    raised = [
        line
        for line in err.splitlines()
        if re.match(r"[\w.]+(Error|Exception|Warning|Interrupt|Exit|Panic\w*)\b", line)
    ]
    return f"{place}: {raised[-1].partition(':')[0] if raised else err.splitlines()[-1][:60]}"
