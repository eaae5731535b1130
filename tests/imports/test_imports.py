"""From logs to a trace: what is refused in one clear line, what is doubted, and what is kept."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.imports.darshan_logs import made_log, reading
from tests.traces import as_imported
from tierscope.commands.analyze import analyze
from tierscope.errors import UserError
from tierscope.imports import logs as imports
from tierscope.imports.darshan_reader import DarshanLog, UnreadableLog
from tierscope.imports.logs import ImportOptions, import_logs, is_import, keep, source_of
from tierscope.imports.paths import TierRules
from tierscope.trace.described_logs import LogDoubts
from tierscope.trace.trace import Trace

RULES = TierRules({"gfs": ("/gfs",)})
READ = [reading("/gfs/a")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Reading:
    """Imports what would have been read from files of these names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def __call__(self, *logs: DarshanLog | UnreadableLog, rules: TierRules = RULES, force: bool = False) -> Trace:
        def read(paths: Sequence[str], segments: bool) -> Iterator[DarshanLog | UnreadableLog]:
            assert not segments
            assert list(paths) == [log.path for log in logs]
            yield from logs

        self._monkeypatch.setattr(imports, "read_logs", read)
        for log in logs:
            Path(log.path).parent.mkdir(exist_ok=True, parents=True)
            Path(log.path).touch()
        return import_logs([log.path for log in logs], ImportOptions(rules, force=force))

    def refusal(self, *logs: DarshanLog | UnreadableLog, rules: TierRules = RULES, force: bool = False) -> str:
        with pytest.raises(UserError) as caught:
            self(*logs, rules=rules, force=force)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    return Reading(folder, monkeypatch)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.darshan", "darshan"),
        ("a.darshan.gz", "darshan"),
        ("a.pfw", "dftracer"),
        ("a.pfw.gz", "dftracer"),
        ("a.gz", None),
        ("darshan", None),
        ("a.darshan.txt", None),
    ],
)
def test_names_tell_the_profiler(name: str, source: str | None) -> None:
    assert source_of(f"/x/{name}") == source


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["gone.darshan"], "gone.darshan: no such file; name the logs of one job"),
        (
            ["a.darshan", "folder.darshan"],
            "folder.darshan: is a directory; name the logs in it, e.g. folder.darshan/*.darshan",
        ),
        (
            ["a.darshan", "note.txt"],
            "note.txt: is not a known log; Darshan logs end in .darshan, DFTracer logs in .pfw or .pfw.gz",
        ),
        (["a.darshan", "b.pfw"], "mixed Darshan and DFTracer logs; name the logs of one profiler"),
    ],
)
def test_what_is_no_set_of_logs_is_refused_before_anything_is_read(
    paths: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(imports, "read_logs")
    for name in ("a.darshan", "b.pfw", "note.txt"):
        (folder / name).touch()
    (folder / "folder.darshan").mkdir()
    with pytest.raises(UserError) as caught:
        import_logs(paths, ImportOptions(RULES))
    assert str(caught.value) == message


def test_a_plain_log_is_a_trace(of: Reading) -> None:
    trace = of(made_log(READ))
    about = as_imported(trace)
    assert (about.facts.source, about.facts.job_id) == ("darshan", 77)
    assert about.command == "python train.py"
    assert about.facts.doubts == LogDoubts()


def test_the_command_is_that_of_the_process_that_began_first(of: Reading) -> None:
    worker = made_log(READ, pid=2, start=9, command="python -c spawn")
    assert as_imported(of(worker, made_log(READ, pid=1, start=1))).command == "python train.py"


def test_logs_of_several_jobs_are_refused(of: Reading) -> None:
    message = of.refusal(made_log(READ, job_id=77), made_log(READ, job_id=88), made_log(READ, job_id=88, pid=9))
    assert message.startswith("logs of 2 jobs (77: me_python_id77-1_")
    assert message.endswith("; name the logs of one job")


def test_without_a_scheduler_a_forked_worker_is_of_its_parents_job(of: Reading) -> None:
    """Then Darshan takes the number of the process for that of the job."""
    main, worker = made_log(READ, pid=10, job_id=10), made_log(READ, pid=11, job_id=11, parent=10)
    assert as_imported(of(main, worker)).facts.process_count == 2


def test_when_nothing_can_be_read_the_first_reason_is_given(of: Reading) -> None:
    message = of.refusal(UnreadableLog("a.darshan", "is empty"), UnreadableLog("b.darshan", "crashed"))
    assert message == "a.darshan: is empty; copy the log again from where it was written"


def test_an_old_log_is_not_to_be_fetched_again(of: Reading) -> None:
    """Fetching it again gives the same old log."""
    reason = "is a log of Darshan 1 or 2, which Darshan 3's library cannot read"
    assert "copy the log again" not in of.refusal(UnreadableLog("a.darshan", reason))


DOUBTFUL: dict[str, tuple[DarshanLog | UnreadableLog, str]] = {
    "unreadable_logs": (
        UnreadableLog("bad.darshan", "is empty"),
        "1 log cannot be read; its data is missing (bad.darshan: is empty)",
    ),
    "damaged_logs": (
        made_log(READ, pid=2, complaints=["Error: cut."]),
        "1 log is damaged or truncated, and only partly read",
    ),
    "negative_times": (
        made_log([reading("/gfs/a", meta=-1.0)], pid=2),
        "1 record has a negative time, counted as zero",
    ),
    "impossible_ranks": (
        made_log([*READ, reading("/gfs/b", 7)], pid=2),
        "1 record names a rank that the job did not have; ignored",
    ),
    "long_meta": (made_log([reading("/gfs/a", meta=99.0)], pid=2), "metadata took 99 s in a process that ran for 11 s"),
}


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_what_cannot_be_trusted_is_shown_only_when_forced(kind: str, of: Reading) -> None:
    log, words = DOUBTFUL[kind]
    message = of.refusal(made_log(READ), log)
    assert message.startswith("2 logs: ")
    assert words in message
    assert message.endswith("; use --force to show it anyway")
    assert getattr(as_imported(of(made_log(READ), log, force=True)).facts.doubts, kind)


def test_one_doubt_is_told_and_the_others_are_counted(of: Reading) -> None:
    log = made_log([reading("/gfs/a", meta=-1.0), reading("/gfs/b", 9)], complaints=["Error: cut."])
    message = of.refusal(log)
    assert message.startswith(f"{log.path}: 1 log is damaged or truncated")
    assert "(and 2 more problems)" in message


def test_files_on_no_tier_get_the_option_that_helps(of: Reading) -> None:
    message = of.refusal(made_log([reading("/data/train/a"), reading("/data/val/b")]), rules=TierRules({}))
    assert "100 % of the bytes and 100 % of the time" in message
    assert "/data/train 100 B in 1.5 s; /data/val 100 B in 1.5 s" in message
    assert message.endswith("--tier gfs=/data/train,/data/val")


def test_many_logs_are_named_by_a_pattern(of: Reading) -> None:
    logs = [made_log([reading("/data/train/a")], pid=pid, name=f"logs/{pid}.darshan") for pid in range(1, 6)]
    assert "tierscope analyze logs/*.darshan --tier gfs=/data/train" in of.refusal(*logs, rules=TierRules({}))


def test_a_damaged_log_without_files_is_called_damaged(of: Reading) -> None:
    """No --tier would help."""
    log = made_log(complaints=["Error: unable to read compressed data from file."])
    message = of.refusal(log, rules=TierRules({}))
    assert "damaged" in message
    assert "--tier" not in message
    forced = of.refusal(log, rules=TierRules({}), force=True)
    assert "damaged" in forced
    assert "contains no files that can be read" in forced


@pytest.mark.parametrize(
    ("paths", "options"),
    [
        (["/gfs/data/a", "/lfs/node0/b"], "--tier lfs=/lfs/node0 --tier gfs=/gfs/data"),
        (["/data/a", "/tmp/b"], "--tier tmp=/tmp --tier gfs=/data"),
        (["/tmp/test/a"], "--tier tmp=/tmp/test"),
        (["/home/a", "/data/b", "/nvme/c"], "--tier nvme=/nvme --tier home=/home --tier gfs=/data"),
    ],
)
def test_tiers_are_suggested_nearest_first_and_the_global_one_last(paths: list[str], options: str, of: Reading) -> None:
    """As --tier wants them; what a node has of its own is not called global."""
    records = [reading(path, BYTES_READ=1000 if path.startswith("/data") else 100) for path in paths]
    assert of.refusal(made_log(records), rules=TierRules({})).endswith(f" {options}")


def test_a_log_of_shared_files_only_needs_no_tier_to_be_given(of: Reading) -> None:
    log = made_log([reading("/scratch/a", -1)], processes=4, mounts=[("/scratch", "lustre")])
    assert as_imported(of(log, rules=TierRules({}))).facts.shared


@pytest.mark.parametrize("odd", ["two\nlines", "a\x1b[31mred", "[/red]", "\r", "{x}"])
def test_odd_names_of_folders_are_told_in_one_line(odd: str, of: Reading) -> None:
    message = of.refusal(made_log([reading(f"/data/{odd}/a")]), rules=TierRules({}))
    assert not [sign for sign in message if ord(sign) < 32]


def test_odd_complaints_are_told_in_one_line(of: Reading) -> None:
    message = of.refusal(made_log(READ, complaints=["Error: \x1b[31m\x07{x} of [/red]"]))
    assert not [sign for sign in message if ord(sign) < 32]


def test_a_trace_is_kept_once(of: Reading, folder: Path) -> None:
    trace = of(made_log(READ))
    out = keep(trace, str(folder / "out"))
    assert out == str(folder / "out")
    assert is_import(out)
    assert analyze(out).findings
    with pytest.raises(UserError, match="already contains imported logs; choose another --out"):
        keep(trace, out)


def test_a_foreign_folder_is_left_alone(of: Reading, folder: Path) -> None:
    (folder / "precious").mkdir()
    (folder / "precious" / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError):
        keep(of(made_log(READ)), str(folder / "precious"))
    assert [path.name for path in (folder / "precious").iterdir()] == ["thesis.tex"]
    assert not is_import(str(folder / "precious"))


@pytest.mark.parametrize("kind", ["nfs", "9p", "fuse.gocryptfs"])
def test_what_is_kept_can_be_read_again_whatever_the_mount(kind: str, of: Reading, folder: Path) -> None:
    log = made_log([reading("/m/a"), *READ], mounts=[("/m", kind)])
    assert analyze(keep(of(log), str(folder / "out"))).breakdown


def test_what_was_forced_can_be_kept_and_read_again(of: Reading, folder: Path) -> None:
    trace = of(made_log(READ), *(log for log, _ in DOUBTFUL.values()), force=True)
    kinds = {finding.kind for finding in analyze(keep(trace, str(folder / "out"))).findings}
    assert kinds >= set(DOUBTFUL)
