#!/usr/bin/env python3
"""Many short studies, each disturbed again and again by faults at random moments; what is lost is counted, and must be nothing.

    python -m tools.soak --faults 1000 --seed 1

Every study is run several times, each time with one fault, and then once in peace. Meanwhile nothing that was finished may change, and no
run that is kept may contain a pause; in the end all of it must have been read in the same order as by a study that nobody disturbed.
Needs root, for a small disk of its own. Started again after it was stopped, it goes on: what is done is in --state.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools.soak_faults import (
    FAULTS,
    MOST_PATIENCE_SECONDS,
    PATIENCE_SECONDS,
    RUNS,
    SECOND_RUN,
    Place,
    children,
    run_files,
)

STUDY = """
study: soaked
workload:
  dataset: {format: tfrecord, num_files_train: 24, record_length_bytes: 4 KiB}
  reader: {batch_size: 2}
  train: {epochs: 1}
system:
  nodes: 2
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node, read_ops: 400/s, emulate: true}
    gfs: {path: "{out}/tiers/gfs", metadata_ops: 200/s, read_ops: 400/s, emulate: true}
sweep: {placement.cache_rate: 0%..100% step 10%}
"""
FAULTS_EACH = 4  # of one study, before it is let alone
DISK_MIB = 16
MOST_RUNS = 20  # of one fault, until it comes in time
MOST_MENDED = 60  # times that the same command may ask for something: a damaged file is named when it is read
_KNOWN_ENDS = {0, 2, 3, -signal.SIGKILL, -signal.SIGTERM}  # SIGTERM: before the program had begun


class LostError(Exception):
    """What must not happen."""


def states(pid: int) -> str:
    """What a command and its ranks are in: state and system call of every thread."""
    told = []
    for process in (pid, *children(pid)):
        with suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                told.append(
                    f"{process} {state} {(thread / 'wchan').read_text()} {(thread / 'syscall').read_text()[:24]}"
                )
    return "; ".join(told)


def runs(pid: int) -> bool:
    """Neither gone nor merely not yet waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(process: "subprocess.Popen[str]") -> str:
    """What a command said; it does not outlive our patience, which is longer as long as others have the cores that it waits for."""
    began = time.monotonic()
    try:
        while True:
            before = cpu_seconds(process.pid)
            try:
                return process.communicate(timeout=PATIENCE_SECONDS)[1]
            except subprocess.TimeoutExpired as error:
                waited, used = time.monotonic() - began, cpu_seconds(process.pid)
                if used >= PATIENCE_SECONDS or used == before or waited >= MOST_PATIENCE_SECONDS:
                    raise LostError(f"hangs for {waited:.0f} s, {used:.1f} of CPU: {states(process.pid)}") from error
    finally:
        process.kill()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    """Of a command and all that it started."""
    ticks = 0
    for member in (pid, *children(pid)):
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def runs_of(out: Path) -> dict[str, str]:
    """Every finished run, by what is in its file."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in run_files(out)}


def read_of(out: Path) -> list[object]:
    """What every rank of every run read in which order; opening them verifies their checksums."""
    from tierscope.output.store import RunStore  # noqa: PLC0415

    columns = ("point", "repetition", "epoch", "rank", "samples", "payload_bytes", "order_digest")
    return [trace.ranks.sort("epoch", "rank").select(columns).rows() for trace in RunStore(str(out)).load_all()]


def _longest_epoch(out: Path, names: Set[str]) -> float:
    from tierscope.output.store import RunStore  # noqa: PLC0415

    store = RunStore(str(out))
    traces = (store.load(key) for key in store.finished() if Path(store.path(key)).name in names)
    return max((float(seconds) for trace in traces for seconds in trace.ranks["epoch_seconds"]), default=0.0)


def _second_run(place: Place, process: "subprocess.Popen[str]") -> bool:
    """One of the two is refused; or finds all done, when the other one is."""
    running = process.poll() is None
    second = place.start()
    err = ended(second)
    check_end(second.returncode, err)
    if second.returncode == 0 and len(run_files(place.out)) < RUNS:
        raise LostError(f"a second run ended well, and the study is not finished: {err}")
    return running


def disturbed(place: Place, fault: str) -> tuple[bool, bool]:
    """One run with a fault; whether that found something to disturb, and whether the run was stopped."""
    process = place.start()
    try:
        place.await_moment(process)
        ranks = children(process.pid)
        injected = _second_run(place, process) if fault == SECOND_RUN else FAULTS[fault](place, process)
    finally:
        err = ended(process)
    mend(place, err)
    check_end(process.returncode, err)
    deadline = time.monotonic() + 20
    while any(runs(pid) for pid in ranks):
        if time.monotonic() > deadline:
            raise LostError("ranks outlived the director")
        time.sleep(0.02)
    keep_finished(place)
    return injected, process.returncode != 0


def mend(place: Place, said: str) -> None:
    """What a person would do: make room, make writable, delete the file that is said to be damaged."""
    subprocess.run(["mount", "-o", "remount,rw", str(place.disk)], check=True, capture_output=True)
    (place.disk / "hog").unlink(missing_ok=True)
    if re.search(r"\.tfrecord: sample .*delete the file", said):
        for path in place.data():  # and all others that are damaged too: one at a time would take long
            with suppress(FileNotFoundError):
                if hashlib.sha256(path.read_bytes()).digest() not in place.good:
                    path.unlink()


def check_end(code: int, said: str) -> None:
    ours = [line for line in said.splitlines() if line.startswith("tierscope: ")]
    if code not in _KNOWN_ENDS or "Traceback" in said:
        raise LostError(f"ended with {code}: {said}")
    if code in (2, 3) and len(ours) != 1:
        raise LostError(f"{len(ours)} lines instead of one: {said}")


def keep_finished(place: Place) -> None:
    now = runs_of(place.out)
    if place.pause and (longest := _longest_epoch(place.out, now.keys() - place.finished)) >= place.pause:
        raise LostError(f"a run that is kept took {longest:.2f} s, with a pause of {place.pause:g} s in it")
    place.pause = 0.0
    if changed := [name for name, content in place.finished.items() if now.get(name) != content]:
        raise LostError(f"finished runs were changed: {changed}")
    place.finished = now
    read_of(place.out)


def in_peace(place: Place) -> None:
    """The same command, as often as it asks for something to be mended, but not for ever."""
    said = ""
    for _ in range(MOST_MENDED):
        process = place.start()
        said = ended(process)
        check_end(process.returncode, said)
        keep_finished(place)
        if process.returncode == 0:
            return
        mend(place, said)
    raise LostError(f"does not go on: {said}")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tsc-soak", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@dataclass(slots=True)
class Tally:
    """`injected`: by faults, runs in which it found something to disturb; `stopped`: those of them that did not end well."""

    studies: int = 0
    runs: int = 0
    injected: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, line: str) -> "Tally":
        """As it was written down."""
        kept = json.loads(line)
        return cls(kept["studies"], kept["runs"], Counter(kept["injected"]), Counter(kept["stopped"]), kept["lost"])

    def add(self, other: "Tally") -> None:
        self.studies += other.studies
        self.runs += other.runs
        self.injected += other.injected
        self.stopped += other.stopped
        self.lost += other.lost


@dataclass(frozen=True, slots=True)
class Peace:
    """A study that nobody disturbed: how long it takes, what it reads, and what is in its data files."""

    seconds: float
    read: list[object]
    good: frozenset[bytes]


def soak_group(folder: Path, seed: str, faults: list[str], peace: Peace) -> Tally:
    """A study with these faults, one run each, and then in peace. Where it is finished before, or a fault comes too late, the next study goes on with them."""
    tally, dice = Tally(), random.Random(seed)
    with small_disk(folder) as disk:
        waiting, fault = list(faults), "nothing"
        try:
            while waiting:
                place = begun(disk, dice, peace)
                tally.studies += 1
                while waiting and len(place.finished) < RUNS:
                    fault = waiting[0]
                    tally.runs += 1
                    injected, stopped = disturbed(place, fault)
                    if injected:
                        tally.injected[fault] += 1
                        tally.stopped[fault] += stopped
                        del waiting[0]
                    elif tally.runs > MOST_RUNS * len(faults):
                        raise LostError("it comes too late every time")
                fault = f"{', '.join(faults)}, then in peace"
                in_peace(place)
                if len(place.finished) != RUNS or read_of(place.out) != peace.read:
                    raise LostError("other samples, or in another order, than undisturbed")
        except Exception as error:  # noqa: BLE001  (counted, told, and the next study begins)
            tally.lost.append(f"{seed}: {fault}: {type(error).__name__}: {error}")
    sys.stderr.write(f"{seed}: {'lost' if tally.lost else 'survived'}: {', '.join(faults)}\n")
    return tally


def begun(disk: Path, dice: random.Random, peace: Peace) -> Place:
    """A study, in the place of the one before it."""
    shutil.rmtree(disk / "out", ignore_errors=True)
    (disk / "study.yaml").write_text(STUDY)
    return Place(disk, disk / "study.yaml", disk / "out", dice, peace.seconds, peace.good)


def undisturbed(folder: Path) -> Peace:
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY)
    start = time.monotonic()
    place = Place(folder, folder / "study.yaml", folder / "out", random.Random(0), 0.0)
    err = ended(place.start())
    if len(reads := read_of(place.out)) != RUNS:
        raise LostError(f"undisturbed, and not finished: {err}")
    seconds = time.monotonic() - start
    return Peace(seconds, reads, frozenset(hashlib.sha256(path.read_bytes()).digest() for path in place.data()))


class State:
    """What is done, a line for each group of faults; the first says what was asked for."""

    def __init__(self, path: Path, asked: str) -> None:
        self._path, self._lock = path, threading.Lock()
        self.done: dict[int, Tally] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        if lines[:1] != [asked]:
            path.write_text(asked + "\n")
            return
        for line in lines[1:]:
            with suppress(ValueError):  # one that was being written when we were killed
                number, _, tally = line.partition(" ")
                self.done[int(number)] = Tally.of(tally)

    def add(self, number: int, tally: Tally) -> None:
        with self._lock, self._path.open("a") as file:
            self.done[number] = tally
            kept = {name: getattr(tally, name) for name in Tally.__slots__}
            file.write(f"{number} {json.dumps(kept)}\n")

    def forget(self) -> None:
        self._path.unlink()


def table(tally: Tally) -> str:
    lines = [f"{'fault':32} injected  stopped a run"]
    lines += [f"{name:32} {tally.injected[name]:8}  {tally.stopped[name]:13}" for name in (*FAULTS, SECOND_RUN)]
    lines.append(f"{'all':32} {tally.injected.total():8}  {tally.stopped.total():13}")
    return "\n".join([*lines, *(f"LOST {line}" for line in tally.lost)])


def soak(groups: list[list[str]], seed: int, jobs: int, state: State) -> None:
    """All groups that are not done yet; a first interrupt lets those that have begun be finished."""
    stopping = threading.Event()

    def soak_unless_stopped(number: int, folder: Path, peace: Peace) -> None:
        if not stopping.is_set():
            state.add(number, soak_group(folder / str(number), f"{seed}/{number}", groups[number], peace))

    with tempfile.TemporaryDirectory(prefix="tierscope-soak-") as name, ThreadPoolExecutor(jobs) as pool:
        peace = undisturbed(Path(name) / "undisturbed")
        left = [number for number in range(len(groups)) if number not in state.done]
        waiting = [pool.submit(soak_unless_stopped, number, Path(name), peace) for number in left]
        try:
            for done in waiting:
                done.result()
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            stopping.set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--faults", type=int, default=200, help="one in a run each (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="studies at the same time (%(default)s)")
    parser.add_argument("--state", type=Path, default=Path("build/soak.state"), help="where to go on (%(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("soak: needs root, for a small disk of its own\n")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    dice, names = random.Random(options.seed), [*FAULTS, SECOND_RUN]
    faults = [dice.choice(names) for _ in range(options.faults)]
    groups = [faults[start : start + FAULTS_EACH] for start in range(0, len(faults), FAULTS_EACH)]
    start, state = time.monotonic(), State(options.state, f"{options.faults} faults, seed {options.seed}")
    before = len(state.done)
    soak(groups, options.seed, options.jobs, state)
    tally = Tally()
    for number in sorted(state.done):
        tally.add(state.done[number])
    lost = len(tally.lost)
    again = f" ({before} groups of faults before)" if before else ""
    print(table(tally))  # noqa: T201
    print(  # noqa: T201
        f"{tally.studies} studies, {tally.runs} runs, {tally.injected.total()} of {options.faults} faults injected, "
        f"{tally.studies - lost} studies survived, {lost} lost; seed {options.seed}, {time.monotonic() - start:.0f} s{again}"
    )
    if len(state.done) < len(groups):
        sys.stderr.write("soak: not finished; the same command goes on\n")
        return 3
    state.forget()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
