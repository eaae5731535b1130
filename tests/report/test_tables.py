"""The breakdown as text: whole at any width, and no name is taken for markup."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.traces import CLASSES, TIERS, times_of, trace_of, without_loop
from tierscope.analysis.breakdown import Breakdown, break_down, value_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import from_traces
from tierscope.analysis.wording import Finding
from tierscope.report.headline import verdict
from tierscope.report.parts import Unit
from tierscope.report.tables import BreakdownView

HOSTILE = ["[red]x[/red]", "[/red]", "[link=http://x]y", "\\[b]", "[bold", ":boom:"]


def shown(
    breakdown: Breakdown,
    findings: list[Finding] | None = None,
    emulated: list[str] | None = None,
    name: str = "demo",
    width: int = 300,
) -> str:
    target = io.StringIO()
    Console(file=target, width=width, highlight=False).print(
        BreakdownView(name, breakdown, findings or [], Conditions(emulated=tuple(emulated or ())))
    )
    return target.getvalue()


def swept(values: dict[Any, float], key: str = "cache_rate", class_: str = "GFS-READ") -> Breakdown:
    rows = [{"rank": 0, "class": class_, "seconds": seconds, key: value} for value, seconds in values.items()]
    tier = class_.rpartition("-")[0]
    classes = CLASSES if class_ in CLASSES else [f"{tier}-READ", f"{tier}-META"]
    return break_down(times_of(rows, [key], classes))


def test_the_whole_picture() -> None:
    text = shown(swept({0.0: 4.0, 0.5: 1.0, 1.0: 2.0}))
    lines = text.splitlines()
    assert lines[0].rstrip() == "demo: I/O time of the only process (busy seconds)"
    header = next(line for line in lines if "cache rate" in line)
    assert all(name in header for name in (*CLASSES, "I/O s", "bottleneck"))
    rows = [line for line in lines if "█" in line]
    assert [line.split()[:2] for line in rows] == [["0%", "4.000"], ["50%", "1.000"], ["100%", "2.000"]]
    assert [("◀ best" in line) for line in rows] == [False, True, False]
    assert [line.count("█") for line in rows] == [24, 6, 12]


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_first_epoch_has_a_column_where_it_is_not_the_only_one(epochs: int) -> None:
    rows = [
        {"rank": 0, "class": "GFS-READ", "epoch": epoch, "seconds": 3.0 - epoch, "cache_rate": 0.0}
        for epoch in range(1, epochs + 1)
    ]
    text = shown(break_down(times_of(rows, ["cache_rate"])))
    assert ("epoch 1 I/O s" in text) == (epochs == 2)
    assert "epoch s" not in text  # how long epochs took is not known


def test_the_verdict() -> None:
    found = [str(line) for line in verdict(swept({0.0: 4.0, 0.5: 1.0, 1.0: 2.0}))]
    assert found == [
        "Best: cache_rate 50% with 1.000 s of I/O per epoch in busy seconds (n=1).",
        "n=1 is too few to distinguish neighbouring points: raise repetitions or epochs.",
        "Bottleneck: GFS-READ from 0% to 100%.",
    ]


def test_the_verdict_says_where_the_bottleneck_moves_and_what_is_as_good() -> None:
    seconds = {0.0: ("GFS-META", 5.0), 0.1: ("GFS-META", 4.0), 0.2: ("LFS-READ", 3.9), 0.3: ("GFS-READ", 0.0)}
    rows: list[dict[str, Any]] = [
        {"rank": 0, "class": class_, "seconds": value + extra, "cache_rate": rate, "repetition": repetition}
        for rate, (class_, value) in seconds.items()
        for repetition, extra in ((1, 0.0), (2, 0.2 if rate < 0.3 else 0.0))
    ]
    lines = [
        str(line)
        for line in verdict(break_down(times_of([row for row in rows if row["cache_rate"] < 0.3], ["cache_rate"])))
    ]
    assert lines[1] == "Smallest statistically indistinguishable point: cache_rate 10% (4.100 s)."
    lines = [str(line) for line in verdict(break_down(times_of(rows, ["cache_rate"])))]
    assert lines[2] == "Bottleneck: GFS-META from 0% to 10%; LFS-READ at 20%; no I/O at 30%."


def test_epoch_time_is_set_against_io_time() -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": seconds}}, point=point, sweep={"cache_rate": float(point)}, seconds=3.0)
        for point, seconds in enumerate([2.0, 3.5])
    ]
    lines = [str(line) for line in verdict(break_down(from_traces(traces, TIERS, "busy")))]
    assert (
        lines[-1]
        == "At 1 of 2 points the sums exceed the epoch because several threads or processes read concurrently: see --basis wall."
    )


def test_who_is_on_the_wall_already_is_not_told_to_look_there() -> None:
    trace = trace_of({(0, 1): {"GFS-READ": 3.5}}, seconds=3.0)
    (_, line) = verdict(break_down(from_traces([trace], TIERS, "wall")))
    assert str(line) == "The sum exceeds the epoch because several threads or processes read concurrently."


@pytest.mark.parametrize(
    ("seconds", "computing", "line"),
    [
        (3.0, [0.0, 0.0], "The epoch takes that I/O time plus 1 s."),
        (3.0, [0.5, 0.5], "The epoch takes that I/O time plus 1 s; compute took 500 ms of the epoch."),
        (3.0, [0.5, 2.5], "The epoch takes that I/O time plus 1 s; compute took 500 ms to 2.5 s of the epoch."),
        (None, [0.5, 0.5], "Compute took 500 ms of the epoch."),
        (1.0, [0.5, 0.5], "Compute took 500 ms of the epoch."),
    ],
)
def test_computing_is_said(seconds: float | None, computing: list[float], line: str) -> None:
    traces = [
        trace_of({(0, 1): {"GFS-READ": 2.0}}, point=n, sweep={"x": n}, seconds=seconds, compute_seconds=value)
        for n, value in enumerate(computing)
    ]
    assert str(list(verdict(break_down(from_traces(traces, TIERS))))[-1]) == line


def test_checkpoints_are_said_where_there_are_any() -> None:
    def lines(*seconds: float) -> list[str]:
        runs = [
            trace_of({(0, 1): {"GFS-READ": 5.0}}, point=n, sweep={"cache_rate": n / 4}, checkpoint_seconds=each)
            for n, each in enumerate(seconds)
        ]
        return [str(line) for line in verdict(break_down(from_traces(runs, TIERS)))]

    assert "Checkpoints paused training for 2 s of the epoch (20.0 %)." in lines(2.0, 2.0)
    assert "Checkpoints paused training for 1 s to 2 s of the epoch (10.0 % to 20.0 %)." in lines(2.0, 1.0, 0.0)
    assert not any("Checkpoints" in line for line in lines(0.0))


def test_one_point_without_a_sweep() -> None:
    text = shown(break_down(times_of([{"rank": 0, "class": "GFS-READ", "seconds": 1.0}])))
    assert "I/O: 1.000 s per epoch in busy seconds (n=1), 100 % of it GFS-READ; 1 rank.\n" in text.replace(" \n", "\n")
    assert not any(word in text for word in ("Best", "best", "█", "Bottleneck"))


def test_a_traced_command_has_ranks_processes_and_counts() -> None:
    cells = {"GFS-READ": 1.0, "GFS-META": 0.5, "LFS-READ": 0.25}
    trace = without_loop(trace_of({(rank, 1): cells for rank in range(3)}))
    breakdown = break_down(from_traces([trace], TIERS))
    target = io.StringIO()
    given = Conditions(traced=True, processes=5)
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", breakdown, [], given))
    lines = [line.rstrip() for line in target.getvalue().splitlines()]
    assert lines[0] == "x: I/O time of the slowest of 3 ranks (wall seconds)"
    assert lines[-2:] == [
        "I/O of the slowest rank: 1.750 s per epoch (n=1), 57 % of it GFS-READ; 3 ranks, 5 processes.",
        "All ranks and epochs: 3 opens, 6 reads of 600 B, 0 writes.",
    ]


def test_counts_name_what_else_was_done() -> None:
    breakdown = replace(swept({0.0: 1.0}), kinds={"write": (1, 2048), "sync": (2, 0), "close": (1, 0), "mmap": (1, 9)})
    target = io.StringIO()
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", breakdown, [], Conditions(traced=True)))
    line = "All ranks and epochs: 0 opens, 0 reads, 1 write of 2 KiB, 1 close, 1 mmap, 2 syncs."
    assert line in target.getvalue()


def test_no_io_at_all_is_no_crash() -> None:
    text = shown(swept({0.0: 0.0, 1.0: 0.0}))
    assert "█" not in text
    assert "no I/O from 0% to 100%" in text


def test_a_grid_has_no_stretches() -> None:
    rows = [
        {"rank": 0, "class": "GFS-READ", "seconds": 1.0 + rate, "cache_rate": rate, "threads": threads}
        for rate in (0.0, 1.0)
        for threads in (1, 2)
    ]
    text = shown(break_down(times_of(rows, ["cache_rate", "threads"])))
    assert "Best: cache_rate 0%, threads 1 with" in text
    assert "Bottleneck:" not in text


def test_emulation_and_findings_are_said() -> None:
    text = shown(swept({0.0: 1.0}), [Finding("trimmed", {"samples": 3})], ["gfs", "lfs"])
    assert "· emulated tiers: gfs, lfs" in text.splitlines()[0]
    assert "note: 3 samples per epoch were dropped because they do not divide evenly among the ranks" in text
    assert "→ set num_files_train" in text


def test_writes_have_a_column_and_a_part_of_the_bar() -> None:
    rows = [{"rank": 0, "class": class_, "seconds": s, "x": 1} for class_, s in (("GFS-READ", 1e6), ("GFS-WRITE", 1e6))]
    text = shown(break_down(times_of(rows, ["x"], [*CLASSES, "GFS-WRITE"])))
    assert text.count("1,000,000 ") == 2
    assert text.count("█") == 24


@pytest.mark.parametrize("name", HOSTILE)
def test_markup_in_names_is_shown_literally(name: str) -> None:
    def header(breakdown: Breakdown) -> str:
        return next(line for line in shown(breakdown).splitlines() if "bottleneck" in line)

    assert shown(swept({name: 1.0}, key="x")).count(name) == 2  # its row and the verdict
    assert name in header(swept({1.0: 1.0}, key=name))
    assert f"{name}-READ" in header(swept({1.0: 1.0}, class_=f"{name}-READ"))
    assert shown(swept({1.0: 1.0}, class_=f"{name}-READ")).count(f"{name}-READ") == 2  # and as the bottleneck
    assert name in shown(swept({1.0: 1.0}), name=name)
    finding = Finding("goal_met", {"goal_seconds": 1.0, "where": name, "io_seconds": 1.0})
    assert name in shown(swept({1.0: 1.0}), [finding], [name])
    assert shown(swept({1.0: 1.0}), emulated=[name]).count(name) == 1


@pytest.mark.parametrize("width", [1, 20, 80, 150, 400])
@pytest.mark.parametrize("tiers", [1, 12])
def test_any_width_will_do(width: int, tiers: int) -> None:
    classes = [f"TIER{number}-{kind}" for number in range(tiers) for kind in ("READ", "META", "WRITE")]
    rows = [
        {"rank": rank, "class": class_, "seconds": rank + 0.1, "cache_rate": rate}
        for rank in range(3)
        for class_ in classes
        for rate in (0.0, 0.5)
    ]
    text = shown(break_down(times_of(rows, ["cache_rate"], classes)), width=width)
    assert all(len(line) <= width for line in text.splitlines())
    if (width, tiers) == (150, 1):
        assert "…" not in text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cache_rate", 0.65, "65%"),
        ("placement.cache_rate", 1, "100%"),
        ("cache_rate", "half", "half"),
        ("threads", 4.0, "4"),
        ("threads", 4, "4"),
        ("latency", 0.0015, "1.5 ms"),
        ("format", "raw", "raw"),
        ("emulate", True, "true"),
    ],
)
def test_values_as_people_write_them(name: str, value: Any, text: str) -> None:
    assert value_text(name, value) == text


def test_a_narrow_terminal_loses_columns_not_digits() -> None:
    breakdown = swept({0.0: 4.0, 0.5: 1.25, 1.0: 2.0})
    for width in (80, 100, 120, 150):
        text = shown(breakdown, width=width)
        assert "…" not in text
        assert "1.250" in text
    assert "█" not in shown(breakdown, width=80)
    assert "█" in shown(breakdown, width=150)


def test_conditions_are_shown() -> None:
    given = Conditions(
        resident={"gfs": 0.125, "lfs": None},
        metadata={"gfs": "cold", "lfs": "warm"},
        evict_seconds=0.012,
        recorder_seconds_per_op=2e-7,
        harness_seconds_per_sample=1e-5,
    )
    target = io.StringIO()
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", swept({0.0: 1.0}), [], given))
    assert "Peak page-cache residency when reading began: gfs 12.5%, lfs unknown." in target.getvalue()
    assert (
        "META: gfs cold (names and inodes dropped before every epoch), lfs warm (names and inodes not dropped); server caches are unknown."
        in target.getvalue()
    )
    assert "Evicting: up to 12 ms per rank and epoch, counted in neither READ nor META." in target.getvalue()
    assert "Overhead: 200 ns per recorded operation, 10 µs per sample in total." in target.getvalue()


@pytest.mark.parametrize(("traced", "what"), [(False, ""), (True, " of bookkeeping")])
def test_own_cost_is_shown_as_far_as_it_is_known(traced: bool, what: str) -> None:
    """Of a stranger's command the calls around the bookkeeping are not timed."""
    target = io.StringIO()
    given = Conditions(traced=traced, recorder_seconds_per_op=2e-7)
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", swept({0.0: 1.0}), [], given))
    assert f"Overhead: 200 ns{what} per recorded operation.\n" in target.getvalue().replace(" \n", "\n")


