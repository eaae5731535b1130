"""Every error that Tierscope raises on purpose.

    TierscopeError                 our own bug, exit code 1
    ├── UserError                  the user's mistake, exit code 2
    │   ├── SpecError              a key or value in a study
    │   ├── ForeignDirectoryError  a directory that holds what we did not make
    │   ├── ResultError            a result file that cannot be read
    │   ├── BarePriceError         a price without its unit
    │   ├── UnidentifiedError      a study uses what its known system does not say
    │   ├── CommandError           a command that cannot be started, exit code 126 (not found: 127) as of a shell
    │   └── DamagedDataError       a data file with wrong content
    └── StoppedError               stopped, and the same command resumes it, exit code 3
        ├── SuspendedError         a measurement during which somebody was suspended: repeated
        ├── VanishedDataError      a data file that is gone or too short
        ├── OutOfSpaceError        the disk or quota is full
        └── MissingResourceError   memory, threads or open files that the system does not give

A message is one line that names what was found where, and what to do about it. Calls from Python also warn:

    UserWarning
    └── ResultWarning              numbers that are right, and not what a reader in a hurry takes them for
        ├── PartialResultWarning   a study of which some runs are not finished
        └── StaleResultWarning     a result that has changed on disk since it was loaded
"""

import errno
import shlex
from collections.abc import Mapping
from typing import Self

# What a filesystem says when its servers fail it: nobody's mistake, and the same command may go on later.
AWAY = frozenset(
    {
        errno.EIO,
        errno.ENXIO,
        errno.ENODEV,
        errno.ETIMEDOUT,
        errno.EROFS,
        errno.ESTALE,
        errno.ENOTCONN,
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EREMOTEIO,
        errno.ESHUTDOWN,
    }
)


# What this process or machine ran out of, and what to do: no file is at fault, and none is damaged.
SHORT = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close other programs: the system has too many open files",
    errno.ENOMEM: "use a machine with more memory, or raise the limit (ulimit -v)",
    errno.EAGAIN: "raise the limits of processes and memory (ulimit -u, ulimit -v)",
}

# Letters and symbols by their class, and blank: a name of them cannot be told from none.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def escaped(text: str, kept: str = "") -> str:
    """Nothing that a terminal would obey or not show, and one line, whoever wrote the text."""
    rest = text.translate(dict.fromkeys(map(ord, kept))) if kept else text
    if rest.isascii() and rest.isprintable():
        return text
    return "".join(sign if sign in kept else _escaped_sign(sign) for sign in text)


def shell_word(text: str) -> str:
    """A name in a command that we suggest: one word for a shell that it is pasted into, whatever is in it."""
    return escaped(shlex.quote(text))


def _escaped_sign(sign: str) -> str:
    if sign in _BLANK:
        return f"\\u{ord(sign):04x}"
    return sign if sign.isprintable() else repr(sign)[1:-1]


class TierscopeError(Exception):
    """Whatever Tierscope raises on purpose; its text is the one line that a command prints. `exit_code`: that command's."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        """What cannot be printed is escaped, whatever a name or a path holds; a traceback of ours may have lines."""
        super().__init__(escaped(message, self._kept))

    _kept = "\n"

    def prefixed(self, who: str) -> Self:
        """The same error, saying who met it (a rank)."""
        return type(self)(f"{who}: {self}")


class UserError(TierscopeError):
    """Something to mend in what was given: the text names it, and the fix."""

    exit_code = 2

    _kept = ""  # one line


class SpecError(UserError):
    pass


class ForeignDirectoryError(UserError):
    pass


class ResultError(UserError):
    pass


class BarePriceError(UserError):
    """`fixes`: what was written → the same with the unit that it stood for."""

    def __init__(self, message: str, fixes: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fixes = dict(fixes or {})


class UnidentifiedError(UserError):
    """`reason`: what is not identified, without what to do about it."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class DamagedDataError(UserError):
    pass


class CommandError(UserError):
    """`missing`: there is no such command, rather than one that cannot be run."""

    exit_code = 126

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        if missing:
            self.exit_code = 127


class StoppedError(TierscopeError):
    """Stopped by what is nobody's mistake; what was finished is kept, and the same call or command continues."""

    exit_code = 3
    _kept = ""


class SuspendedError(StoppedError):
    pass


class VanishedDataError(StoppedError):
    pass


class OutOfSpaceError(StoppedError):
    pass


class MissingResourceError(StoppedError):
    pass


class ResultWarning(UserWarning):
    """Numbers that are right, and not what a reader in a hurry takes them for."""


class PartialResultWarning(ResultWarning):
    """A study of which some runs are not finished."""


class StaleResultWarning(ResultWarning):
    """A result that has changed on disk since it was loaded."""
