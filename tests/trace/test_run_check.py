"""Runs that are sealed as ours are, with content that cannot be: refused with one line, or of no harm."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.in_memory import tmp_path_factory
from tests.tiny import tiny
from tests.traces import TIERS, trace_of, traced
from tierscope.cli.main import main
from tierscope.commands.analyze import analyze
from tierscope.commands.characterise import characterise_analysis
from tierscope.errors import ResultError, TierscopeError
from tierscope.output.result import open_result
from tierscope.output.store import RunStore, read_parquet, write_parquet
from tierscope.report.drawn.view import epochs_text
from tierscope.report.summary import summarise
from tierscope.spec import sweep
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.dump import identity
from tierscope.trace.columns import COLUMNS, LATER_COLUMNS
from tierscope.trace.rank_trace import Residency
from tierscope.trace.trace import RunKey, Trace

__all__ = ["tmp_path_factory"]

KEY = RunKey(0, 1)
SECONDS = {"GFS-READ": 0.5, "GFS-META": 0.125, "LFS-READ": 0.25, "LFS-META": 0.25}
CLASSES = {(rank, epoch): SECONDS for rank in range(2) for epoch in (1, 2)}
STEPS = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.0]]
SIMULATED = {"kind": "simulated", "method": "bound", "spread": {"1": [0.5, 2.0], "2": [0.5, 2.0]}}
TRAINING = {
    **dict.fromkeys(("network", "device", "software", "arithmetic", "solver", "data"), "x"),
    "first_loss": 2.5,
    "last_loss": math.nan,
    "peak_memory_bytes": None,
}


def make_result(out: Path) -> Path:
    """A measured result of three points, as `run` leaves it."""
    study = tiny()
    with open_result(str(out), study):
        for point in sweep.points(study):
            about = {"kind": "measured", "study": identity(point.study), "point": point.index, "ranks": 2, "nodes": 2}
            residency = (Residency("gfs", 10, None), Residency("lfs", 10, 0))
            changes: dict[str, Any] = {"residency": residency, "steps": pl.DataFrame(STEPS, orient="row").to_numpy()}
            RunStore(str(out)).save(
                trace_of(CLASSES, point=point.index, sweep=dict(point.sweep), about=about, **changes)
            )
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_result(tmp_path_factory.mktemp("made") / "out")


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def seal(out: Path, table: pl.DataFrame | None = None, **changes: Any) -> None:
    """The first run again, with another table or description."""
    path = RunStore(str(out)).path(KEY)
    about, before = read_parquet(path)
    write_parquet(path, before if table is None else table, {**about, **changes})


def seal_first_version(out: Path, **changes: Any) -> None:
    """The same as schema version 1 had it, in that version's keys."""
    path = RunStore(str(out)).path(KEY)
    about, table = read_parquet(path)
    kept = {name: about[name] for name in ("kind", "study", "point", "sweep", "ranks", "nodes", "metadata_cache")}
    tiers = [{"name": name, "emulated": False} for name in TIERS]
    write_parquet(path, table, {"schema_version": 1, "tiers": tiers, **kept, **changes})


def all_are(column: str, value: Any) -> pl.Expr:
    return pl.lit(value, COLUMNS[column]).alias(column)