def test_own_cost_of_calls_by_path_is_shown() -> None:
    target = io.StringIO()
    given = Conditions(
        traced=True, recorder_seconds_per_op=2e-7, relative_stat_seconds=7e-7, foreign_open_seconds=1.5e-7
    )
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", swept({0.0: 1.0}), [], given))
    assert (
        "200 ns of bookkeeping per recorded operation, 700 ns per stat of a relative path, "
        "150 ns per open of a file outside all tiers." in target.getvalue()
    )


def test_a_trace_without_epoch_times_says_nothing_about_them() -> None:
    trace = without_loop(trace_of({(0, 1): {"GFS-READ": 1.0}}))
    text = shown(break_down(from_traces([trace], TIERS)))
    assert "The epoch takes" not in text
    assert "epoch s" not in text


def test_another_profiler_is_named_in_the_title_and_has_no_wall_seconds() -> None:
    given = Conditions(profilers=("dftracer",))
    breakdown = break_down(from_traces([trace_of({(0, 1): {"GFS-READ": 20.0}})], TIERS, "busy"))
    target = io.StringIO()
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", breakdown, [], given))
    text = target.getvalue()
    assert "(busy seconds) · measured with dftracer" in text
    assert "Tierscope's own timers were off; the overhead of dftracer is unknown." in text
    assert "because several threads or processes read concurrently." in text
    assert "--basis wall" in shown(breakdown)


