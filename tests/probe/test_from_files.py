"""A system from what other benchmarks left: every reader in the registry, every figure with its bound and source, every row of IO500's table."""

import json
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_commands import one_line, run
from tierscope.errors import UserError
from tierscope.predict.simulation import Simulation, check_rates
from tierscope.probe.from_files import FromRequest, ImportedSystem, systems_of, write_imported
from tierscope.probe.readers.phase import OPEN, READ, STAT, BenchmarkPhase, BenchmarkReader
from tierscope.probe.readers.registry import READERS
from tierscope.spec.known import load_system
from tierscope.spec.load import parse_study
from tierscope.spec.study import System

pytestmark = pytest.mark.whole

FILES = Path(__file__).parent / "benchmark_files"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "public" / "io500.csv"
OF_TOOL = {
    "IO500": ("result_summary.txt", "result.txt"),
    "IO500 table": ("io500.csv",),
    "IOR": ("ior.txt", "ior.json"),
    "mdtest": ("mdtest.txt",),
    "fio": ("fio.json",),
    "elbencho": ("elbencho.txt", "elbencho.csv", "elbencho.json"),
}
STUDY = """
study: small
workload:
  dataset: {format: raw, num_files_train: 1024, num_samples_per_file: 1, record_length_bytes: 128 KiB}
  reader: {batch_size: 1, read_threads: 1, prefetch_size: 1}
  train: {epochs: 1}
system:
  tiers:
    gfs: {path: "{out}/gfs", bandwidth: 1 GB/s}
"""


def phases(name: str) -> list[BenchmarkPhase]:
    text = (FILES / name).read_text()
    reader = next(each for each in READERS if each.recognises(text))
    return [phase for each in reader.read(text) for phase in each.phases]


def of(*names: str, **options: object) -> ImportedSystem:
    wanted = FromRequest(tuple(str(FILES / name) for name in names))
    (found,) = systems_of(replace(wanted, **options))  # type: ignore[arg-type]
    return found


def on(system: System) -> None:
    """What `simulate` does with it: every rank reads one file at least."""
    small = parse_study(STUDY, "small.yaml")
    dataset = replace(small.workload.dataset, num_files_train=system.ranks)
    study = replace(small, workload=replace(small.workload, dataset=dataset), system=system)
    check_rates(study)
    outcome = Simulation.of(study).epoch(1, "bound")
    assert math.isfinite(float(outcome.seconds.max()))
    assert float(outcome.seconds.max()) > 0


