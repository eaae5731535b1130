"""Rows about DLIO's eight applications: that all are made, and that they can fail."""

import numpy as np
import polars as pl
import pytest

from tierscope.papers import dlio_workloads, workload_rows
from tierscope.papers.rows import rows_of
from tierscope.papers.workload_runs import WorkloadRun
from tierscope.papers.workload_scaling import Scaling, scaling_figure, scaling_verdicts
from tierscope.papers.workload_studies import (
    OWN_FILES,
    READING,
    SHARED_FILE,
    TITLES,
    SimulatedRun,
    scaled_study,
    simulate_run,
    small_study,
    study_of,
)
from tierscope.plan.order import Order
from tierscope.spec.check import find_problem

LINEAR = {512: 16.0, 2048: 4.0, 8192: 1.0}
HELD = {512: 16.0, 2048: 5.0, 8192: 4.0}


def scalings(own: dict[int, float], shared: dict[int, float]) -> dict[str, Scaling]:
    ends = ((16.0, 4.0), (16.0, 1.1))
    return {
        **{name: Scaling(name, own) for name in OWN_FILES},
        **{name: Scaling(name, shared, *ends) for name in SHARED_FILE},
    }


def outcomes(own: dict[int, float], shared: dict[int, float]) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in scaling_verdicts(scalings(own, shared))}


def test_scaling_rows_hold_only_where_files_are_told_apart() -> None:
    assert outcomes(LINEAR, HELD)["D-F14-1"] == outcomes(LINEAR, HELD)["D-F15-1"] == "holds"
    assert outcomes(HELD, HELD)["D-F14-1"] == "does not hold"
    assert outcomes(LINEAR, LINEAR)["D-F15-1"] == "does not hold"
    rising = {512: 16.0, 2048: 17.0, 8192: 18.0}
    assert outcomes(LINEAR, rising)["D-F15-1"] == "does not hold"  # it has to fall
    assert outcomes(LINEAR, HELD)["D-F15-2"] == "holds"
    without = {name: Scaling(name, HELD) for name in (*OWN_FILES, *SHARED_FILE)}
    assert scaling_verdicts(without)[-1].outcome == "not available here"


def test_a_row_that_an_assumed_rate_decides_does_not_hold() -> None:
    """FRNN is close to linear with 100,000 opens/s, and far from it with 30,000: both lie in the interval that is assumed."""
    by_rate = {5_000: (16.0, 8.0), 100_000: (16.0, 1.0)}
    shared = {name: Scaling(name, HELD, by_rate={2_000: (16.0, 5.0), 30_000: (16.0, 1.0)}) for name in SHARED_FILE}
    for own, said in ((LINEAR, "with 5,000 opens/s it does not hold, with 100,000 it does"), (HELD, "not ImageNet, CosmoFlow, FRNN")):  # fmt: skip
        made = {name: Scaling(name, own, by_rate=by_rate) for name in OWN_FILES}
        verdicts = {verdict.id: verdict for verdict in scaling_verdicts({**made, **shared})}
        assert verdicts["D-F14-1"].outcome == verdicts["D-F15-1"].outcome == "does not hold"
        assert said in verdicts["D-F14-1"].why
        assert "0.12, 0.12, 0.12 with 5,000/s" in verdicts["D-F14-1"].ours
        assert "with 30,000 opens/s of one file it does not hold" in verdicts["D-F15-1"].why


def test_scaling_is_drawn_with_every_workload() -> None:
    some = [Scaling(name, HELD) for name in OWN_FILES]
    figure = scaling_figure("D-F14", "Strong scaling, many files", some)
    assert all(f"{TITLES[name]}, 8,192 processes: 4 s, 4×" in figure.svg for name in OWN_FILES)


def a_run(name: str, sizes: tuple[int, ...], beside: tuple[int, ...] = ()) -> WorkloadRun:
    rows = [(0, lane, 1, step, "read", 0, nbytes, float(step), 0.1) for lane, all_of in ((0, sizes), (1002, beside)) for step, nbytes in enumerate(all_of)]  # fmt: skip
    names = ("rank", "lane", "epoch", "step", "kind", "file", "bytes", "start_seconds", "seconds")
    return WorkloadRun(small_study(name), None, pl.DataFrame(rows, names, orient="row"))  # type: ignore[arg-type]


def test_request_sizes_are_those_of_the_file_that_is_asked_about() -> None:
    run = a_run("dffn", (65536, 65536, 512), (100, 100))
    assert run.share_of_reads(65536, 65536) == pytest.approx(2 / 3)
    assert run.share_of_reads(90, 110, beside=True) == 1.0
    assert a_run("dffn", ()).share_of_reads(1, 9) == 0.0


def test_a_burst_before_the_first_step_is_seen() -> None:
    fast, slow = workload_rows.begins_fast(a_run("imagenet", (1000, 100, 100)))
    assert fast > slow
    fast, slow = workload_rows.begins_fast(a_run("imagenet", (10, 1000, 1000)))
    assert fast < slow