def refused(out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """By the command line too, with one line."""
    with pytest.raises(ResultError) as caught:
        RunStore(str(out)).load(KEY)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(out)])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ".parquet: " in line
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("record", "step", "has no times of ranks"),
        ("record", None, "has no times of ranks"),
        ("point", None, "contains another run than its name says"),
        ("repetition", None, "contains another run than its name says"),
        ("epoch", 2**31 - 1, "epoch is not within 1 – 2"),
        ("epoch", 3, "epoch is not within 1 – 2"),
        ("epoch", 0, "epoch is not within 1 – 2"),
        ("epoch", None, "epoch is not known everywhere"),
        ("node", 2, "node is not within 0 – 1"),
        ("node", -1, "node is not within 0 – 1"),
        ("node", None, "node is not known everywhere"),
        ("rank", 2, "rank is not within 0 – 1"),
        ("rank", -1, "rank is not within 0 – 1"),
        ("rank", None, "rank is not known everywhere"),
        ("lane", -1, "lane is not within 0"),
        ("tier", None, "tier is not known everywhere"),
        ("tier", "../../etc", "has a tier with an invalid name"),
        ("tier", "pfs", "has a tier that its description does not name"),
        ("kind", None, "kind is not known everywhere"),
        ("kind", "ioctl", "has an unknown kind of operation"),
        ("order_digest", "\x1b[2J", "has an invalid order of samples"),
        *((name, 1e308, f"{name} has") for name in COLUMNS if COLUMNS[name] == pl.Float64),
        *((name, -1, f"{name} has a negative value") for name in COLUMNS if COLUMNS[name] == pl.Int64),
        *((name, 2**63 - 1, f"{name} has a negative value") for name in COLUMNS if COLUMNS[name] == pl.Int64),
        *((name, None, f"{name} is not known") for name in ("busy_seconds", "ops", "bytes", "checked_bytes")),
        ("size_histogram", [-1], "size_histogram has a negative value"),
        ("size_histogram", [None], "size_histogram is not known everywhere"),
        ("size_histogram", [0] * 49, "size_histogram has more than 48 entries"),
        ("latency_histogram", [2**63 - 1], "latency_histogram has a negative value"),
        ("step_read_seconds", [1e308], "step_read_seconds has"),
        ("step_read_seconds", [0.0] * 513, "step_read_seconds has more than 512 entries"),
        ("step_stall_seconds", [None, 1.0], "step_stall_seconds is not known everywhere"),
        ("step_compute_seconds", [0.0], "step_compute_seconds has other steps than step_read_seconds"),
    ],
)
def test_impossible_columns_are_refused(
    out: Path, capsys: pytest.CaptureFixture[str], column: str, value: Any, reason: str
) -> None:
    table = RunStore(str(out)).load(KEY).table
    seal(out, table.with_columns(all_are(column, value)))
    assert f"0000-r1.parquet: {reason}" in refused(out, capsys)


def test_one_unknown_record_is_refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = RunStore(str(out)).load(KEY).table
    for record in ("step", None):
        rest = table.head(1).with_columns(all_are("record", record))
        seal(out, pl.concat([table, rest]))
        assert "has an unknown kind of record" in refused(out, capsys)


# What was changed in a description of version 1, and the field (of version 2) that is named.
IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"sweep": {"cache_rate": math.nan}}, "sweep.cache_rate"),
    ({"sweep": {"cache_rate": {"a": 1}}}, "sweep"),
    ({"sweep": {"cache_rate": [1]}}, "sweep"),
    ({"sweep": {"cache_rate": "all"}}, "sweep.cache_rate"),
    ({"sweep": {"cache_rate": 10**30}}, "sweep.cache_rate"),
    ({"sweep": {"epoch": 1}}, "sweep.epoch"),
    ({"sweep": {"^.*$": 1}}, "sweep"),
    ({"sweep": {"format": "raw\n"}}, "sweep.format"),
    ({"sweep": []}, "sweep"),
    ({"kind": "simulated"}, "spread is missing"),
    ({"kind": "wished"}, "kind"),
    ({"kind": ["measured"]}, "kind"),
    ({**SIMULATED, "spread": {"1": [1.0]}}, "spread"),
    ({**SIMULATED, "spread": {"first": [1.0, 1.0]}}, "a key of spread"),
    ({**SIMULATED, "spread": {"1": [1.0, math.inf]}}, "spread"),
    ({**SIMULATED, "hit_rate": {"1": "all"}}, "hit_rate"),
    ({**SIMULATED, "staging_seconds": "long"}, "staging_seconds"),
    ({**SIMULATED, "stations": [{"seconds": 1.0}]}, "stations[0].station is missing"),
    ({"study": 7}, "study"),
    ({"point": "x"}, "point"),
    ({"tiers": [{"name": "gfs"}, {"name": "gfs"}]}, "tiers"),
    ({"tiers": [{"name": f"t{number}"} for number in range(257)]}, "tiers"),
    ({"tiers": [{"name": "../gfs"}]}, "tiers[0].name"),
    ({"tiers": {}}, "tiers"),
    ({"ranks": 0}, "ranks"),
    ({"nodes": "2"}, "nodes"),
    ({"overhead": {"threads_seconds_per_op": math.nan}}, "own_cost.threads_seconds_per_op"),
    ({"overhead": {"threads_seconds_per_op": 1, "recorder_seconds_per_op": "x"}}, "own_cost.recorder_seconds_per_op"),
    ({"trimmed_samples": -1}, "trimmed_samples"),
    ({"provenance": "here"}, "provenance"),
    ({"checkpoint": {"tier": 1}}, "checkpoint.tier"),
    ({"training": {"network": "x"}}, "training.device is missing"),
    ({"training": {**TRAINING, "first_loss": "low"}}, "training.first_loss"),
    ({"profiler": "darshan", "import": {"long_meta": 5}}, "logs.facts.doubts.long_meta"),
    ({"profiler": "darshan", "import": {"missed_ops": "many"}}, "logs.missed_ops"),
]


