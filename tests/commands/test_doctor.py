"""Whether the recorder's library can be preloaded here, and what is lost where it cannot."""

from pathlib import Path

import pytest

from tests.recorded_programs import any_library
from tierscope.commands import doctor
from tierscope.native import library


def test_a_library_that_can_be_preloaded_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "path", any_library)
    check = doctor._recorder()
    assert (check.name, check.status) == ("native recorder", "ok")
    assert check.found == f"{Path(any_library()).name}, preloading works"
    assert check.advice.startswith("tierscope trace")


@pytest.mark.parametrize("path", [None, "/no/such/library.so"])
def test_without_a_library_it_says_what_is_lost(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    monkeypatch.setattr(library, "path", lambda: path)
    check = doctor._recorder()
    assert check.status == "lacking"
    assert check.found.startswith("not built: no 'tierscope trace' and no native loader")
    assert check.advice == "install a C compiler and reinstall tierscope"


def test_a_file_that_is_no_library_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    monkeypatch.setattr(library, "path", lambda: str(broken))
    check = doctor._recorder()
    assert check.status == "lacking"
    assert check.found.startswith("broken.so cannot be preloaded (")