def test_files_that_nobody_reads_count() -> None:
    run = a_run("imagenet", (10, 10, 10))
    counts = workload_rows.accesses(run)
    assert len(counts) == run.study.workload.dataset.num_files_train > 4
    assert sorted(counts)[-2:] == [0, 3]


def test_imagenet_goes_through_files_in_orders_of_its_own() -> None:
    """As published: at random, each from beginning to end, and not the same number of accesses to each."""
    study = small_study("imagenet")
    per_file, order = study.workload.dataset.num_samples_per_file, Order.of(study)
    taken = [np.concatenate(list(order.indices(rank, 1))) for rank in range(study.system.ranks)]
    assert len(taken) == 2
    for samples in taken:
        inside = samples % per_file
        assert ((np.diff(samples) == 1) | (inside[1:] == 0)).all()
    counts = np.bincount(np.concatenate(taken) // per_file, minlength=study.workload.dataset.num_files_train)
    assert counts.min() == 0 < per_file < counts.max()


def test_every_panel_of_a_published_figure_is_drawn_by_something() -> None:
    """(c) of each is a timeline of compute and I/O."""
    assert all("reads-time" in names for names in dlio_workloads.FIGURES.values())
    assert dlio_workloads.ACCESSES in dlio_workloads.FIGURES["imagenet"]
    for number, name in enumerate(READING, start=1):
        published = rows_of("dlio")[f"D-F{number}"].published
        assert ("reads-rates" in dlio_workloads.FIGURES[name]) == ("bandwidth per rank" in published)
        assert ("reads-ranks" in dlio_workloads.FIGURES[name]) == ("bytes and bandwidth per rank" in published)


def test_an_order_can_be_wrong() -> None:
    published = dlio_workloads.PUBLISHED_SHARES
    assert dlio_workloads.in_order({name: float(share) for name, share in published.items()}, published)
    assert not dlio_workloads.in_order({name: 1.0 / share for name, share in published.items()}, published)


@pytest.mark.parametrize("name", [*OWN_FILES, *SHARED_FILE])
@pytest.mark.parametrize("ranks", [512, 8192])
def test_any_number_of_processes_shares_the_same_work(name: str, ranks: int) -> None:
    study = scaled_study(name, ranks)
    assert find_problem(study) is None
    assert study.system.ranks == ranks
    done = Order.of(study).samples_per_rank * ranks
    same = Order.of(scaled_study(name, 512)).samples_per_rank * 512
    assert done == pytest.approx(same, rel=0.15)  # steps are whole


def test_a_simulated_run_adds_up() -> None:
    run = simulate_run(study_of("frnn", "nodes=1", "num_files_train=20", "epochs=2"))
    assert isinstance(run, SimulatedRun)
    assert run.ranks == 4
    assert run.read_bytes == pytest.approx(2 * 20 * (2 * 2**20 + 14 * 64), rel=0.001)
    assert run.seconds == pytest.approx(run.io_seconds + 2 * 5 * 0.128, rel=0.05)
    assert run.hidden == 0.0
    loaded = simulate_run(study_of("candle", "nodes=1", "num_samples_per_file=20"))
    assert loaded.seconds == pytest.approx(loaded.io_seconds + 60 * 0.0237, rel=0.01)


def test_small_studies_are_small_and_of_one_emulated_tier() -> None:
    for name in TITLES:
        study = small_study(name)
        (tier,) = study.system.tiers
        assert tier.emulate
        assert study.system.ranks <= 4
        whole = study_of(name).workload.train.computation_time
        assert study.workload.train.computation_time == whole


def test_all_rows_of_these_figures_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one stand-in for every run and simulation: what is asked of them is other tests' matter."""
    reads = tuple([262144] * 8)
    stand_in = SimulatedRun(512, 100.0, 10.0, 1.0, 0.0, 0.0, 1e9, 1e4, 0.001)
    character = type("C", (), {"metrics": {"sequential_percent": type("F", (), {"value": 99.0})}, "hidden": type("H", (), {"share": 0.0}), "io_percent": type("F", (), {"value": 10.0})})  # fmt: skip
    runs = {}
    for name in TITLES:
        run = a_run(name, reads, (100,) * 50)
        runs[name] = WorkloadRun(run.study, character(), run.ops)
    simulated = dict.fromkeys(TITLES, stand_in)
    made = [verdict.id for verdict in workload_rows.statements(runs, simulated)]
    made += [verdict.id for verdict in dlio_workloads.orders(runs, simulated)]
    made += [verdict.id for verdict in scaling_verdicts(scalings(LINEAR, HELD))]
    made += [f"D-F{number}" for number, _ in enumerate(READING, start=1)]
    wanted = ("D-F1", "D-F2", "D-F3", "D-F4", "D-F5", "D-F6", "D-F14", "D-F15", "D-A", "D-A7", "D-A8")
    expected = [row for row in rows_of("dlio") if row in wanted or row.rpartition("-")[0] in wanted]
    assert sorted(made) == sorted(expected)
