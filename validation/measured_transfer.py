"""From the emulation to the application and back, as DLIO's figure 13: tune on the emulation, apply the winner to a torch script, measure both.

Both read the same files from the same emulated tier: the study by Tierscope's loader, the script (`transfer_app.py`) under `tierscope trace --emulate`. The
tier has a latency per request, a bandwidth and a limit of each stream, and no stripes, because `trace` emulates none. Its rates are those of the known system
`theta` (latency assumed there, bandwidth of a node, a stream as fitted there), four times slower so that a small machine keeps up. Writes validation/measured/transfer.json; with names of changes
(transfer, threads, chunk, gzip) only these are measured again.
"""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import json as msgspec_json

from tierscope.commands.analyze import analyze
from tierscope.measure.crews import Crews
from tierscope.measure.run import generate_data, run_study
from tierscope.papers.transfer_file import PATH, AppliedSetting, MeasuredGain, TransferFile, read_transfer
from tierscope.papers.tuned_studies import SLOWER, theta_tier
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.tuning.tuner import tune
from tierscope.watch import Silent

APP = Path(__file__).with_name("transfer_app.py")
REPEATS = 3
BUDGET_SECONDS = 40.0

STUDY = """
study: transfer
workload:
  dataset: {DATASET}
  reader: {batch_size: 32, read_threads: 1, sample_shuffle: off, file_access: multi}
  train: {epochs: 2}
system: {tiers: {gfs: {path: "{out}/tiers/gfs", emulate: true, latency: 1 s, bandwidth: 1 B/s}}}
"""
RECORDS = "{format: tfrecord, num_files_train: 8, num_samples_per_file: 32, record_length_bytes: 131056}"
ARRAYS = "{format: hdf5, num_files_train: 2, num_samples_per_file: 64, record_length_bytes: 50 KiB, compressibility: 50%, hdf5: {LAYOUT}}"


@dataclass(frozen=True, slots=True)
class Change:
    """`option`: what the script is given for a value of the key; empty: its files are others."""

    name: str
    dataset: str
    key: str
    before: str
    after: tuple[str, ...]
    applied: str  # also measured; empty: the winner alone
    option: str = ""
    layout: str = ""


CHANGES = (
    Change("transfer", RECORDS, "reader.transfer_size", "256KiB", ("1MiB", "4MiB"), "1MiB", "--buffer"),
    Change("threads", RECORDS, "reader.read_threads", "1", ("4", "8"), "8", "--workers"),
    Change("chunk", ARRAYS, "hdf5.chunk_size", "4KiB", ("64KiB", "1MiB"), "1MiB", layout="chunk_size: 4 KiB"),
    Change("gzip", ARRAYS, "hdf5.compression", "none", ("gzip",), "gzip", layout="chunk_size: 64 KiB"),
)


def main(names: Sequence[str]) -> None:
    """`names`: of changes to measure again; none: all of them. The others stay as they are in the file."""
    torch_version, tier = _torch_version(), theta_tier()
    kept = read_transfer() if names else None
    settings: list[AppliedSetting] = []
    for change in CHANGES:
        before = [setting for setting in kept.settings if setting.name == change.name] if kept else []
        settings += before if before and change.name not in names else measured(change)
    document = TransferFile(
        schema_version=1,
        kind="transfer",
        made=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.0f} (others included), Linux, torch {torch_version}",
        tier=f"latency {tier.latency * 1000:g} ms, bandwidth {(tier.node_bandwidth or 0) / 1e6:g} MB/s, of a stream {(tier.stream_bandwidth or 0) / 1e6:g} MB/s: theta, {SLOWER:g} times slower",
        settings=settings,
    )
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_bytes(msgspec_json.format(msgspec_json.encode(document), indent=1) + b"\n")
    print(PATH)


@cache
def _python() -> str:
    """An interpreter with torch: this one, or that of `make frameworks`."""
    beside = Path(__file__).parents[1] / ".venv-torch" / "bin" / "python"
    return sys.executable if importlib.util.find_spec("torch") or not beside.exists() else str(beside)