# The contract of every reader.


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.tool)
def test_a_reader_knows_its_files_and_no_others(reader: BenchmarkReader) -> None:
    for tool, names in OF_TOOL.items():
        for name in names:
            assert reader.recognises((FILES / name).read_text()) == (tool == reader.tool), name
    for text in ("", "{}", "a,b\n1,2\n", "Summary of all tests:\n", "\0\0", '{"jobs": 1}'):
        assert not reader.recognises(text)


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.tool)
def test_a_reader_hands_over_finite_numbers_above_zero(reader: BenchmarkReader) -> None:
    found = [phase for name in OF_TOOL[reader.tool] for phase in phases(name)]
    assert any(phase.operation in (READ, OPEN) for phase in found)
    for phase in found:
        for number in (phase.rate, phase.low, phase.high, phase.op_seconds, phase.nbytes, phase.nodes, phase.processes):
            assert number is None or (math.isfinite(number) and number > 0)


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.tool)
def test_damaged_files_give_phases_or_a_reason(reader: BenchmarkReader) -> None:
    """Cut anywhere, and with numbers that no storage has."""
    for name in OF_TOOL[reader.tool]:
        text = (FILES / name).read_text()
        cuts = [text[: len(text) * part // 20] for part in range(20)]
        odd = [text.replace("0", digit) for digit in ("", "-", "9" * 400, "nan", "1e999", "\u0660")]
        for damaged in [*cuts, *odd, text.replace(",", ""), text.replace('"', "")]:
            if reader.recognises(damaged):
                try:
                    found = [phase for each in reader.read(damaged) for phase in each.phases]
                except ValueError:
                    continue
                assert all(math.isfinite(phase.rate) and phase.rate > 0 for phase in found)


@given(st.sampled_from(READERS), st.text(max_size=300))
def test_no_text_breaks_a_reader(reader: BenchmarkReader, text: str) -> None:
    for name in OF_TOOL[reader.tool]:
        whole = (FILES / name).read_text()
        mixed = whole[: len(whole) // 2] + text + whole[len(whole) // 2 :]
        if reader.recognises(mixed):
            with suppress(ValueError):
                reader.read(mixed)


# The same figures, written the tools' ways.


@pytest.mark.parametrize("name", ["ior.txt", "ior.json", "elbencho.csv", "elbencho.json"])
def test_the_same_figures_in_every_format(name: str) -> None:
    (read,) = [phase for phase in phases(name) if phase.operation == READ]
    assert (read.rate, read.nodes, read.processes, read.nbytes) == (10240 * 2**20, 4, 64, 2**20)


def test_repetitions_are_the_interval() -> None:
    (read,) = [phase for phase in phases("ior.txt") if phase.operation == READ]
    assert (read.low, read.high, read.repetitions) == (10000 * 2**20, 10480 * 2**20, 3)
    opened = next(phase for phase in phases("mdtest.txt") if phase.operation == OPEN)
    assert (opened.rate, opened.low, opened.high, opened.repetitions) == (20000, 19500, 20500, 3)


def test_times_of_mdtest_are_no_rates() -> None:
    """It prints a second summary, of seconds."""
    assert [phase.rate for phase in phases("mdtest.txt") if phase.operation == OPEN] == [20000]


def test_jobs_that_ran_together_are_one_phase() -> None:
    """Without group_reporting fio lists every clone."""
    content = json.loads((FILES / "fio.json").read_text())
    many = content["jobs"][1]
    one = {
        **many,
        "read": {**many["read"], **{key: many["read"][key] / 8 for key in ("bw_bytes", "io_bytes", "total_ios")}},
    }
    content["jobs"][1:2] = [one] * 8
    reader = next(each for each in READERS if each.tool == "fio")
    (found,) = reader.read(json.dumps(content))
    assert [(phase.rate, phase.processes) for phase in found.phases] == [
        (131072000, 1),
        (524288000, 8),
        (524288000, 16),
    ]


# What a figure can tell.


def test_one_run_is_a_bound() -> None:
    found = of("ior.txt")
    assert found.known is not None
    (tier,) = found.known.system.tiers
    figure = found.known.figures["tiers.gfs.bandwidth"]
    assert tier.bandwidth == pytest.approx(10240 * 2**20, rel=1e-3)
    assert figure.high is None
    assert figure.low == pytest.approx(10000 * 2**20, rel=1e-3)
    assert "at least" in figure.text
    assert "IOR, ior.txt: IOR read" in figure.text
    assert tier.node_bandwidth == pytest.approx(10240 * 2**20 / 4, rel=1e-3)
    assert any("simulations of a study that opens files" in note for note in found.notes)


def test_a_process_alone_is_not_simulated_faster_than_one_among_many_was() -> None:
    """640 processes that open 114,000 files a second tell nothing of one that opens 114,000."""
    tier = of("mdtest.txt", "ior.txt").known.system.tiers[0]  # type: ignore[union-attr]
    assert tier.metadata_latency == pytest.approx(63 / 20000, rel=1e-3)
    assert tier.latency == pytest.approx(63 * 2**20 / (10240 * 2**20), rel=1e-3)


def test_streams_that_nobody_saw_alone_are_said() -> None:
    assert any("no phase reads with one process alone; reads larger than 1 MiB" in note for note in of("ior.txt").notes)
    assert not any("one process alone" in note for note in of("fio.json").notes)


def test_saturated_runs_have_two_ends_and_a_latency() -> None:
    """fio.json: 8 jobs and 16 get the same, so more would get no more; one alone takes 1 ms, of which the server needs a quarter."""
    found = of("fio.json")
    assert found.known is not None
    figure = found.known.figures["tiers.gfs.bandwidth"]
    assert figure.high is not None
    assert figure.low is not None
    assert figure.low < figure.value < figure.high < 1.01 * figure.value
    assert found.known.system.tiers[0].latency == pytest.approx(0.00075, rel=0.01)


def test_small_and_large_reads_make_a_law() -> None:
    """Both phases come out of it again."""
    tier = of("result_summary.txt").known.system.tiers[0]  # type: ignore[union-attr]
    assert tier.read_ops is not None
    assert tier.bandwidth is not None
    for nbytes, gib in ((47008, 2.5), (2 << 20, 10.0)):
        assert 1 / (1 / tier.read_ops + nbytes / tier.bandwidth) * nbytes == pytest.approx(gib * 2**30, rel=2e-3)
    assert tier.metadata_ops == 20000
    assert of("result_summary.txt").known.system.nodes == 1  # type: ignore[union-attr]
    assert any("--nodes" in note for note in of("result_summary.txt").notes)
    told = of("result_summary.txt", nodes=4, ranks=16).known
    assert told is not None
    assert (told.system.nodes, told.system.ranks_per_node) == (4, 16)


def test_opens_estimated_from_stats_are_an_interval() -> None:
    figure = of("elbencho.csv").known.figures["tiers.gfs.metadata_ops"]  # type: ignore[union-attr]
    assert (figure.value, figure.high) == (24000, 39200)  # 40,000 stats: files of 5 MiB that were read tell nothing
    figure = of("io500.csv", row="5").known.figures["tiers.gfs.metadata_ops"]  # type: ignore[union-attr]
    assert (figure.value, figure.low, figure.high) == (600, 130, 980)  # 1,000 stats


def test_near_tiers_are_of_one_node(tmp_path: Path) -> None:
    """IOR on four nodes' own disks: each has a quarter."""
    wanted = FromRequest((f"lfs={FILES / 'ior.txt'}", f"gfs={FILES / 'result_summary.txt'}"))
    (found,) = systems_of(wanted)
    assert found.known is not None
    near, far = found.known.system.tiers
    assert (near.name, near.visible_to, far.visible_to) == ("lfs", "node", "global")
    assert near.bandwidth == pytest.approx(10240 * 2**20 / 4, rel=1e-3)
    write_imported(found, str(tmp_path / "system.yaml"), wanted.files)
    assert load_system(str(tmp_path / "system.yaml")) == found.known


# Tables.


def test_every_row_is_a_system_or_refused() -> None:
    found = systems_of(FromRequest((str(FILES / "io500.csv"),)))
    assert [bool(each.known) for each in found] == [True, False, False, True, True]
    assert "no figures" in found[1].refused
    assert "neither ior-easy-read nor ior-hard-read" in found[2].refused


def test_one_row_is_chosen() -> None:
    assert of("io500.csv", row="submission-1").known is not None
    assert of("io500.csv", row="5").known is not None
    for row, words in (
        ("submission-4", "choose one by its line: 5, 6"),
        ("submission-9", "no such row"),
        ("first", "is a system, not a row, in .*its rows: submission-1"),
        ("submission-2", "no figures"),
    ):
        with pytest.raises(UserError, match=words):
            of("io500.csv", row=row)


@pytest.mark.skipif(not SHARED.is_file(), reason="no measurements beside the project (../shared/data)")
def test_every_system_of_the_public_table_can_be_simulated(tmp_path: Path) -> None:
    found = systems_of(FromRequest((str(SHARED),)))
    made = [each for each in found if each.known]
    assert (len(found), len(made)) == (188, 106)
    assert all("no figures" in each.refused for each in found if not each.known)
    for number, each in enumerate(made):
        path = tmp_path / f"{number}.yaml"
        write_imported(each, str(path), [str(SHARED)])
        on(load_system(str(path)).system)


@pytest.mark.parametrize(
    "name", [name for tool, names in OF_TOOL.items() if tool not in ("IO500 table", "mdtest") for name in names]
)
def test_every_system_of_a_file_can_be_simulated(name: str, tmp_path: Path) -> None:
    found = of(name)
    write_imported(found, str(tmp_path / "system.yaml"), [name])
    on(load_system(str(tmp_path / "system.yaml")).system)
    text = (tmp_path / "system.yaml").read_text()
    assert text.startswith("# ")
    assert name in text


# As a user types it.


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = tmp_path / "system.yaml"
    assert run("probe", "--from", FILES / "ior.txt", FILES / "mdtest.txt", "-o", system) == 0
    text = capsys.readouterr().out
    for words in ("tiers.gfs.bandwidth", "at least", "metadata_ops", f"System: {system}"):
        assert words in text
    study = tmp_path / "small.yaml"
    study.write_text(STUDY)
    assert run("simulate", study, "--system", system, "--out", tmp_path / "out", "--quiet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["simulated"] is True
    assert run("probe", "--from", FILES / "ior.txt", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["systems"][0]["figures"]["tiers.gfs.bandwidth"]["at_least"] is True
    assert run("probe", "--from", FILES / "io500.csv") == 0
    assert "3 of 5 rows can be used as a system" in capsys.readouterr().out


def test_benchmarks_tell_what_to_measure_for_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bound on what storage serves does not settle a study that asks for more."""
    study = tmp_path / "small.yaml"
    study.write_text(STUDY)
    assert run("probe", "--from", FILES / "ior.txt", "--for", study, "--json") == 0
    settling = json.loads(capsys.readouterr().out)["settling"]
    assert settling["asked"] == 1
    assert run("probe", "--from", FILES / "ior.txt", "--for", study) == 0
    said = "every point is identified" if not settling["open"] else "not identified: 1 of 1 point"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "{files}/../../tiny.py"), "looked for IO500 table"),
        (("--from", "{files}/mdtest.txt"), "no phase reads data"),
        (("--from", "{files}/no-such"), "cannot be read"),
        (("--from", "{files}"), "cannot be read"),
        (("--from", "{files}/ior.txt", "--tier", "gfs=/tmp"), "cannot be combined with --from; remove one of them"),
        (("--from", "{files}/io500.csv", "--for", "demo"), "--for is about one system; choose one with --row"),
        (("--from", "{files}/ior.txt", "--for", "no-such"), "no-such"),
        (("--from", "{files}/ior.txt", "--row", "3"), "is not a table; remove --row"),
        (("--from", "{files}/io500.csv", "-o", "{tmp}/system.yaml"), "--row"),
        (("--from", "{files}/io500.csv", "{files}/ior.txt"), "a table of systems cannot be combined with other files"),
        (("--from", "{files}/ior.txt", "--servers", "lfs=3"), "lfs is not a tier of these files"),
        (("--row", "3"), "--row: requires --from"),
        (("{files}/ior.txt",), "FILE: requires --from"),
        (("--nodes", "3"), "--nodes: requires --from"),
    ],
)  # fmt: skip
def test_mistakes_get_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("probe", *(each.format(files=FILES, tmp=tmp_path) for each in arguments)) == 2
    assert words in one_line(capsys)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(33 << 20)
    assert run("probe", "--from", large) == 2
    assert "too large" in one_line(capsys)


def test_stats_alone_make_an_estimate() -> None:
    reader = next(each for each in READERS if each.tool == "mdtest")
    text = (FILES / "mdtest.txt").read_text().replace("File read   ", "File other  ")
    assert [phase.operation for phase in reader.read(text)[0].phases if phase.operation in (OPEN, STAT)] == [STAT]
