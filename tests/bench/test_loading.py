"""Which loader a study gets, and when it is refused one."""

from pathlib import Path
from typing import ClassVar

import pytest

from tests.small_study import NEEDS_LIBRARY, node_source, small_study
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.loaders.choose import choose_loader
from tierscope.loaders.threads import ThreadLoader
from tierscope.native import library
from tierscope.storage.emulated import Board, Emulated
from tierscope.storage.stations import map_stations


class Unrecorded(ThreadLoader):
    """A loader that reads with a library of its own, past our recorder."""

    records: ClassVar[bool] = False


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda: None)


@NEEDS_LIBRARY
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_native_where_it_is_installed(threads: int) -> None:
    assert choose_loader(small_study(f"read_threads={threads}")) == "native"
    assert choose_loader(small_study(f"read_threads={threads}", "data_loader=native")) == "native"


@pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (1, "threads"), (3, "threads")])
def test_threads_where_it_is_not_or_when_asked_for(threads: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_loader(small_study(f"read_threads={threads}", "data_loader=threads")) == name
    monkeypatch.setattr(library, "load", lambda: None)
    assert choose_loader(small_study(f"read_threads={threads}")) == name


@pytest.mark.usefixtures("no_library")
def test_what_needs_the_library_says_so() -> None:
    fix = "reinstall tierscope with a C compiler available, or"
    with pytest.raises(UserError) as caught:
        choose_loader(small_study("data_loader=native"))
    assert str(caught.value) == (
        "workload.reader.data_loader = native, but the native library is missing or cannot be loaded; "
        f"{fix} set data_loader: threads"
    )
    for setting, words in (("odirect=true", "odirect = true"), ("io_engine=uring", "io_engine = uring")):
        with pytest.raises(UserError) as caught:
            choose_loader(small_study(setting))
        assert str(caught.value).startswith(
            f"workload.reader.{words} needs the native loader, whose library is missing"
        )
        assert fix in str(caught.value)


@pytest.mark.parametrize("name", ["pytorch", "tensorflow"])
def test_another_profiler_does_not_measure_loaders_of_frameworks(name: str) -> None:
    study = small_study(f"data_loader={name}")
    assert choose_loader(study) == name
    with pytest.raises(UserError) as caught:
        choose_loader(study, seen=True)
    assert str(caught.value) == (
        f"workload.reader.data_loader = {name} works only with the built-in recorder; remove --profiler"
    )


@pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (2, "threads")])
def test_what_only_python_emulates_is_read_in_python(threads: int, name: str) -> None:
    shared = ("gfs.read_ops=9/s", "gfs.discipline=sharing", f"read_threads={threads}")
    assert choose_loader(small_study(*shared, "gfs.emulate=true")) == name
    assert choose_loader(small_study(*shared)) == choose_loader(
        small_study(f"read_threads={threads}")
    )  # nothing acts on it


@pytest.mark.parametrize(
    "setting",
    [
        "format=hdf5",
        "format=lmdb",
        "format=parquet",
        "format=png",
        "format=jpeg",
        "format=synthetic",
        "record_length_bytes_stdev=9",
    ],
)
@pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (2, "threads")])
def test_what_only_python_reads_is_read_in_python(setting: str, threads: int, name: str) -> None:
    assert choose_loader(small_study(setting, f"read_threads={threads}")) == name


@NEEDS_LIBRARY
@pytest.mark.parametrize("form", FORMATS.where(lambda form: form.natively))
def test_what_c_can_read_is_read_in_c(form: str) -> None:
    assert choose_loader(small_study(f"format={form}")) == "native"


def test_every_thread_of_every_rank_has_its_own_variation(tmp_path: Path) -> None:
    """Seeded, so that the same study gives the same services again."""
    study = small_study("gfs.emulate=true", "gfs.read_ops=1000/s", "gfs.service_variation=1")
    board = Board(map_stations(study.system, study.seed).count)

    def draws(rank: int) -> list[float]:
        source = node_source(study, str(tmp_path), 0, board.path, rank)
        threads = [source.open_accesses() for _ in range(3)]
        found = [access._dice.random() for accesses in threads for access in accesses if isinstance(access, Emulated)]
        for accesses in threads:
            for access in accesses:
                access.leave()
        return found

    found = {rank: draws(rank) for rank in range(3)}
    assert found == {rank: draws(rank) for rank in range(3)}
    assert len({draw for drawn in found.values() for draw in drawn}) == 9
    board.close()
