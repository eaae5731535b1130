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
    histogram: Histogram
    slowest: tuple[Kernel, ...]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        histogram, total = self.histogram, self.histogram.total_seconds
        yield Text(f"{self.title}: one step, by {histogram.source}", style="bold")
        time = Unit.of(max(histogram.seconds))
        most = max(histogram.seconds) or 1.0
        columns = [
            Column("efficiency", [Text(f"{10 * number}–{10 * number + 10} %") for number in range(BINS)]),
            Column(time.name, [time.text(seconds) for seconds in histogram.seconds], "bold"),
            Column("share", [Text(f"{seconds / total:.1%}" if total else "–") for seconds in histogram.seconds]),
            Column(
                f"ideal {time.name}",
                [time.text(ideal) if ideal else Text("–") for ideal in histogram.ideal_by_bin],
                drop=3,
            ),
            Column("kernels by name", [Text(str(count or "–")) for count in histogram.unique_by_bin], drop=2),
            Column(
                "",
                [Text(("█" * round(_WIDTH * seconds / most)).ljust(_WIDTH)) for seconds in histogram.seconds],
                drop=1,
            ),
        ]
        yield table(fitting(columns, options.max_width))
        whole = Unit.of(total)
        potential = f"{histogram.potential:.1f} times as fast" if histogram.ideal_seconds else "infinitely faster"
        yield Text(
            f"{counted(histogram.kernels, 'kernel')}, {whole.text(total)} {whole.name} in total; at full efficiency {whole.text(histogram.ideal_seconds)} "
            f"{whole.name}: a perfect implementation would be {potential}. Measured on one device."
        )
        if self.slowest:
            yield Text("Largest losses:")
            kernel_unit = Unit.of(max(kernel.seconds for kernel in self.slowest))
            yield table(
                fitting(
                    [
                        Column("kernel", [Text(kernel.name[:_NAME]) for kernel in self.slowest]),
                        Column(kernel_unit.name, [kernel_unit.text(kernel.seconds) for kernel in self.slowest], "bold"),
                        Column("tensor", [Text(f"{kernel.tensor:.0%}") for kernel in self.slowest]),
                        Column("FP32", [Text(f"{kernel.fp32:.0%}") for kernel in self.slowest]),
                        Column("memory", [Text(f"{kernel.memory:.0%}") for kernel in self.slowest]),
                    ],
                    options.max_width,
                )
            )
