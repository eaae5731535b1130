"""What shuffling buys, for the terminal: accuracy beside I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.shuffling import TARGET, ShuffleRow, Shuffling, about_shuffling, network_text
from tierscope.report.findings import finding_lines
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.units import about_bytes, counted


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


@dataclass(frozen=True, slots=True)
class ShufflingView:
    shuffling: Shuffling
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        shuffling = self.shuffling
        yield Text(
            f"Shuffling: {shuffling.data.name}, {counted(shuffling.ranks, 'emulated rank')}, {counted(shuffling.epochs, 'epoch')}, "
            f"{counted(shuffling.seeds, 'seed')}; I/O simulated on {shuffling.system}",
            style="bold",
        )
        for network in dict.fromkeys(row.network for row in shuffling.rows):
            yield Text(f"One hidden layer, {network_text(network)}", style="bold")
            rows = [row for row in shuffling.rows if row.network == network]
            yield table(fitting(_columns(rows), options.max_width))
        yield Text(
            f"Accuracy: median and range over seeds after the last epoch, on {shuffling.data.test_samples} held-out digits. "
            f"To {100 * TARGET:.0f} %: epochs until the median reaches it, and their I/O. "
            f"Files: {shuffling.data.files} of {counted(shuffling.data.samples_per_file, 'sample')}, sorted by class (sorted) or shuffled before writing (random).",
            style="dim",
        )
        yield Text(
            f"I/O: simulated ({shuffling.storage.simulated}), of the slowest process in an epoch of the same plan with samples of {about_bytes(shuffling.sample_bytes)}, on "
            f"{counted(shuffling.storage.nodes, 'node')} with their share of the storage. Needs: space on a node's near tier to avoid the far tier; its capacity here is "
            f"{shuffling.storage.near_room_shares:g} times a node's share of the data (pinned files are drawn at random), and near is the fraction of samples read from it.",
            style="dim",
        )
        yield from finding_lines(about_shuffling(shuffling), self.show_all)


def _columns(rows: Sequence[ShuffleRow]) -> list[Column]:
    time = Unit.of(max(row.io.median for row in rows))
    most = Unit.of(max((row.io_to_target or 0.0 for row in rows), default=0.0))
    return [
        Column("files", [Text(row.layout) for row in rows], right=False),
        Column("batch", [Text(str(row.batch)) for row in rows]),
        Column("shuffle", [Text(row.shuffle.text) for row in rows], right=False),
        Column("accuracy %", [Text(percent(row.last)) for row in rows], "bold"),
        Column("range", [Text(f"{percent(row.lows[-1])}–{percent(row.highs[-1])}") for row in rows], "dim", drop=3),
        Column(f"to {100 * TARGET:.0f} %", [_epochs(row) for row in rows], drop=4),
        Column(f"I/O {time.name}/epoch", [time.text(row.io.median) for row in rows], "bold"),
        Column(f"I/O {most.name} until then", [most.text(row.io_to_target) for row in rows], drop=2),
        Column("needs/node", [Text(about_bytes(row.io.needed_bytes)) for row in rows]),
        Column("near", [Text(f"{100 * row.io.near_share:.0f} %") for row in rows], drop=1),
    ]


def _epochs(row: ShuffleRow) -> Text:
    return Text("never" if row.epochs_to_target is None else counted(row.epochs_to_target, "epoch"))
