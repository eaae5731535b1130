import click

from tierscope.cli import common
from tierscope.spec.study import DEVICES


@click.command("kernels")
@click.argument("model")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Samples per step.")
@click.option("--precision", type=click.Choice(["fp32", "amp"]), default="fp32", show_default=True)
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option("--input", "shape", metavar="CxHxW", help="Shape of a sample; default: that of the network.")
@click.option("--counters", is_flag=True, help="Use hardware counters, with Nsight Compute (ncu).")
@click.option("--out", metavar="DIR", help="Write efficiency.json and the figure (SVG, PNG) to this directory.")
@common.json_option
def command(
    model: str,
    batch: int,
    precision: str,
    device: str,
    shape: str | None,
    counters: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """Run one training step of MODEL on this machine's accelerator and show the efficiency of its kernels.

    A kernel's efficiency is the highest of its tensor-core, other-core and memory utilisation; time × efficiency is what a perfect
    implementation would take. Requires torch. MODEL is one of the networks of 'tierscope require'.
    """
    from tierscope.spec.option_values import read_shape  # noqa: PLC0415
    from tierscope.train.kernels import measure_efficiency, to_json  # noqa: PLC0415

    sides = read_shape(shape) if shape else None
    folder = None
    if out is not None:
        from tierscope.commands.kernels import claim_efficiency, write_efficiency  # noqa: PLC0415

        folder = claim_efficiency(out)
    efficiency = measure_efficiency(model, batch, precision, device, sides, counters)
    written = [] if folder is None else write_efficiency(efficiency, folder)
    if as_json:
        common.print_json(to_json(efficiency))
        return
    from tierscope.report.kernels import EfficiencyView  # noqa: PLC0415

    common.print_rich(EfficiencyView(efficiency.title, efficiency.histogram, efficiency.slowest))
    if written:
        from tierscope.report.png import png_problem  # noqa: PLC0415

        for path in written:
            common.say_written(path)
        if png_problem():
            click.echo(f"No PNG: {png_problem()}")
