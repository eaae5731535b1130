"""The hardware-efficiency histogram, for the terminal."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.arch.efficiency import BINS, Histogram, Kernel
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.units import counted

_WIDTH = 40
_NAME = 48


@dataclass(frozen=True, slots=True)
class EfficiencyView:
    title: str
    found: Histogram
    slowest: tuple[Kernel, ...]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found, total = self.found, self.found.total_seconds
        yield Text(f"{self.title}: one step, by {found.source}", style="bold")
        time = Unit.of(max(found.seconds))
        most = max(found.seconds) or 1.0
        columns = [
            Column("efficiency", [Text(f"{10 * number}–{10 * number + 10} %") for number in range(BINS)]),
            Column(time.name, [time.text(seconds) for seconds in found.seconds], "bold"),
            Column("share", [Text(f"{seconds / total:.1%}" if total else "–") for seconds in found.seconds]),
            Column(
                "", [Text(("█" * round(_WIDTH * seconds / most)).ljust(_WIDTH)) for seconds in found.seconds], drop=1
            ),
        ]
        yield table(fitting(columns, options.max_width))
        whole = Unit.of(total)
        potential = f"{found.potential:.1f} times as fast" if found.ideal_seconds else "faster than can be said"
        yield Text(
            f"{counted(found.kernels, 'kernel')}, {whole.text(total)} {whole.name} in all; at full efficiency {whole.text(found.ideal_seconds)} "
            f"{whole.name}: a perfect implementation would be {potential}."
        )
        if self.slowest:
            yield Text("What loses most:")
            each = Unit.of(max(kernel.seconds for kernel in self.slowest))
            yield table(
                fitting(
                    [
                        Column("kernel", [Text(kernel.name[:_NAME]) for kernel in self.slowest]),
                        Column(each.name, [each.text(kernel.seconds) for kernel in self.slowest], "bold"),
                        Column("tensor", [Text(f"{kernel.tensor:.0%}") for kernel in self.slowest]),
                        Column("FP32", [Text(f"{kernel.fp32:.0%}") for kernel in self.slowest]),
                        Column("memory", [Text(f"{kernel.memory:.0%}") for kernel in self.slowest]),
                    ],
                    options.max_width,
                )
            )
