"""Benchmark files of other versions and with other options than those of test_from_files.py: what they say is read, or refused with its reason."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.probe.test_from_files import FILES, STUDY, of, phases
from tierscope.errors import UserError
from tierscope.predict import spread
from tierscope.predict.simulation import Simulation
from tierscope.probe.from_files import FromRequest, ImportedSystem, systems_of
from tierscope.probe.readers.phase import OPEN, READ, STAT, BenchmarkPhase
from tierscope.probe.readers.registry import READERS
from tierscope.spec.known import drawn_systems
from tierscope.spec.load import parse_study

MIB = 1 << 20
IOR_3_0 = """IOR-3.0.1: MPI Coordinated Test of Parallel I/O
Summary:
	api                = POSIX
	clients            = 32 (4 per node)
	xfersize           = 16 MiB

Max Read:  5363.50 MiB/sec (5624.04 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt blksiz xsize aggsize API RefNum
write        3842.11    3595.90    3695.92     101.02   88.72562 0 32 4 4 1 0 1 0 0 1 10737418240 16777216 343597383680 POSIX 0
read         5363.50    4710.50    5114.22     254.60   64.23726 0 32 4 4 1 0 1 0 0 1 10737418240 16777216 343597383680 POSIX 0
"""
CUT = "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev\nread         5363.50    4710.50    5114.22     254.60\n"
MDTEST_1_9 = """mdtest-1.9.3 was launched with 64 total task(s) on 4 node(s)
SUMMARY: (of 3 iterations)
   Operation                      Max            Min           Mean        Std Dev
   File stat         :      41000.000      39000.000      40000.000         816.497
   File read         :      20500.000      19500.000      20000.000         408.248
"""
PER_RANK = """mdtest-4.1.0 was launched with 64 total task(s) on 4 node(s)
SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation     per Rank: Max            Min           Mean      per Iteration: Max            Min           Mean        Std Dev
   Directory stat              200.000        100.000        150.000            39000.000      39000.000      39000.000          0.000
   File stat                   700.000        600.000        650.000            40000.000      40000.000      40000.000          0.000
   File read                   350.000        300.000        320.000            20000.000      20000.000      20000.000          0.000
"""
TIMES = """mdtest-4.0.0 was launched with 64 total task(s) on 4 node(s)
SUMMARY time (in ms/op): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   File read                   20.500      19.500      20.000         0.248
"""
LARGE_FILES = """COMMAND LINE: "elbencho" "-r" "-t" "64" "-b" "16m" "-s" "4g" "/scratch/files"

OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
READ        Elapsed time     :     25.140s     25.600s
            Files/s          :           2           2
            Throughput MiB/s :       10400       10240
---
"""


def read_as(tool: str, text: str) -> list[BenchmarkPhase]:
    (reader,) = [known for known in READERS if known.recognises(text)]
    assert reader.tool == tool
    return [phase for run in reader.read(text) for phase in run.phases]


def system(tmp_path: Path, *texts: str) -> ImportedSystem:
    paths = [tmp_path / f"file{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    (made,) = systems_of(FromRequest(tuple(map(str, paths))))
    return made


def fio(read: dict[str, object], version: str = "fio-3.36", **options: str) -> dict[str, object]:
    job = {"jobname": "a", "groupid": 0, "error": 0, "job options": {"direct": "1", **options}, "read": read}
    return {"fio version": version, "global options": {}, "jobs": [job]}


def side(rate: int, **other: object) -> dict[str, object]:
    """30 seconds of reads of 1 MiB."""
    counts = {"io_bytes": 30 * rate, "io_kbytes": 30 * rate // 1024, "total_ios": 30 * rate // MIB}
    return {**counts, "bw_bytes": rate, "bw": rate // 1024, "lat_ns": {"mean": 2e6}, **other}


@pytest.mark.parametrize("text", [IOR_3_0, IOR_3_0.partition("Operation")[0] + CUT], ids=["whole", "cut"])
def test_ior_of_another_version_with_large_transfers(text: str) -> None:
    """Before 3.2 "clients = 32 (4 per node)"; a summary that is cut behind its rates has the rest above."""
    read = next(phase for phase in read_as("IOR", text) if phase.operation == READ)
    assert (read.rate, read.processes, read.nodes, read.nbytes) == (5114.22 * MIB, 32, 8, 16 * MIB)


def test_ior_says_tasks_above_its_results() -> None:
    text = (FILES / "ior.txt").read_text()
    cut = text[: text.index("Operation ")] + CUT
    (read,) = read_as("IOR", cut)
    assert (read.processes, read.nodes, read.nbytes) == (64, 4, MIB)


@pytest.mark.parametrize("text", [MDTEST_1_9, PER_RANK], ids=["1.9", "per rank"])
def test_mdtest_of_another_version(text: str) -> None:
    rates = {phase.operation: phase.rate for phase in read_as("mdtest", text)}
    assert (rates[OPEN], rates[STAT]) == (20000, 40000)


@pytest.mark.parametrize("texts", [(TIMES,), (IOR_3_0, TIMES), (IOR_3_0, json.dumps({"fio version": "3", "jobs": []}))])
def test_a_file_that_tells_nothing_is_not_passed_over(texts: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contains no rates of (mdtest|fio); name the output of a run that finished"):
        system(tmp_path, *texts)


@pytest.mark.parametrize("engine", [{}, {"ioengine": "psync"}, {"ioengine": "mmap"}], ids=["default", "psync", "mmap"])
def test_engines_that_read_one_at_a_time_have_no_depth(engine: dict[str, str], tmp_path: Path) -> None:
    """fio takes iodepth=32 with them and reads one by one."""
    found = system(tmp_path, json.dumps(fio(side(500 * MIB), iodepth="32", **engine)))
    assert found.known is not None
    assert found.known.system.tiers[0].latency < 0.001
    deep = system(tmp_path, json.dumps(fio(side(500 * MIB), iodepth="32", ioengine="libaio")))
    assert deep.known is not None
    assert deep.known.system.tiers[0].latency == pytest.approx(31 / 500, rel=1e-3)


@pytest.mark.parametrize("version", ["fio-2.16", "fio-3.1"])
def test_fio_without_bytes_per_second(version: str) -> None:
    read = side(500 * MIB)
    del read["bw_bytes"]
    if version == "fio-2.16":
        read["io_bytes"] = read.pop("io_kbytes")
    (phase,) = read_as("fio", json.dumps(fio(read, version)))
    assert (phase.rate, phase.nbytes) == (500 * MIB, MIB)


def test_clones_on_every_client_are_counted() -> None:
    """With group_reporting each of four hosts has one entry for its eight jobs; without, one for each."""
    job = fio(side(200 * MIB), numjobs="8")["jobs"][0]  # type: ignore[index]
    hosts = [{**job, "hostname": f"n{number}"} for number in range(4)]
    for clients, processes in ((hosts, 32), (hosts * 3, 12)):
        (phase,) = read_as("fio", json.dumps({"fio version": "3", "client_stats": clients, "jobs": []}))
        assert (phase.processes, phase.nodes, phase.rate) == (processes, 4, 200 * MIB * len(clients))


def test_reads_beside_writes_are_said_to_be() -> None:
    document = fio(side(350 * MIB), rw="randrw")
    document["jobs"][0]["write"] = side(150 * MIB)  # type: ignore[index]
    read = next(phase for phase in read_as("fio", json.dumps(document)) if phase.operation == READ)
    assert read.remark == "at the same time as writes"
    assert all("same time" not in phase.remark for phase in phases("fio.json"))


def test_large_files_tell_nothing_of_opens(tmp_path: Path) -> None:
    """Two files of 4 GiB a second would be a metadata server that opens two a second."""
    found = system(tmp_path, LARGE_FILES)
    assert found.known is not None
    assert found.known.system.tiers[0].metadata_ops is None
    assert any("simulations of a study that opens files" in note for note in found.notes)
    read = next(phase for phase in read_as("elbencho", LARGE_FILES) if phase.operation == READ)
    assert (read.nbytes, read.processes) == (16 * MIB, 64)


def test_what_is_at_most_something_is_in_the_interval(tmp_path: Path) -> None:
    """32 reads in flight took 62 ms each: one alone takes that at most, and as little as nothing."""
    found = system(tmp_path, json.dumps(fio(side(500 * MIB), iodepth="32", ioengine="libaio")))
    assert found.known is not None
    study = replace(parse_study(STUDY, "small.yaml"), system=found.known.system)
    drawn = drawn_systems(study.system, found.known)
    latencies = [other.tiers[0].latency for other in drawn]
    assert min(latencies) < 0.01
    assert max(latencies) > 0.05
    simulation = Simulation.of(study)
    outcome = simulation.epoch(1, "bound")
    low, high = spread.relative(study, simulation.stations, simulation.reading, outcome, drawn)
    assert low < 0.3
    assert high == 1.0


def test_what_to_do_without_nodes_is_said_truly() -> None:
    """--system replaces all of the study's system: setting nodes there would change nothing."""
    (note,) = [note for note in of("result_summary.txt").notes if note.startswith("nodes")]
    assert "--set nodes=" in note
    assert "in the study" not in note
