"""fio: `--output-format=json` (also json+). Jobs of one group ran together; groups (stonewall, new_group) one after another.

Up to 3.5 rates are in KiB/s only, and before 3.0 `io_bytes` is in KiB.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tierscope.probe.readers.phase import (
    MOST_BYTES,
    READ,
    STAT,
    UNUSED,
    BenchmarkPhase,
    BenchmarkReader,
    BenchmarkRun,
    count,
    entries,
    json_documents,
    positive,
    section,
)

_SURE = 1.645  # standard errors: 90 %
_KIB = 1024.0
_OPTIONS = ("global options", "job options")
_ONE_AT_A_TIME = (
    "psync",
    "sync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
)  # engines that know no iodepth; the first is fio's own choice
_NO_DATA = {"filestat": STAT, "filecreate": UNUSED, "filedelete": UNUSED, "filerename": UNUSED}


def _recognises(text: str) -> bool:
    return '"fio version"' in text and ('"jobs"' in text or '"client_stats"' in text)


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    phases: list[BenchmarkPhase] = []
    for document in json_documents(text, _OPTIONS):
        given = section(document, "global options")
        phases += _phases(entries(document, "jobs"), given, None)
        clients = [job for job in entries(document, "client_stats") if isinstance(job, dict) and section(job, "read")]
        hosts = {str(job.get("hostname")) for job in clients if job.get("hostname")}
        phases += _phases([job for job in clients if job.get("jobname") != "All clients"], given, len(hosts) or None)
    return (BenchmarkRun("fio", tuple(phases)),)


def _phases(jobs: Sequence[object], given: Mapping[str, object], hosts: int | None) -> Iterator[BenchmarkPhase]:
    groups: dict[object, list[Mapping[str, object]]] = {}
    for place, job in enumerate(jobs):
        if isinstance(job, dict) and not job.get("error"):
            group = job.get("groupid", place)
            groups.setdefault(group if isinstance(group, int) else place, []).append(job)
    for group in groups.values():
        for direction in ("read", "write"):
            if phase := _phase(group, direction, given, hosts):
                yield phase


def _phase(
    group: Sequence[Mapping[str, object]], direction: str, given: Mapping[str, object], hosts: int | None
) -> BenchmarkPhase | None:
    sides = [section(job, direction) for job in group]
    rates = [rate for side in sides if (rate := _rate(side))]
    done = sum(count_ for side in sides if (count_ := positive(side.get("total_ios"))))
    moved = sum(nbytes for side in sides if (nbytes := _moved(side)))
    options = {**given, **section(group[0], "job options")}
    engine = str(options.get("ioengine", _ONE_AT_A_TIME[0]))
    name = f"fio job {str(group[0].get('jobname', '?'))[:60]}: {direction}"
    if engine in _NO_DATA:
        iops = sum(rate for side in sides if (rate := positive(side.get("iops"))))
        return (
            BenchmarkPhase(name=name, operation=_NO_DATA[engine], rate=iops, processes=_processes(group, options))
            if iops
            else None
        )
    if not rates or not done or not moved:
        return None
    rate = math.fsum(rates)
    processes, depth = _processes(group, options), _depth(engine, options)
    deviation = _relative_error(sides)
    alone = processes * depth == 1
    return BenchmarkPhase(
        name=name,
        operation=READ if direction == "read" else UNUSED,
        rate=rate,
        nodes=hosts or 1,
        processes=processes,
        depth=depth,
        nbytes=min(MOST_BYTES, max(1, round(moved / done))),
        low=rate * max(0.1, 1 - _SURE * deviation) if deviation else None,
        high=rate * (1 + _SURE * deviation) if deviation else None,
        op_seconds=_mean_seconds(sides[0]) if alone else None,
        remark=_remark(group, direction, options),
    )


def _rate(side: Mapping[str, object]) -> float | None:
    if (rate := positive(side.get("bw_bytes"))) is not None:
        return rate
    rate = positive(side.get("bw"), 1e12)
    return None if rate is None else rate * _KIB


def _moved(side: Mapping[str, object]) -> float | None:
    """Where a version has no io_kbytes, io_bytes is of these."""
    moved = positive(side.get("io_bytes"), 1e15)
    return moved * _KIB if moved is not None and "io_kbytes" not in side and "bw_bytes" not in side else moved


def _depth(engine: str, options: Mapping[str, object]) -> int:
    return 1 if engine in _ONE_AT_A_TIME else count(options.get("iodepth")) or 1


def _remark(group: Sequence[Mapping[str, object]], direction: str, options: Mapping[str, object]) -> str:
    other = "write" if direction == "read" else "read"
    remarks = [] if str(options.get("direct", "0")) == "1" else ["without direct=1: may include the page cache"]
    if any(_rate(section(job, other)) for job in group):
        remarks.append(f"at the same time as {other}s")
    return ", ".join(remarks)


def _processes(group: Sequence[Mapping[str, object]], options: Mapping[str, object]) -> int:
    """Clones of a job are listed one by one, or with group_reporting as one entry of each host that says how many."""
    listed = Counter((str(job.get("hostname")), str(job.get("jobname"))) for job in group)
    if len({name for _, name in listed}) > 1:
        return len(group)
    numjobs = count(options.get("numjobs")) or 1
    return sum(entries_ if entries_ > 1 else numjobs for entries_ in listed.values())


def _relative_error(sides: Sequence[Mapping[str, object]]) -> float:
    """Of the mean throughput: the spread of its samples over their root; 0: not known."""
    variance = mean = 0.0
    for side in sides:
        bandwidth, spread, samples = (positive(side.get(key)) for key in ("bw_mean", "bw_dev", "bw_samples"))
        if bandwidth and spread and samples and samples > 1:
            mean += bandwidth
            variance += spread**2 / samples
    return min(0.5, math.sqrt(variance) / mean) if mean else 0.0


def _mean_seconds(side: Mapping[str, object]) -> float | None:
    for name, unit in (("lat_ns", 1e-9), ("clat_ns", 1e-9), ("lat", 1e-6), ("clat", 1e-6)):
        if mean := positive(section(side, name).get("mean")):
            return mean * unit
    return None


FIO = BenchmarkReader("fio", "JSON with 'fio version' and jobs", _recognises, _read)
