"""Collective reads: what is refused before anything is touched."""

import h5py
import pytest

from tests.tiny import tiny
from tierscope.errors import UserError
from tierscope.formats import hdf5
from tierscope.loaders.choose import choose_loader
from tierscope.measure.collective import check_collective
from tierscope.tuning.candidates import check_runnable

ONE_FILE = ("file_access=collective", "num_files_train=1", "num_samples_per_file=24", "read_threads=0")
LOCAL = (
    "workload.reader.file_access = collective uses MPI-IO, but the ranks were not started by a launcher; start it with "
    "'mpirun -n 2 tierscope run …' or srun, or set file_access: shared"
)


def test_mpi_starts_the_ranks() -> None:
    check_collective([tiny(), tiny(*ONE_FILE)], "mpi")
    check_collective([tiny()], "local")
    with pytest.raises(UserError) as caught:
        check_collective([tiny(*ONE_FILE)], "local")
    assert str(caught.value) == LOCAL


@pytest.mark.parametrize("launcher", ["local", "mpi"])
def test_one_rank_reads_nothing_together(launcher: str) -> None:
    with pytest.raises(UserError) as caught:
        check_collective([tiny(*ONE_FILE, "nodes=1")], launcher)
    assert str(caught.value) == (
        "system.ranks_per_node = 1, but workload.reader.file_access = collective needs several ranks; "
        "set 2 or more, or file_access: shared"
    )


def test_tuning_asks_too() -> None:
    with pytest.raises(UserError) as caught:
        check_runnable(tiny(*ONE_FILE), "local", "/out")
    assert str(caught.value) == LOCAL


def test_an_h5py_without_mpi_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny(*ONE_FILE, "format=hdf5")
    monkeypatch.setattr(hdf5, "reads_together", lambda: True)
    check_collective([study], "mpi")
    monkeypatch.setattr(hdf5, "reads_together", lambda: False)
    with pytest.raises(UserError) as caught:
        check_collective([study], "mpi")
    assert str(caught.value) == (
        "workload.reader.file_access = collective of format hdf5 needs h5py with MPI, but this one was built without; build it on a "
        "parallel HDF5: CC=mpicc HDF5_MPI=ON pip install --no-binary=h5py h5py, or set format: raw"
    )


def test_h5py_itself_is_asked() -> None:
    assert hdf5.reads_together() == h5py.get_config().mpi


@pytest.mark.parametrize("loader", ["auto", "threads"])
def test_the_rank_reads_inline(loader: str) -> None:
    assert choose_loader(tiny(*ONE_FILE, f"data_loader={loader}")) == "inline"
