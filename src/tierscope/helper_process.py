"""The one way to start a process of our own: a module of this package, run by this interpreter, away from the current folder.

Python looks for modules in the current folder first, and folders of logs are filled by strangers: a `json.py` there would be executed. A helper
is therefore started with `-P`, and without those entries of PYTHONPATH that depend on the current folder.

A helper greets after its imports and before it is asked anything. One that does not could not start: for want of memory, of a library, of time.
One that dies later died of what it was asked.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import IO, Self, TypeVar

from tierscope import __version__
from tierscope.errors import MissingResourceError, StoppedError, TierscopeError, UserError
from tierscope.shortage import memory_advice, missing_resource, shortage

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
START_SECONDS = 120.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each more reserves memory, and has nothing to do
_STOP_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.2
_PIPE_BYTES = 1 << 20
_MOST_SAID = 4096
_MOST_GREETING = 256
_STACK_BYTES = 256 << 10
_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the folder that this package is in
_INSTALLED = ("site-packages", "dist-packages")  # folders that every interpreter looks into by itself


def helper_command(module: str, *arguments: str) -> list[str]:
    """What starts a module of ours; to be run with `helper_environment`."""
    return [sys.executable, "-P", "-m", module, *arguments]


def helper_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own environment and these variables, without what would have Python look into the current folder."""
    environment = {**os.environ, **(variables or {})}
    given = "" if sys.flags.ignore_environment else environment.get("PYTHONPATH", "")
    folders = [folder for folder in given.split(os.pathsep) if os.path.isabs(folder)]
    if os.path.basename(_PACKAGES) not in _INSTALLED and _PACKAGES not in folders:
        folders.insert(0, _PACKAGES)  # run from a clone
    return {**environment, "PYTHONPATH": os.pathsep.join(folders)}  # empty: as if there were none


