"""Which loader a study gets, and when it is refused one."""

from pathlib import Path
from typing import ClassVar

import pytest

from tests.small_study import NEEDS_LIBRARY, small_study
from tierscope.bench import loading
from tierscope.bench.loading import make_source, pick_loader
from tierscope.data.stage import make_format
from tierscope.errors import UserError
from tierscope.loaders import LOADERS
from tierscope.loaders.threads import ThreadLoader
from tierscope.native import library
from tierscope.registry import Entry, Registry
from tierscope.tiers.emulated import Board, Emulated
from tierscope.tiers.stations import map_stations


class Unrecorded(ThreadLoader):
    """A loader that reads with a library of its own, past our recorder."""

    records: ClassVar[bool] = False


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda: None)


@NEEDS_LIBRARY
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_native_where_it_is_installed(threads: int) -> None:
    assert pick_loader(small_study(f"read_threads={threads}")) == "native"
    assert pick_loader(small_study(f"read_threads={threads}", "data_loader=native")) == "native"


@pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (1, "threads"), (3, "threads")])
def test_threads_where_it_is_not_or_when_asked_for(threads: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pick_loader(small_study(f"read_threads={threads}", "data_loader=threads")) == name
    monkeypatch.setattr(library, "load", lambda: None)
    assert pick_loader(small_study(f"read_threads={threads}")) == name


@pytest.mark.usefixtures("no_library")
def test_what_needs_the_library_says_so() -> None:
    fix = "install tierscope again where there is a C compiler, or"
    with pytest.raises(UserError) as caught:
        pick_loader(small_study("data_loader=native"))
    assert str(caught.value) == (
        "workload.reader.data_loader = native, but the native library is missing or cannot be loaded; "
        f"{fix} set data_loader: threads"
    )
    for setting, words in (("odirect=true", "odirect = true"), ("io_engine=uring", "io_engine = uring")):
        with pytest.raises(UserError) as caught:
            pick_loader(small_study(setting))
        assert str(caught.value).startswith(
            f"workload.reader.{words} needs the native loader, whose library is missing"
        )
        assert fix in str(caught.value)


def test_a_loader_that_reads_past_the_recorder_gets_no_emulated_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {**LOADERS.entries, "threads": Entry(f"{__name__}:Unrecorded", "")}
    monkeypatch.setattr(loading, "LOADERS", Registry("loader", entries))
    settings = ("data_loader=threads", "gfs.latency=1 ms")
    assert pick_loader(small_study(*settings)) == "threads"
    with pytest.raises(UserError) as caught:
        pick_loader(small_study(*settings, "gfs.emulate=true"))
    assert str(caught.value) == (
        "system.tiers.gfs.emulate = true, but not all that loader 'threads' reads passes through our recorder: "
        "it cannot be slowed down; set workload.reader.data_loader: auto or emulate: false"
    )


@pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (2, "threads")])
def test_what_only_python_emulates_is_read_in_python(threads: int, name: str) -> None:
    shared = ("gfs.read_ops=9/s", "gfs.discipline=sharing", f"read_threads={threads}")
    assert pick_loader(small_study(*shared, "gfs.emulate=true")) == name
    assert pick_loader(small_study(*shared)) == pick_loader(
        small_study(f"read_threads={threads}")
    )  # nothing acts on it


def test_every_thread_of_every_rank_has_its_own_variation(tmp_path: Path) -> None:
    """Seeded, so that the same study gives the same services again."""
    study = small_study("gfs.emulate=true", "gfs.read_ops=1000/s", "gfs.service_variation=1")
    board = Board(map_stations(study.system, study.seed).count)

    def draws(rank: int) -> list[float]:
        source = make_source(study, str(tmp_path), 0, board.path, make_format(study), rank=rank)
        threads = [source.open_accesses() for _ in range(3)]
        found = [access._dice.random() for accesses in threads for access in accesses if isinstance(access, Emulated)]
        for accesses in threads:
            source.close_accesses(accesses)
        return found

    found = {rank: draws(rank) for rank in range(3)}
    assert found == {rank: draws(rank) for rank in range(3)}
    assert len({draw for drawn in found.values() for draw in drawn}) == 9
    board.close()
