"""What the system did not give, by the words of whoever did not get it."""

import errno
import os
import resource

import pytest

from tierscope.errors import MissingResourceError
from tierscope.shortage import missing_resource, shortage, shortage_of


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    found = {resource.RLIMIT_AS: 2 << 30, resource.RLIMIT_NPROC: 100, resource.RLIMIT_NOFILE: 256}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (found[kind], found[kind]))
    return found


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "not enough memory; raise the limit on address space (ulimit -v, now 2 GiB)"),
        (OSError(errno.ENOMEM, "x"), "not enough memory; raise the limit on address space (ulimit -v, now 2 GiB)"),
        (OSError(errno.EMFILE, "x"), "too many open files; raise the limit (ulimit -n, now 256)"),
        (
            RuntimeError("can't start new thread"),
            "not enough threads; raise the limit on processes (ulimit -u, now 100) or on address space (ulimit -v, now 2 GiB)",
        ),
        (ImportError("x.so: failed to map segment from shared object"), "not enough memory; raise"),
        (ValueError("Unable to allocate 7.45 GiB for an array"), "not enough memory; raise"),
    ],
)
def test_what_was_short_and_what_to_raise(error: Exception, told: str) -> None:
    assert (shortage_of(error) or "").startswith(told)


def test_without_a_limit_the_machine_is_too_small(limits: dict[int, int]) -> None:
    limits[resource.RLIMIT_AS] = resource.RLIM_INFINITY
    assert shortage("MemoryError") == "not enough memory; use a machine with more, or end other programs"
    assert shortage(os.strerror(errno.EAGAIN)) == (
        "not enough threads; raise the limit on processes (ulimit -u, now 100)"
    )


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "x"), ValueError("bad header"), ImportError("no module")])
def test_other_errors_are_none_of_it(error: Exception) -> None:
    assert shortage_of(error) is None
    assert missing_resource("reading", error) is None


def test_an_error_says_what_cannot_be_done() -> None:
    found = missing_resource("reading x", MemoryError())
    assert isinstance(found, MissingResourceError)
    assert str(found).startswith("reading x: not enough memory; ")
