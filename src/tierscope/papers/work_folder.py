"""A folder for small studies that are run for real on the way to a row. It goes away even if we are killed: another process keeps it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tierscope.errors import UserError
from tierscope.helper_process import Helper

_KEEPER = "tierscope.papers.folder_keeper"
_NEEDED_FOR = "temporary files of tierscope reproduce"
_MOST_SECONDS = 60.0  # to delete it


@contextmanager
def work_folder() -> Iterator[str]:
    with Helper(_KEEPER, needed_for=_NEEDED_FOR) as keeper:
        keeper.expect_greeting()
        keeper.input.write(b"\n")
        keeper.input.flush()
        folder = os.fsdecode(keeper.output.readline().rstrip(b"\n"))
        if not folder:
            raise UserError(f"{_NEEDED_FOR}: {_KEEPER} ended; rerun the command")
        try:
            yield folder
        finally:
            keeper.input.close()
            with suppress(subprocess.TimeoutExpired):
                keeper.process.wait(_MOST_SECONDS)
