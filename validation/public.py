"""Published measurements of real machines, predicted by our own model: what `tierscope calibrate TABLE --study` fits to a part of a table, laid beside the rest.

    Polaris             UNet3D by DLIO on Lustre, first batch of every epoch (mean and max over ranks): 64 ranks from 1–32
    MLPerf Storage 1.0  AU at the largest number of accelerators of each group (same submitter, storage, workload, accelerator, hosts) from the smaller ones
    Azure               MLPerf Storage 3.0, UNet3D on Lustre: AU at 16 clients from 3, with what was provisioned for each

Beside each: what carrying the last measurement forward gives. Nothing that is predicted is fitted to. Studies are the published ones; what they leave open (storage
behind a submission) is a tier with a latency alone, so that limits come from the fit or not at all. The keys that can be fitted were chosen after these
tables had been seen: no blind predictions.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tierscope.predict.measured_table import (
    FIRST_MAX,
    FIRST_MEAN,
    SHARE,
    MeasuredFigures,
    MeasuredTable,
    Place,
    read_table,
    rows_of,
    table_of,
)
from tierscope.predict.measured_table import (
    Row as Cells,
)
from tierscope.predict.table_fit import CLIENT
from tierscope.predict.table_intervals import PredictedFigure, predict_points
from tierscope.predict.table_points import points_of
from tierscope.predict.tables import calibrate_table
from tierscope.spec.load import Loaded, load, parse_study
from tierscope.spec.study import Study
from tierscope.watch import Silent
from validation.table import Row

PUBLIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "public"
POLARIS, V1, V3 = (
    PUBLIC / name
    for name in ("polaris_unet3d_first_batch.csv", "mlperf_storage_v1_epochs.csv", "mlperf_storage_v3.csv")
)
FITTED, PREDICTED = 32, 64
CLOSE = 0.05  # of first batches
POINTS = 1.5  # of AU

# ResNet-50's batch of 400 images is simulated as one record: its 1,251 images of a file are three of them.
# UNet3D as DLIO runs it: workers of torch that read whole batches, one ready each (prefetch_size 2 over 4 workers, rounded up).
AS_DLIO = ("workload.reader.data_loader=pytorch", "workload.reader.prefetch_size=1")
STORAGE = 'system: {tiers: {gfs: {path: "{out}/gfs", latency: 0.1 ms}}}'
H100 = {
    "unet3d": """
study: unet3d-h100
workload:
  dataset: {format: npz, num_files_train: 14000, num_samples_per_file: 1, record_length_bytes: 146600628, record_length_bytes_stdev: 68341808}
  reader: {batch_size: 7, read_threads: 4, prefetch_size: 1, transfer_size: 32 MiB, data_loader: pytorch}
  train: {epochs: 5, computation_time: 0.323 s, sync: step}
""",
    "cosmoflow": """
study: cosmoflow-h100
workload:
  dataset: {format: tfrecord, num_files_train: 524288, num_samples_per_file: 1, record_length_bytes: 2828486, record_length_bytes_stdev: 71311}
  reader: {batch_size: 1, read_threads: 4, prefetch_size: 2, transfer_size: 4 MiB}
  train: {epochs: 5, computation_time: 3.5 ms, sync: step}
""",
    "resnet50": """
study: resnet50-h100
workload:
  dataset: {format: tfrecord, num_files_train: 10391, num_samples_per_file: 3, record_length_bytes: 45864000}
  reader: {batch_size: 1, read_threads: 8, prefetch_size: 2, transfer_size: 64 MiB}
  train: {epochs: 5, computation_time: 0.224 s, sync: step}
""",
}  # fmt: skip
B200 = """
study: unet3d-b200
workload:
  dataset: {format: npz, num_files_train: 84357, num_samples_per_file: 1, record_length_bytes: 146600628, record_length_bytes_stdev: 68341808}
  reader: {batch_size: 7, read_threads: 24, prefetch_size: 1, transfer_size: 32 MiB, data_loader: pytorch}
  train: {epochs: 5, computation_time: 0.162 s, sync: step}