@contextmanager
def isolated_children() -> Iterator[None]:
    """Python processes that a library of others starts meanwhile look into the current folder as little as ours."""
    isolated = {"PYTHONPATH": helper_environment()["PYTHONPATH"], "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in isolated}
    os.environ.update(isolated)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Helper:
    """A process of ours, with pipes to it and from it, in a group of its own: Ctrl-C reaches only us. What it says on standard error is kept.

    `needed_for`: what cannot be done without it, for an error. After the start `expect_greeting` must be called once; several helpers are best
    started first and greeted then.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        needed_for: str,
        variables: Mapping[str, str] | None = None,
        pass_fds: Iterable[int] = (),
    ) -> None:
        self._module, self._needed_for = module, needed_for
        try:
            self._said = os.memfd_create("said", os.MFD_CLOEXEC)
        except OSError as error:
            raise self._not_started(error) from None
        try:
            self.process = subprocess.Popen(
                helper_command(module, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=helper_environment(variables),
                process_group=0,
                pass_fds=list(pass_fds),
                pipesize=_PIPE_BYTES,
            )
        except OSError as error:
            os.close(self._said)
            raise self._not_started(error) from None

    def expect_greeting(self, deadline: float | None = None) -> None:
        """`deadline`: of the monotonic clock. Whoever has not greeted by then is ended."""
        until = time.monotonic() + START_SECONDS if deadline is None else deadline
        greeting = b""
        try:
            while b"\n" not in greeting and len(greeting) < _MOST_GREETING:
                if not _readable(self.output.fileno(), until):
                    raise StoppedError(
                        f"{self._needed_for}: {self._module} did not start within {START_SECONDS:g} s; is the machine overloaded? rerun the command"
                    )
                piece = os.read(self.output.fileno(), _MOST_GREETING)
                if not piece:
                    raise could_not_start(self._module, self._needed_for, self.process.wait(), self.said())
                greeting += piece
            if greeting != _greeting_of(self._module):
                told = greeting.decode("utf-8", "replace").strip()
                raise UserError(
                    f"{self._needed_for}: {self._module} of {__version__} was started, but {told!r} responded; is another Tierscope in PYTHONPATH?"
                )
        except BaseException:
            self.close()
            raise

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def said(self) -> str:
        """The end of what it wrote to standard error."""
        try:
            size = os.fstat(self._said).st_size
            return os.pread(self._said, _MOST_SAID, max(0, size - _MOST_SAID)).decode("utf-8", "replace")
        except OSError:  # closed
            return ""

    def alive(self) -> bool:
        return self.process.poll() is None

    def ended_by(self, number: signal.Signals) -> bool:
        """Of one that has closed its pipes: whether such a signal was its end."""
        try:
            return self.process.wait(_STOP_SECONDS) == -number
        except subprocess.TimeoutExpired:
            return False

    def kill(self) -> None:
        """And see it gone, unless it hangs in the kernel; its pipes stay until `close`."""
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)

    def close(self) -> None:
        """At once, whatever it is doing. May be called twice."""
        self.kill()
        for pipe in (self.input, self.output):
            with suppress(OSError):
                pipe.close()
        said, self._said = self._said, -1
        if said >= 0:
            os.close(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _not_started(self, error: OSError) -> TierscopeError:
        what = f"{self._needed_for}: {self._module} could not start"
        return missing_resource(what, error) or UserError(f"{what}: {sys.executable}: {error.strerror or error}")


class HelperGroup:
    """Helpers that several threads start and ask, each its own."""

    def __init__(self) -> None:
        self._started: list[Helper] = []
        self._ending = False
        self._lock = threading.Lock()

    def add(self, helper: Helper) -> None:
        with self._lock:
            self._started.append(helper)
            ending = self._ending
        if ending:
            helper.kill()

    def kill(self) -> None:
        """All, and those to come: a thread that waits for its helper goes on at once. Closing is left to `close`: the thread has its pipes."""
        with self._lock:
            self._ending = True
            started = list(self._started)
        for helper in started:
            helper.kill()

    def close(self) -> None:
        """When no thread is left that asks."""
        for helper in self._started:
            helper.close()


@contextmanager
def threads_with_helpers(count: int) -> Iterator[tuple[Executor, HelperGroup]]:
    """Threads, and the group for the helpers that they start. Whoever leaves early waits for no helper, and leaves none."""
    helpers = HelperGroup()
    with ThreadPoolExecutor(count) as threads:
        try:
            yield threads, helpers
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            helpers.kill()
            threads.shutdown()
            helpers.close()


def could_not_start(module: str, needed_for: str, code: int, said: str) -> TierscopeError:
    """The error about a helper that ended before it greeted; `said`: on standard error."""
    what = f"{needed_for}: {module} could not start"
    if short := shortage(said):
        return MissingResourceError(f"{what}: {short}")
    if code == -signal.SIGKILL:
        return MissingResourceError(f"{what}: it was killed; if it ran out of memory, {memory_advice()}")
    lines = said.strip().splitlines()
    return UserError(f"{what}: {lines[-1][:200] if lines else how_it_ended(code)}")


def has_greeted(module: str, output: str) -> bool:
    """Of a helper that somebody else started for us, by all that it wrote."""
    return _greeting_of(module).decode() in output


def asked_in_threads(threads: Executor, ask: Callable[[Asked], Answer], asked: Iterable[Asked]) -> Iterator[Answer]:
    """`ask` of each in a thread; answers in their order. Unlike `Executor.map` it hears Ctrl-C while it waits.

    Polars takes that signal for itself, and has the system go on waiting after it (SA_RESTART). So Python's handler is set again, and no wait
    is without an end.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGINT, handler)
    futures = [threads.submit(ask, item) for item in asked]
    for future in futures:
        while not wait([future], _LOOK_AGAIN_SECONDS).done:
            pass
        yield future.result()


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    known = {known_signal.value: known_signal.name for known_signal in signal.Signals}
    return f"was killed by {known.get(-code, f'signal {-code}')}"


def _readable(fd: int, until: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))


def greet() -> None:
    """In a helper: say that all imports are done. Then nothing but answers may go to standard output."""
    module = sys.modules["__main__"].__spec__
    assert module is not None
    os.write(1, _greeting_of(module.name))


def _greeting_of(module: str) -> bytes:
    return f"{module} {__version__}\n".encode()


def end_with_starter() -> None:
    """In a helper: end when whoever started it is gone, even in the midst of a library that hangs. Standard input must be its pipe."""

    def watch() -> None:
        poll = select.poll()
        poll.register(0, 0)  # nothing but its end
        poll.poll()
        os._exit(1)

    before = threading.stack_size(_STACK_BYTES)
    threading.Thread(target=watch, daemon=True).start()
    threading.stack_size(before)
