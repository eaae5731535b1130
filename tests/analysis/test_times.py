"""Class times from traces and from CSV: nothing lost, and one clear line for every mistake."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.traces import CLASSES, OP_BYTES, TIERS, Cell, described_by, lane_of, rank_epoch, times_of, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.times import ClassTimes, from_csv, from_traces
from tierscope.errors import ResultError, UserError
from tierscope.report.export import to_csv
from tierscope.trace.ops import BACKGROUND_LANE, KINDS, MOVES_BYTES, class_name
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, Trace, gather

HEADER = "rank,epoch,class,seconds"
CELLS = st.dictionaries(
    st.tuples(st.sampled_from(TIERS), st.sampled_from(KINDS)), st.integers(0, 10**6).map(lambda ns: ns / 2**20)
)


class TestFromTraces:
    @settings(max_examples=examples(50))
    @given(st.lists(st.lists(CELLS, max_size=3), min_size=1, max_size=3), st.sampled_from(["busy", "wall"]))
    def test_seconds_operations_and_bytes_are_conserved(self, ranks: list[list[dict[Cell, float]]], basis: str) -> None:
        handed = [
            RankTrace(number, 0, (rank_epoch(lanes=tuple(lane_of(cells, i, 0.5) for i, cells in enumerate(lanes))),))
            for number, lanes in enumerate(ranks)
        ]
        times = from_traces([gather(RunKey(0, 1), described_by({}), TIERS, handed)], TIERS, basis)
        expected: dict[tuple[int, str], list[float]] = {}
        for rank, lanes in enumerate(ranks):
            for (tier, kind), seconds in (item for cells in lanes for item in cells.items()):
                sums = expected.setdefault((rank, class_name(tier, kind)), [0.0, 0, 0])
                sums[0] += seconds * (1.0 if basis == "busy" else 0.5)
                sums[1] += 1
                sums[2] += OP_BYTES if kind in MOVES_BYTES else 0
        found = {(row["rank"], row["class"]): row for row in times.table.iter_rows(named=True)}
        assert len(found) == len(times.table) == len(ranks) * len(times.classes)
        for key, row in found.items():
            seconds, ops, nbytes = expected.pop(key, [0.0, 0, 0])
            assert row["seconds"] == pytest.approx(seconds, abs=1e-8)  # traces hold whole nanoseconds
            assert (row["ops"], row["bytes"]) == (ops, nbytes)
        assert expected == {}
        assert times.basis == basis

    def test_a_rank_without_operations_has_zeros(self) -> None:
        times = from_traces([trace_of({(0, 1): {"GFS-READ": 1.0}, (3, 1): {}})], TIERS)
        idle = times.table.filter(pl.col("rank") == 3)
        assert idle.select("class", "seconds", "ops", "bytes").rows() == [(name, 0.0, 0, 0) for name in CLASSES]
        assert idle["node"].unique().to_list() == [1]
        assert break_down(times).points[0].ranks == 2

    def test_what_is_no_ranks_is_left_out(self) -> None:
        trace = trace_of({(0, 1): {"GFS-READ": 1.0}})
        strange = trace.io.with_columns(pl.lit(None, pl.Int32).alias("rank"))
        times = from_traces([Trace(trace.key, trace.about, pl.concat([trace.table, strange]))], TIERS)
        assert times.table["ops"].sum() == 1
        assert times.table["rank"].unique().to_list() == [0]

    def test_classes_are_farthest_first_and_writes_last(self) -> None:
        seconds = {"LFS-READ": 1.0, "GFS-META": 1.0, "LFS-WRITE": 1.0, "GFS-WRITE": 1.0}
        times = from_traces([trace_of({(0, 1): seconds})], TIERS)
        assert times.classes == (*CLASSES, "GFS-WRITE", "LFS-WRITE")

    def test_what_is_written_in_the_background_is_apart(self) -> None:
        """Training goes on meanwhile: counted as I/O it would make the rank that saves the slowest."""
        saved = {("gfs", "write"): 30.0, ("gfs", "sync"): 2.0}
        lanes = (lane_of({("gfs", "read"): 1.0}), lane_of(saved, BACKGROUND_LANE))
        handed = [RankTrace(0, 0, (rank_epoch(lanes=lanes),)), RankTrace(1, 0, (rank_epoch(),))]
        found = break_down(from_traces([gather(RunKey(0, 1), described_by({}), TIERS, handed)], TIERS))
        assert (found.best.io.median, found.best.background_seconds) == (1.0, 32.0)
        assert found.classes == CLASSES

    def test_without_wall_seconds_of_every_operation_busy_ones_are_taken(self) -> None:
        trace = trace_of({(0, 1): {"GFS-READ": 1.0, "GFS-META": 2.0}}, wall_share=0.5)
        assert from_traces([trace], TIERS).basis == "wall"
        unknown = pl.when(pl.col("kind") == "read").then(pl.col("wall_seconds")).alias("wall_seconds")
        times = from_traces([Trace(trace.key, trace.about, trace.table.with_columns(unknown))], TIERS)
        assert (times.basis, break_down(times).best.io.median) == ("busy", 3.0)

    def test_runs_are_told_apart_by_sweep_and_repetition(self) -> None:
        traces = [
            trace_of({(0, 1): {"GFS-READ": 10.0 * point + repetition}}, point=point, repetition=repetition, sweep=sweep)
            for point, sweep in enumerate([{"cache_rate": 0.0}, {"cache_rate": 0.5}])
            for repetition in (1, 2)
        ]
        times = from_traces(traces, TIERS)
        reads = times.table.filter(pl.col("class") == "GFS-READ").select("cache_rate", "repetition", "seconds")
        assert sorted(reads.rows()) == [(0.0, 1, 1.0), (0.0, 2, 2.0), (0.5, 1, 11.0), (0.5, 2, 12.0)]
        assert times.sweep == ("cache_rate",)
        assert [run.key.repetition for run in times.runs] == [1, 2, 1, 2]

    def test_null_is_a_value_and_takes_its_seconds_along(self) -> None:
        traces = [
            trace_of({(0, 1): {"GFS-READ": seconds}}, point=point, sweep={"gateway_shared_by": value})
            for point, (value, seconds) in enumerate([(None, 3.0), (2, 4.0), (2**40, 5.0)])
        ]
        reads = from_traces(traces, TIERS).table.filter(pl.col("class") == "GFS-READ")
        assert reads.select("gateway_shared_by", "seconds").rows() == [(None, 3.0), (2, 4.0), (2**40, 5.0)]

    def test_runs_of_another_sweep_are_refused(self) -> None:
        good = trace_of({(0, 1): {}}, sweep={"cache_rate": 0.0})
        bad = trace_of({(0, 1): {}}, point=7, repetition=2, sweep={"threads": 1})
        with pytest.raises(ResultError, match="run 7-r2: belongs to another sweep"):
            from_traces([good, bad], TIERS)

    def test_nothing_is_no_result(self) -> None:
        with pytest.raises(UserError, match="no run has finished yet"):
            from_traces([], TIERS)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "times.csv"


def read(path: Path, text: str | bytes) -> ClassTimes:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return from_csv(str(path))


def refusal(path: Path, text: str | bytes) -> str:
    """What is said about it after the file's name; always one line."""
    with pytest.raises(UserError) as caught:
        read(path, text)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 300
    assert caught.value.__suppress_context__ or not caught.value.__context__  # nobody sees Polars' own words
    return message.removeprefix(f"{path}:")


