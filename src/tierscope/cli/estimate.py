from typing import TYPE_CHECKING

import click

from tierscope.cli import common
from tierscope.cli.counting import result_options
from tierscope.cli.showing import all_option, shows_all
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
    help="Also estimate with the queueing model, and print both.",
)
@common.system_option
@all_option
@common.json_option
@result_options
def command(
    result: str,
    improve: tuple[str, ...],
    goal: str | None,
    with_model: bool,
    system: str | None,
    as_json: bool,
    counting: "Counting",
) -> None:
    """Estimate what would change if classes of I/O were faster, and when not to trust the estimate.

    Divides the times of a class by 1 + N/100 in every process, then finds the slowest process and the best point again. Without
    --improve, it shows what each class alone could gain. OUT is the results directory of a study or trace, or a CSV of times.
    """
    from tierscope.commands.estimate import analyze_and_keep, estimated  # noqa: PLC0415

    if counting.epoch is not None and with_model:
        raise UserError(
            "--epoch and --with-model exclude each other: the model uses all epochs after the first; remove one"
        )
    analysis, store = analyze_and_keep(result, counting)
    estimated_groups, findings = estimated(analysis, improve, goal)
    if system and not with_model:
        raise UserError("--system requires --with-model; add --with-model, or remove --system")
    answers = []
    if with_model:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.commands.estimate import modelled  # noqa: PLC0415

        with watching(as_json) as watch:
            answers = modelled(store, analysis, estimated_groups, system, watch)
    if as_json:
        from tierscope.analysis.to_json import epoch_json  # noqa: PLC0415
        from tierscope.predict.model_json import models_json  # noqa: PLC0415
        from tierscope.predict.to_json import estimate_json  # noqa: PLC0415

        shown = estimate_json(estimated_groups, findings, analysis.conditions) | epoch_json(analysis.breakdown)
        common.print_json(shown | models_json(estimated_groups.names, answers))
        return
    from tierscope.report.estimates import EstimateView  # noqa: PLC0415

    common.print_rich(EstimateView(analysis.name, estimated_groups, findings, analysis.conditions, shows_all()))
    for name, answer in zip(estimated_groups.names, answers, strict=False):
        from tierscope.report.models import ModelAnswerView  # noqa: PLC0415

        common.print_rich(ModelAnswerView(answer, name))
