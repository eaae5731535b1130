"""What shuffling buys, for the terminal: accuracy beside I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.shuffling import TARGET, ShuffleRow, Shuffling, about_shuffling, network_text
from tierscope.report.parts import Column, Unit, finding_lines, fitting, table
from tierscope.units import about_bytes, counted


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


@dataclass(frozen=True, slots=True)
class ShufflingView:
    found: Shuffling

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        yield Text(
            f"What shuffling buys: {found.data.name}, {counted(found.ranks, 'emulated rank')}, {counted(found.epochs, 'epoch')}, "
            f"{counted(found.seeds, 'seed')}; I/O simulated on {found.system}",
            style="bold",
        )
        for network in dict.fromkeys(row.network for row in found.rows):
            yield Text(f"One hidden layer, {network_text(network)}", style="bold")
            rows = [row for row in found.rows if row.network == network]
            yield table(fitting(_columns(rows), options.max_width))
        yield Text(
            f"Accuracy: median and range over seeds after the last epoch, on {found.data.test_samples} digits that nobody trained on. "
            f"To {100 * TARGET:.0f} %: epochs until the median reaches it, and their I/O. "
            f"Files: {found.data.files} of {counted(found.data.samples_per_file, 'sample')}, written class by class (sorted) or shuffled before (random).",
            style="dim",
        )
        yield Text(
            f"I/O: simulated ({found.storage.simulated}), of the slowest process in an epoch of the same plan with samples of {about_bytes(found.sample_bytes)}, on "
            f"{counted(found.storage.nodes, 'node')} with their part of what all share. Needs: of a node's near tier, to read nothing from the far one; its room here is "
            f"{found.storage.near_room_shares:g} times a node's part of the data (pinned files are drawn: on average), and near is the share of samples read from there.",
            style="dim",
        )
        yield from finding_lines(about_shuffling(found))


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
