from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import counting_options
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.analysis.counting import Counting


@click.command("estimate")
@click.argument("result", metavar="OUT", type=click.Path())
@common.improve_option
@common.goal_option
@click.option(
    "--with-model",
    is_flag=True,
    help="Also improve the station instead of the time, by the queueing model; print both.",
)
@common.system_option
@common.json_option
@counting_options
def command(
    result: str,
    improve: tuple[str, ...],
    goal: str | None,
    with_model: bool,
    system: str | None,
    as_json: bool,
    counting: "Counting",
) -> None:
    """Estimate what would change if classes of I/O were faster, and say when not to believe it.

    Every time of a class is divided by 1 + N/100, for every process; then the slowest process and the best point are found again. Without
    --improve: only what each class by itself could give. OUT is the results directory of a study or a trace, or a CSV of times.
    """
    from tierscope.commands.estimate import analyze_and_keep, estimated  # noqa: PLC0415

    if counting.epoch is not None and with_model:
        raise UserError(
            "--epoch is for estimates by scaling; the model has all epochs after the first: leave --with-model out"
        )
    analysis, store = analyze_and_keep(result, counting)
    estimate, findings = estimated(analysis, improve, goal)
    if system and not with_model:
        raise UserError("--system is for --with-model; add that, or leave it out")
    answer = None
    if with_model:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.commands.estimate import modelled  # noqa: PLC0415

        with watching(as_json) as watch:
            answer = modelled(store, analysis, estimate, system, watch)
    if as_json:
        from tierscope.analysis.to_json import epoch_json  # noqa: PLC0415
        from tierscope.predict.model_json import model_json  # noqa: PLC0415
        from tierscope.predict.to_json import estimate_json  # noqa: PLC0415

        model = {"model": model_json(answer)} if answer else {}
        common.print_json(
            estimate_json(estimate, findings, analysis.conditions) | epoch_json(analysis.breakdown) | model
        )
        return
    from tierscope.report.estimates import EstimateView  # noqa: PLC0415

    common.print_rich(EstimateView(analysis.name, estimate, findings, analysis.conditions))
    if answer:
        from tierscope.report.models import ModelAnswerView  # noqa: PLC0415

        common.print_rich(ModelAnswerView(answer))
