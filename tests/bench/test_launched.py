"""Whether this process is a rank of MPI: what launchers announce, and what is left of them."""

import os
import sys

import pytest

from tierscope.bench import mpi
from tierscope.errors import UserError


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has set anything, mpi4py is missing, and signals stay as they are."""
    for names in mpi._LAUNCHERS:
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setattr(mpi, "_leave_when_told", lambda _rank: None)


@pytest.mark.parametrize(
    "variables", [{}, {"PMI_RANK": "1"}, {"PMI_SIZE": "1", "PMI_RANK": "0"}, {"PMI_SIZE": "x", "PMI_RANK": "1"}]
)
def test_one_process_needs_no_mpi(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert mpi.connect() is None


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_rank_that_nobody_launched_says_why_it_ends(rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", rank)
    monkeypatch.setattr(mpi, "_has_launcher", lambda: False)
    with pytest.raises(
        UserError, match=r"mpi4py is missing; .*; if this was not started by a launcher, unset PMI_SIZE and PMI_"
    ):
        mpi.connect()


def test_in_a_job_only_the_first_rank_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setattr(mpi, "_has_launcher", lambda: True)
    with pytest.raises(SystemExit) as caught:
        mpi.connect()
    assert caught.value.code == 2
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(UserError, match=r"or your site's mpi4py$"):
        mpi.connect()


def test_a_launcher_is_seen_among_the_processes_above(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(f"/proc/{os.getppid()}/comm", encoding="utf-8") as source:
        above = source.read().strip()
    monkeypatch.setattr(mpi, "_DAEMONS", {"no such program"})
    assert mpi._has_launcher() is False
    monkeypatch.setattr(mpi, "_DAEMONS", {above})
    assert mpi._has_launcher() is True
