import click

from tierscope.cli import common


@click.command("shuffling")
@click.option("--ranks", type=click.IntRange(1, 10**6), default=64, show_default=True, help="Emulated in one process; each has a file of its own to begin with.")  # fmt: skip
@click.option("--ranks-per-node", type=click.IntRange(1, 1024), default=4, show_default=True, help="They share a near tier.")  # fmt: skip
@click.option("--batch", default="4,16", show_default=True, metavar="N,…", help="Samples per step and rank.")
@click.option("--epochs", type=click.IntRange(1, 1000), default=20, show_default=True, help="Of every training.")
@click.option("--shuffle", default="global,chunked,local", show_default=True, metavar="NAME,…", help="Which ones to compare.")  # fmt: skip
@click.option("--shuffle-nodes", metavar="N,…", help="Nodes that share a chunk, where chunked; default: 1,4 where there are more.")  # fmt: skip
@click.option("--layout", default="sorted,random", show_default=True, metavar="NAME,…", help="How files were written: class by class, or shuffled before.")  # fmt: skip
@click.option("--network", default="ghost,plain", show_default=True, metavar="NAME,…", help="ghost: with batch normalisation over each rank's own batch; plain: without.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Trainings of each kind.")
@click.option("--system", default="fugaku", show_default=True, metavar="NAME|FILE", help="Where the I/O is simulated ('tierscope presets' lists them).")  # fmt: skip
@click.option("--sample-bytes", default="128 KiB", show_default=True, metavar="SIZE", help="Of a sample, in the simulation of its I/O.")  # fmt: skip
@click.option("--near-room", type=click.FloatRange(0, 10**6), default=2.0, show_default=True, help="Of a node's near tier: so many times its part of the data.")  # fmt: skip
@click.option("--out", metavar="DIR", help="Write shuffling.json and the figures there.")
@common.quiet_option
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
    """What shuffling buys: a small real task learnt in the order of global, chunked and local shuffle, beside the I/O time of each.

    The task is scikit-learn's digits; the orders are those that `run` reads and `simulate` simulates.

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
        found = shuffling(wanted, watch)
    written = None if folder is None else write_shuffling(found, folder)
    if as_json:
        from tierscope.analysis.shuffling import shuffling_json  # noqa: PLC0415

        common.print_json(shuffling_json(found))
        return
    from tierscope.report.shuffling import ShufflingView  # noqa: PLC0415

    common.print_rich(ShufflingView(found))
    if written is not None:
        for path in written.paths:
            common.say_written(path)
        if written.problem:
            click.echo(f"No PNG: {written.problem}")
