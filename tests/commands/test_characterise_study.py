"""From directories and logs to a Character: which run is taken, what single operations add, and what is refused in one line."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.test_commands import run
from tests.imports.darshan_logs import made_log, needs_library, needs_real_logs, reading, real_log
from tests.in_memory import tmp_path_factory
from tests.kept_readers import kept_readers
from tests.tiny import TINY
from tierscope.analysis.character_ops import AccessOrder
from tierscope.analysis.similarity import similarity
from tierscope.commands.characterise import characterise_path
from tierscope.commands.simulate import simulate_study
from tierscope.errors import ResultError, UserError
from tierscope.imports.darshan_accesses import _Counting, read_accesses
from tierscope.imports.logs import ImportOptions, import_logs, keep
from tierscope.imports.paths import TierRules
from tierscope.output.store import RunStore, read_parquet, write_parquet
from tierscope.spec.load import load_study
from tierscope.trace.trace import RunKey
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

__all__ = ["kept_readers", "tmp_path_factory"]
TWO = TierRules({"lfs": ("/lfs",), "gfs": ("/gfs",)})


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 files of 1 KiB, 2 ranks, 2 epochs, 3 cache rates, with lists of operations."""
    folder = tmp_path_factory.mktemp("listed")
    (folder / "tiny.yaml").write_text(TINY)
    assert run("run", folder / "tiny.yaml", "--out", folder / "out", "--quiet", "--ops") == 0
    return folder / "out"


def test_a_run_with_its_operations(listed: Path) -> None:
    found = characterise_path([str(listed)], point=1)
    metrics = {name: fact.value for name, fact in found.character.metrics.items()}
    assert found.where.startswith("point 1 (cache_rate ")
    assert found.key == RunKey(1, 1)
    assert metrics["bytes"] == 24 * 1024 * 2
    assert metrics["files"] == 24
    assert metrics["transfer_min"] == metrics["transfer_max"] == 1024
    assert sum(one.read_bytes for one in found.character.ranks) == metrics["bytes"]
    assert sum(one.read_bytes for one in found.character.formats) == metrics["bytes"]
    assert found.character.formats[0].name == "raw"
    timeline = found.character.timeline
    assert timeline is not None
    assert timeline.basis == "operations"
    assert sum(timeline.bytes_per_second) * timeline.bin_seconds == pytest.approx(metrics["bytes"])
    assert metrics["sequential_percent"] == metrics["consecutive_percent"] == 0.0  # each file in one read
    assert found.character.writes.writes == 0


def test_the_best_point_is_the_default_and_said(listed: Path) -> None:
    assert ", the best)" in characterise_path([str(listed)]).where


def test_the_same_without_operations(listed: Path, tmp_path: Path) -> None:
    """What both know is the same."""
    shutil.copytree(listed, tmp_path / "out", ignore=shutil.ignore_patterns("ops", "tiers"))
    full, sums = (characterise_path([str(path)], point=0).character for path in (listed, tmp_path / "out"))
    assert full.sizes == sums.sizes
    assert full.ranks == sums.ranks
    found = similarity(full, sums)
    assert found.cosine == pytest.approx(1.0)
    assert all(each.difference == 0 for each in found.metrics)


def test_a_damaged_list_is_said(listed: Path, tmp_path: Path) -> None:
    shutil.copytree(listed, tmp_path / "out", ignore=shutil.ignore_patterns("tiers"))
    path = next((tmp_path / "out" / "ops").glob("0000-r1-node*.parquet"))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ResultError, match="is not a readable Tierscope result"):
        characterise_path([str(tmp_path / "out")], point=0)


def test_a_list_with_other_columns_is_said(listed: Path, tmp_path: Path) -> None:
    shutil.copytree(listed, tmp_path / "out", ignore=shutil.ignore_patterns("tiers"))
    path = next((tmp_path / "out" / "ops").glob("0000-r1-node*.parquet"))
    write_parquet(str(path), pl.DataFrame({"rank": [1]}), {"schema_version": 1, "kind": "ops"})
    with pytest.raises(ResultError, match="other columns"):
        characterise_path([str(tmp_path / "out")], point=0)


def test_a_simulation(tmp_path: Path) -> None:
    study = load_study("demo", ["num_files_train=128", "sweep={}", "computation_time=5 ms"])
    simulate_study(study, str(tmp_path / "out"), "bound", Silent())
    found = characterise_path([str(tmp_path / "out")])
    assert found.character.came == "simulated"
    assert found.conditions.simulated == ("bound",)
    metrics = found.character.metrics
    assert metrics["bytes"].value == pytest.approx(sum(one.read_bytes for one in found.character.ranks))
    assert metrics["files"].value == 128
    assert metrics["sequential_percent"].reason == "a simulation has no single operations"
    assert found.character.hidden.share is not None
    assert [finding.kind for finding in found.findings][:1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], "no such file or directory"),
        (["file.txt"], "is neither a result nor a log"),
        (["empty"], "empty: is empty"),
        (["missing.darshan"], "no such file"),
        (["a", "b"], "one result at a time"),
    ],
)
def test_what_is_no_run_gets_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=said) as caught:
        characterise_path(arguments)
    assert "\n" not in str(caught.value)


