"""`tierscope analyze` with Darshan logs, as a user types it: tables, doubts, and one clear line for every mistake."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.darshan_logs import REAL, needs_library, needs_real_logs, real_log, wheel_log
from tests.kept_readers import kept_readers

__all__ = ["kept_readers"]
pytestmark = needs_library
LUSTRE = "sample-goodost.darshan"  # of PyDarshan's wheel: 48 ranks on Lustre


def strict_json(text: str) -> dict[str, Any]:
    """Neither NaN nor Infinity: those are no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return dict(json.loads(text, parse_constant=refuse))


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run("analyze", *arguments, "--json") == 0
    return strict_json(capsys.readouterr().out)


def kinds(result: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in result["findings"]}


def cut(tmp_path: Path, name: str = "sample-badost.darshan") -> Path:
    """A log of which the second half is missing."""
    whole = wheel_log(name).read_bytes()
    path = tmp_path / f"cut-{name}"
    path.write_bytes(whole[: len(whole) // 2])
    return path


class TestLogsOfTheWheel:
    def test_a_table_and_the_same_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", wheel_log(LUSTRE)) == 0
        table = capsys.readouterr().out
        assert "LUSTRE-META" in table
        assert "48 ranks" in table
        result = shown(capsys, wheel_log(LUSTRE))
        (point,) = result["points"]
        assert set(point["classes"]) == {"LUSTRE-READ", "LUSTRE-META", "LUSTRE-WRITE"}
        assert (point["ranks"], point["basis"]) == (48, "busy")
        assert kinds(result) >= {"no_epochs"}
        assert "program_files" not in kinds(result)  # they took next to no time

    def test_rules_name_the_tiers(self, capsys: pytest.CaptureFixture[str]) -> None:
        result = shown(capsys, wheel_log(LUSTRE), "--tier", "lfs=/nvme", "--tier", "gfs=/scratch1")
        (point,) = result["points"]
        assert set(point["classes"]) >= {"LFS-READ", "LFS-META", "GFS-READ", "GFS-META"}
        assert point["bottleneck"] == "GFS-WRITE"

    def test_what_is_kept_is_a_result_for_other_commands(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        first = shown(capsys, wheel_log(LUSTRE), "--out", out)
        again = shown(capsys, out)
        assert again["points"] == first["points"]
        assert kinds(again) == kinds(first)
        assert run("estimate", out, "--improve", "LUSTRE-META=50", "--json") == 0
        assert strict_json(capsys.readouterr().out)
        assert run("report", out) == 0
        capsys.readouterr()
        assert list(out.rglob("*.html"))

    def test_where_it_was_kept_is_said_and_it_is_not_written_twice(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("analyze", wheel_log(LUSTRE), "--out", tmp_path / "out") == 0
        assert str(tmp_path / "out") in capsys.readouterr().out
        assert run("analyze", wheel_log(LUSTRE), "--out", tmp_path / "out") == 2
        assert "already contains imported logs" in one_line(capsys)

    def test_csv_out_and_in_give_the_same(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        first = shown(capsys, wheel_log(LUSTRE), "--csv", tmp_path / "times.csv")
        second = shown(capsys, tmp_path / "times.csv")
        for mine, theirs in zip(first["points"], second["points"], strict=True):
            assert (mine["slowest_rank"], mine["bottleneck"]) == (theirs["slowest_rank"], theirs["bottleneck"])
            assert mine["io_seconds"] == pytest.approx(theirs["io_seconds"], rel=1e-9)

    def test_a_cut_log_is_refused_and_shown_when_forced(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = cut(tmp_path)
        arguments = (path, "--tier", "gfs=/")
        assert run("analyze", *arguments) == 2
        line = one_line(capsys)
        assert "1 log is damaged or truncated, and only partly read" in line
        assert "--force to show it anyway" in line
        assert kinds(shown(capsys, *arguments, "--force")) >= {"damaged_logs"}
        assert run("analyze", *arguments, "--force", "--out", tmp_path / "out") == 0
        capsys.readouterr()
        assert kinds(shown(capsys, tmp_path / "out")) >= {"damaged_logs"}

    def test_one_bad_log_of_several_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "empty.darshan").touch()
        both = (wheel_log(LUSTRE), tmp_path / "empty.darshan")
        assert run("analyze", *both) == 2
        assert "2 logs: 1 log cannot be read; its data is missing (empty.darshan: is empty)" in one_line(capsys)
        assert kinds(shown(capsys, *both, "--force")) >= {"unreadable_logs"}

    def test_two_jobs_are_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", wheel_log(LUSTRE), wheel_log("sample-badost.darshan")) == 2
        assert "logs of 2 jobs" in one_line(capsys)

    def test_a_name_of_one_long_word_is_not_lost(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", wheel_log("sample-dxt-simple.darshan")) == 0
        assert "a.out" in capsys.readouterr().out.splitlines()[0]

    def test_a_log_of_shared_files_only_has_its_tier(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """All of its files on Lustre are shared by all ranks."""
        monkeypatch.setenv("COLUMNS", "160")
        assert run("analyze", wheel_log("ior_hdf5_example.darshan"), "--tier", "gfs=/") == 0
        assert "split over 4 ranks" in capsys.readouterr().out
        assert run("analyze", wheel_log("ior_hdf5_example.darshan"), "--tier", "gfs=/", "--no-shared", "--all") == 0
        assert "Darshan summed it over all ranks" in capsys.readouterr().out


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--epoch-gap", "soon"], "--epoch-gap soon: "),
            (["--epoch-gap", "0s"], "--epoch-gap 0s: must be above 0"),
            (["--epoch-gap", "-4s"], "--epoch-gap -4s: "),
            (["--basis", "wall"], "have only busy seconds; remove --basis"),
            (["--tier", "gfs"], "--tier gfs: must be NAME=/path"),
            (["--tier", "gfs=data"], "data is not an absolute path"),
            (["gone.darshan"], "gone.darshan: no such file; name the logs of one job"),
            (["."], ".: is a directory; name the logs in it, e.g. ./*.darshan"),
            (["other.pfw"], "mixed Darshan and DFTracer logs"),
            (["notes.txt"], "notes.txt: is not a known log"),
        ],
    )
    def test_wrong_options_get_one_clear_line(
        self,
        arguments: list[str],
        message: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("other.pfw", "notes.txt"):
            (tmp_path / name).write_text("text")
        assert run("analyze", wheel_log(LUSTRE), *arguments) == 2
        assert message in one_line(capsys)

    @pytest.mark.parametrize(
        "option",
        [["--tier", "gfs=/"], ["--out", "x"], ["--epoch-gap", "1s"], ["--split-shared"], ["--no-shared"], ["--force"]],
    )
    def test_options_of_logs_are_for_logs(
        self, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("analyze", tmp_path, *option) == 2
        assert (
            "is not a log; a result takes only --basis, --epoch, --classes, --case, --goal, --csv, --export, --all and --json"
            in one_line(capsys)
        )

    def test_one_result_at_a_time(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", tmp_path, tmp_path / "other") == 2
        assert "other: only one result at a time" in one_line(capsys)

    def test_a_foreign_directory_is_left_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "thesis.tex").write_text("years of work")
        assert run("analyze", wheel_log(LUSTRE), "--out", tmp_path) == 2
        assert "was not created by Tierscope" in one_line(capsys)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_nothing_is_kept_of_what_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", cut(tmp_path), "--tier", "gfs=/", "--out", tmp_path / "out") == 2
        one_line(capsys)
        assert not (tmp_path / "out").exists()

    def test_a_process_of_its_own_ends_without_a_traceback(self, tmp_path: Path) -> None:
        (tmp_path / "random.darshan").write_bytes(bytes(range(256)) * 20)
        command = [sys.executable, "-m", "tierscope.cli.main", "analyze", str(tmp_path / "random.darshan")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1


DAMAGED = "1 log is damaged or truncated, and only partly read"
REFUSED = {
    "bad/bitflip.darshan": DAMAGED,
    "bad/header_only.darshan": "failed to read darshan log file header",
    "bad/random.darshan": "unable to parse log file format version",
    "bad/truncated.darshan": DAMAGED,
    "bad/zero.darshan": "is empty",
    "release/mpi-io-test-ppc64-3.1.5.darshan": "1 record has a negative time, counted as zero",
}
WITHOUT_MODULES = "edge/empty_log.darshan"
FOUND = {
    "edge/laytonjb_test1_id28730_6-7-43012-2131301613401632697_1.darshan": {"no_epochs"},
    "edge/noposix.darshan": {"no_epochs"},
    "edge/noposixopens.darshan": {"no_epochs"},
    WITHOUT_MODULES: {"no_data_files"},
    "multi_rank/skew-app.darshan": {"metadata_of_writes"},
    "partial/partial_data_dxt.darshan": {"partial_logs"},
    "partial/partial_data_stdio.darshan": {"partial_logs"},
    "twotier/record_limit_partial.darshan": {"partial_logs"},
}
ANYWHERE = ("--tier", "gfs=/")


@needs_real_logs
class TestRealLogs:
    @pytest.mark.parametrize("tiers", [(), ANYWHERE], ids=["plain", "tier"])
    @pytest.mark.parametrize("name", REFUSED)
    def test_bad_logs_get_one_clear_line(
        self, name: str, tiers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("analyze", real_log(name), *tiers) == 2
        assert REFUSED[name] in one_line(capsys)

    @pytest.mark.parametrize("name", [name for name, reason in REFUSED.items() if " log file" not in reason])
    def test_forced_they_are_valid_json(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        if name == "bad/zero.darshan":
            assert run("analyze", real_log(name), *ANYWHERE, "--force") == 2
            assert "is empty" in one_line(capsys)
        else:
            assert kinds(shown(capsys, real_log(name), *ANYWHERE, "--force"))

    @pytest.mark.parametrize("name", FOUND)
    def test_odd_logs_are_shown_with_their_findings(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert kinds(shown(capsys, real_log(name), *ANYWHERE)) >= FOUND[name]

    @pytest.mark.parametrize("path", sorted(REAL.glob("v2/*")), ids=lambda path: path.name[:30])
    def test_old_logs_are_called_old(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for options in ([], ["--force"], [*ANYWHERE, "--json"]):
            assert run("analyze", path, *options) == 2
            assert "is a log of Darshan 1 or 2" in one_line(capsys)

    def test_metadata_longer_than_the_run_is_doubted(self, capsys: pytest.CaptureFixture[str]) -> None:
        log = real_log("dxt/dxt_meta_gt_runtime.darshan")
        assert run("analyze", log, *ANYWHERE) == 2
        assert "do not trust this log" in one_line(capsys)
        found = shown(capsys, log, *ANYWHERE, "--force")["findings"]
        assert [each["kind"] for each in found][:2] == ["negative_times", "long_meta"]
        assert "metadata took 11,218 s" in found[1]["text"]

    @pytest.mark.parametrize("path", sorted(REAL.glob("release/*"))[::6], ids=lambda path: path.name)
    def test_releases_can_be_shown(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert shown(capsys, path, *ANYWHERE, "--force")["points"]

    def test_epochs_of_one_real_job(self, capsys: pytest.CaptureFixture[str]) -> None:
        logs = sorted(real_log("dlio_polaris").iterdir())
        assert {point["epoch"] for point in shown(capsys, *logs)["points"]} == {1}
        by_gap = shown(capsys, *logs, "--epoch-gap", "10s")
        assert {point["epoch"] for point in by_gap["points"]} == {1}
        assert kinds(by_gap) >= {"starts_of_workers", "slow_unplaced"}
        assert not kinds(by_gap) & {"no_epochs", "read_again", "slow_process"}

    def test_processes_of_unknown_ranks_are_no_ranks(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("analyze", real_log("dlio_polaris")) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "; 24 processes." in text
        assert "24 ranks" not in text
        assert "wait for it" not in text
        assert "--epoch-gap" not in text

    def test_output_of_an_anonymised_job_is_no_io(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Its names are numbers, standard output's too: 5 s of printing were the slowest process's I/O."""
        found = shown(capsys, real_log("edge/noposix.darshan"), *ANYWHERE)
        (point,) = found["points"]
        assert (point["slowest_rank"], point["bottleneck"]) == (127, "GFS-META")
        assert point["io_seconds"] == pytest.approx(0.908, abs=0.001)
        assert found["totals"]["apart"]["standard_streams"]["write_seconds"] == pytest.approx(5.281, abs=0.001)

    @pytest.mark.parametrize(
        ("name", "left_out"),
        [
            ("dbin_tmatch", "28 shared files (13.1 s over all ranks) are"),
            ("dbin_ior", "1 shared file (113,847 s over all ranks) is"),
        ],
    )
    def test_a_headline_without_shared_files_says_so(
        self, name: str, left_out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "300")
        assert run("analyze", min(REAL.glob(f"writers/{name}*.darshan")), "--no-shared") == 0
        (headline,) = (
            line for line in capsys.readouterr().out.splitlines() if "were not" in line or "not in this time" in line
        )
        assert headline.startswith("No I/O of files of single ranks was recorded")
        assert f"{left_out} not in this time." in headline

    def test_two_steps_of_a_real_job_add_up(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Two programs, of 464.8 and 1.59 s: the first is no epoch that could be left out."""
        logs = [next(REAL.glob(f"writers/dbin_ior_id66184525-{pid}_*")) for pid in (37486, 37845)]
        both = shown(capsys, *logs)
        apart = [shown(capsys, log)["points"][0]["io_seconds"] for log in logs]
        assert max(apart) < both["points"][0]["io_seconds"] <= sum(apart)
        assert "several_steps" in kinds(both)

    def test_shared_records_count_unless_they_are_left_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        log = real_log("twotier/twotier_shared_reduced.darshan")
        tiers = ("--tier", "lfs=/lfs", "--tier", "gfs=/gfs")
        apart, split = shown(capsys, log, *tiers, "--no-shared"), shown(capsys, log, *tiers)
        assert kinds(apart) >= {"shared_files"}
        assert "shared_files" not in kinds(split)
        assert shown(capsys, log, *tiers, "--split-shared") == split
        assert run("analyze", log, *tiers, "--split-shared", "--no-shared") == 2
        assert "exclude each other" in one_line(capsys)
        assert split["points"][0]["io_seconds"] > apart["points"][0]["io_seconds"]