def lines(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows]) + "\n"


GOOD = "0,1,GFS-READ,0.5"


class TestCsvThatIsRight:
    def test_the_least_that_is_needed(self, csv: Path) -> None:
        times = read(csv, lines("0,1,GFS-READ,0.5", "1,1,GFS-META,2"))
        assert times.table.to_dicts() == [
            {"repetition": 1, "epoch": 1, "node": None, "rank": 0, "class": "GFS-READ", "seconds": 0.5, "ops": None, "bytes": None},
            {"repetition": 1, "epoch": 1, "node": None, "rank": 1, "class": "GFS-META", "seconds": 2.0, "ops": None, "bytes": None},
        ]  # fmt: skip
        assert (times.sweep, times.classes, times.basis) == ((), ("GFS-READ", "GFS-META"), "busy")
        assert times.epochs.is_empty()

    def test_reserved_columns_are_not_swept(self, csv: Path) -> None:
        times = read(csv, lines("7,9,3,2,0,1,X-READ,1.5", header="bytes,ops,node,repetition,rank,epoch,class,seconds"))
        assert times.sweep == ()
        row = times.table.row(0, named=True)
        assert (row["bytes"], row["ops"], row["node"], row["repetition"]) == (7, 9, 3, 2)

    def test_operations_and_bytes_may_be_unknown(self, csv: Path) -> None:
        times = read(csv, lines("0,1,GFS-READ,1,,5", "1,1,GFS-READ,1, ,", header=f"{HEADER},ops,bytes"))
        assert times.table.select("ops", "bytes").rows() == [(None, 5), (None, None)]

    def test_any_other_column_is_swept_as_number_or_text(self, csv: Path) -> None:
        header = f"cache_rate,{HEADER},format,servers"
        times = read(csv, lines("0.5,0,1,GFS-READ,1,raw,4", "1e-1,0,1,GFS-READ,1,8,x", header=header))
        assert times.sweep == ("cache_rate", "format", "servers")
        assert times.table.select(times.sweep).rows() == [(0.5, "raw", "4"), (0.1, "8", "x")]

    @pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
    def test_words_that_look_like_numbers_make_a_column_text(self, csv: Path, word: str) -> None:
        times = read(csv, lines(f"0,1,GFS-READ,1,{word}", "0,1,GFS-READ,1,2", header=f"{HEADER},x"))
        assert times.table["x"].to_list() == [word, "2"]

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(lines(GOOD).replace("\n", "\r\n"), id="windows"),
            pytest.param("\ufeff" + lines(GOOD), id="bom"),
            pytest.param('\ufeff"rank","epoch","class","seconds"\r\n"0","1","GFS-READ","0.5"\r\n', id="excel"),
            pytest.param(lines("0, 1, GFS-READ, 0.5", header="rank, epoch, class, seconds"), id="spaces"),
            pytest.param(lines(" 0 ,1\t,GFS-READ ,0.5 ", header=' rank ," epoch","class ",seconds '), id="padded"),
            pytest.param("\n\n" + lines("", GOOD, "", "") + "\n", id="blank lines"),
            pytest.param(lines(GOOD).rstrip(), id="no last line end"),
            pytest.param(lines("0.5,GFS-READ,1,0", header="seconds,class,epoch,rank"), id="other order"),
        ],
    )
    def test_as_tools_write_it(self, csv: Path, text: str) -> None:
        times = read(csv, text)
        assert times.table.select("rank", "epoch", "class", "seconds").rows() == [(0, 1, "GFS-READ", 0.5)]
        assert times.classes == ("GFS-READ",)
        assert times.sweep == ()

    def test_any_number_of_tiers_and_names(self, csv: Path) -> None:
        times = read(csv, lines("0,1,tape-2-READ,1", "0,1,Größe-WRITE,2"))
        assert times.classes == ("tape-2-READ", "Größe-WRITE")
        assert break_down(times).best.io.median == 3.0


