"""The sentence on top of imported logs: cases in which the numbers were right and the headline was wrong."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.darshan_logs import Did, made_log, needs_library, reading
from tests.imports.dftracer_lines import began, call, named
from tierscope.imports.darshan_reader import DarshanLog

pytestmark = needs_library
NAME = "me_python_id77-1_1-1-100-1_1.darshan"
SHARED = {"SLOWEST_RANK": 3, "FASTEST_RANK": 0, "F_SLOWEST_RANK_TIME": 464.0, "F_FASTEST_RANK_TIME": 440.0}


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A log with these records lies there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def put(*records: Did, **about: Any) -> str:
        log = made_log(records, name=NAME, **about)
        Path(NAME).touch()

        def read(paths: Sequence[str], segments: bool = False) -> list[DarshanLog]:
            return [log for _ in paths]

        monkeypatch.setattr("tierscope.imports.logs.read_logs", read)
        monkeypatch.setattr("tierscope.imports.darshan_accesses.read_logs", read)
        return NAME

    return put


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def writing(path: str, rank: int, seconds: float, **counts: Any) -> Did:
    return Did(path, rank, {"OPENS": 1, "WRITES": 1024, "BYTES_WRITTEN": 1 << 20, "F_WRITE_TIME": seconds, **counts})


LUSTRE = [("/scratch", "lustre")]


def test_processes_that_wrote_one_shared_file_for_464_s(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: I/O: 0.000 µs."""
    log = logged(writing("/scratch/out.h5", -1, 256 * 450.0, **SHARED), processes=256, mounts=LUSTRE)
    assert run("analyze", log) == 0
    text = capsys.readouterr().out
    assert "I/O: 464.000 s per epoch in busy seconds (n=1); 256 ranks" in text
    assert "shared, split over 256 ranks" in text
    assert "1 file, 115,200 s" in text
    found = shown(capsys, "analyze", log)
    assert found["best"]["bottleneck"] == "LUSTRE-WRITE"
    assert found["points"][0]["slowest_rank"] == 3
    assert found["totals"]["largest_class"] == "WRITE"
    assert not {"shared_files", "shared_split"} & {each["kind"] for each in found["findings"]}
    assert run("analyze", log, "--out", "kept") == 0
    assert run("report", "kept") == 0
    capsys.readouterr()
    page = Path("kept/report.html").read_text()
    assert "shared, split over 256 ranks" in page
    assert "1 file, 115,200 s" in page
    assert shown(capsys, "analyze", log, "--no-shared")["totals"]["apart"]["shared"]["write_seconds"] == 256 * 450.0


def horovod() -> list[Did]:
    """2 TiB on a mount that nobody told about, libraries on a known one."""
    paths = [f"/gpfs/alpine/imagenet/train-{n}.tfrecord" for n in range(4)]
    data = [reading(path, rank, 296.0, 0.01, BYTES_READ=1 << 39) for rank, path in enumerate(paths)]
    return [*data, reading("/home/me/config.json", 0, 0.0006, 0.0204)]


