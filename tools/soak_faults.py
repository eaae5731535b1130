"""What a soak does to a study while it runs. Each fault says whether it found something to disturb."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

RUNS = 11
PATIENCE_SECONDS = 60.0  # longer is a hang, unless others have the cores,
MOST_PATIENCE_SECONDS = 600.0  # and then this is
STALL_SECONDS = 5.0  # --stall-limit of every run
SHORT_PAUSE_SECONDS = 1.0
LONG_PAUSE_SECONDS = STALL_SECONDS + 3.0
COMMAND = [sys.executable, "-m", "tierscope.cli.main"]


@dataclass(slots=True)
class Place:
    """A study on a small disk of its own. `pause`: how long the last fault stopped somebody; no run that was finished since may have taken as long."""

    disk: Path
    study: Path
    out: Path
    dice: random.Random
    usual_seconds: float
    good: frozenset[bytes] = frozenset()  # what is in undamaged data files
    finished: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0

    def start(self) -> "subprocess.Popen[str]":
        options = ["--out", str(self.out), "--quiet", "--json", "--stall-limit", f"{STALL_SECONDS:g}"]
        command = [*COMMAND, "run", str(self.study), *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def await_moment(self, process: "subprocess.Popen[str]") -> None:
        """Mostly between the next runs; sometimes any time, as at the start or while data is written."""
        if self.dice.random() < 0.25:
            time.sleep(self.dice.uniform(0, self.usual_seconds))
            return
        enough = len(self.finished) + self.dice.randrange(3)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and len(run_files(self.out)) < enough and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(self.dice.uniform(0, 0.3))

    def data(self) -> list[Path]:
        return sorted(self.out.glob("tiers/**/*.tfrecord"))


Process = subprocess.Popen[str]
Fault = Callable[[Place, Process], bool]


def _signal_director(number: signal.Signals, begun: bool = False) -> Fault:
    """`begun`: not while Python is still starting, before any program could have a say."""

    def send(_place: Place, process: Process) -> bool:
        if begun:
            _ranks(process)
        running = process.poll() is None
        process.send_signal(number)
        return running

    return send


def _signal_rank(number: signal.Signals) -> Fault:
    def send(place: Place, process: Process) -> bool:
        ranks = _ranks(process)
        return bool(ranks) and _sent(place.dice.choice(ranks), number)

    return send


def _ranks(process: Process) -> list[int]:
    """Waits for the first of them; none where the command ends before."""
    while not (ranks := children(process.pid)) and process.poll() is None:
        time.sleep(0.01)
    return ranks


def _sent(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _pause(whom: str, seconds: float) -> Fault:
    """Stop a rank, the director or all of them, and let them go on. One that was to be ended meanwhile is gone then."""

    def pause(place: Place, process: Process) -> bool:
        ranks = _ranks(process)
        if process.poll() is not None or not ranks:
            return False
        chosen = {"rank": [place.dice.choice(ranks)], "director": [process.pid], "all": [process.pid, *ranks]}[whom]
        stopped = [pid for pid in chosen if _sent(pid, signal.SIGSTOP)]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        for pid in stopped:
            _sent(pid, signal.SIGCONT)
        place.pause = seconds
        return bool(stopped)

    return pause


def _fill(place: Place, process: Process) -> bool:
    with suppress(OSError), (place.disk / "hog").open("wb", buffering=0) as hog:
        while True:
            hog.write(bytes(1 << 12))
    return process.poll() is None


def _read_only(place: Place, process: Process) -> bool:
    """As soon as nobody has a file open for writing: before, the kernel refuses."""
    for _ in range(200):
        if process.poll() is not None:
            return False
        remount = ["mount", "-o", "remount,ro", str(place.disk)]
        if not subprocess.run(remount, check=False, capture_output=True).returncode:
            return True
    return False


def _on_files(change: Callable[[Place, Path], None]) -> Fault:
    def disturb(place: Place, process: Process) -> bool:
        changed = False
        for path in place.data():
            if place.dice.random() < 0.3:
                with suppress(FileNotFoundError):
                    change(place, path)
                    changed = True
        return changed and process.poll() is None

    return disturb


def _flip(place: Place, path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[place.dice.randrange(len(content))] ^= 1 << place.dice.randrange(8)
        path.write_bytes(content)


def _lose_lfs(place: Place, process: Process) -> bool:
    lost = place.out / "tiers" / "lfs" / str(place.dice.randrange(2))
    there = lost.exists()
    shutil.rmtree(lost, ignore_errors=True)
    return there and process.poll() is None


SECOND_RUN = "second run at the same time"  # which the soak itself makes: it has to judge both
FAULTS: dict[str, Fault] = {
    "kill -9 of the director": _signal_director(signal.SIGKILL),
    "kill -9 of a rank": _signal_rank(signal.SIGKILL),
    "kill -TERM of the director": _signal_director(signal.SIGTERM),
    "kill -TERM of a rank": _signal_rank(signal.SIGTERM),
    **{f"kill -{name} of the director": _signal_director(signal.Signals[f"SIG{name}"], begun=True) for name in ("HUP", "QUIT", "USR1", "XCPU")},
    **{f"{whom} stopped for {seconds:g} s": _pause(whom.split()[-1], seconds) for whom in ("a rank", "the director", "all") for seconds in (SHORT_PAUSE_SECONDS, LONG_PAUSE_SECONDS)},
    "disk full": _fill,
    "disk read-only": _read_only,
    "data files vanished": _on_files(lambda _, path: path.unlink()),
    "data files truncated": _on_files(lambda place, path: os.truncate(path, place.dice.randrange(4096))),
    "bits of data files flipped": _on_files(_flip),
    "LFS of a node lost": _lose_lfs,
}  # fmt: skip


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def run_files(out: Path) -> list[Path]:
    return list(out.glob("runs/*.parquet"))