BAD_CELLS = {
    "rank": ["x", "-1", "1.5", "", " ", "nan", "1e3", "99999999999999999999"],
    "epoch": ["0", "-3", "first", ""],
    "seconds": ["x", "-1", "-1e-9", "nan", "NaN", "inf", "-inf", "Infinity", "1e999", "", " ", "1,5", "1 s"],
    "repetition": ["0", "x", ""],
    "node": ["-1", "n1"],
    "ops": ["-1", "1.5", "many"],
    "bytes": ["-1", "4 KiB"],
}


class TestCsvThatIsWrong:
    @pytest.mark.parametrize(("column", "cell"), [(name, cell) for name, cells in BAD_CELLS.items() for cell in cells])
    def test_a_bad_number_is_named_with_its_line(self, csv: Path, column: str, cell: str) -> None:
        good = {"rank": "0", "epoch": "1", "class": "GFS-READ", "seconds": "1", "repetition": "1", "node": "0", "ops": "1", "bytes": "1"}  # fmt: skip
        rows = [good, {**good, "rank": "1"}, {**good, "rank": "2", column: f'"{cell}"'}, {**good, "rank": "3"}]
        said = refusal(csv, lines(*(",".join(row.values()) for row in rows), header=",".join(good)))
        assert said.startswith(f"4: {column} = {cell.strip() or '(empty)'}; must be a")

    @pytest.mark.parametrize(
        "cell", ["GFS-FOO", "READ", "-READ", "gfs-read", "GFS_READ", "GFS-READ-", "", "G\x1bS-READ", "x" * 33 + "-READ"]
    )
    def test_an_unknown_class_is_named_with_its_line(self, csv: Path, cell: str) -> None:
        said = refusal(csv, lines(GOOD, f'1,1,"{cell}",1', "1,1,ALSO-WRONG,1"))
        assert said.startswith("3: class = ")
        assert "TIER-READ, TIER-META, TIER-WRITE" in said

    @pytest.mark.parametrize("missing", HEADER.split(","))
    def test_a_missing_column_is_named(self, csv: Path, missing: str) -> None:
        said = refusal(csv, lines("0,1,2", header=",".join(name for name in HEADER.split(",") if name != missing)))
        assert said.startswith(f"1: column {missing} is missing; the first line must be {HEADER}")

    @pytest.mark.parametrize(
        ("name", "instead"), [("rank", "Rank"), ("class", "klass"), ("seconds", "second"), ("epoch", "epochs")]
    )
    def test_a_misspelt_column_is_recognised(self, csv: Path, name: str, instead: str) -> None:
        said = refusal(csv, lines(GOOD, header=HEADER.replace(name, instead)))
        assert said == f"1: column {name} is missing; rename {instead}"

    def test_the_same_time_twice(self, csv: Path) -> None:
        said = refusal(
            csv, lines("0,1,GFS-READ,1", "1,1,GFS-READ,1", "", "0,1,GFS-META,1", " 0,1,GFS-READ,2", "1,1,GFS-READ,1")
        )
        assert said.startswith("6: duplicate rank, epoch and class")

    @pytest.mark.parametrize("column", ["repetition", "batch_size", "format"])
    def test_a_column_can_tell_them_apart(self, csv: Path, column: str) -> None:
        times = read(csv, lines(f"{GOOD},1", f"{GOOD},2", header=f"{HEADER},{column}"))
        assert len(times.table) == 2

    @pytest.mark.parametrize("rate", ["2", "-0.1", "101%", "nan", "abc", "inf"])
    def test_a_cache_rate_is_a_share(self, csv: Path, rate: str) -> None:
        said = refusal(csv, lines(f"{GOOD},0.5", f"1,1,GFS-META,1,{rate}", header=f"{HEADER},cache_rate"))
        assert said.startswith(f"3: cache_rate = {rate}; must be within 0 – 1")

    def test_percentages_and_fractions_are_the_same(self, csv: Path) -> None:
        times = read(csv, lines(f"{GOOD},50%", "1,1,GFS-META,1,0.25", header=f"{HEADER},cache_rate"))
        assert times.table["cache_rate"].to_list() == [0.5, 0.25]

    @pytest.mark.parametrize("column", ["cache_rate", "format"])
    def test_a_sweep_value_must_be_there(self, csv: Path, column: str) -> None:
        said = refusal(csv, lines(f"{GOOD},1", "1,1,GFS-META,1,", header=f"{HEADER},{column}"))
        assert said.startswith(f"3: {column} is empty")

    @pytest.mark.parametrize("text", ["", "\n", "\n\n\n", "\ufeff"])
    def test_an_empty_file(self, csv: Path, text: str) -> None:
        assert refusal(csv, text).startswith(f" is empty; the first line must be {HEADER}")

    @pytest.mark.parametrize("text", [HEADER, HEADER + "\n", HEADER + "\n\n\n", HEADER + "\n,,,\n"])
    def test_a_header_alone(self, csv: Path, text: str) -> None:
        assert refusal(csv, text).startswith(" has a header but no rows")

    @pytest.mark.parametrize(
        ("row", "cells"), [("0,1,GFS-META,1,5", 5), ("0,1,GFS-META", 3), ("0", 1), ("0,1,GFS-META,1,", 5)]
    )
    def test_ragged_lines(self, csv: Path, row: str, cells: int) -> None:
        assert refusal(csv, lines(GOOD, "", row, GOOD)).startswith(f"4: has {cells} cells, but the header has 4")

    def test_a_short_line_does_not_pass_as_an_empty_sweep_value(self, csv: Path) -> None:
        said = refusal(csv, lines(f"{GOOD},0.5", "0,1,GFS-META,1", header=f"{HEADER},cache_rate"))
        assert said.startswith("3: has 4 cells, but the header has 5")

    @pytest.mark.parametrize("header", [f"{HEADER},seconds", f"{HEADER}, rank", f'{HEADER},x,"x"'])
    def test_a_column_that_is_there_twice(self, csv: Path, header: str) -> None:
        cells = ",1" * (header.count(",") - 3)
        assert "appears twice" in refusal(csv, lines(GOOD + cells, header=header))

    @pytest.mark.parametrize("name", ["", " ", '"a\nb"', "\x1b[31m"])
    def test_a_column_without_a_name_to_show(self, csv: Path, name: str) -> None:
        assert refusal(csv, lines(f"{GOOD},1", header=f"{HEADER},{name}")).startswith(
            "1: column 5 has no printable name"
        )

    def test_a_column_named_like_a_class(self, csv: Path) -> None:
        said = refusal(csv, lines(f"{GOOD},1", header=f"{HEADER},GFS-READ"))
        assert said == "1: column GFS-READ has the name of a class; rename it"

    @pytest.mark.parametrize("cell", ['"a\nb"', "\x1b[2J", "a\x00"])
    def test_control_characters_do_not_reach_the_terminal(self, csv: Path, cell: str) -> None:
        said = refusal(csv, lines(f"{GOOD},fine", f"1,1,GFS-READ,1,{cell}", header=f"{HEADER},x"))
        assert said.startswith("3: x holds a line break or a control character")

    def test_lines_are_counted_across_cells_with_line_breaks(self, csv: Path) -> None:
        assert refusal(csv, lines('0,1,"GFS\n\nREAD",1', "x,1,GFS-READ,1")).startswith("5: rank = x")

    def test_a_long_cell_is_cut(self, csv: Path) -> None:
        assert refusal(csv, lines(f"0,1,GFS-READ,{'x' * 10_000}")).startswith("2: seconds = xxx")

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            pytest.param(bytes(range(256)) * 20, 2, id="junk"),
            pytest.param(lines(GOOD).encode("utf-16"), 1, id="utf-16"),
            pytest.param(lines(GOOD, "0,1,GÖS-READ,1").encode("latin-1"), 3, id="latin-1"),
            pytest.param(lines(f"{GOOD},1", header=f"{HEADER},größe").encode("latin-1"), 1, id="latin-1 header"),
            pytest.param(gzip.compress(lines(GOOD).encode(), mtime=0), 1, id="gzip"),
        ],
    )
    def test_what_is_not_text(self, csv: Path, text: bytes, line: int) -> None:
        assert refusal(csv, text).startswith(f"{line}: is not UTF-8 text")

    @pytest.mark.parametrize("text", [b"\0" * 1000, b'"', b'rank,epoch,class,seconds\n0,1,"GFS-READ,1\n', b"\r" * 50])
    def test_other_nonsense(self, csv: Path, text: bytes) -> None:
        refusal(csv, text)

    @given(st.binary(max_size=200))
    def test_no_bytes_make_it_fall_over(self, tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
        refusal(tmp_path_factory.getbasetemp() / "fuzz.csv", text)

    @given(st.text(alphabet=' \t\r\n,"0x-', max_size=60))
    def test_no_cells_make_it_fall_over(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        refusal(tmp_path_factory.getbasetemp() / "fuzz.csv", f"{HEADER}\n{text}")

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"gone\.csv: no such file"):
            from_csv(str(tmp_path / "gone.csv"))

    def test_a_name_is_no_pattern(self, tmp_path: Path) -> None:
        (tmp_path / "times1.csv").write_text(lines(GOOD))
        with pytest.raises(UserError, match="no such file"):
            from_csv(str(tmp_path / "times[1].csv"))
        assert len(read(tmp_path / "times[1]*.csv", lines(GOOD)).table) == 1


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5).map(lambda text: f"v{text}")


