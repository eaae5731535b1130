"""Local shuffle, from the Hierarchy study's discussion: chunks larger than the LFS holds (H-D-3), and what local shuffle costs in accuracy (H-D-9)."""

from itertools import pairwise
from statistics import median

from tierscope.analysis.shuffling import CHUNKED, GLOBAL, LOCAL, Shuffle
from tierscope.commands.shuffling import ShufflingOptions, shuffling
from tierscope.errors import UserError
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import Verdict
from tierscope.predict.shuffling_io import ShufflingLayout, part_of_system, simulated_io
from tierscope.watch import Silent

RANKS, RANKS_PER_NODE, SAMPLES, BATCH = 256, 4, 192, 12
NODES = RANKS // RANKS_PER_NODE
ROOM = 2.0  # the LFS of a node holds so many times the node's share of the data
CHUNKS, FEW_CHUNKS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 8, 64)
SEEDS, FEW_SEEDS = range(1, 6), range(1, 3)
EPOCHS, FEW_EPOCHS = 20, 10


def make(short: bool) -> Section:
    chunked, figure, table = _chunks(FEW_CHUNKS if short else CHUNKS, FEW_SEEDS if short else SEEDS)
    return Section((chunked, _accuracy(short)), (figure,), (table,))


def _chunks(chunks: tuple[int, ...], seeds: range) -> tuple[Verdict, PaperFigure, PaperTable]:
    layout = ShufflingLayout(
        ranks=RANKS,
        samples_per_rank=SAMPLES,
        sample_bytes=128 * 1024,
        epochs=3,
        known=part_of_system("fugaku", NODES, RANKS_PER_NODE),
        room_shares=ROOM,
    )
    ios = {
        chunk: simulated_io(layout, Shuffle(GLOBAL) if chunk == NODES else Shuffle(CHUNKED, chunk), BATCH, seeds)
        for chunk in chunks
    }
    larger = [chunk for chunk in chunks if chunk > ROOM]
    both = [chunk for chunk in larger if 0 < ios[chunk].near_share < 1]
    shares = [ios[chunk].near_share for chunk in larger]
    falls = all(after < before for before, after in pairwise(shares))
    verdict = Verdict(
        "H-D-3",
        f"chunks of {larger[0]} to {larger[-1]} nodes, of which the LFS holds {shares[0]:.0%} to {shares[-1]:.0%}: both tiers are read; I/O {median(ios[larger[0]].seconds):.2f} to "
        f"{median(ios[larger[-1]].seconds):.2f} s per epoch, n = {len(seeds)} seeds",
        "holds" if both == larger and falls else "does not hold",
        "fitted",
        f"LFS of a node for {ROOM:g} nodes' shares; the larger the chunk (more random), the smaller the share that the LFS holds; {NODES} nodes with their part of the machine",
    )
    lines = tuple(
        (chunk, ios[chunk].needed_bytes / 2**20, ios[chunk].held_bytes / 2**20, ios[chunk].near_share, median(ios[chunk].seconds))
        for chunk in chunks
    )  # fmt: skip
    columns = ("nodes that share a chunk", "LFS needed, MiB per node", "LFS held, MiB per node", "share read from the LFS", "I/O, s per epoch")  # fmt: skip
    table = PaperTable("H-D-3", "chunks", columns, lines, "fitted", "chunked shuffle over both tiers; 64 nodes sharing a chunk is the global shuffle")  # fmt: skip
    caption = f"Nodes that share a chunk against the I/O time of the slowest process and the share read from the LFS, which holds {ROOM:g} nodes' shares. {NODES} nodes of Fugaku with their part of the storage; median over epochs and seeds."  # fmt: skip
    places = tuple(map(float, chunks))
    panels = [
        ChartPanel("(a) I/O time", "nodes", "nodes that share a chunk", "s per epoch", places, (Line("I/O of the slowest process", tuple(median(ios[chunk].seconds) for chunk in chunks), LOOKS[0], 0),)),
        ChartPanel("(b) read from the LFS", "nodes", "nodes that share a chunk", "% of samples", places, (Line("read from the LFS", tuple(100 * ios[chunk].near_share for chunk in chunks), LOOKS[2], 2),)),
    ]  # fmt: skip
    return verdict, PaperFigure("H-D-3", "d3", draw_chart("hierarchy-d3", "Chunks over both tiers", caption, panels), "fitted", caption), table  # fmt: skip


def _accuracy(short: bool) -> Verdict:
    """A small network trained for real, in the very order of the plan."""
    options = ShufflingOptions(
        batch="4",
        shuffle=f"{GLOBAL},{LOCAL}",
        layout="sorted",
        network="ghost",
        epochs=FEW_EPOCHS if short else EPOCHS,
        seeds=len(FEW_SEEDS if short else SEEDS),
    )
    try:
        rows = {row.shuffle.name: row for row in shuffling(options, Silent()).rows}
    except UserError as error:  # scikit-learn is not installed
        return Verdict("H-D-9", "–", "not available here", why=str(error))
    whole, local = rows[GLOBAL], rows[LOCAL]
    return Verdict(
        "H-D-9",
        f"accuracy {100 * local.last:.1f} [{100 * local.lows[-1]:.1f}…{100 * local.highs[-1]:.1f}] % local, {100 * whole.last:.1f} [{100 * whole.lows[-1]:.1f}…{100 * whole.highs[-1]:.1f}] % global; "
        f"I/O {local.io.median:.2f} and {whole.io.median:.2f} s per epoch, n = {options.seeds} seeds",
        "holds" if local.highs[-1] < whole.lows[-1] and whole.io.median > local.io.median else "does not hold",
        "simulated",
        "scikit-learn's digits sorted by class, a small network with batch normalisation per process, 64 emulated processes; I/O simulated. With data in random order on storage the cost is small (shuffling.md)",
    )