"""


def rows(short: bool) -> list[Row]:
    if not POLARIS.is_file():
        return [Row("public", "published measurements", "skipped", note="none beside the project (../shared/data)")]
    return [*polaris(short), *mlperf(short), *azure()]


# Polaris.


def polaris(short: bool) -> Iterator[Row]:
    yield from _carried(FITTED, PREDICTED, goal=True)
    if not short:
        yield from _carried(FITTED // 2, PREDICTED // 2, goal=False)


def _carried(fitted: int, predicted: int, goal: bool) -> Iterator[Row]:
    seen = _lustre(f"n_ranks<={fitted}")
    wanted = _lustre(f"n_ranks={predicted}")
    calibrated = calibrate_table(seen, load("unet3d", AS_DLIO), Silent())
    study = replace(load("unet3d", AS_DLIO).study, system=calibrated.known.system)
    keys = ", ".join(
        f"{path.rpartition('.')[2]} {_short(path, value)}" for path, value in calibrated.fitted.values.items()
    )
    note = f"events, fitted to 1–{fitted} ranks: {keys}; misfit {100 * calibrated.fitted.misfit:.1f} %"
    errors = _errors_of_epochs(predicted)
    last = seen.points[-1]
    for figure in predict_points(points_of(wanted, study), calibrated.known.system):
        yield from _first_batch_rows(figure, last, errors[figure.figure], goal, note)


def _first_batch_rows(
    figure: PredictedFigure, last: MeasuredFigures, error: float, goal: bool, note: str
) -> Iterator[Row]:
    what = {FIRST_MEAN: "mean", FIRST_MAX: "max"}[figure.figure]
    carried = abs(last.figures[figure.figure][0] / figure.measured - 1)
    off = abs(figure.error)
    name = f"Polaris, first batch, {what} of {figure.point.ranks} from 1–{last.ranks} ranks"
    value = f"{figure.predicted:.2f} s, measured {figure.measured:.2f} s: {100 * figure.error:+.1f} %"
    yield Row("public", name, value, f"≤ {CLOSE:.0%}" if goal else "", off <= CLOSE if goal else None, note)
    close = off < carried or off <= error / figure.measured
    yield Row(
        "public",
        f"{what} of {figure.point.ranks}: error of the model, of carrying {last.ranks} ranks forward",
        f"{100 * off:.1f} %, {100 * carried:.1f} %",
        "model closer, or within the standard error" if goal else "",
        close if goal else None,
        f"standard error of what was measured: {100 * error / figure.measured:.1f} %",
        "" if close else "the last measurement is as near as its own error: ranks beyond 8 change nothing there",
    )


def _lustre(condition: str) -> MeasuredTable:
    return read_table(str(POLARIS), ("tier=lustre", condition))


def _errors_of_epochs(ranks: int) -> dict[str, float]:
    """Standard errors. Every run shuffles alike, so the same epoch of another run is no independent draw."""
    columns = {FIRST_MEAN: "first_load_mean_s", FIRST_MAX: "first_load_max_s"}
    cells = [row for _, row in rows_of(str(POLARIS)) if row["tier"] == "lustre" and int(row["n_ranks"]) == ranks]
    errors = {}
    for figure, column in columns.items():
        epochs: dict[str, list[float]] = {}
        for row in cells:
            epochs.setdefault(row["epoch"], []).append(float(row[column]))
        means = [statistics.fmean(values) for values in epochs.values()]
        errors[figure] = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return errors


# MLPerf Storage 1.0.


def mlperf(short: bool) -> list[Row]:
    """Groups with at least two numbers of accelerators, all of H100s (Juicedata's too, by their samples per second)."""
    errors, told, table = [], [], []
    for name, workload, points in groups():
        *smaller, largest = points
        if short and largest.ranks > 12:
            continue
        figure, keys = _au_at(name, parse_study(H100[workload] + STORAGE, workload), smaller, largest)
        predicted, carried = figure.predicted, smaller[-1].figures[SHARE][0]
        measured = figure.measured
        errors.append((abs(predicted - measured), abs(carried - measured)))
        told.append(figure)
        counts = "–".join(str(point.ranks) for point in smaller)
        value = f"{100 * predicted:.1f} %, measured {100 * measured:.1f} %: {100 * (predicted - measured):+.1f}"
        bounds = f"not identified, {100 * figure.low:.1f}–{100 * figure.high:.1f} %; " if figure.unidentified else ""
        note = f"{bounds}carried forward {100 * carried:.1f} %; fitted: {keys or 'nothing'}"
        table.append(Row("public", f"AU, {name}, {largest.ranks} from {counts}", value, note=note))
    off, last = (100 * statistics.fmean(point_errors[place] for point_errors in errors) for place in (0, 1))
    known = (
        "most groups have one smaller point, from which what grows with accelerators (cores of a host, barriers) is unknown; "
        "read threads differ within groups, and AU is not monotonous in four of them"
    )
    summary = [
        Row("public", f"AU at the largest number of accelerators, mean error over n={len(errors)} groups", f"{off:.1f} points", f"≤ {POINTS}", off <= POINTS, f"carrying forward: {last:.1f} points", known),
        Row("public", "AU: model closer than carrying the last measurement forward", f"{off:.2f} against {last:.2f} points", "closer", off < last, "", known),
    ]  # fmt: skip
    return [*summary, _unidentified(told), *_by_others(), *table]


def _unidentified(figures: Sequence[PredictedFigure]) -> Row:
    """More accelerators ask storage for more than the smaller numbers show it to give: the command says so, with bounds."""
    bounded = [figure for figure in figures if figure.unidentified]
    plain = [figure for figure in figures if not figure.unidentified]
    held = sum(figure.low <= figure.measured <= figure.high for figure in bounded)
    value = f"{len(bounded)} of {len(figures)}, {held} within their bounds"
    far = [figure for figure in plain if abs(figure.error) > POINTS / 100]
    note = (
        "what storage gives beyond the smaller numbers is unknown, and a single number of accelerators does not tell steps that are longer by chance from a constant cost: "
        "bounds contain both"
    )
    return Row(
        "public",
        "AU there is said to be not identified",
        value,
        f"all that are over {POINTS} points off",
        not far,
        note,
    )


def _by_others() -> Iterator[Row]:
    """What needs no model: others' AU of the same workload at their largest number of accelerators, each group left out with its submitter.

    It is near because of how the largest number is chosen: the most that still passes the benchmark (AU of 70 % for cosmoflow, 90 % for the others).
    """
    largest = [(name, workload, points[-1].figures[SHARE][0]) for name, workload, points in groups()]
    errors = []
    for name, workload, measured in largest:
        others = [au for other, same, au in largest if same == workload and other.split()[0] != name.split()[0]]
        errors += [abs(statistics.fmean(others) - measured)] if others else []
    if errors:
        value = f"{100 * statistics.fmean(errors):.1f} points, n={len(errors)}"
        note = "no prediction from storage: submitters stop where the benchmark is hardly passed (cosmoflow 70 %, else 90 %)"
        yield Row(
            "public", "AU there taken from other submitters' largest numbers of the same workload", value, note=note
        )


def groups() -> Iterator[tuple[str, str, list[MeasuredFigures]]]:
    """Name, workload and points of every group, fewest accelerators first."""
    by_group: dict[tuple[str, str, str, str], list[tuple[Place, Cells]]] = {}
    for line, row in rows_of(str(V1)):
        parts = row["path"].split("/")
        workload = next(
            (name for name in H100 if any(name.removesuffix("50") in part.lower() for part in parts[4:6])), None
        )
        if workload is None or "a100" in row["path"]:
            continue
        cells = {name: row[name] for name in ("accelerators", "hosts", "files", "au_mean")}
        by_group.setdefault((row["submitter"], parts[3], workload, row["hosts"]), []).append((line, cells))
    for (submitter, storage, workload, hosts), group in sorted(by_group.items()):
        by_count: dict[str, list[tuple[Place, Cells]]] = {}
        for line, chosen in group:
            by_count.setdefault(chosen["accelerators"], []).append((line, chosen))
        points = [point for lines in by_count.values() for point in table_of(str(V1), lines).points]
        points = sorted(points, key=lambda point: point.ranks)
        if len({point.ranks for point in points}) > 1:
            yield f"{submitter} {storage.split('_')[0]}, {workload}, {hosts} hosts", workload, points


def _au_at(
    name: str, study: Study, smaller: Sequence[MeasuredFigures], largest: MeasuredFigures
) -> tuple[PredictedFigure, str]:
    known = calibrate_table(MeasuredTable(name, tuple(smaller)), Loaded(study), Silent())
    points = points_of(MeasuredTable(name, (largest,)), study)
    (predicted,) = predict_points(points, known.known.system, known.known)
    keys = ", ".join(f"{path.rpartition('.')[2]} {_short(path, value)}" for path, value in known.fitted.values.items())
    return predicted, keys


# Azure.


def azure() -> Iterator[Row]:
    names = ("AMLFS-Durable-Premium-125-160TiB-3", "AMLFS-Durable-Premium-125-800TiB-16")
    few, many = (_only_au(read_table(str(V3), (f"system={name}",))) for name in names)
    study = parse_study(B200 + STORAGE, "unet3d-b200")
    fitted = calibrate_table(few, Loaded(study), Silent())
    (figure,) = predict_points(points_of(many, study), fitted.fitted.system)
    carried = few.points[-1].figures[SHARE][0]
    off, last = abs(figure.error), abs(carried - figure.measured)
    keys = ", ".join(f"{path.rpartition('.')[2]} {_short(path, value)}" for path, value in fitted.fitted.values.items())
    value = f"{100 * figure.predicted:.2f} %, measured {100 * figure.measured:.2f} %: {100 * figure.error:+.2f}"
    yield Row("public", "AU, Azure Lustre, 16 clients from 3", value, f"≤ {POINTS} points", 100 * off <= POINTS, f"fitted: {keys}; storage as provisioned, 20 and 100 GB/s")  # fmt: skip
    yield Row("public", "AU, Azure: error of the model, of carrying 3 clients forward", f"{100 * off:.2f}, {100 * last:.2f} points", "model closer", off < last)  # fmt: skip


def _only_au(table: MeasuredTable) -> MeasuredTable:
    points = tuple(replace(point, figures={SHARE: point.figures[SHARE]}) for point in table.points)
    return MeasuredTable(table.name, points)


def _short(path: str, value: float) -> str:
    return f"{value:.3g} s" if path in CLIENT else f"{value / 1e9:.3g} GB/s"
