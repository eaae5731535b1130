"""Files of benchmarks that mean harm: one line that names the file, in no more time than the file deserves."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.probe.test_from_files import FILES
from tierscope.errors import UserError
from tierscope.probe import from_files
from tierscope.probe.from_files import FromRequest, systems_of
from tierscope.probe.readers.registry import READERS

HOSTILE = {
    "lines that end as on an old Mac": ("no.csv", "a,b\r1,2\r", "is not the output of a known benchmark"),
    "a read that counts nothing": (
        "fio.json",
        json.dumps({"fio version": "3", "jobs": [{"read": {"bw_bytes": 1e9, "total_ios": 1e-300, "io_bytes": 1e18}}]}),
        "contains no rates of fio",
    ),
    "a denormal rate": (
        "fio.json",
        json.dumps({"fio version": "3", "jobs": [{"read": {"bw_bytes": 5e-324, "total_ios": 1, "io_bytes": 1}}]}),
        "contains no rates of fio",
    ),
    "JSON that is cut": (
        "elbencho.json",
        (FILES / "elbencho.json").read_text() + '{"phase_type": "READ", "last_done',
        "is cut short or damaged",
    ),
    "a rate twice": (
        "fio.json",
        '{"fio version": "3", "jobs": [{"read": {"bw_bytes": 1e9, "total_ios": 10, "io_bytes": 1e7, "bw_bytes": 2e9}}]}',
        "bw_bytes is given twice, with different values",
    ),
    "jobs twice": (
        "fio.json",
        '{"fio version": "3", "jobs": [], "jobs": [{"read": {"bw_bytes": 1e9, "total_ios": 10, "io_bytes": 1e7}}]}',
        "jobs is given twice",
    ),
    "a job's name twice": (
        "fio.json",
        '{"fio version": "3", "jobs": [{"jobname": "a", "jobname": "b"}]}',
        "jobname is given twice, with different values",
    ),
    "a version twice": (
        "fio.json",
        '{"fio version": "3", "fio version": "2", "jobs": ""}',
        "fio version is given twice",
    ),
    "a phase twice": (
        "elbencho.json",
        '{"phase_type": "WRITE", "phase_type": "READ", "last_done": {"bytes/s": "1000000"}}',
        "phase_type is given twice",
    ),
    "deep JSON": ("fio.json", '"fio version" "jobs"' + '{"a":' * 100_000, "nested too deeply"),
    "a column twice": ("io500.csv", "submission,nodes,nodes,ior-easy-read\na,1,2,3\n", "has two columns nodes"),
    "many columns": ("io500.csv", "ior-easy-read" + ",a" * 1000 + "\n1\n", "has more than 1,000 columns"),
}


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_files_get_one_line(which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, text, words = HOSTILE[which]
    (tmp_path / name).write_text(text, newline="")
    assert run("probe", "--from", tmp_path / name) == 2
    said = one_line(capsys)
    assert words in said
    assert name in said


def test_a_long_table_is_listed_fast_or_refused(tmp_path: Path) -> None:
    """Reading every row's system again, as it would be written, took most of the time."""
    header, row = "submission,nodes,tasks,ior-easy-read\n", "s{},10,160,{}.5\n"
    (tmp_path / "io500.csv").write_text(header + "".join(row.format(n, n % 7) for n in range(from_files.MOST_SYSTEMS)))
    start = time.process_time()
    assert len(systems_of(FromRequest((str(tmp_path / "io500.csv"),)))) == from_files.MOST_SYSTEMS
    assert time.process_time() - start < 8
    with (tmp_path / "io500.csv").open("a") as table:
        table.write("last,10,160,1\n")
    with pytest.raises(UserError, match=r"has 2,001 rows, of which 2,000 are shown at most; choose one with --row"):
        systems_of(FromRequest((str(tmp_path / "io500.csv"),)))
    (last,) = systems_of(FromRequest((str(tmp_path / "io500.csv"),), row="last"))
    assert last.known is not None


@pytest.mark.parametrize(
    "options",
    ['"filename": "a", "filename": "b"', '"iodepth": "4", "iodepth": "8"'],
)
def test_options_that_fio_repeats_are_read(options: str, tmp_path: Path) -> None:
    """fio prints every option as it was given: files add up, of others the last counts."""
    read = '"read": {"bw_bytes": 1e9, "total_ios": 10, "io_bytes": 1e7, "lat": {"0.00": 0, "0.00": 0}}'
    (tmp_path / "fio.json").write_text(
        f'{{"fio version": "3", "jobs": [{{"job options": {{"ioengine": "libaio", {options}}}, {read}}}]}}'
    )
    (imported,) = systems_of(FromRequest((str(tmp_path / "fio.json"),)))
    assert imported.known is not None
    bandwidth = imported.known.figures["tiers.gfs.bandwidth"].text
    assert ("8 in flight" in bandwidth) == ("iodepth" in options)


@pytest.mark.parametrize("name", ["\x1b[2J", "\ud800", "\0", "\u202egnp", "a\nb: c"])
def test_a_job_of_any_name_is_a_source_without_its_signs(name: str, tmp_path: Path) -> None:
    """It goes into the system's file, and from there to terminals."""
    read = {"bw_bytes": 1e9, "total_ios": 10, "io_bytes": 1e7}
    (tmp_path / "fio.json").write_text(json.dumps({"fio version": "3", "jobs": [{"jobname": name, "read": read}]}))
    (imported,) = systems_of(FromRequest((str(tmp_path / "fio.json"),)))
    assert imported.known is not None
    texts = [figure.text for figure in imported.known.figures.values()]
    assert any("fio job" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def test_tables_with_lines_of_any_end_are_read(tmp_path: Path) -> None:
    text = (FILES / "io500.csv").read_text()
    (tmp_path / "mac.csv").write_text(text.replace("\n", "\r"), newline="")
    wanted = FromRequest((str(tmp_path / "mac.csv"),))
    assert len(systems_of(wanted)) == len(systems_of(replace(wanted, files=(str(FILES / "io500.csv"),))))


@pytest.mark.parametrize(
    "text",
    [
        "[RESULT\n" * 50_000,
        "[ior-easy-read]\nscore = 1\n -t" + " " * 50_000 + "x",
        "SUMMARY rate: Std Dev\n  File read" + " " * 50_000 + "x",
        "SUMMARY rate: Std Dev\n" + ("  File read" + " " * 4_000 + "x\n") * 200,
        "Operation Max(MiB)\nSummary of all tests:\n" + "\n" * 50_000,
        "Operation Max(MiB)\nSummary of all tests:\n" + " " * 500_000,
        "Operation Max(MiB)\nSummary of all tests:\n" + ("clients" + " " * 5_000 + "\n") * 100,
        "OPERATION RESULT TYPE FIRST DONE LAST DONE\n" + ("READ a" + " " * 4_000 + "x\n") * 200,
        "[ior-easy-read]\n" + "[RESULT]" + "\n" * 500_000 + "x",
        "OPERATION RESULT TYPE FIRST DONE LAST DONE\nREAD a" + " " * 50_000 + "x",
    ],
)
def test_no_pattern_takes_the_square_of_a_text(text: str) -> None:
    """Such a file may have 32 MiB: what takes seconds here would take months there."""
    start = time.process_time()
    for reader in READERS:
        if reader.recognises(text):
            reader.read(text)
    assert time.process_time() - start < 1
