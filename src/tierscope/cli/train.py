import click

from tierscope.arch.networks import ALIASES, NETWORKS
from tierscope.cli import common
from tierscope.errors import UserError
from tierscope.spec.study import DEVICES


@click.command("train")
@click.argument("study", required=False)
@click.option("--model", type=click.Choice([*NETWORKS, *ALIASES]), help="The network; default: the study's own (workload.model).")  # fmt: skip
@click.option("--device", type=click.Choice(DEVICES), help="Where it is trained; auto: an accelerator where there is one.")  # fmt: skip
@click.option("--precision", type=click.Choice(["fp32", "amp"]), help="amp: 16-bit matrix products with 32-bit weights.")  # fmt: skip
@click.option("--optimizer", type=click.Choice(["sgd", "adam"]), help="sgd has momentum.")
@click.option("--input", "input_", metavar="CxHxW", help="Shape of a sample, channels first, like 3x64x64; default: the network's own.")  # fmt: skip
@click.option("--batch", metavar="N,…", help="Samples per step and rank; several are varied.")
@click.option("--data", metavar="tiers,…", help="Where samples come from: tiers, memory, synthetic; several are varied.")  # fmt: skip
@click.option("--storage-matters", "ask", is_flag=True, help="As --data tiers,memory,synthetic: whether storage matters, by difference.")  # fmt: skip
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="Values of any key, like read_threads=1,2,4; repeated: each by itself, all else as the study has it.",
)
@click.option("--repetitions", type=click.IntRange(1, 1000), help="Of every point; default: 5, or the study's if more.")
@click.option("--out", type=click.Path(file_okay=False), help="Results directory; default ./results/STUDY-MODEL.")
@common.set_option
@common.system_option
@common.scale_option
@click.option("--hand-over", metavar="DIR", help="Only run, on a machine that has no Polars: one file for each run into DIR.")  # fmt: skip
@click.option("--take", metavar="DIR", help="Make a result of what was handed over there; without a STUDY.")
@common.quiet_option
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
    """Train a real network on what STUDY (a YAML file or a preset) reads, and say where the time goes.

    One thing is varied at a time: each of --batch, --data and --vary with several values changes its own key alone; where there are
    several of them, each gets a result of its own, OUT/KEY. Run the same command again to resume. Several ranks train together.

    For example: tierscope train STUDY --model resnet50 --batch 32 --storage-matters
    """
    from tierscope.train.training_study import TrainOptions, all_data, plan_training  # noqa: PLC0415

    if take is not None:
        if study is not None or hand_over is not None:
            raise UserError(
                f"--take {take}: makes a result of runs that are there; leave the study and --hand-over out"
            )
        _take(take, out, as_json)
        return
    if study is None:
        raise UserError("no study is named; give a YAML file or a preset")
    if ask and data is not None:
        raise UserError("--storage-matters is --data with all of them; remove one of the two")
    asked = TrainOptions(
        model, device, precision, optimizer, input_, batch, all_data() if ask else data, vary, repetitions
    )
    if hand_over is not None:
        from tierscope.measure.away import run_away  # noqa: PLC0415

        planned = plan_training(study, asked, settings, system, lambda loaded: common.scaled(loaded, scale))
        if len(planned.parts) > 1:
            raise UserError("--hand-over: one thing is varied at a time; give a command for each")
        run_away(planned.parts[0][1], hand_over, f"{hand_over}-data", lambda line: click.echo(line, err=True))
        return
    with common.ranks_of_study() as crews:
        from tierscope.cli.progress import watching  # noqa: PLC0415
        from tierscope.commands.train import train  # noqa: PLC0415

        planned = plan_training(study, asked, settings, system, lambda loaded: common.scaled(loaded, scale))
        target = common.default_out(planned.base, out, f"-{planned.base.workload.model.network}")
        with watching(quiet) as watch:
            parts = train(planned, target, crews, watch)
    common.show_training(planned.base.study, parts, target, as_json)


def _take(folder: str, out: str | None, as_json: bool) -> None:
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.train import TrainedPart  # noqa: PLC0415
    from tierscope.measure.take import take_runs  # noqa: PLC0415

    if not out:
        raise UserError("--take needs --out: where the result is to be")
    taken = take_runs(folder, out)
    key = taken.sweep[0].path.rpartition(".")[2] if len(taken.sweep) == 1 and not taken.cases else None
    common.show_training(taken.study, [TrainedPart(key, out, analyze(out))], out, as_json)