def test_a_point_that_is_not_there(listed: Path) -> None:
    with pytest.raises(UserError, match=r"--point 9: .* has no finished run of this point; choose from 0, 1, 2"):
        characterise_path([str(listed)], point=9)


# Logs


def test_order_of_reads_by_counters() -> None:
    """METHOD: shares of all reads, as DLIO has them."""
    counting = _Counting(TWO, shared=True)
    counting.add(
        made_log(
            [
                reading("/gfs/a.npz", READS=10, SEQ_READS=8, CONSEC_READS=6, BYTES_READ=1000, SIZE_READ_0_100=10),
                reading("/gfs/b.npz", SEQ_READS=7, WRITES=4, SEQ_WRITES=3, CONSEC_WRITES=2),  # more than there are
                reading("/usr/lib/x.so", READS=99, SEQ_READS=99),
            ]
        )
    )
    found = counting.accesses()
    assert found is not None
    assert found.reads == AccessOrder(11, 9, 6)
    assert found.writes == AccessOrder(4, 3, 2)
    assert (found.files, found.formats[0].name, found.formats[0].files) == (2, "npz", 2)
    assert [one.name for one in found.largest] == ["/gfs/a.npz", "/gfs/b.npz"]
    assert found.sizes[0].reads == 10


@needs_library
@needs_real_logs
def test_a_log_with_known_truth() -> None:
    """README of the data: rank r reads 20·(r+1) private GFS files, 30 LFS files and a shared one, twice, 131,072 B each."""
    found = characterise_path([str(real_log("twotier/twotier_noreduce.darshan"))], TWO)
    reads = [2 * (20 * (rank + 1) + 30 + 1) for rank in range(4)]
    assert [one.reads for one in found.character.ranks] == reads
    assert [one.read_bytes for one in found.character.ranks] == [131_072 * count for count in reads]
    assert found.character.metrics["transfer_mean"].value == 131_072
    assert found.character.metrics["files"].value == 200 + 120 + 1
    assert found.character.hidden.share is None
    assert similarity(found.character, found.character).cosine == pytest.approx(1.0)


@needs_library
@needs_real_logs
def test_a_real_job_beside_our_run(listed: Path) -> None:
    """A directory of logs is a job; all ten metrics of it are known, and compared with ours where ours are."""
    real = characterise_path([str(real_log("dlio_polaris"))])
    assert all(fact.value is not None for fact in real.character.metrics.values())
    assert 50 < (real.character.metrics["sequential_percent"].value or 0) <= 100
    found = similarity(real.character, characterise_path([str(listed)]).character)
    assert found.cosine is not None
    assert 0 < found.cosine < 1
    assert not found.left_out
    assert found.largest is not None
    assert found.largest.difference > 0.9


@needs_library
@needs_real_logs
def test_kept_logs_know_less_than_the_logs(tmp_path: Path) -> None:
    path = str(real_log("twotier/twotier_noreduce.darshan"))
    kept = keep(import_logs([path], ImportOptions(TWO)), str(tmp_path / "kept"))
    sums, full = characterise_path([kept]).character, characterise_path([path], TWO).character
    assert sums.sizes == full.sizes
    assert sums.metrics["files"] == full.metrics["files"]
    assert sums.metrics["transfer_min"] == full.metrics["transfer_min"]
    assert "use the logs themselves" in sums.metrics["sequential_percent"].reason


@needs_library
@needs_real_logs
def test_kept_logs_that_somebody_changed(tmp_path: Path) -> None:
    trace = import_logs([str(real_log("twotier/twotier_noreduce.darshan"))], ImportOptions(TWO))
    kept = keep(trace, str(tmp_path / "kept"))
    path = RunStore(kept).path(trace.key)
    plain, table = read_parquet(path)
    write_parquet(path, table, {**plain, "habits": {"gfs": 7}})
    with pytest.raises(
        ResultError, match=r"0000-r1\.parquet: its description is damaged: habits\[\.\.\.\] must be object"
    ):
        characterise_path([kept])


@needs_library
@needs_real_logs
def test_reads_and_writes_of_streams_were_done_but_have_no_sizes() -> None:
    """Darshan counts calls and bytes of stdio, and nothing else of it."""
    anywhere = TierRules({"gfs": ("/",)})
    found = characterise_path([str(real_log("edge/noposixopens.darshan"))], anywhere).character
    why = "Darshan records no sizes or order for stdio"
    assert {fact.reason for fact in found.metrics.values() if fact.value is None} == {why}
    assert found.missing["sizes"] == why
    used = found.writes
    assert (used.writes, used.write_bytes) == (217_216, 3_337_301)
    assert used.mean.value == pytest.approx(3_337_301 / 217_216)
    assert {used.sequential_percent.reason, used.consecutive_percent.reason} == {why}


@needs_library
@needs_real_logs
def test_extended_tracing_says_when() -> None:
    path = str(real_log("dxt/nonmpi_dxt_anonymized.darshan"))
    _, ops = read_accesses([path], TierRules({"gfs": ("/",)}))
    (only,) = ops
    rows = only.rows.collect()
    assert np.isfinite(rows["start_seconds"].to_numpy()).all()
    timeline = characterise_path([path], TierRules({"gfs": ("/",)})).character.timeline
    assert timeline is not None
    assert timeline.basis == "operations"
    assert sum(timeline.bytes_per_second) * timeline.bin_seconds == pytest.approx(rows["bytes"].sum())
