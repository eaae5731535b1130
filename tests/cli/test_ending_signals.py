"""Whatever signal ends a command: one line, and exit code 3. Who was started with a signal ignored goes on ignoring it."""

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from tierscope.signals import ENDING, Interrupted, stopped_by, undisturbed

# One process for all signals: each command is a fork of it that waits to be told.
PROGRAM = textwrap.dedent("""
    import json, os, signal, sys
    from tierscope.cli import main

    def told(numbers, ignored=(), command=("run", "study.yaml")):
        ready, tell = os.pipe()
        said, say = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(say, 2)
            os.close(said), os.close(say)
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            def wait(context):
                os.write(tell, b".")
                while True:
                    signal.pause()
            main.cli.invoke = wait
            main.main(command)
        os.close(say)
        os.read(ready, 1)
        for number in numbers:
            os.kill(pid, number)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with open(said) as source:
            return code, source.read()

    for number in json.loads(sys.argv[1]):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    found = {number: told([number]) for number in json.loads(sys.argv[1])}
    found["several"] = told([signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    found["ignored"] = told([signal.SIGHUP, signal.SIGUSR2], [signal.SIGHUP])
    found["without runs"] = [told([signal.SIGINT], command=[name]) for name in ("reproduce", "analyze", "presets")]
    print(json.dumps(found))
""")


@pytest.mark.faults
def test_every_ending_signal_leaves_a_line_and_exit_code_3() -> None:
    middle = set(range(signal.SIGRTMIN + 1, signal.SIGRTMAX))
    numbers = sorted(int(number) for number in ENDING - middle)
    command = [sys.executable, "-c", PROGRAM, json.dumps(numbers)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    rest = "; finished runs are kept; rerun the same command to continue\n"
    for number in numbers:
        assert found[str(number)] == [3, f"tierscope: {stopped_by(number)}{rest}"], number
    assert found[str(int(signal.SIGHUP))][1].startswith("tierscope: stopped by SIGHUP;")
    code, said = found["several"]
    assert code == 3
    assert said.count("\n") == 1
    assert found["without runs"] == [[3, "tierscope: stopped; run the same command again\n"]] * 3
    assert found["ignored"] == [3, f"tierscope: stopped by SIGUSR2{rest}"]


LATE = textwrap.dedent("""
    import atexit, os, signal, sys
    from tierscope.cli import main

    class Late:
        def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGHUP):
            kill(pid, number)

    late = Late()
    atexit.register(os.kill, os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.argv = ["tierscope", *sys.argv[1:]]
    main.main()
""")


@pytest.mark.parametrize(("name", "code"), [("demo", 0), ("no-such-thing", 2)])
def test_a_signal_after_all_is_written_changes_nothing(name: str, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LATE, "presets", name], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == code
    assert ("study: demo" in ended.stdout) == (code == 0)
    assert ended.stderr.count("\n") == (code != 0)


def test_all_that_end_a_program_are_among_them() -> None:
    """Those that a fault raises, that cannot be caught, that do nothing by default, and that Python ignores, are not."""
    faults = {"ABRT", "BUS", "FPE", "ILL", "SEGV", "SYS", "TRAP"}
    others = {"KILL", "STOP", "TSTP", "TTIN", "TTOU", "CONT", "CHLD", "URG", "WINCH", "PIPE", "XFSZ"}
    left = signal.valid_signals() - ENDING
    assert {signal.Signals(number).name.removeprefix("SIG") for number in left} == faults | others


def test_what_ended_us_is_named_where_that_is_unusual() -> None:
    assert stopped_by(KeyboardInterrupt()) == stopped_by(Interrupted(signal.SIGTERM)) == stopped_by(None) == "stopped"
    assert stopped_by(Interrupted(signal.SIGXCPU)) == "stopped by SIGXCPU"
    assert stopped_by(signal.SIGRTMIN + 3) == f"stopped by signal {signal.SIGRTMIN + 3}"


def test_tidying_up_is_left_alone() -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with undisturbed():
            signal.raise_signal(signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)
