"""What would take days or all memory is refused before it begins, with the keys that make it so; large real studies are not."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_commands import one_line, run
from tests.tiny import tiny
from tierscope.commands import calibrate
from tierscope.commands.calibrate import MeasuredCases
from tierscope.errors import UserError
from tierscope.plan.reading import MOST_READS, mean_read_bytes, reading_of, reads_of
from tierscope.plan.stations import MOST_STATIONS, stations_of
from tierscope.predict.case import Case
from tierscope.predict.events import MOST_PARTS, piece_bytes
from tierscope.predict.fit import FitProblem
from tierscope.predict.parameters import parameters_of
from tierscope.predict.simulation import Simulation
from tierscope.predict.work_limit import MOST_OPERATIONS, operations, refuse_endless
from tierscope.spec import sweep
from tierscope.spec.study import Point, Study

LARGE = ("nodes=512", "num_files_train=589824", "num_samples_per_file=1", "gfs.servers=60", "gfs.bandwidth=1 GB/s", "lfs.bandwidth=1 GB/s")  # fmt: skip


def of_sweep(*settings: str) -> list[Point]:
    return list(sweep.points(tiny(*settings)))


def test_a_large_real_study_is_simulated() -> None:
    points = of_sweep(*LARGE, "repetitions=10", "epochs=5", "sweep={placement.cache_rate: 0%..99% step 1%}")
    assert len(points) == 100
    refuse_endless(points, "events")
    refuse_endless(points, "bound")
    assert stations_of(points[0].study.system, 1).count > 500


@pytest.mark.parametrize("method", ["events", "bound"])
def test_days_of_simulation_are_refused_with_their_keys(method: str) -> None:
    points = of_sweep(*LARGE, "repetitions=1000", "epochs=10000", "sweep={}")
    with pytest.raises(
        UserError, match=r"num_files_train = 589824, repetitions = 1000, .*epochs = 10000 .*at most 1e\+11"
    ):
        refuse_endless(points, method)
    refuse_endless(points, method, epochs=1)


def test_work_counts_what_there_is_to_do() -> None:
    once = tiny("repetitions=1", "epochs=1", "sweep={}")
    assert operations(tiny("repetitions=6", "epochs=7", "sweep={}"), "events") == 42 * operations(once, "events")
    more = tiny("repetitions=1", "epochs=1", "sweep={}", "transfer_size=512", "record_length_bytes=1 MiB")
    samples = more.workload.dataset.samples
    assert operations(more, "events") - operations(once, "events") >= samples * 2000
    assert operations(more, "events") < MOST_OPERATIONS


def with_reads(reads: int, *settings: str) -> Study:
    return tiny("format=raw", "transfer_size=512", f"record_length_bytes={reads * 512}", *settings)


def test_a_sample_of_too_many_reads_is_refused_at_once() -> None:
    """125 million of them took all memory."""
    assert len(reading_of(with_reads(MOST_READS)).pieces) == MOST_READS == reads_of(with_reads(MOST_READS))
    start = time.process_time()
    with pytest.raises(
        UserError, match=r"workload.reader.transfer_size = 512 splits a sample into 2,000,000,000 reads"
    ):
        reading_of(with_reads(2_000_000_000))
    assert mean_read_bytes(with_reads(2_000_000_000)) == 512
    assert time.process_time() - start < 1


def test_the_mean_read_is_that_of_the_pieces() -> None:
    for settings in (("record_length_bytes=1000", "transfer_size=512"), ("format=tfrecord",), ("format=npz",)):
        pieces = [nbytes for _, nbytes in reading_of(tiny(*settings)).pieces]
        assert mean_read_bytes(tiny(*settings)) == sum(pieces) // len(pieces)


def test_reads_in_too_many_stripes_are_refused() -> None:
    study = with_reads(MOST_READS, "gfs.servers=64", "gfs.stripe_count=64", "gfs.bandwidth=1 GB/s")
    with pytest.raises(UserError, match=rf"100,000 reads, .*64 parts.*more than {MOST_PARTS:,}"):
        piece_bytes(stations_of(study.system, 1), reading_of(study))


def test_too_many_servers_are_refused_at_once() -> None:
    study = tiny("nodes=24", "lfs.servers=100000", "lfs.read_ops=1000")
    with pytest.raises(
        UserError, match=rf"system.tiers.lfs.servers = 100000 .*system.nodes = 24 .*at most {MOST_STATIONS:,}"
    ):
        stations_of(study.system, 1)


def epochs_measured(count: int) -> MeasuredCases:
    study = tiny("sweep={}", "cache_rate=50%", "lfs.bandwidth=1 GB/s", "gfs.bandwidth=1 GB/s")
    simulation = Simulation.of(study)
    busy = simulation.epoch(1, "bound").busy
    cases = [Case(study, simulation.reading, simulation.schedule(1), busy, name=str(number)) for number in range(count)]
    return MeasuredCases(tuple(cases), study, False)


def test_a_fit_takes_what_it_can_of_all_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = epochs_measured(9)
    assert [case.name for case in measured.to_fit] == [case.name for case in measured.cases]
    monkeypatch.setattr(calibrate, "MOST_CASES", 3)
    assert [case.name for case in measured.to_fit] == ["0", "4", "8"]
    monkeypatch.setattr(calibrate, "MOST_OPERATIONS", 10)
    assert [case.name for case in measured.to_fit] == ["0", "8"]
    assert len(measured.cases) == 9


def test_a_loss_that_is_more_than_wanted_need_not_be_known() -> None:
    cases = epochs_measured(3).cases
    problem = FitProblem(cases, parameters_of(cases))
    logs = np.log([each.guess for each in problem.parameters])
    loss = problem.loss(logs)
    assert loss == float(np.sqrt(np.mean(problem.residuals(logs) ** 2)))
    assert problem.loss(logs, unless=loss) == problem.loss(logs, unless=2 * loss) == loss
    assert problem.loss(logs, unless=0.99 * loss) == np.inf


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("record_length_bytes=1e9 KiB", "transfer_size=8 KiB")
    words = [word for text in sets for word in ("--set", text)]
    assert run("explore", "demo", "--simulate", "--goal", "1s", "--vary", "gfs.servers=1,2", *words) == 2
    assert "transfer_size = 8192 splits a sample into 125,000," in one_line(capsys)
