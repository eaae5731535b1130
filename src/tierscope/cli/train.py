import shlex
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tierscope.arch.networks import ALIASES, NETWORKS
from tierscope.cli import common
from tierscope.cli.showing import all_option, shows_all
from tierscope.errors import UserError
from tierscope.spec.study import DEVICES

if TYPE_CHECKING:
    from tierscope.commands.train import TrainedPart


_SHOWING = ("--quiet", "--all", "--json")


@click.command("train")
@click.argument("study", required=False)
@click.option("--model", type=click.Choice([*NETWORKS, *ALIASES]), help="The network; default: the study's workload.model.")  # fmt: skip
@click.option("--device", type=click.Choice(DEVICES), help="Device to train on; auto: an accelerator if there is one.")  # fmt: skip
@click.option("--precision", type=click.Choice(["fp32", "amp"]), help="amp: 16-bit matrix products with 32-bit weights.")  # fmt: skip
@click.option("--optimizer", type=click.Choice(["sgd", "adam"]), help="sgd: with momentum.")
@click.option("--input", "input_", metavar="CxHxW", help="Shape of a sample, channels first, e.g. 3x64x64; default: that of the network.")  # fmt: skip
@click.option("--batch", metavar="N,…", help="Samples per step and rank; several values are compared.")
@click.option("--data", metavar="tiers,…", help="Source of samples: tiers, memory, synthetic; several values are compared.")  # fmt: skip
@click.option("--loader", metavar="pytorch,…", help="Who reads: native, threads, pytorch (torch's DataLoader), tensorflow (tf.data); several values are compared.")  # fmt: skip
@click.option("--storage-matters", "ask", is_flag=True, help="Same as --data tiers,memory,synthetic: does storage matter?")  # fmt: skip
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="Values of any key, e.g. read_threads=1,2,4; repeatable: each key varies separately.",
)
@click.option(
    "--repetitions", type=click.IntRange(1, 1000), help="Repetitions per point; default: 5, or the study's if more."
)
@click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY-MODEL.")
@common.set_option
@common.system_option
@common.scale_option
@click.option("--hand-over", metavar="DIR", help="Only run, on a machine without Polars: write one file per run to DIR.")  # fmt: skip
@click.option("--take", metavar="DIR", help="Build a result from the files of --hand-over; without a STUDY.")
@common.quiet_option
@all_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    study: str | None,
    model: str | None,
    device: str | None,
    precision: str | None,
    optimizer: str | None,
    input_: str | None,
    batch: str | None,
    data: str | None,
    loader: str | None,
    ask: bool,
    vary: tuple[str, ...],
    repetitions: int | None,
    out: str | None,
    settings: tuple[str, ...],
    system: str | None,
    scale: str | None,
    hand_over: str | None,
    take: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a real network on the data of STUDY (a YAML file or a preset), and show where the time goes.

    One key is varied at a time: each of --batch, --data, --loader and --vary with several values varies only its own key; if there are
    several, each gets a separate result in OUT/KEY (loaders are compared at every value of --data). Rerun the same command to resume. Several ranks train together.

    For example: tierscope train STUDY --model resnet50 --batch 32 --storage-matters
    """
    from tierscope.train.training_study import TrainOptions, all_data, plan_training  # noqa: PLC0415

    if take is not None:
        if study is not None or hand_over is not None:
            raise UserError(f"--take {take}: cannot be combined with a study or --hand-over; remove them")
        _refuse_beside("--take", {option for option in _typed() if option not in ("--take", "--out", *_SHOWING)})
        _take(take, out, as_json)
        return
    if study is None:
        raise UserError("no study; name a YAML file or a preset")
    if ask and data is not None:
        raise UserError("--storage-matters and --data exclude each other; remove one")
    asked = TrainOptions(
        model, device, precision, optimizer, input_, batch, all_data() if ask else data, vary, repetitions, loader
    )
    if hand_over is not None:
        _refuse_beside("--hand-over", _typed() & {"--out", "--json"})
        from tierscope.measure.away import run_away  # noqa: PLC0415

        planned = plan_training(study, asked, settings, system, lambda loaded: common.scaled(loaded, scale))
        if len(planned.parts) > 1:
            raise UserError("--hand-over: only one key can vary; use one command per key")
        for note in planned.notes:
            _say(f"note: {note}")
        run_away(planned.parts[0][1], hand_over, f"{hand_over}-data", _say)
        _say(f"Runs: {hand_over}. To make a result of them: tierscope train --take {shlex.quote(hand_over)} --out OUT")
        _say(f"Data: {hand_over}-data. No longer needed, unless a run is to be repeated")
        return
    with common.ranks_of_study() as crews:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.commands.train import train  # noqa: PLC0415

        planned = plan_training(study, asked, settings, system, lambda loaded: common.scaled(loaded, scale))
        target = common.default_out(planned.base, out, f"-{planned.base.workload.model.network}")
        with watching(quiet) as watch:
            parts = train(planned, target, crews, watch)
    _show_training(planned.base.study, parts, target, as_json)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _typed() -> set[str]:
    """Options on the command line."""
    context = click.get_current_context()
    return {
        parameter.opts[0]
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    }


def _refuse_beside(chosen: str, ignored: set[str]) -> None:
    if ignored:
        raise UserError(f"{chosen} cannot be combined with {min(ignored)}; remove one of them")


def _take(folder: str, out: str | None, as_json: bool) -> None:
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.train import TrainedPart  # noqa: PLC0415
    from tierscope.measure.take import take_runs  # noqa: PLC0415

    if not out:
        raise UserError("--take requires --out; name a directory for the result")
    taken = take_runs(folder, out)
    key = taken.sweep[0].path.rpartition(".")[2] if len(taken.sweep) == 1 and not taken.cases else None
    _show_training(taken.study, [TrainedPart(key, out, analyze(out))], out, as_json)


def _show_training(name: str, parts: "list[TrainedPart]", target: str, as_json: bool) -> None:
    """What `train` ends with: one table over all parts, and a page for each."""
    from tierscope.commands.report import write_report  # noqa: PLC0415
    from tierscope.commands.train import described, findings_of, write_training  # noqa: PLC0415

    content = described(name, parts)
    write_training(target, content)
    written = [write_report(part.analysis, part.folder, None, {}) for part in parts]
    if as_json:
        common.print_json(content)
        return
    from tierscope.report.training import TrainingView  # noqa: PLC0415

    given = parts[0].analysis.conditions
    common.print_rich(
        TrainingView(name, [(part.key, part.training) for part in parts], findings_of(parts), given, shows_all())
    )
    for part, report in zip(parts, written, strict=True):
        common.say_where(part.folder)
        common.say_page(report)