@st.composite
def class_times(draw: st.DrawFn) -> ClassTimes:
    """A sweep over a number and a text; any seconds that can be written."""
    rates = draw(st.lists(st.floats(0, 1), min_size=1, max_size=2, unique=True))
    names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
    seconds, counts = st.floats(0, 1e12), st.none() | st.integers(0, 2**62)
    rows: list[dict[str, Any]] = [
        {
            "cache_rate": rate,
            "name": name,
            "repetition": repetition,
            "epoch": epoch,
            "rank": rank,
            "node": rank // 2,
            "class": class_,
            "seconds": draw(seconds),
            "ops": draw(counts),
            "bytes": draw(counts),
        }
        for rate in rates
        for name in names
        for repetition in (1, 2)
        for epoch in range(1, draw(st.integers(1, 2)) + 1)
        for rank in range(2)
        for class_ in draw(st.sets(st.sampled_from(CLASSES), min_size=1))
    ]
    tiers = {row["class"][:3] for row in rows}
    return times_of(rows, ["cache_rate", "name"], [name for name in CLASSES if name[:3] in tiers])


class TestToCsv:
    @settings(max_examples=examples(40))
    @given(class_times())
    def test_what_is_written_reads_back_as_the_same_breakdown(
        self, tmp_path_factory: pytest.TempPathFactory, times: ClassTimes
    ) -> None:
        path = str(tmp_path_factory.getbasetemp() / "round.csv")
        found_classes = set(times.table["class"])
        assume(any(not name.endswith("-WRITE") for name in found_classes))
        times = replace(times, classes=tuple(name for name in times.classes if name in found_classes))
        to_csv(times, path)
        again = from_csv(path)
        assert again.table.rows() == times.table.rows()
        assert again.table.columns == times.table.columns
        original, found = break_down(times), break_down(again)
        assert (found.points, found.summary, found.best) == (original.points, original.summary, original.best)

    def test_a_result_reads_back_as_the_same_breakdown(self, csv: Path) -> None:
        traces = [
            trace_of(
                {
                    (rank, epoch): {"GFS-READ": 0.1 * rank, "LFS-META": 1 / (3 + point)}
                    for rank in (0, 1)
                    for epoch in (1, 2)
                },
                point=point,
                sweep={"cache_rate": point / 10, "threads": 2, "format": "raw"},
            )
            for point in range(3)
        ]
        times = from_traces(traces, TIERS)
        to_csv(times, str(csv))
        original, found = break_down(times), break_down(from_csv(str(csv)))
        for point, before in zip(found.points, original.points, strict=True):
            for name in (
                "sweep",
                "epoch",
                "ranks",
                "repetitions",
                "slowest_rank",
                "io_seconds",
                "classes",
                "bottleneck",
            ):
                assert getattr(point, name) == getattr(before, name)
        assert found.best.sweep == original.best.sweep

    def test_the_columns_are_those_that_are_promised(self, csv: Path) -> None:
        to_csv(from_traces([trace_of({(0, 1): {}}, sweep={"cache_rate": 0.5})], TIERS), str(csv))
        assert csv.read_text().splitlines()[0] == "rank,epoch,class,seconds,ops,bytes,node,repetition,cache_rate"

    @pytest.mark.parametrize("path", ["gone/times.csv", "."])
    def test_where_nothing_can_be_written(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(UserError, match="cannot be written"):
            to_csv(times_of([{"rank": 0, "class": "GFS-READ", "seconds": 1.0}]), str(tmp_path / path))