@pytest.mark.parametrize(("change", "field"), IMPOSSIBLE)
def test_impossible_descriptions_are_refused(
    out: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], field: str
) -> None:
    seal_first_version(out, **change)
    assert f"its description is damaged: {field}" in refused(out, capsys)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"habits": 5}, "habits is an unknown field"),
        ({"process_count": "2"}, "process_count is an unknown field"),
        ({"own_cost": {"recorder_seconds_per_op": True}}, "own_cost.recorder_seconds_per_op must be float"),
        ({"provenance": {"cores": -1}}, "provenance.cores must be within 0"),
        ({"kind": "traced", "records": {}}, "study is an unknown field"),
        ({"schema_version": 0}, "schema_version must be int >= 1"),
        ({"schema_version": True}, "schema_version must be int >= 1"),
    ],
)
def test_impossible_descriptions_of_this_version_are_refused(
    out: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], reason: str
) -> None:
    seal(out, **change)
    assert f"its description is damaged: {reason}" in refused(out, capsys)


@pytest.mark.parametrize("change", [{"training": TRAINING}, {"training": {}}, {"provenance": {}}, {"ranks": None}])
def test_possible_descriptions_are_not(out: Path, change: dict[str, Any]) -> None:
    seal_first_version(out, **change)
    RunStore(str(out)).load(KEY)


def test_a_row_that_is_there_twice_is_refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Doubled and sealed again, they would multiply times."""
    table = RunStore(str(out)).load(KEY).table
    for record in ("io", "rank", "cold"):
        seal(out, pl.concat([table, table.filter(pl.col("record") == record).head(1)]))
        assert f"has the same row twice (record {record}" in refused(out, capsys)


def test_every_rank_has_a_row_for_every_epoch(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = RunStore(str(out)).load(KEY).table
    seal(out, table.filter((pl.col("epoch") == 1) | (pl.col("rank") == 0)))
    assert "lacks a row for some rank and epoch" in refused(out, capsys)
    two_nodes = pl.when(pl.col("epoch") == 1, pl.col("rank") == 0).then(1).otherwise("node").cast(pl.Int32)
    seal(out, table.with_columns(two_nodes.alias("node")))
    assert "has a rank on two nodes" in refused(out, capsys)


def test_a_simulated_run_is_no_measurement(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seal_first_version(out, **SIMULATED)
    assert "is a run of kind 'simulated', but" in refused(out, capsys)


def test_a_run_of_another_point_is_refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where its table was made to fit its name."""
    seal(out, point=1)
    assert "contains another run than its name says (point 1)" in refused(out, capsys)


def test_a_directory_without_a_mark_holds_one_kind(out: Path) -> None:
    (out / "tierscope.json").unlink()
    seal_first_version(out, **SIMULATED)
    with pytest.raises(
        ResultError, match=r"0001-r1\.parquet: is a run of kind 'measured', but .* contains simulated ones"
    ):
        list(RunStore(str(out)).load_all())