def test_nothing_on_these_tiers_is_not_no_io() -> None:
    (line, *_) = verdict(break_down(times_of([{"rank": 0, "class": "GFS-READ", "seconds": 0.0}])))
    assert str(line).startswith("No I/O on these tiers was recorded; other files do not count.")


def test_io_of_the_first_epoch_alone_is_not_no_io() -> None:
    rows = [{"rank": 0, "epoch": epoch, "class": "GFS-READ", "seconds": 2.0 * (epoch == 1)} for epoch in (1, 2, 3)]
    (line, *_) = verdict(break_down(times_of(rows)))
    assert str(line).startswith("All I/O was in epoch 1 (2 s); later epochs had none. 1 rank.")


def test_a_simulation_without_its_checkpoints_says_so_in_the_title() -> None:
    given = Conditions(simulated=("bound",), checkpoints_left_out=True)
    target = io.StringIO()
    Console(file=target, width=200, highlight=False).print(BreakdownView("x", swept({0.0: 1.0}), [], given))
    assert "simulated (bound) · without checkpoints" in target.getvalue().splitlines()[0]


def test_what_is_too_short_to_show_is_not_shown_as_nothing() -> None:
    seconds, thousands = Unit.of(919.0), Unit.of(485_305.0)
    assert [str(seconds.text(value)) for value in (0.0, 0.0003, 0.001)] == ["0.000", "<0.001", "0.001"]
    assert [str(thousands.text(value)) for value in (0.0, 0.307, 0.6)] == ["0", "<1", "1"]


@pytest.mark.parametrize(
    ("ranks", "processes", "title"),
    [
        (1, None, "of the only process"),
        (1, 1, "of the only process"),
        (1, 7, "of the only rank"),
        (4, 4, "of the slowest of 4 processes"),
        (4, 24, "of the slowest of 4 ranks"),
    ],
)
def test_loader_workers_are_not_called_the_only_process(ranks: int, processes: int | None, title: str) -> None:
    rows = [{"rank": rank, "class": "GFS-READ", "seconds": 1.0} for rank in range(ranks)]
    target = io.StringIO()
    given = Conditions(processes=processes)
    Console(file=target, width=200).print(BreakdownView("demo", break_down(times_of(rows)), [], given))
    text = target.getvalue()
    assert text.startswith(f"demo: I/O time {title} (")
    assert ("I/O of the slowest rank: " in text) == (ranks > 1 and processes == 24)
