import click

from tierscope.cli import common


@click.command("require")
@click.argument("model")
@click.option("--system", metavar="NAME|FILE", help="A known system with its hardware, or a file of yours ('tierscope presets' lists them).")  # fmt: skip
@click.option("--batch", default="1", show_default=True, metavar="N,…", help="Of one accelerator; the first one is used for movement and scaling.")  # fmt: skip
@click.option("--precision", type=click.Choice(["fp32", "amp"]), default="fp32", show_default=True, help="amp: 16-bit matrix products with 32-bit weights.")  # fmt: skip
@click.option("--nodes", metavar="A..B|N,…", help="A..B: powers of two between them; default: up to the system's.")
@click.option("--optimizer", type=click.Choice(["sgd", "adam", "none"]), default="sgd", show_default=True, help="Whose state is kept: one moment of each parameter, two, none.")  # fmt: skip
@click.option("--kept", type=click.Choice(["autograd", "outputs", "fused", "products"]), default="autograd", show_default=True, help="The rule by which kept activations are counted (docs/requirements.md).")  # fmt: skip
@click.option("--checkpointed", is_flag=True, help="Activations are computed again in the backward pass instead of kept.")  # fmt: skip
@click.option("--compression", metavar="RATIO[:RATE]", help="Of samples on storage, and bytes of samples that a node unpacks per second: 4:2GB/s.")  # fmt: skip
@click.option("--servers", type=click.IntRange(1, 10**6), default=1, show_default=True, help="Parameter servers to compare the ring with.")  # fmt: skip
@click.option("--weak", is_flag=True, help="A node's share of the data stays as it is with all nodes of the system.")
@click.option("--input", "input_", metavar="CxHxW", help="Shape of a sample, channels first; needed for MODULE:FUNCTION.")  # fmt: skip
@click.option("--samples", type=click.IntRange(1, 10**15), help="Of the training set; default: the network's own.")
@click.option("--sample-file-bytes", metavar="SIZE", help="What storage must deliver for each sample.")
@click.option("--layers", is_flag=True, help="Every layer too.")
@click.option("--out", metavar="DIR", help="Write a page (requirements.html), requirements.json and figures (SVG, PNG) there.")  # fmt: skip
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
    layers: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """What training MODEL demands of a system, from its layers alone: memory, operations, bytes, scaling; and whether storage matters.

    MODEL is cosmoflow, deepcam, resnet50, resnet101, alexnet or lenet5, or MODULE:FUNCTION that builds a network of torch.

    For example: tierscope require cosmoflow --system cori-gpu --batch 1,2,4,8 --precision amp --nodes 1..64
    """
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
        ),
    )
    written = None
    if out is not None:
        from tierscope.report.requirements_files import write_requirements  # noqa: PLC0415

        written = write_requirements(answer.found, answer.findings, answer_json(answer, layers), out)
    if as_json:
        common.print_json(answer_json(answer, layers))
        return
    from tierscope.report.requirements import RequirementsView  # noqa: PLC0415

    common.print_rich(RequirementsView(answer.found, answer.findings, layers))
    if written is not None:
        common.say_page(written)
