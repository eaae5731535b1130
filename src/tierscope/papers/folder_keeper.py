"""Makes a temporary folder for whoever started it, and deletes it when that process is done or gone, however it ended (`work_folder.py`).

The folder is the keeper's own: it deletes none that it was told of. Ranks of a process that was killed may write for a moment longer.
"""

import os
import signal
import sys
import tempfile
import time

from tierscope.helper_process import greet

_PAUSE_SECONDS, _MOST_PAUSES = 0.5, 40


def main() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # whoever is stopped by them closes our input
        signal.signal(number, signal.SIG_IGN)
    whole = tempfile.TemporaryDirectory(prefix="tierscope-", ignore_cleanup_errors=True)
    with whole as folder:
        greet()
        if sys.stdin.buffer.readline():
            os.write(1, f"{folder}\n".encode())
            sys.stdin.buffer.read()
        whole.cleanup()
        for _ in range(_MOST_PAUSES):
            if not os.path.exists(folder):
                break
            time.sleep(_PAUSE_SECONDS)
            whole.cleanup()


if __name__ == "__main__":
    main()
