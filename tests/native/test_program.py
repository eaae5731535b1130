"""Into which programs a library can be preloaded."""

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tierscope.native.program import processes_recording, still_recorded, why_not_run, why_unseen


def script(folder: Path, first_line: str) -> str:
    path = folder / "script"
    path.write_text(f"{first_line}\necho\n")
    return str(path)


def elf(folder: Path, *, word: int = 2, segment: int = 3, mode: int = 0o755) -> str:
    """The least that says whether a program names a loader."""
    head = b"\x7fELF" + bytes([word]) + bytes(27) + struct.pack("=Q", 64) + bytes(14) + struct.pack("=HH", 56, 1)
    path = folder / "program"
    path.write_bytes(head.ljust(64, b"\0") + struct.pack("=I", segment).ljust(56, b"\0"))
    path.chmod(mode)
    return str(path)


def test_ordinary_programs_are_seen() -> None:
    for name in ("cat", "sh"):
        assert why_unseen(shutil.which(name) or "") is None
    assert why_unseen(sys.executable) is None


def test_a_program_that_names_no_loader_is_static(tmp_path: Path) -> None:
    assert why_unseen(elf(tmp_path)) is None
    path = elf(tmp_path, segment=1)
    assert why_unseen(path) == f"{path} is statically linked"


def test_a_really_static_program_is_not_seen(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    built = compiler and subprocess.run(
        [compiler, "-static", str(tmp_path / "x.c"), "-o", str(tmp_path / "x")], capture_output=True, check=False
    )
    if not built or built.returncode:
        pytest.skip("no C compiler that links statically")
    assert why_unseen(str(tmp_path / "x")) == f"{tmp_path / 'x'} is statically linked"


def test_programs_of_other_processors_are_not_seen(tmp_path: Path) -> None:
    path = elf(tmp_path, word=1)
    assert why_unseen(path) == f"{path} is built for another CPU architecture"


def test_another_users_rights_keep_the_library_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = elf(tmp_path, mode=0o4755)
    assert why_unseen(path) is None  # our own
    monkeypatch.setattr("os.getuid", lambda: os.stat(path).st_uid + 1)
    assert why_unseen(path) == f"{path} runs with another user's rights (setuid)"
    Path(path).chmod(0o755)
    assert why_unseen(path) is None
    Path(path).chmod(0o2755)
    monkeypatch.setattr("os.getgid", lambda: os.stat(path).st_gid + 1)
    assert why_unseen(path) == f"{path} runs with another user's rights (setuid)"


def test_of_a_script_its_interpreter_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = elf(tmp_path, segment=1)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    reason = f"{program} is statically linked"
    assert why_unseen(script(tmp_path, f"#!{program} -x")) == reason
    assert why_unseen(script(tmp_path, "#!/usr/bin/env program")) == reason
    assert why_unseen(script(tmp_path, "#!/usr/bin/env -S A=1 program -x")) == reason
    assert why_unseen(script(tmp_path, "#!/bin/sh")) is None


@pytest.mark.parametrize("line", ["", "#!", "#!/no/such/interpreter", "#!/usr/bin/env", "echo", "#!\xff\0"])
def test_odd_scripts_get_the_benefit_of_the_doubt(tmp_path: Path, line: str) -> None:
    assert why_unseen(script(tmp_path, line)) is None


def test_a_script_that_runs_itself_comes_to_an_end(tmp_path: Path) -> None:
    path = script(tmp_path, f"#!{tmp_path / 'script'}")
    os.chmod(path, 0o755)
    assert why_unseen(path) is None


def test_what_cannot_be_read_may_still_work(tmp_path: Path) -> None:
    assert why_unseen(str(tmp_path / "gone")) is None


def test_a_process_that_records_here_is_known_by_its_environment(tmp_path: Path) -> None:
    child = subprocess.Popen(
        ["sh", "-c", "echo; read line"],
        env={**os.environ, "TIERSCOPE_RECORD": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin
    assert child.stdout
    try:
        child.stdout.readline()  # before it has really begun, its environment is empty
        assert still_recorded(child.pid, str(tmp_path))
        assert not still_recorded(child.pid, str(tmp_path / "elsewhere"))
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()
    assert not still_recorded(child.pid, str(tmp_path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"print('hello')\n", "has no '#!' line; add one (#!/bin/sh), or name the interpreter: sh FILE"),
        (b"", "has no '#!' line; add one (#!/bin/sh), or name the interpreter: sh FILE"),
        (
            b"#! /no/such/python -u\n",
            "its interpreter /no/such/python is missing; install it, or correct the '#!' line",
        ),
        (b"#!/no/such", "its interpreter /no/such is missing; install it, or correct the '#!' line"),
        (b"#!\n", "its '#!' line names no interpreter; add one: #!/bin/sh"),
        (
            b"#!/bin/sh\r\necho\r\n",
            "its '#!' line has a Windows line ending (CR LF); convert the file, e.g. with dos2unix",
        ),
        (b"#!/bin/sh\n", None),
        (b"MZ\0\0", None),
    ],
)
def test_why_a_file_cannot_be_started(tmp_path: Path, content: bytes, reason: str | None) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert why_not_run(str(path)) == reason


def test_what_cannot_be_looked_into_has_no_reason(tmp_path: Path) -> None:
    assert why_not_run(str(tmp_path / "gone")) is None


def test_processes_are_known_by_the_folder_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "link").symlink_to("record")
    monkeypatch.setenv("TIERSCOPE_RECORD", str(tmp_path / "link"))
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert processes_recording(str(tmp_path / "record")) == [child.pid]
            assert processes_recording(str(tmp_path)) == []
        finally:
            child.kill()
    assert processes_recording(str(tmp_path / "record")) == []


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x", 0o755)
    assert why_unseen(str(tmp_path / "x")) is None
    assert why_not_run(str(tmp_path / "x")) is None
