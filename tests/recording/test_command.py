"""A command runs as if nobody was there: streams, signals, exit code."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tierscope.errors import CommandError
from tierscope.recording.command import FORWARDED, find_program, holding_signals, launch


def run(*command: str, **environment: str) -> int:
    return launch(find_program(command[0]), command, {**os.environ, **environment})


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_the_commands(script: str, code: int) -> None:
    assert run("sh", "-c", script) == code


def test_arguments_and_environment_arrive(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("sh", "-c", 'echo "$0/$1/$GREETING"', "a b", "--json", GREETING="hello") == 0
    assert capfd.readouterr().out == "a b/--json/hello\n"


def test_output_can_go_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(find_program("echo"), ["echo", "hi"], os.environ, output_to_stderr=True) == 0
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "hi\n")


def test_the_command_has_ordinary_signals(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither blocked nor ignored, whatever we do with ours."""
    with holding_signals():
        assert run("grep", "^Sig[BI]", "/proc/self/status") == 0
    masks = [int(line.split()[1], 16) for line in capfd.readouterr().out.splitlines()]
    ours = [*FORWARDED, signal.SIGCHLD, signal.SIGPIPE]
    assert not any(mask & 1 << (number - 1) for mask in masks for number in ours)


def test_our_own_signals_are_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run("true")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


@pytest.mark.parametrize("number", sorted(FORWARDED - set(range(signal.SIGRTMIN + 1, signal.SIGRTMAX + 1))))
def test_a_signal_that_is_sent_to_us_reaches_the_command_once(number: int) -> None:
    program = textwrap.dedent(f"""
        import os
        from tierscope.recording.command import find_program, holding_signals, launch
        script = "trap 'echo got; exit 9' {number:d}; echo ready; while :; do sleep 0.05; done"
        with holding_signals():
            code = launch(find_program("sh"), ["sh", "-c", script], os.environ)
        print("code", code)
    """)
    ours = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert ours.stdout
    assert ours.stdout.readline() == "ready\n"
    os.kill(ours.pid, number)
    assert ours.communicate(timeout=30)[0] == "got\ncode 9\n"


COUNTING = """
import signal, sys, time
times = []
signal.signal(getattr(signal, sys.argv[1]), lambda *_: times.append(1))
print("ready", flush=True)
deadline = time.monotonic() + 10
while not times and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.15)  # for a second time
sys.exit(10 + len(times))
"""
TERMINAL = f"""
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    from tierscope.recording.command import holding_signals, launch
    with holding_signals():
        os._exit(launch(sys.executable, [sys.executable, "-c", {COUNTING!r}, sys.argv[1]], os.environ))
told = b""
while b"ready" not in told:
    told += os.read(terminal, 1000)
if sys.argv[1] == "SIGWINCH":
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 11, 22, 0, 0))
else:
    os.write(terminal, {{"SIGINT": b"\\x03", "SIGQUIT": b"\\x1c"}}[sys.argv[1]])
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT", "SIGWINCH"])
def test_what_the_terminal_sends_reaches_the_command_once_and_we_go_on(name: str) -> None:
    """Ctrl-C, Ctrl-\\ and a new size go to both of us."""
    assert subprocess.run([sys.executable, "-c", TERMINAL, name], check=False, timeout=60).returncode == 11


def held(first: str, script: str, times: int = 1) -> int:
    """The last exit code of a shell's script, in a process of its own: here, threads of libraries would take the signals."""
    program = f"""
import os, signal
from tierscope.recording.command import find_program, holding_signals, launch
{first}
with holding_signals():
    for _ in range({times}):
        code = launch(find_program("sh"), ["sh", "-c", {script!r}], os.environ)
raise SystemExit(code)
"""
    return subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode


def test_an_alarm_from_before_our_start_reaches_the_command() -> None:
    """It comes from the kernel too, but to us alone."""
    assert held("signal.setitimer(signal.ITIMER_REAL, 0.2)", "trap 'exit 9' ALRM; while :; do sleep 0.05; done") == 9


def test_a_command_that_may_not_be_signalled_is_waited_for() -> None:
    """It became another user's."""
    forbid = "def kill(*_): raise PermissionError\nos.kill = kill"
    assert held(forbid, "kill -USR1 $PPID; sleep 0.1; exit 6") == 6


def test_a_signal_that_comes_with_the_commands_end_was_meant_for_it() -> None:
    assert held("", "trap '' INT USR1; kill -INT $PPID; kill -USR1 $PPID; exit 3", times=20) == 3


def test_a_caller_that_ignores_the_ends_of_children_is_no_hindrance() -> None:
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run("sh", "-c", "exit 5") == 5
    finally:
        signal.signal(signal.SIGCHLD, previous)


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCONT])
def test_a_harmless_signal_before_the_start_stops_nobody(number: signal.Signals) -> None:
    with holding_signals():
        signal.pthread_kill(threading.get_ident(), number)
        assert run("true") == 0


def test_an_ignored_signal_before_the_start_stops_nobody() -> None:
    """As under nohup."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with holding_signals():
            signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
            assert run("true") == 0
    finally:
        signal.signal(signal.SIGHUP, previous)


def test_a_signal_before_the_start_stops_us_not_the_command(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        with holding_signals():
            signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                run("touch", str(tmp_path / "ran"))
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert not (tmp_path / "ran").exists()


def test_other_threads_do_not_make_it_hang() -> None:
    """A thread of a library may take the signal that tells of the end."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    start = time.monotonic()
    try:
        assert run("true") == 0
    finally:
        stop.set()
        thread.join()
    assert time.monotonic() - start < 5


def refusal(name: str) -> tuple[int, str]:
    with pytest.raises(CommandError) as caught:
        run(name)
    return caught.value.exit_code, str(caught.value)


def test_what_cannot_be_run_has_the_codes_of_a_shell(tmp_path: Path) -> None:
    assert refusal("no-such-command") == (127, "no-such-command: no such command; check the spelling, or use its path")
    assert refusal("") == (127, "an empty name: no such command; check the spelling, or use its path")
    plain = tmp_path / "plain"
    plain.write_text("text\n")
    assert refusal(str(plain)) == (126, f"{plain}: is not executable; run 'chmod +x' on it")
    assert refusal(str(tmp_path)) == (126, f"{tmp_path}: is a directory")
    plain.chmod(0o755)
    assert refusal(str(plain)) == (126, f"{plain}: cannot be run: Exec format error")


def test_commands_are_looked_for_where_a_shell_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\nexit 5\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert refusal("tool")[0] == 126
    (tmp_path / "tool").chmod(0o755)
    assert run("tool") == 5
