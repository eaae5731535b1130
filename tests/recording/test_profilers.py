"""Profilers of a site as recorders: found where they are, told what they must be told, and refused what they cannot do."""

import os
import re
from datetime import datetime
from pathlib import Path

import pytest

from tierscope.errors import UserError
from tierscope.recording.darshan import Darshan, config_lines
from tierscope.recording.dftracer import DFTracer
from tierscope.recording.profilers import Profiler
from tierscope.recording.recorders import RECORDERS, RecordingRequest
from tierscope.registry import Registry
from tierscope.spec.traced import read_tiers
from tierscope.trace.description import TracedCommand


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("DARSHAN") or name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
            monkeypatch.delenv(name)
    for name in ("lfs", "g.fs", "record"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def wanted(here: Path) -> RecordingRequest:
    return RecordingRequest(command=("true",), tiers=read_tiers(["lfs=lfs", "gfs=g.fs"]))


@pytest.fixture
def library(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = here / "site" / "lib" / "libdarshan.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    monkeypatch.setenv("DARSHAN_LIB", str(path))
    return path


def test_every_recorder_can_be_chosen() -> None:
    assert isinstance(RECORDERS, Registry)
    assert list(RECORDERS) == ["builtin", "darshan", "dftracer"]


def test_darshan_gets_its_environment_and_configuration(here: Path, wanted: RecordingRequest, library: Path) -> None:
    folder = here / "record"
    assert Darshan().prepare(str(folder), wanted) == {
        "LD_PRELOAD": str(library),
        "DARSHAN_ENABLE_NONMPI": "1",
        "DARSHAN_DISABLE_SHARED_REDUCTION": "1",
        "DARSHAN_LOGPATH": str(folder),
        "DARSHAN_CONFIG_PATH": str(folder / "darshan.conf"),
    }
    assert (folder / "darshan.conf").read_text().splitlines() == [
        "MAX_RECORDS 100000 POSIX,STDIO",
        "MODMEM 512",
        f"NAME_INCLUDE ^{re.escape(str(here / 'lfs'))} POSIX,STDIO",
        f"NAME_INCLUDE ^{re.escape(str(here / 'g.fs'))} POSIX,STDIO",
    ]
    today = datetime.now()
    assert (folder / str(today.year) / str(today.month) / str(today.day)).is_dir()


def test_a_dot_in_a_path_is_no_pattern(wanted: RecordingRequest) -> None:
    assert config_lines(wanted)[-1].endswith(r"/g\.fs POSIX,STDIO")


@pytest.mark.parametrize("variable", ["DARSHAN_RUNTIME_DIR", "DARSHAN_ROOT", "LD_LIBRARY_PATH"])
def test_darshan_is_found_where_modules_put_it(library: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DARSHAN_LIB")
    monkeypatch.setenv(variable, str(library.parent if variable == "LD_LIBRARY_PATH" else library.parent.parent))
    assert Darshan().library() == str(library)


def test_what_is_preloaded_already_stays(
    wanted: RecordingRequest, library: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", f"/x.so {library}:/y.so")
    assert Darshan().prepare(str(here / "record"), wanted)["LD_PRELOAD"] == f"{library}:/x.so:/y.so"


def test_a_darshan_that_is_not_there_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARSHAN_LIB", "/nowhere/libdarshan.so")
    with pytest.raises(UserError, match=r"DARSHAN_LIB = /nowhere/libdarshan\.so; no such file"):
        Darshan().library()


def test_dftracer_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(UserError, match=r"pip install 'tierscope\[dftracer\]'"):
        DFTracer().library()


def test_dftracer_gets_its_environment(here: Path, wanted: RecordingRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DFTracer, "library", lambda _self: "/lib.so")
    assert DFTracer().prepare("/record", wanted) == {
        "LD_PRELOAD": "/lib.so",
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_INC_METADATA": "1",
        "DFTRACER_TRACE_COMPRESSION": "1",
        "DFTRACER_LOG_FILE": "/record/trace",
        "DFTRACER_DATA_DIR": f"{here / 'lfs'}:{here / 'g.fs'}:lfs:./lfs:g.fs:./g.fs",
    }


@pytest.mark.parametrize("tier", [".", "..", "../.."])
def test_dftracer_records_relative_names_where_the_program_starts_on_a_tier(
    here: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DFTracer, "library", lambda _self: "/lib.so")
    wanted = RecordingRequest(command=("true",), tiers=read_tiers([f"gfs={tier}"], []))
    assert DFTracer().prepare("/record", wanted)["DFTRACER_DATA_DIR"] == "all"


@pytest.mark.parametrize("profiler", [Darshan, DFTracer])
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"ops": True}, "--ops and --epochs rereads require --with builtin"), ({"epochs": "rereads"}, "--epochs rereads")],
)
def test_what_only_our_recorder_can_do_is_refused(
    wanted: RecordingRequest,
    profiler: type[Profiler],
    changes: dict[str, object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiler, "library", lambda _self: "/lib.so")
    with pytest.raises(UserError, match=said):
        profiler().check("/bin/true", RecordingRequest(command=("true",), tiers=wanted.tiers, **changes))  # type: ignore[arg-type]


def test_emulation_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DFTracer, "library", lambda _self: "/lib.so")
    tiers = read_tiers(["gfs=g.fs"], ["gfs.bandwidth=1MB/s"])
    with pytest.raises(UserError, match="--emulate requires --with builtin; remove it, or --with dftracer"):
        DFTracer().check("/bin/true", RecordingRequest(command=("true",), tiers=tiers))


def test_without_a_log_there_is_nothing_to_show(here: Path) -> None:
    with pytest.raises(UserError, match="darshan wrote no log"):
        Darshan().collect(
            str(here / "record"), str(here), TracedCommand(recorder="darshan", command=("true",), tiers=())
        )
