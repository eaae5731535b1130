"""A process of the probe: `python -m tierscope.probe.worker PARENT …`, started by ProbeCrew (`child`)."""

import contextlib
import sys
import time
import traceback
from multiprocessing.connection import Connection

from tierscope.bench.child import join
from tierscope.bench.liveness import note_stops
from tierscope.errors import StoppedError, TierscopeError
from tierscope.probe.work import open_files_limit, perform


def main(connection: Connection) -> None:
    stops = note_stops()
    connection.send(("hello", open_files_limit()))

    def wait_for_start() -> int:
        connection.send(("ready",))
        start: int = connection.recv()
        time.sleep(max(0, start - time.monotonic_ns()) / 1e9)
        return start

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (job := connection.recv()) is not None:
            try:
                connection.send(("done", perform(job, wait_for_start), stops.take()))
            except TierscopeError as error:
                connection.send(("error", type(error).__name__, str(error)))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise
            except OSError as error:
                text = f"{error.filename or job.folder}: cannot {job.kind}: {error.strerror or error}; fix it and rerun the command"
                connection.send(("error", StoppedError.__name__, text))
            except Exception:  # noqa: BLE001  (our bug: the director shows it)
                connection.send(("error", TierscopeError.__name__, traceback.format_exc()))


if __name__ == "__main__":
    _joined = join(sys.argv[1:], lambda _: None)
    if _joined is not None:
        main(_joined.connection)
        _joined.leave()
