import click

from tierscope.cli import common
from tierscope.cli.require_decoder import decoder_options, shown_as_decoder
from tierscope.cli.seconds_range import SecondsRange
from tierscope.cli.showing import all_option, shows_all


@click.command("require")
@click.argument("model")
@click.option("--system", metavar="NAME|FILE", help="A system with hardware details: a name (see 'tierscope presets') or a file; default for transformers: h200-node.")  # fmt: skip
@click.option("--batch", default="1", show_default=True, metavar="N,…", help="Batch sizes per accelerator; the first is used for data movement and scaling.")  # fmt: skip
@click.option("--precision", type=click.Choice(["fp32", "amp"]), default="fp32", show_default=True, help="amp: 16-bit matrix products with 32-bit weights; the default for transformers.")  # fmt: skip
@click.option(
    "--nodes",
    metavar="A..B|N,…",
    help="Node counts; A..B: powers of two from A to B; default: up to the size of the system.",
)
@click.option("--optimizer", type=click.Choice(["sgd", "adam", "none"]), default="sgd", show_default=True, help="Optimizer state to keep: one moment per parameter (sgd), two (adam), or none.")  # fmt: skip
@click.option("--kept", type=click.Choice(["autograd", "outputs", "fused", "products"]), default="autograd", show_default=True, help="Which activations are kept for the backward pass (docs/requirements.md).")  # fmt: skip
@click.option("--checkpointed", is_flag=True, help="Recompute activations in the backward pass instead of keeping them.")  # fmt: skip
@click.option("--compression", metavar="RATIO[:RATE]", help="Compression ratio of samples on storage, and decompression rate per node, e.g. 4:2GB/s.")  # fmt: skip
@click.option("--servers", type=click.IntRange(1, 10**6), default=1, show_default=True, help="Number of parameter servers, for comparison with ring all-reduce.")  # fmt: skip
@click.option("--weak", is_flag=True, help="Weak scaling: keep the data per node constant.")
@click.option("--input", "input_", metavar="CxHxW", help="Shape of a sample, channels first; required for MODULE:FUNCTION.")  # fmt: skip
@click.option(
    "--samples",
    type=click.IntRange(1, 10**15),
    help="Number of training samples; default: that of the network's dataset.",
)
@click.option("--sample-file-bytes", metavar="SIZE", help="Bytes to read from storage per sample.")
@click.option("--step-seconds", type=SecondsRange(1e-9, 1e6), metavar="TIME", help="Time of one step of the first batch on one accelerator, as you measured it, e.g. 200ms; a bare number is in seconds.")  # fmt: skip
@click.option("--device-file", metavar="FILE", help="Predict the step from a measured device ('tierscope probe --accelerator cuda').")  # fmt: skip
@click.option("--measured", metavar="OUT", help="Take the step from a result of 'tierscope train' or 'tierscope kernels'.")  # fmt: skip
@click.option("--layers", is_flag=True, help="Also show every layer.")
@click.option("--out", metavar="DIR", help="Write a page (requirements.html), requirements.json and figures (SVG, PNG) to DIR.")  # fmt: skip
@decoder_options
@all_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    model: str,
    system: str | None,
    batch: str,
    precision: str,
    nodes: str | None,
    optimizer: str,
    kept: str,
    checkpointed: bool,
    compression: str | None,
    servers: int,
    weak: bool,
    input_: str | None,
    samples: int | None,
    sample_file_bytes: str | None,
    step_seconds: float | None,
    device_file: str | None,
    measured: str | None,
    layers: bool,
    out: str | None,
    as_json: bool,
    **_of_transformers: object,
) -> None:
    """Compute what training MODEL requires of a system, from its layers alone: memory, operations, bytes, scaling, and whether storage matters.

    MODEL is cosmoflow, deepcam, resnet50, resnet101, alexnet or lenet5, or MODULE:FUNCTION that returns a torch network; or a transformer: gpt2, gpt2-medium, gpt2-large, gpt2-xl, llama3-8b, llama3-70b, llama3-405b, or a config (YAML, JSON).

    For example: tierscope require cosmoflow --system cori-gpu --batch 1,2,4,8 --precision amp --nodes 1..64
    """
    if shown_as_decoder(click.get_current_context()):
        return
    from tierscope.commands.require import RequireOptions, answer_json, require  # noqa: PLC0415

    answer = require(
        model,
        RequireOptions(
            system=system,
            batch=batch,
            precision=precision,
            nodes=nodes,
            optimizer=optimizer,
            kept=kept,
            checkpointed=checkpointed,
            compression=compression,
            servers=servers,
            weak=weak,
            input=input_,
            samples=samples,
            sample_file_bytes=sample_file_bytes,
            step_seconds=step_seconds,
            device_file=device_file,
            measured=measured,
        ),
    )
    written = None
    if out is not None:
        from tierscope.report.requirements_files import write_requirements  # noqa: PLC0415

        written = write_requirements(answer.required, answer.findings, answer_json(answer, layers), out)
    if as_json:
        common.print_json(answer_json(answer, layers))
        return
    from tierscope.report.requirements import RequirementsView  # noqa: PLC0415

    common.print_rich(RequirementsView(answer.required, answer.findings, layers, shows_all()))
    if written is not None:
        common.say_page(written)
