"""Systems made of other benchmarks' files, for the terminal and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.jsonable import JsonObject
from tierscope.probe.from_files import ImportedSystem, summary
from tierscope.report.parts import Column, fitting, table
from tierscope.spec.figures import number_keys
from tierscope.spec.schema import Key

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ImportedView:
    """Every figure with its interval and source; of a whole table one line for each row."""

    systems: Sequence[ImportedSystem]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if len(self.systems) == 1 and self.systems[0].known is not None:
            yield from self._system(self.systems[0], options.max_width)
            return
        for imported in self.systems:
            yield Text(summary(imported), style="dim" if imported.known is None else "")
        made = sum(imported.known is not None for imported in self.systems)
        yield Text(f"{made} of {len(self.systems)} rows can be used as a system; choose one with --row", style="bold")

    def _system(self, imported: ImportedSystem, width: int) -> RenderResult:
        known = imported.known
        assert known is not None
        keys = number_keys(known.system)
        rows = list(known.figures.items())
        yield table(
            fitting(
                [
                    Column(imported.name, [Text(path) for path, _ in rows], right=False),
                    Column("", [Text("at least" if path in imported.at_least else "") for path, _ in rows]),
                    Column("value", [Text(keys[path].kind.format(figure.value)) for path, figure in rows], "bold"),
                    Column(
                        "range", [Text(_range(keys[path], figure.low, figure.high)) for path, figure in rows], "dim"
                    ),
                    Column("source", [Text(figure.text) for _, figure in rows], "dim", right=False, drop=1),
                ],
                width,
            )
        )
        for note in imported.notes:
            yield Text(f"Note: {note}")


def _range(key: Key, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "–"
    return f"{'open' if low is None else key.kind.format(low)} – {'open' if high is None else key.kind.format(high)}"


def imported_json(systems: Sequence[ImportedSystem]) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "imported_systems",
        "systems": [_json(imported) for imported in systems],
        "findings": [],
    }


def _json(imported: ImportedSystem) -> JsonObject:
    figures = {} if imported.known is None else imported.known.figures
    return {
        "name": imported.name,
        "refused": imported.refused or None,
        "figures": {
            path: {
                "value": figure.value,
                "low": figure.low,
                "high": figure.high,
                "at_least": path in imported.at_least,
                "source": figure.text,
            }
            for path, figure in figures.items()
        },
        "notes": list(imported.notes),
    }
