"""`read_threads: 0`: the rank reads itself, when it asks."""

import threading
from pathlib import Path

from tests.accesses import Counting
from tests.small_study import loader_of, plan_of, reading, small_study, source_of, stage
from tierscope.loaders.inline import InlineLoader


def test_reads_in_the_rank_s_own_thread_and_only_when_asked(tmp_path: Path) -> None:
    out = str(tmp_path)
    study = small_study("read_threads=0", "prefetch_size=7")
    stage(study, out)
    access = Counting()
    loader = loader_of(study, source_of(study, out, lambda: access))
    assert isinstance(loader, InlineLoader)
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        assert access.opened == []
        for step, _ in enumerate(batches):
            assert len(access.opened) == min(24, 5 * (step + 1))  # no further, whatever prefetch_size says
    assert access.threads == {threading.get_ident()}
