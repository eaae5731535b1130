import click

from tierscope.cli import common
from tierscope.cli.showing import all_option, shows_all


@click.command("shuffling")
@click.option("--ranks", type=click.IntRange(1, 10**6), default=64, show_default=True, help="Emulated ranks, in one process; each starts with one file.")  # fmt: skip
@click.option("--ranks-per-node", type=click.IntRange(1, 1024), default=4, show_default=True, help="Ranks that share a near tier.")  # fmt: skip
@click.option("--batch", default="4,16", show_default=True, metavar="N,…", help="Samples per step and rank.")
@click.option("--epochs", type=click.IntRange(1, 1000), default=20, show_default=True, help="Epochs per training.")
@click.option("--shuffle", default="global,chunked,local", show_default=True, metavar="NAME,…", help="Shuffles to compare.")  # fmt: skip
@click.option("--shuffle-nodes", metavar="N,…", help="Nodes that share a chunk, for chunked; default: 1,4 if there are more nodes.")  # fmt: skip
@click.option("--layout", default="sorted,random", show_default=True, metavar="NAME,…", help="Order of samples in files: sorted by class, or random.")  # fmt: skip
@click.option("--network", default="ghost,plain", show_default=True, metavar="NAME,…", help="ghost: with batch normalisation over each rank's own batch; plain: without.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Trainings per combination.")
@click.option("--system", default="fugaku", show_default=True, metavar="NAME|FILE", help="System for the simulated I/O (see 'tierscope presets').")  # fmt: skip
@click.option("--sample-bytes", default="128 KiB", show_default=True, metavar="SIZE", help="Sample size for the simulated I/O.")  # fmt: skip
@click.option("--near-room", type=click.FloatRange(0, 10**6), default=2.0, show_default=True, help="Capacity of a node's near tier, as a multiple of the node's share of the data.")  # fmt: skip
@click.option("--out", metavar="DIR", help="Write shuffling.json and the figures to this directory.")
@common.quiet_option
@all_option
@common.json_option
def command(  # noqa: PLR0913, PLR0917  (one per option)
    ranks: int,
    ranks_per_node: int,
    batch: str,
    epochs: int,
    shuffle: str,
    shuffle_nodes: str | None,
    layout: str,
    network: str,
    seeds: int,
    system: str,
    sample_bytes: str,
    near_room: float,
    out: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare global, chunked and local shuffle: accuracy of a small real training task, and simulated I/O time.

    The task is scikit-learn's digits, read in the same order as by 'tierscope run' and 'tierscope simulate'.

    For example: tierscope shuffling --ranks 64 --batch 4,16 --out results/shuffling
    """
    from tierscope.analysis.shuffling import KIND  # noqa: PLC0415
    from tierscope.cli.progress import watching  # noqa: PLC0415
    from tierscope.commands.shuffling import ShufflingOptions, shuffling, write_shuffling  # noqa: PLC0415
    from tierscope.report.folder import claim_folder  # noqa: PLC0415

    folder = None if out is None else claim_folder(out, KIND)
    wanted = ShufflingOptions(
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        batch=batch,
        epochs=epochs,
        shuffle=shuffle,
        shuffle_nodes=shuffle_nodes,
        layout=layout,
        network=network,
        seeds=seeds,
        system=system,
        sample_bytes=sample_bytes,
        near_room=near_room,
    )
    with watching(quiet) as watch:
        result = shuffling(wanted, watch)
    written = None if folder is None else write_shuffling(result, folder)
    if as_json:
        from tierscope.analysis.shuffling import shuffling_json  # noqa: PLC0415

        common.print_json(shuffling_json(result))
        return
    from tierscope.report.shuffling import ShufflingView  # noqa: PLC0415

    common.print_rich(ShufflingView(result, shows_all()))
    if written is not None:
        for path in written.paths:
            common.say_written(path)
        if written.problem:
            click.echo(f"No PNG: {written.problem}")