def test_data_on_no_known_tier_is_asked_for(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before: 21 ms, metadata is 97 %."""
    log = logged(*horovod(), processes=4, mounts=[("/home", "nfs")])
    assert run("analyze", log) == 2
    line = one_line(capsys)
    assert "100 % of the bytes and 100 % of the seconds (/gpfs/alpine/imagenet 2 TiB in 1,184 s)" in line
    command = line.partition("say where the data lay: tierscope ")[2]
    assert command == f"analyze {log} --tier gfs=/gpfs/alpine/imagenet"
    found = shown(capsys, *command.split())
    assert found["best"]["bottleneck"] == "GFS-READ"
    assert found["best"]["io_seconds"] == pytest.approx(296.0, rel=1e-3)
    for other in ("characterise", "compare"):
        assert run(other, *([log] if other == "characterise" else [log, log])) == 2
        assert f"tierscope {other} {log}" in one_line(capsys)


def test_what_a_given_tier_does_not_cover_is_a_column_and_a_finding(
    logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logged(*horovod(), processes=4)
    found = shown(capsys, "analyze", log, "--tier", "gfs=/gpfs/alpin")
    assert found["best"]["bottleneck"] == "OTHER-READ"
    (said,) = [each for each in found["findings"] if each["kind"] == "other_paths"]
    assert said["evidence"]["of_bytes"] == 100
    assert "/gpfs/alpine/imagenet" in said["text"]


def test_names_that_are_no_paths_can_be_given_a_tier_too(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(reading("1234567", seconds=3.0))
    assert run("analyze", log) == 2
    assert one_line(capsys).endswith("--tier all=/")
    assert shown(capsys, "analyze", log, "--tier", "all=/")["best"]["bottleneck"] == "ALL-READ"


def test_a_rest_on_no_tier_is_a_column_and_no_sentence(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(
        reading("/scratch/a", seconds=10.0, BYTES_READ=1000),
        reading("/tmp/x", seconds=0.1, meta=0.0, BYTES_READ=10),
        mounts=LUSTRE,
    )
    found = shown(capsys, "analyze", log)
    assert found["totals"]["classes"]["OTHER-READ"] == {"seconds": 0.1, "ops": 1, "bytes": 10}
    assert "other_paths" not in {each["kind"] for each in found["findings"]}


def test_standard_output_that_takes_its_time_is_a_finding(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """39.5 million writes were filed under the program itself: nothing to do."""
    printed = Did(
        "<STDOUT>", 0, {"OPENS": 1, "WRITES": 39_500_000, "BYTES_WRITTEN": 1 << 32, "F_WRITE_TIME": 64.0}, "STDIO"
    )
    log = logged(reading("/scratch/a", seconds=296.0), printed, mounts=LUSTRE)
    found = shown(capsys, "analyze", log)
    (said,) = [each for each in found["findings"] if each["kind"] == "standard_streams"]
    assert "<STDOUT>" in said["text"]
    assert said["evidence"]["ops"] == 39_500_001
    assert said["evidence"]["seconds"] == 64.0
    assert "program_files" not in {each["kind"] for each in found["findings"]}
    totals = found["totals"]
    assert totals["apart"]["standard_streams"]["write_seconds"] == totals["write_seconds"] == 64.0
    assert "LUSTRE-WRITE" not in totals["classes"] or not totals["classes"]["LUSTRE-WRITE"]["seconds"]


def test_a_stranger_may_call_a_tier_other(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(reading("/a/x", seconds=3.0), reading("/b/x", seconds=1.0))
    classes = shown(capsys, "analyze", log, "--tier", "other=/a")["totals"]["classes"]
    assert classes["OTHER-READ"]["seconds"] == 3.0
    assert classes["OTHER_2-READ"]["seconds"] == 1.0


def small_and_large() -> list[Did]:
    """A few large private reads, many small ones of a shared file."""
    large = reading("/scratch/a", 0, READS=30, BYTES_READ=30 << 22, SIZE_READ_1M_4M=30)
    small = reading(
        "/scratch/b", -1, READS=970, BYTES_READ=970 * 4096, SIZE_READ_1K_10K=970, SEQ_READS=900, CONSEC_READS=100
    )
    return [large, small]


@pytest.mark.parametrize("options", [[], ["--no-shared"]])
def test_the_mean_read_is_of_the_reads_in_the_histogram(
    options: list[str], logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said before: a mean of 3.2 MiB above a histogram with 97 % at 1 to 10 KiB."""
    streamed = reading("/scratch/c", 0, READS=5, BYTES_READ=5 << 30)._replace(module="STDIO")  # of no known size
    log = logged(*small_and_large(), streamed, processes=4, mounts=LUSTRE)
    found = shown(capsys, "characterise", log, *options)
    metrics, bins = found["metrics"], found["transfer_sizes"]["value"]
    mean, reads = metrics["transfer_mean"]["value"], sum(one["reads"] for one in bins)
    low = sum(one["reads"] * one["low"] for one in bins) / reads
    high = sum(one["reads"] * one["high"] for one in bins) / reads
    assert low <= mean <= high
    assert reads == (30 if options else 1000)
    if not options:
        assert metrics["sequential_percent"]["value"] == pytest.approx(90.0)
        assert metrics["consecutive_percent"]["value"] == pytest.approx(10.0)


@pytest.mark.parametrize("options", [[], ["--no-shared"], ["--classes", "read,meta"], ["--tier", "gfs=/gpfs"]])
def test_characterise_counts_what_the_breakdown_counts(
    options: list[str], logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [*small_and_large(), writing("/scratch/out", 1, 7.0), reading("/gpfs/z", 2, 0.01, 0.01, BYTES_READ=9)]
    log = logged(*records, processes=4, mounts=LUSTRE)
    broken_down, character = (shown(capsys, command, log, *options) for command in ("analyze", "characterise"))
    totals = broken_down["totals"]["classes"]
    counted = {name: sums for name, sums in totals.items() if name in broken_down["io_classes"]}
    assert character["metrics"]["io_seconds"]["value"] == pytest.approx(sum(one["seconds"] for one in counted.values()))
    assert character["metrics"]["bytes"]["value"] == sum(one["bytes"] for one in counted.values())
    written = sum(one["bytes"] for name, one in totals.items() if name.endswith("WRITE"))
    assert character["writes"]["write_bytes"] == written == 1 << 20
    slowest = max(one["io_seconds"] for one in character["by_rank"]["rows"])
    assert slowest == pytest.approx(broken_down["best"]["io_seconds"])
    assert shown(capsys, "compare", log, log, *options)["cosine"] == pytest.approx(1.0)


def test_dftracer_asks_for_tiers_that_hold_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far, near = "/data/a.bin", "/lib/x.so"
    lines = [*began(), *named(far, near), call("read", far, 0, 50, ret=100), call("write", far, 60, 7, ret=10)]
    path = tmp_path / "t.pfw"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, call("read", near, 100, 1, ret=1)]))
    assert run("analyze", path) == 2
    assert one_line(capsys).endswith(f"tierscope analyze {path} --tier gfs=/data")
    found = shown(capsys, "analyze", path, "--tier", "gfs=/data")
    assert found["totals"]["write_seconds"] == pytest.approx(7e-6)
    assert found["totals"]["apart"]["program"]["read_ops"] == 1
    given = shown(capsys, "analyze", path, "--tier", "gfs=/elsewhere")
    assert given["best"]["bottleneck"] == "OTHER-READ"