def test_a_loss_that_is_not_a_number_is_kept(out: Path) -> None:
    seal_first_version(out, training=TRAINING)
    trace = RunStore(str(out)).load(KEY)
    RunStore(str(out)).save(trace)
    again = RunStore(str(out)).load(KEY).about.training
    assert again is not None
    assert math.isnan(again.last_loss)


def test_runs_of_older_versions_are_opened(out: Path) -> None:
    """Beside newer ones, whose columns are in another order."""
    seal(out, RunStore(str(out)).load(KEY).table.drop(LATER_COLUMNS))
    assert RunStore(str(out)).load(KEY).table["sync_seconds"].sum() == 0
    analyze(str(out))


def of_others(about: dict[str, Any], **changes: Any) -> Trace:
    """A run that others recorded, with some columns of its rows about I/O set."""
    trace = trace_of(CLASSES, about=about)
    is_io = pl.col("record") == "io"
    columns = [pl.when(is_io).then(all_are(name, value)).otherwise(name).alias(name) for name, value in changes.items()]
    lanes = pl.int_range(pl.len(), dtype=pl.Int32).alias("lane")  # so that rows differ, whatever else is not known
    return Trace(trace.key, trace.about, trace.table.with_columns(columns).with_columns(pl.when(is_io).then(lanes)))


IMPORTED = {"kind": "imported", "tiers": [{"name": name} for name in TIERS]}


@pytest.mark.parametrize(
    "trace",
    [
        of_others(traced(), rank=None, size_histogram=None, epoch=2**31 - 1),
        of_others(IMPORTED, node=None, wall_seconds=None, size_histogram=None, latency_histogram=None, bytes=2**63 - 1),
    ],
)
def test_what_others_recorded_may_know_less(tmp_path: Path, trace: Trace) -> None:
    store = RunStore(str(tmp_path))
    store.save(trace)
    assert store.load(KEY).table.equals(trace.table)


def test_far_epochs_take_no_memory() -> None:
    assert epochs_text({1, 2**31 - 1}) == "2 epochs"
    assert epochs_text({3, 4, 5}) == "epochs 3–5"


FLOATS = st.sampled_from([math.nan, math.inf, -math.inf, -1.0, -0.0, 5e-324, 1e12, 1e13, 1e308]) | st.floats()
WORDS = ["", "io", "rank", "cold", "read", "meta", "gfs", "GFS", "\0", "\x1b[2J", "^.*$", "a" * 300, "é", "../x"]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=8)


def whole(bits: int) -> st.SearchStrategy[int]:
    edges = [0, 1, 2, -1, 2 ** (bits - 2), 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return st.sampled_from(edges) | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pl.Int32: whole(32),
    pl.Int64: whole(64),
    pl.Float64: FLOATS,
    pl.String: TEXTS,
    pl.List(pl.Int64): st.lists(st.none() | whole(64), max_size=60),
    pl.List(pl.Float64): st.lists(st.none() | FLOATS, max_size=4),
}
CELLS = st.sampled_from(list(COLUMNS)).flatmap(
    lambda name: st.tuples(st.just(name), st.none() | VALUES[COLUMNS[name]], st.integers(0, 10**3))
)


@settings(max_examples=examples(40))
@given(cell=CELLS)
def test_any_cell_is_refused_or_of_no_harm(made: Path, cell: tuple[str, Any, int]) -> None:
    name, value, row = cell
    store = RunStore(str(made))
    about, table = read_parquet(store.path(KEY))
    values = table[name].to_list()
    values[row % len(values)] = value
    changed = table.with_columns(pl.Series(name, values, COLUMNS[name]))
    try:
        write_parquet(store.path(KEY), changed, about)
        refusal = refusal_of(lambda: store.load(KEY))
        if refusal is None:
            refusal = refusal_of(lambda: characterise_analysis(str(made), analyze(str(made))))
            refusal = refusal or refusal_of(lambda: summarise(str(made), MetricOptions()))
    finally:
        write_parquet(store.path(KEY), table, about)
    assert refusal is None or (refusal.exit_code == 2 and "\n" not in str(refusal))


def refusal_of(look: Callable[[], Any]) -> TierscopeError | None:
    try:
        look()
    except TierscopeError as error:
        return error
    return None
