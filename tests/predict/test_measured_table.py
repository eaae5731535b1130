"""Tables of published measurements: what is read of them, what is refused with one line, and that a system that made a table is found again."""

import io
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.test_commands import one_line, run
from tierscope.commands.calibrate import write_known
from tierscope.errors import UserError
from tierscope.predict import dlio_results
from tierscope.predict.combining import simulate_combination
from tierscope.predict.measured_table import EPOCH, FIRST_MAX, FIRST_MEAN, SHARE, THROUGHPUT, MeasuredTable, read_table
from tierscope.predict.searches import find_most
from tierscope.predict.table_points import points_of
from tierscope.predict.tables import calibrate_table, read_measured, validate_table
from tierscope.report.measured_tables import PredictedTableView, predicted_json
from tierscope.report.plans import LargestFedView
from tierscope.spec.goal import AU
from tierscope.spec.known import load_system
from tierscope.spec.load import Loaded, parse_study
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

STUDY = """
study: small
workload:
  dataset: {format: raw, num_files_train: 4096, num_samples_per_file: 1, record_length_bytes: 1 MB}
  reader: {batch_size: 4, read_threads: 2, prefetch_size: 1, transfer_size: 1 MiB, data_loader: pytorch}
  train: {epochs: 1, computation_time: 20 ms}
system:
  tiers:
    gfs: {path: "{out}/gfs", bandwidth: 100 GB/s, latency: 1 ms}
"""