def _torch_version() -> str:
    command = [_python(), "-c", "import torch; print(torch.__version__)"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit("measured_transfer needs torch; run 'make frameworks' first")
    return done.stdout.partition("+")[0].strip()


def study_of(change: Change, value: str | None = None) -> Study:
    text = STUDY.replace("{DATASET}", change.dataset.replace("{LAYOUT}", f"{{{change.layout}}}"))
    study = parse_study(text, "the study of measured_transfer", () if value is None else (f"{change.key}={value}",))
    tier, theta = study.system.tiers[0], theta_tier()
    slow = replace(tier, latency=theta.latency, bandwidth=theta.node_bandwidth, stream_bandwidth=theta.stream_bandwidth)
    return replace(study, system=replace(study.system, tiers=(slow,)))


def measured(change: Change) -> list[AppliedSetting]:
    with tempfile.TemporaryDirectory(prefix="tierscope-transfer-") as folder, closing(Crews()) as crews:
        base = study_of(change, change.before)
        vary = (f"{change.key}={','.join((change.before, *change.after))}",)
        tuning = tune(base, vary, "epoch_seconds", BUDGET_SECONDS, f"{folder}/tune", crews, Silent())
        ((_, won),) = tuning.winner.settings.items()
        values = {value: _number(value) for value in change.after}
        winner = next((value for value, number in values.items() if number == won), change.before)
        if not tuning.is_better:
            winner = change.before
        print(f"{change.name}: the winner on the emulation is {winner}", file=sys.stderr)
        wanted = dict.fromkeys(value for value in (change.applied, winner) if value and value != change.before)
        return [_applied(change, value, value == winner, Path(folder), crews) for value in wanted]


def _number(text: str) -> int | str:
    for unit, factor in (("KiB", 1 << 10), ("MiB", 1 << 20)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text) if text.isdigit() else text


def _applied(change: Change, value: str, is_winner: bool, folder: Path, crews: Crews) -> AppliedSetting:
    emulated: list[tuple[float, float]] = []
    application: list[tuple[float, float]] = []
    data = {given: _staged(change, given, folder, crews) for given in (change.before, value)}
    for number in range(REPEATS):
        emulated.append(tuple(_emulated(change, given, folder, f"{value}-{number}", crews) for given in data))  # type: ignore[arg-type]
        application.append(tuple(_traced(change, given, data[given], folder, f"{value}-{number}") for given in data))  # type: ignore[arg-type]
    print(f"{change.name} {change.before} -> {value}: {emulated} {application}", file=sys.stderr)
    return AppliedSetting(
        name=change.name,
        key=change.key,
        before=change.before,
        after=value,
        is_winner=is_winner,
        emulated=_gain(emulated),
        application=_gain(application),
    )


def _gain(pairs: Sequence[tuple[float, float]]) -> MeasuredGain:
    ratios = [before / after for before, after in pairs]
    before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
    return MeasuredGain(
        before_seconds=before,
        after_seconds=after,
        gain=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        n=len(ratios),
    )


def _staged(change: Change, value: str, folder: Path, crews: Crews) -> Path:
    """The files, as Tierscope writes them."""
    out = folder / f"data-{value}"
    generate_data(study_of(change, value), str(out), crews, Silent())
    return out / "tiers" / "gfs"


def _emulated(change: Change, value: str, folder: Path, name: str, crews: Crews) -> float:
    """Seconds of the second epoch, by Tierscope's loader."""
    out = str(folder / f"run-{value}-{name}")
    run_study(study_of(change, value), out, crews, Silent())
    seconds = analyze(out).breakdown.best.epoch_seconds
    assert seconds is not None
    return seconds


def _traced(change: Change, value: str, data: Path, folder: Path, name: str) -> float:
    """The same of the script, under trace, on the same tier."""
    tier = theta_tier()
    rates = (
        f"gfs.latency={tier.latency * 1000:g}ms",
        f"gfs.bandwidth={tier.node_bandwidth:.0f}B/s",
        f"gfs.stream_bandwidth={tier.stream_bandwidth:.0f}B/s",
    )
    option = (change.option, str(_number(value))) if change.option else ()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tierscope.cli.main", "trace", "--quiet", "--tier", f"gfs={data}"),
            *(word for rate in rates for word in ("--emulate", rate)),
            *("--out", str(folder / f"trace-{value}-{name}"), "--", _python(), str(APP), str(data), *option),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"seconds"')]
    return float(json.loads(lines[0])["seconds"])


if __name__ == "__main__":
    main(sys.argv[1:])
