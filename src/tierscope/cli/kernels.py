import click

from tierscope.cli import common
from tierscope.spec.study import DEVICES


@click.command("kernels")
@click.argument("model")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Samples of the step.")
@click.option("--precision", type=click.Choice(["fp32", "amp"]), default="fp32", show_default=True)
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option("--input", "shape", metavar="CxHxW", help="Shape of a sample; default the network's own.")
@click.option("--counters", is_flag=True, help="From the hardware's counters, by Nsight Compute (ncu).")
@click.option("--out", metavar="DIR", help="Write efficiency.json and the figure (SVG, PNG) there.")
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
    """Run one training step of MODEL on this machine's device and show at which efficiency its time is spent.

    A kernel's efficiency is the largest of its use of tensor cores, other cores and memory; time × efficiency is what a perfect
    implementation would take. Needs torch. MODEL is one of those that 'tierscope require' knows.
    """
    from tierscope.spec.option_values import read_shape  # noqa: PLC0415
    from tierscope.train.kernels import measure_efficiency, to_json  # noqa: PLC0415

    sides = read_shape(shape) if shape else None
    folder = None
    if out is not None:
        from tierscope.commands.kernels import claim_efficiency, write_efficiency  # noqa: PLC0415

        folder = claim_efficiency(out)
    found = measure_efficiency(model, batch, precision, device, sides, counters)
    written = [] if folder is None else write_efficiency(found, folder)
    if as_json:
        common.print_json(to_json(found))
        return
    from tierscope.report.kernels import EfficiencyView  # noqa: PLC0415

    common.print_rich(EfficiencyView(found.title, found.histogram, found.slowest))
    if written:
        from tierscope.report.png import png_problem  # noqa: PLC0415

        for path in written:
            common.say_written(path)
        if png_problem():
            click.echo(f"No PNG: {png_problem()}")