def table(tmp_path: Path, text: str, name: str = "table.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


# Reading.


def test_columns_by_their_names(tmp_path: Path) -> None:
    found = read_table(
        table(
            tmp_path,
            "Hosts,n_ranks,First_Load_Mean_S,first_load_max_s,AU_mean_pct,epoch_seconds,MBps,files,what\n"
            "2,8,1.5,2.0,98.5,12.0 10.0 11.0,100,800,x\n",
        )
    )
    (point,) = found.points
    assert (point.nodes, point.ranks, point.settings) == (2, 8, {"workload.dataset.num_files_train": 800})
    assert {name: value for name, (value, _) in point.figures.items()} == {
        FIRST_MEAN: 1.5,
        FIRST_MAX: 2.0,
        SHARE: pytest.approx(0.985),
        EPOCH: 10.5,  # without the first
        THROUGHPUT: 100 * 2**20,
    }


def test_repetitions_are_one_point_with_a_standard_error(tmp_path: Path) -> None:
    found = read_table(table(tmp_path, "ranks,au_percent,run\n4,90,1\n4,92,2\n2,95,1\n"))
    assert [(point.ranks, point.rows) for point in found.points] == [(2, 1), (4, 2)]
    assert list(found.points[1].figures[SHARE]) == pytest.approx([0.91, 0.01])


def test_rows_are_chosen(tmp_path: Path) -> None:
    path = table(tmp_path, "ranks,au_percent,tier\n4,90,lustre\n4,80,nvme\n8,70,lustre\n16,60,lustre\n")
    found = read_table(path, ("tier=lustre", "ranks<16"))
    assert [(point.ranks, round(point.figures[SHARE][0], 3)) for point in found.points] == [(4, 0.9), (8, 0.7)]
    with pytest.raises(UserError, match="--where tier=lustre"):  # two storages are never averaged
        read_table(path)
    assert found.mixed == ()


def test_rows_are_chosen_by_a_part_of_a_text(tmp_path: Path) -> None:
    """Published tables have the workload in nothing but the path of a run."""
    text = "path,submitter,ranks,au_percent\nA/unet3d-h100/run1,A,4,90\nA/cosmoflow/run1,A,8,70\nB/UNet3D-h100/run1,B,16,60\n"
    found = read_table(table(tmp_path, text), ("path~unet3d",))
    assert [point.ranks for point in found.points] == [4, 16]
    assert found.mixed == ("submitter (A, B)",)  # fitted as one system: said, not refused
    assert [point.name for point in read_table(table(tmp_path, "ranks,au_percent\n1,90\n")).points] == ["1 rank"]


def test_a_row_may_be_shorter_than_the_header(tmp_path: Path) -> None:
    found = read_table(table(tmp_path, "ranks,nodes,au_percent\r\n1\r\n2,1,90\r\n"))
    assert [point.ranks for point in found.points] == [2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "no column with the number of ranks"),
        ("", "is empty; use a CSV file"),
        ("ranks,b\n1,2\n", "no column with a measurement"),
        ("ranks,au\n1,90\n", "column au does not say its unit; name it au_percent"),
        ("ranks,seconds\n1,90\n", "column seconds does not say of what; name it epoch_seconds"),
        ("ranks,au_percent\n", "contains no rows below its header"),
        ("\n \n", "is empty; use a CSV file"),
        ('{"num_accelerators": 4, "metric": {}}', "is JSON, not CSV; name the directory of DLIO's"),
        ("ranks,au_percent\n4,90\n4,90,7\n", "line 3: has 3 cells, the header 2; put quotes around"),
        ("ranks;au_percent\n4;90\n", "its columns are separated by ';'; separate them by commas"),
        ("ranks\tau_percent\n4\t90\n", "its columns are separated by tabs"),
        (
            "ranks,au_percent\n4,0.95\n",
            "line 2: au_percent = 0.95; must be in percent; a share of 1 is in a column au_share",
        ),
        ("ranks,au_percent\n4,101\n", "line 2: au_percent = 101; AU cannot be above 100 %"),
        ("ranks,au_share\n4,90\n", "AU cannot be above 1"),
        ("ranks,au_percent\n4,-3\n", "must be a number above 0"),
        ("ranks,au_percent\n4,nan\n", "must be a number above 0"),
        ("ranks,au_percent\n4,1e999\n", "must be a number above 0"),
        ("ranks,au_percent\n2.5,90\n", "whole number"),
        ("ranks,nodes,au_percent\n5,2,90\n", "cannot be spread evenly"),
        ("ranks,au_percent\n,90\n", "has no number of ranks"),
        ("ranks,au_percent\n4,\n", "no row has a measurement"),
        ("ranks,au_percent\n4,5e-324\n", "must be a number above 0, at least 1e-09"),
        (f"ranks,au_percent,a\n4,90,{'x' * 9000}\n4,90,{'y' * 9000}\n", "choose one with --where a=xxx"),
        (f"ranks,au_percent\n{'9' * 9000},90\n", "must be a whole number above 0"),
        ("ranks,ranks,au_percent\n4,8,90\n", "has two columns ranks"),
        (
            "ranks,au_percent," + ",".join(f"a{n}" for n in range(998)) + "\n" + "1,1\n" * 5000,
            "1,000 columns make more than 4,000,000 cells",
        ),
        ("ranks,au_percent" + ",a" * 1000 + "\n4,90\n", "has more than 1,000 columns"),
        (
            "ranks,au_percent,read_threads\n4,90,1000000000000\n",
            "workload.reader.read_threads = 1000000000000; must be",
        ),
        (
            "ranks,au_percent,batch_size,steps\n4,90,1000000000000,9\n",
            "workload.reader.batch_size = 1000000000000; must",
        ),
        ("ranks,au_percent,steps\n1000000000000,90,9\n", "system.ranks_per_node = 1000000000000; must be"),
        ("ranks,nodes,au_percent,steps\n1024000,1000,90,9\n", "operations to simulate"),
    ],
)
def test_a_bad_table_gets_one_line(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    for command in ("calibrate", "validate"):
        assert run(command, table(tmp_path, text), "--study", study, "--quiet") == 2
        said = one_line(capsys)
        assert words in said
        assert len(said) < 1000


def test_other_mistakes_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, path = tmp_path / "study.yaml", table(tmp_path, "ranks,au_percent\n4,90\n")
    study.write_text(STUDY)
    for arguments, words in (
        ((path, "--study", study, "--where", "rank=4"), "did you mean ranks?"),
        ((path, "--study", study, "--where", "ranks"), "must be COLUMN=VALUE"),
        ((path, "--study", study, "--where", "ranks=5"), "no row is left"),
        ((path, path, "--study", study), "one table at a time"),
        ((tmp_path / "none.csv", "--study", study), "cannot be read"),
        ((tmp_path, "--study", study), "no summary.json"),
        ((path,), "add --study for a table"),
        ((tmp_path, "--where", "a=b"), "add --study"),
        ((path, "--study", study, "--set", "train.computation_time=0"), "has no compute"),
        ((path, "--study", study, "--set", "num_files_train=3"), "num_files_train"),
    ):
        assert run("validate", *arguments, "--quiet") == 2
        assert words in one_line(capsys)


def test_a_table_tells_what_to_measure_for_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, wanted, path = (
        tmp_path / "study.yaml",
        tmp_path / "wanted.yaml",
        table(tmp_path, "ranks,au_percent\n1,100\n4,100\n"),
    )
    study.write_text(STUDY)
    wanted.write_text(STUDY + "  nodes: 1\nsweep: {ranks_per_node: [4, 64]}\n")
    assert run("calibrate", path, "--study", study, "--for", wanted, "--quiet", "--json") == 0
    settling = json.loads(capsys.readouterr().out)["settling"]
    assert (settling["asked"], settling["open"]) == (2, 1)
    assert [point["sweep"] for point in settling["measure"]] == [{"ranks_per_node": 64}]
    assert run("calibrate", path, "--study", study, "--for", wanted, "--quiet") == 0
    assert f"• tierscope run {wanted} --set system.ranks_per_node=64 --out OUT" in capsys.readouterr().out.replace(
        "\n", ""
    )
    assert run("calibrate", path, "--study", study, "--for", "no-such-study.yaml", "--quiet") == 2
    assert "no-such-study.yaml" in one_line(capsys)


def test_runs_without_training_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever of them is read first."""
    study, results = tmp_path / "study.yaml", tmp_path / "results"
    study.write_text(STUDY)
    for name, metric in (("a", {}), ("b", {"train_au_mean_percentage": 90.0})):
        (results / name).mkdir(parents=True)
        (results / name / "summary.json").write_text(json.dumps({"num_accelerators": 4, "metric": metric}))
    (point,) = read_measured(str(results), ()).points
    assert point.rows == 1
    assert run("validate", results / "a", "--study", study, "--quiet") == 2
    assert "summary.json: has no AU, throughput or seconds of training" in one_line(capsys)


def test_two_equal_signs_are_one(tmp_path: Path) -> None:
    path = table(tmp_path, "ranks,au_percent\n4,90\n8,80\n")
    assert [point.ranks for point in read_table(str(path), ("ranks==8",)).points] == [8]


def test_results_of_dlio_are_a_table(tmp_path: Path) -> None:
    """As mlpstorage lays them out: a folder for every run."""
    for accelerators, run_number, au in ((4, 1, 98.0), (4, 2, 97.0), (8, 1, 90.0)):
        folder = tmp_path / f"{accelerators}acc" / f"run{run_number}"
        folder.mkdir(parents=True)
        summary = {
            "num_accelerators": accelerators,
            "num_hosts": 2,
            "num_files_train": 800,
            "metric": {"train_au_mean_percentage": au, "train_io_mean_MB_per_second": 100.0},
        }
        (folder / "summary.json").write_text(json.dumps(summary))
        epochs = {"1": {"duration": "20.5"}, "2": {"duration": "10.5"}}
        (folder / "0_per_epoch_stats.json").write_text(json.dumps(epochs))
    found = read_measured(str(tmp_path), ())
    assert [(point.nodes, point.ranks, point.rows) for point in found.points] == [(2, 4, 2), (2, 8, 1)]
    assert found.points[0].figures[SHARE][0] == pytest.approx(0.975)
    assert found.points[0].figures[EPOCH][0] == 10.5


def results(folder: Path, summary: str, epochs: str = "{}") -> str:
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(summary)
    (folder / "0_per_epoch_stats.json").write_text(epochs)
    return str(folder)


GOOD = json.dumps({"num_accelerators": 4, "num_hosts": 1, "metric": {"train_au_mean_percentage": 90.0}})


@pytest.mark.parametrize(
    ("summary", "epochs", "words"),
    [
        ("{", "{}", "summary.json: is not JSON: Expecting property name"),
        (GOOD[:-1] + ', "metric": {}}', "{}", "summary.json: is not JSON: metric is given twice"),
        (GOOD.replace("90.0", "NaN"), "{}", "summary.json: au_percent = nan; must be a number above 0"),
        (GOOD.replace(": 4", ": [4]"), "{}", "summary.json: has no number of ranks"),
        (GOOD.replace("90.0", f'"{"9" * 70_000}"'), "{}", "summary.json: au_percent of its run is longer than 64 KiB"),
        (GOOD, '{"a": ' + "[" * 100_000, "0_per_epoch_stats.json: is not JSON: is nested too deeply"),
        (GOOD, '{"1": {"duration": -1}}', "summary.json: epoch_seconds = -1; must be a number above 0"),
    ],
)  # fmt: skip
def test_a_damaged_result_is_named_with_its_file(summary: str, epochs: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        read_measured(results(tmp_path, summary, epochs), ())
    assert words in str(error.value)


def test_results_with_too_many_epochs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlio_results, "_MOST_CHARS", 300)
    for name in ("a", "b"):
        results(tmp_path / name, GOOD, json.dumps({str(epoch): {"duration": 1} for epoch in range(100)}))
    with pytest.raises(UserError, match="contains too many epochs; name a part of it"):
        read_measured(str(tmp_path), ())


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_a_study_without_rates_gets_one_line(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace(", bandwidth: 100 GB/s, latency: 1 ms", "").replace(", computation_time: 20 ms", ""))
    assert run(command, table(tmp_path, "ranks,epoch_s\n1,2\n2,3\n"), "--study", study, "--quiet") == 2
    assert "system.tiers.gfs: it has no read rate" in one_line(capsys)


def test_a_condition_takes_no_time(tmp_path: Path) -> None:
    path = table(tmp_path, "ranks,au_percent\n4,90\n")
    start = time.process_time()
    for condition in ("ranks" + " " * 50_000 + "x", " " * 50_000 + "=", "ranks" + " " * 50_000 + "=4"):
        with suppress(UserError):
            read_table(path, [condition])
    assert time.process_time() - start < 1


def test_keys_that_are_no_epochs_are_left_out(tmp_path: Path) -> None:
    """One is longer than a number may be, two are the same number."""
    epochs = {"9" * 5000: {"duration": 7}, "1": {"duration": 3}, "01": {"duration": 3}, "2": {"duration": 2}}
    (point,) = read_measured(results(tmp_path, GOOD, json.dumps(epochs)), ()).points
    assert point.figures[EPOCH][0] == 2.5


def test_links_and_pipes_among_results_are_refused(tmp_path: Path) -> None:
    """Only what the user names may be a link."""
    out = results(tmp_path / "out", GOOD)
    (tmp_path / "elsewhere.json").write_text(GOOD)
    for make in (lambda path: path.symlink_to(tmp_path / "elsewhere.json"), os.mkfifo):
        (tmp_path / "out/summary.json").unlink()
        make(tmp_path / "out/summary.json")
        with pytest.raises(UserError, match=r"summary.json: cannot be read: is (a link|not a regular file)"):
            read_measured(out, ())


# Fitting: a table made by a system of ours gives that system back.


def made(loaded: Loaded, shapes: list[tuple[int, int]], figures: tuple[str, ...]) -> MeasuredTable:
    """What the study's own system is simulated to do."""
    from tierscope.predict.measured_table import MeasuredFigures  # noqa: PLC0415

    blank = tuple(MeasuredFigures(nodes, ranks, dict.fromkeys(figures, (1.0, 0.0)), {}, 1) for nodes, ranks in shapes)
    points = points_of(MeasuredTable("made", blank), loaded.study)
    filled = []
    for point in points:
        found = point.simulate(loaded.study.system)
        values = {figure: (sum(found[figure]) / len(found[figure]), 0.0) for figure in figures}
        filled.append(replace(point.measured, figures=values))
    return MeasuredTable("made", tuple(filled))


def with_client(**costs: float) -> Loaded:
    study = parse_study(STUDY, "study.yaml")
    return Loaded(replace(study, system=replace(study.system, **costs)))  # type: ignore[arg-type]


def test_start_up_and_decoding_are_found_again() -> None:
    truth = with_client(startup_time=0.5, process_overhead=0.05)
    measured = made(truth, [(1, 1), (1, 4), (2, 8)], (FIRST_MEAN, FIRST_MAX))
    found = calibrate_table(measured, with_client(), Silent())
    assert found.fitted.misfit < 0.01 < found.fitted.before
    later = made(truth, [(4, 16)], (FIRST_MEAN, FIRST_MAX))
    blind = validate_table(
        later, replace(with_client(), study=replace(with_client().study, system=found.known.system)), Silent()
    )
    assert max(abs(figure.error) for figure in blind.figures) < 0.05


def test_what_the_table_does_not_ask_for_is_left_out() -> None:
    """AU of a client with a cost per step: no bandwidth is made up for it."""
    truth = with_client(step_overhead=0.002)
    found = calibrate_table(made(truth, [(1, 1), (1, 2), (1, 4)], (SHARE,)), with_client(), Silent())
    assert list(found.fitted.values) == ["step_overhead"]
    assert found.fitted.values["step_overhead"] == pytest.approx(0.002, rel=0.1)


def limited(ranks: int) -> tuple[Loaded, MeasuredTable, MeasuredTable]:
    """The study without a limit; rows of a storage that feeds five ranks at 200 MB/s, of few ranks and of more."""
    plain = with_client()
    tier = replace(plain.study.system.tiers[0], device_bandwidth=1e9)
    truth = replace(plain, study=replace(plain.study, system=replace(plain.study.system, tiers=(tier,))))
    return plain, made(truth, [(1, 1), (1, 4)], (SHARE,)), made(truth, [(1, ranks)], (SHARE,))


def test_more_than_storage_was_seen_to_give_is_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in the rows ran into a limit: with four times the ranks there may be one, or not."""
    plain, seen, later = limited(16)
    found = calibrate_table(seen, plain, Silent())
    assert not any(figure.unidentified for figure in found.figures)
    write_known(found.known, str(tmp_path / "system.yaml"))
    known = load_system(str(tmp_path / "system.yaml"))
    assert known == found.known
    assert known.measured is not None
    assert 0.7e9 < known.measured.served["device_bandwidth"] < 1.05e9
    fitted = Loaded(replace(plain.study, system=known.system), known=known)
    (figure,) = validate_table(later, fitted, Silent()).figures
    assert figure.unidentified[-1].startswith("gfs.device_bandwidth is only known to be at least")
    assert figure.low <= figure.measured < 0.4
    assert 0.9 < figure.predicted <= figure.high
    Console(width=200).print(PredictedTableView("later", (figure,)))
    text = capsys.readouterr().out
    assert "Not identified, 1 of 1 row: gfs.node_bandwidth is only known to be at least" in text
    (row,) = (line for line in text.splitlines() if " AU " in line)
    assert "not identified" in row  # no plain number, and no error of one
    assert "points" not in row
    assert predicted_json("table_validation", (figure,))["rows"][0]["unidentified"] == list(figure.unidentified)


def test_no_simulation_beyond_the_table_says_a_plain_utilisation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, seen, _ = limited(16)
    study, system = tmp_path / "study.yaml", tmp_path / "system.yaml"
    study.write_text(STUDY)
    write_known(calibrate_table(seen, plain, Silent()).known, str(system))
    said = []
    for ranks in (4, 16):
        words = ("--system", system, "--set", f"ranks_per_node={ranks}", "--out", tmp_path / str(ranks), "--quiet")
        assert run("simulate", study, *words) == 0
        said.append(" ".join(capsys.readouterr().out.split()))
    as_measured, beyond = said
    assert "not identified" not in as_measured
    assert "with rates as simulated" not in as_measured
    assert "per epoch (not identified within these bounds" in beyond
    assert re.search(
        r" AU [\d.]+–[\d.]+ % \(not identified within these bounds; [\d.]+ % with rates as simulated\)", beyond
    )


def test_no_table_of_few_ranks_says_that_storage_feeds_many() -> None:
    plain, seen, _ = limited(16)
    known = calibrate_table(seen, plain, Silent()).known
    shaped = Loaded(replace(plain.study, system=known.system), known=known)
    fed = find_most(shaped, "ranks_per_node=64", "au=90%", "events", Silent())
    assert 4 <= fed.sure <= 5
    assert fed.value == 64
    assert any("is only known to be at least" in why for why in fed.unidentified)
    console = Console(width=500, record=True, file=io.StringIO())
    console.print(LargestFedView("mine.yaml", fed))
    answer = console.export_text().splitlines()[1]
    assert answer.startswith(
        f"Not identified: {fed.sure} ranks per node are certain to meet the goal. With rates as simulated, 64 does: "
    )
    assert (
        f"Measure this point: tierscope run mine.yaml --set system.ranks_per_node={2 * fed.sure} " in answer
    )  # not 64
    low, high = fed.tried[4].interval(AU)
    assert high - low < 0.05  # as many as were measured: no bounds
    low, high = fed.tried[8].interval(AU)
    assert 0.4 < low < 0.65  # eight ranks at what four were seen to get, less what the model is off
    assert high > 0.9


def test_what_a_fit_to_au_is_off_is_in_the_interval_of_au() -> None:
    """Steps that cost the client something are fitted to AU: no I/O is uncertain, and AU is."""
    plain = with_client(step_overhead=0.002, model_error=0.02)
    option = simulate_combination({}, plain.study, "events", None)
    assert option.au is not None
    low, high = option.interval(AU)
    assert low == pytest.approx(option.au / 1.033, rel=0.003)
    assert high == pytest.approx(option.au * 1.033, rel=0.003)


def test_a_file_that_calibrate_writes_is_one_that_simulate_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, system = tmp_path / "study.yaml", tmp_path / "system.yaml"
    study.write_text(STUDY)
    path = table(tmp_path, "ranks,au_percent\n1,90\n4,80\n")
    assert run("calibrate", path, "--study", study, "-o", system, "--quiet", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "table_calibration"
    assert found["fitted"]["misfit"] < found["fitted"]["misfit_before"]
    known = load_system(str(system))
    assert set(found["fitted"]["keys"]) <= set(known.figures)
    assert run("simulate", study, "--system", system, "--out", tmp_path / "out", "--quiet", "--json") == 0
    capsys.readouterr()
    assert run("validate", path, "--study", study, "--system", system, "--quiet") == 0
    assert "AU: mean error" in capsys.readouterr().out


class _Interrupted(Silent):
    """Somebody presses Ctrl-C after some searches."""

    def __init__(self, after: int) -> None:
        self.left, self.notes = after, list[str]()

    def advance(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_an_interrupt_keeps_the_best_fit_so_far(tmp_path: Path) -> None:
    measured = read_table(table(tmp_path, "ranks,au_percent,site\n1,60,a\n2,58,b\n"))
    watch = _Interrupted(after=1)
    stopped = calibrate_table(measured, Loaded(parse_study(STUDY, "small.yaml")), watch)
    assert stopped.stopped
    assert stopped.fitted.values
    assert stopped.fitted.misfit < stopped.fitted.before
    assert watch.notes == [
        "rows differ in site (a, b): they are fitted as one system; choose those of one with --where"
    ]
    write_known(stopped.known, str(tmp_path / "system.yaml"))
    assert load_system(str(tmp_path / "system.yaml")) == stopped.known


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_rows_of_other_workloads_are_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "ranks,path,AU_mean_pct\n8,a/unet3d-h100/x,90\n8,a/cosmoflow-h100/x,70\n"
    mixed, other = table(tmp_path, rows), table(tmp_path, rows.replace("unet3d", "resnet50"), "other.csv")
    assert run(command, mixed, "--study", "unet3d", "--quiet") == 2
    assert one_line(capsys).endswith("rows of other workloads (cosmoflow) than unet3d; add --where path~unet3d")
    assert run(command, other, "--study", "unet3d", "--quiet") == 2
    assert "rows are of other workloads (cosmoflow, resnet50) than unet3d" in one_line(capsys)


def test_a_verdict_comes_first_and_names_whose_system_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(tmp_path, "ranks,path,first_batch_mean_s\n1,unet3d,1000\n1,cosmoflow,5\n")
    assert run("validate", rows, "--study", "unet3d", "--where", "path~unet3d", "--quiet") == 0
    said = capsys.readouterr().out.replace("\n", " ")  # lines end where a terminal does
    title, verdict, _ = said.partition("0 of 1 measurement inside the ")
    assert title.strip().endswith("simulated on the study's own system (polaris)")
    assert verdict
