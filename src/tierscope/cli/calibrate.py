from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import click

from tierscope.cli import common, settling, tables
from tierscope.errors import StoppedError, shell_word

if TYPE_CHECKING:
    from tierscope.predict.measured_table import MeasuredTable
    from tierscope.spec.load import Loaded
    from tierscope.watch import Watch


@click.command("calibrate")
@click.argument("results", nargs=-1, required=True, metavar="OUT…|TABLE", type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the fitted system to FILE, for --system.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@settling.for_option
@tables.table_study_option
@tables.where_option
@common.system_option
@common.set_option
@common.quiet_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    results: tuple[str, ...],
    output: str | None,
    force: bool,
    for_study: str | None,
    study: str | None,
    where: tuple[str, ...],
    system: str | None,
    settings: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit the rates of a system's metadata servers, object servers and latencies to measured runs.

    Fits the times per class and process; rates in the study are ignored. Several results of one system
    (other file sizes, server or node counts) narrow the fit. What they leave open is reported as "at least".

    If interrupted, it keeps the best fit so far.

    With --study, it fits to a TABLE of published measurements instead: a CSV file (ranks, nodes, and first batches, AU, seconds or throughputs; columns:
    docs/tables.md), or a directory of DLIO or mlpstorage results. Only client costs and bandwidths are fitted.
    """
    from tierscope.cli.progress import watching  # noqa: PLC0415

    if output:
        common.refuse_existing(output, force)
    if study is not None:
        reading = tables.reading_table(tables.one_table(results), where, study, system, settings, quiet)
        _table(reading, output, for_study, as_json)
        return
    tables.refuse_without_study(where, system, settings)
    from tierscope.commands.calibrate import calibrate_results, write_system  # noqa: PLC0415

    wanted = settling.study_to_settle(for_study)
    with watching(quiet) as watch:
        calibrated = calibrate_results(results, watch)
    if output:
        write_system(calibrated, output)
    to_settle = settling.settled(calibrated.known, wanted)
    if as_json:
        from tierscope.predict.model_json import calibration_json  # noqa: PLC0415

        as_object = calibration_json(calibrated.calibration, calibrated.proposals, calibrated.epochs)
        common.print_json({**as_object, "complete": not calibrated.stopped, **settling.settling_json(to_settle)})
        _say_stopped(calibrated.stopped, output)
        return
    from tierscope.report.models import CalibrationView  # noqa: PLC0415

    common.print_rich(CalibrationView(calibrated.name, calibrated.calibration, calibrated.proposals, calibrated.epochs))
    settling.say_settling(to_settle, for_study)
    _say_written(output)
    _say_stopped(calibrated.stopped, output)


def _table(
    reading: "AbstractContextManager[tuple[MeasuredTable, Loaded, Watch]]",
    output: str | None,
    for_study: str | None,
    as_json: bool,
) -> None:
    from tierscope.commands.calibrate import write_known  # noqa: PLC0415
    from tierscope.predict.tables import calibrate_table  # noqa: PLC0415
    from tierscope.report.measured_tables import (  # noqa: PLC0415
        FittedKeysView,
        PredictedTableView,
        predicted_json,
        too_slow_text,
    )

    wanted = settling.study_to_settle(for_study)
    with reading as (measured, loaded, watch):
        calibrated_table = calibrate_table(measured, loaded, watch)
    if output:
        write_known(calibrated_table.known, output)
    fitted, to_settle = calibrated_table.fitted, settling.settled(calibrated_table.known, wanted)
    if as_json:
        keys = {
            path: {"value": value, "low": fitted.ends[path][0], "high": fitted.ends[path][1]}
            for path, value in fitted.values.items()
        }
        complete = not calibrated_table.stopped
        content = {"keys": keys, "misfit": fitted.misfit, "misfit_before": fitted.before, "complete": complete}
        as_object = predicted_json("table_calibration", calibrated_table.figures, content, calibrated_table.too_slow)
        common.print_json({**as_object, **settling.settling_json(to_settle)})
        _say_stopped(calibrated_table.stopped, output)
        return
    if calibrated_table.too_slow:
        click.echo(" ".join(too_slow_text(calibrated_table.too_slow)))
    common.print_rich(FittedKeysView(calibrated_table.known, list(fitted.values), fitted.before, fitted.misfit))
    common.print_rich(PredictedTableView(f"{measured.name}: fitted to these rows", calibrated_table.figures))
    settling.say_settling(to_settle, for_study)
    _say_written(output)
    _say_stopped(calibrated_table.stopped, output)


def _say_written(output: str | None) -> None:
    if output:
        click.echo(f"System: {shell_word(output)}. To use it: tierscope simulate STUDY --system {shell_word(output)}")


def _say_stopped(stopped: str, output: str | None) -> None:
    if stopped:
        kept = f"; the best fit so far is in {output}" if output else "; this is the best fit so far"
        raise StoppedError(f"{stopped}{kept}; rerun with --force to finish the fit")
