"""Loaders of frameworks: what is refused before anything is touched."""

import importlib.util

import pytest

from tests.tiny import tiny
from tierscope.errors import UserError
from tierscope.loaders import LOADERS
from tierscope.measure.preloaded import check_preload, needs_preload
from tierscope.native import library


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(library, "load", object)


@pytest.mark.parametrize("name", LOADERS.where(lambda loader: loader.framework))
def test_only_loaders_of_frameworks_need_it(name: str) -> None:
    assert needs_preload(tiny(f"data_loader={name}"))
    assert not needs_preload(tiny())
    check_preload([tiny(), tiny(f"data_loader={name}")], ops=False, launcher="local")
    check_preload([tiny()], ops=True, launcher="mpi")


def test_a_package_that_is_missing_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError) as caught:
        check_preload([tiny("data_loader=pytorch")], ops=False, launcher="local")
    assert str(caught.value) == (
        "workload.reader.data_loader = pytorch needs the package torch; pip install 'tierscope[torch]'"
    )


@pytest.mark.parametrize(
    ("settings", "ops", "launcher", "words"),
    [
        ((), True, "local", "are summed, not listed; remove --ops"),
        ((), False, "mpi", "works only with ranks on this machine"),
        (("gfs.emulate=true", "gfs.bandwidth=1MB/s"), False, "local", "with emulated tiers works only on one node, but system.nodes = 2"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(settings: tuple[str, ...], ops: bool, launcher: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        check_preload([tiny("data_loader=pytorch", *settings)], ops, launcher)
    assert words in str(caught.value)


def test_without_the_library_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda: None)
    with pytest.raises(UserError, match="needs Tierscope's C library, which was not built"):
        check_preload([tiny("data_loader=tensorflow")], ops=False, launcher="local")
