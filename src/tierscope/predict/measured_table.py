"""A table of published measurements: what training on some ranks took, as figures that a simulation has too.

A CSV with a header. Columns by these names (case and spaces do not matter); others are kept for choosing rows only:

    ranks              ranks, n_ranks, accelerators, num_accelerators, accelerators_or_ranks, processes
    nodes              nodes, hosts, num_hosts, clients; or ranks_per_node, acc_per_host, ppn. Without either: one node
    first batch        first_batch_mean_s, first_load_mean_s; first_batch_max_s, first_load_max_s: seconds, mean and max over ranks
    AU                 au_percent, au_mean, au_mean_pct, metric_au_pct, train_au_mean_percentage: percent; au_share: of 1. DLIO's AU
    epoch              epoch_seconds, epoch_s, epoch_or_ckpt_seconds: several with spaces between them; the first of several is special and left out
    throughput         bytes_per_second; mbps, mbps_mean (MB of 2**20 bytes, as DLIO and MLPerf Storage have it); samples_per_s
    of the study       files, num_files_train; steps, steps_per_epoch; read_threads; batch_size; provisioned_mbps (10**6 bytes, of all storage together)

Rows with the same ranks, nodes and settings are repetitions: their mean is taken, and its standard error kept.
"""

import csv
import io
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.plain_files import read_plain
from tierscope.predict.table_workloads import named_workloads
from tierscope.units import closest, counted

FIRST_MEAN, FIRST_MAX, SHARE, EPOCH, THROUGHPUT, SAMPLES = (
    "first_batch_mean_seconds",
    "first_batch_max_seconds",
    "au",
    "epoch_seconds",
    "bytes_per_second",
    "samples_per_second",
)
FIGURES = (FIRST_MEAN, FIRST_MAX, SHARE, EPOCH, THROUGHPUT, SAMPLES)
MOST_BYTES, MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 32 << 20, 100_000, 1_000, 4_000_000
_MOST_LISTED, _MOST_SHOWN = 12, 80
_RANKS = ("ranks", "n_ranks", "accelerators", "num_accelerators", "accelerators_or_ranks", "processes")
_NODES = ("nodes", "hosts", "num_hosts", "clients")
_EACH = ("ranks_per_node", "acc_per_host", "ppn")
_COLUMNS: dict[str, tuple[tuple[str, float], ...]] = {  # figure → names of columns, and what one of their unit is of ours
    FIRST_MEAN: (("first_batch_mean_s", 1), ("first_batch_mean_seconds", 1), ("first_load_mean_s", 1)),
    FIRST_MAX: (("first_batch_max_s", 1), ("first_batch_max_seconds", 1), ("first_load_max_s", 1)),
    SHARE: (
        *((name, 0.01) for name in ("au_percent", "au_mean", "au_mean_pct", "metric_au_pct", "train_au_mean_percentage")),
        ("au_share", 1),
    ),
    EPOCH: (("epoch_seconds", 1), ("epoch_s", 1), ("epoch_or_ckpt_seconds", 1)),
    THROUGHPUT: (("bytes_per_second", 1), ("mbps", 2.0**20), ("mbps_mean", 2.0**20)),
    SAMPLES: (("samples_per_s", 1), ("samples_per_second", 1)),
}  # fmt: skip
SETTINGS = {
    "files": "workload.dataset.num_files_train",
    "num_files_train": "workload.dataset.num_files_train",
    "read_threads": "workload.reader.read_threads",
    "batch_size": "workload.reader.batch_size",
    "steps": "steps",
    "steps_per_epoch": "steps",
    "steps_per_epoch_or_ckpt": "steps",
    "provisioned_mbps": "provisioned",
}
_UNCLEAR = {  # names that people write → what they leave open
    "au": "its unit; name it au_percent (90) or au_share (0.9)",
    "seconds": "of what; name it epoch_seconds, first_batch_mean_s or first_batch_max_s",
    "bandwidth": "its unit; name it bytes_per_second, or mbps (MB of 2**20 bytes)",
    "throughput": "its unit; name it bytes_per_second, mbps (MB of 2**20 bytes) or samples_per_s",
}
_NOT_TOLD_APART = ("path", "file", "config", "run", "date", "note", "notebook")  # name a row, not a system
_CONDITION = re.compile(r"([^<>=!~]+)(<=|>=|!=|==?|<|>|~)(.*)", re.DOTALL)
_LEAST, _MOST = 1e-9, 1e18  # of measurements, in their own units: less is a slip, and would make quotients infinite


@dataclass(frozen=True, slots=True)
class MeasuredFigures:
    """What was measured with so many ranks: figure → mean and its standard error (0: of one row). `settings`: keys of the study, or `steps`, `provisioned`."""

    nodes: int
    ranks: int
    figures: Mapping[str, tuple[float, float]]
    settings: Mapping[str, int]
    rows: int

    @property
    def name(self) -> str:
        return f"{self.ranks} ranks on {self.nodes} nodes" if self.nodes > 1 else counted(self.ranks, "rank")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """All of a table that was chosen, fewest ranks first. `mixed`: columns of words that differ from point to point, with some of the words; `workloads`: columns that name known ones."""

    name: str
    points: tuple[MeasuredFigures, ...]
    mixed: tuple[str, ...] = ()
    workloads: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def figures(self) -> tuple[str, ...]:
        return tuple(figure for figure in FIGURES if any(figure in point.figures for point in self.points))


Row = Mapping[str, str]
Place = int | str  # a line of the table, or the file that the row was read from


def read_table(path: str, where: Sequence[str] = ()) -> MeasuredTable:
    """A CSV file; `where`: COLUMN=VALUE, also with <=, >=, <, >, != and ~ (contains)."""
    return table_of(path, rows_of(path), where)


def rows_of(path: str) -> list[tuple[Place, Row]]:
    """Line numbers and cells by the column's name in small letters."""
    lines = csv.reader(io.StringIO(_text_of(path), newline=None))
    try:
        header = _header(path, next(lines, []))
        rows: list[tuple[Place, Row]] = []
        for cells in lines:
            if len(rows) == MOST_ROWS:
                raise UserError(f"{path}: has more than {MOST_ROWS:,} rows; use fewer")
            if (len(rows) + 1) * len(header) > MOST_CELLS:
                raise UserError(
                    f"{path}: {len(header):,} columns make more than {MOST_CELLS:,} cells; remove columns that are not measurements"
                )
            if any(cell.strip() for cell in cells):
                if any(cell.strip() for cell in cells[len(header) :]):
                    raise UserError(
                        f"{path}: line {lines.line_num}: has {len(cells)} cells, the header {len(header)}; put quotes around cells with commas"
                    )
                row = dict.fromkeys(header, "")  # a row may be shorter than the header
                rows.append((lines.line_num, row | dict(zip(header, (cell.strip() for cell in cells), strict=False))))
    except csv.Error as error:
        raise UserError(f"{path}: line {lines.line_num}: {error}; use a CSV file") from None
    if header and not rows:
        raise UserError(f"{path}: contains no rows below its header; add one for each measurement")
    return rows


def _text_of(path: str) -> str:
    """What may be a table."""
    try:
        text = read_plain(path, MOST_BYTES, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; use a CSV file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; use a CSV file of measurements") from None
    if not text.strip():
        raise UserError(f"{path}: is empty; use a CSV file of measurements, with a header")
    if text.lstrip()[0] in "{[":
        raise UserError(f"{path}: is JSON, not CSV; name the directory of DLIO's or mlpstorage's results instead")
    return text


def _header(path: str, names: Sequence[str]) -> list[str]:
    """Every column once: of two with a name it is not known which counts."""
    if len(names) > MOST_COLUMNS:
        raise UserError(f"{path}: has more than {MOST_COLUMNS:,} columns; remove those that are not measurements")
    header = [_plain(name) for name in names]
    if len(header) == 1 and (other := next((sign for sign in ";\t|" if sign in names[0]), None)):
        raise UserError(
            f"{path}: its columns are separated by {'tabs' if other == chr(9) else repr(other)}; separate them by commas"
        )
    twice = [name for name, times in Counter(header).items() if name and times > 1]
    if twice:
        raise UserError(f"{path}: has two columns {twice[0][:40]}; remove one")
    return header


def _plain(name: str) -> str:
    return "_".join(name.strip().lower().split())


def table_of(name: str, rows: Sequence[tuple[Place, Row]], where: Sequence[str] = ()) -> MeasuredTable:
    _refuse_missing_columns(name, rows)
    chosen = [(line, row) for line, row in rows if all(_holds(name, row, condition) for condition in where)]
    if not chosen:
        raise UserError(f"{name}: no row is left{f' by --where {where[0]}' if where else ''}; choose others")
    groups: dict[tuple[object, ...], list[tuple[Place, Row]]] = {}
    for line, row in chosen:
        nodes, ranks = _shape(name, line, row)
        groups.setdefault((ranks, nodes, *sorted(_settings(name, line, row).items())), []).append((line, row))
    points = sorted((_point(name, group) for group in groups.values()), key=lambda point: (point.ranks, point.nodes))
    named = named_workloads([row for _, row in chosen])
    return MeasuredTable(name, tuple(point for point in points if point.figures), _mixed(chosen), named)


def _mixed(rows: Sequence[tuple[Place, Row]]) -> tuple[str, ...]:
    """Points of a table are taken for one system: these columns say that they are of several."""
    mixed = []
    for column in rows[0][1]:
        words = _words(column, rows)
        if len(words) > 1:
            shown = ", ".join(text[:_MOST_SHOWN] for text in words[:2])
            mixed.append(f"{column[:_MOST_SHOWN]} ({shown}{', …' if len(words) > 2 else ''})")
    return tuple(mixed)


def _words(column: str, rows: Sequence[tuple[Place, Row]]) -> list[str]:
    """What a column says in words, where words are of a system; none where it has numbers, or names rows."""
    if column in _NOT_TOLD_APART:
        return []
    texts = sorted({row.get(column, "") for _, row in rows})
    return [text for text in texts if text and any(_number(part) is None for part in text.split())]


def _at(name: str, place: Place) -> str:
    return place if isinstance(place, str) else f"{name}: line {place}"


def _refuse_missing_columns(name: str, rows: Sequence[tuple[Place, Row]]) -> None:
    columns = {column for _, row in rows for column in row}
    if not columns & set(_RANKS):
        raise UserError(f"{name}: has no column with the number of ranks; add one of {', '.join(_RANKS)}")
    known = [column for columns in _COLUMNS.values() for column, _ in columns]
    unclear = [column for column in _UNCLEAR if column in columns]
    if unclear and not columns & set(known):
        raise UserError(f"{name}: column {unclear[0]} does not say {_UNCLEAR[unclear[0]]}")
    if not columns & set(known):
        raise UserError(f"{name}: has no column with a measurement; add one of {', '.join(known)}")


def _holds(name: str, row: Row, condition: str) -> bool:
    match = _CONDITION.fullmatch(condition)
    if match is None or not match[1].strip():
        raise UserError(f"--where {condition}: must be COLUMN=VALUE, also with <=, >=, <, >, != or ~ (contains)")
    column, sign, value = _plain(match[1]), "=" if match[2] == "==" else match[2], match[3].strip()
    if column not in row:
        guess = closest(column, row)
        raise UserError(
            f"--where {condition}: {name} has no column {column}; {f'did you mean {guess}?' if guess else 'columns: ' + _listed(row)}"
        )
    cell = row[column]
    if sign == "~":
        return value.lower() in cell.lower()
    numbers = _number(cell), _number(value)
    if sign in ("=", "!="):
        same = numbers[0] == numbers[1] if None not in numbers else cell == value
        return same == (sign == "=")
    if numbers[1] is None:
        raise UserError(f"--where {condition}: {value} is not a number; use =, != or ~")
    if numbers[0] is None:
        return False
    less, equal = numbers[0] < numbers[1], numbers[0] == numbers[1]
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[sign]


def _listed(row: Row) -> str:
    names = [name[:40] for name in row]
    return ", ".join(names[:_MOST_LISTED]) + (", …" if len(names) > _MOST_LISTED else "")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= _MOST else None


def _whole(name: str, line: Place, row: Row, columns: Sequence[str]) -> int | None:
    """The first of these columns that says something; None: none does."""
    for column in columns:
        if text := row.get(column, ""):
            number = _number(text)
            if number is None or number != int(number) or not 1 <= number <= 10**12:
                raise UserError(f"{_at(name, line)}: {column} = {text[:_MOST_SHOWN]}; must be a whole number above 0")
            return int(number)
    return None


def _shape(name: str, line: Place, row: Row) -> tuple[int, int]:
    ranks, nodes, per_node = (_whole(name, line, row, columns) for columns in (_RANKS, _NODES, _EACH))
    if ranks is None:
        raise UserError(f"{_at(name, line)}: has no number of ranks; fill in one of {', '.join(_RANKS)}")
    nodes = nodes or (-(-ranks // per_node) if per_node else 1)
    if ranks % nodes:
        raise UserError(
            f"{_at(name, line)}: {counted(ranks, 'rank')} cannot be spread evenly over {nodes} nodes; correct one of them"
        )
    return nodes, ranks


def _settings(name: str, line: Place, row: Row) -> dict[str, int]:
    settings = {}
    for column, key in SETTINGS.items():
        text = row.get(column, "")
        if _number(text) is not None and (value := _whole(name, line, row, (column,))) is not None:
            settings[key] = value
    return settings


def _point(name: str, group: Sequence[tuple[Place, Row]]) -> MeasuredFigures:
    _refuse_mixed(name, group)
    line, row = group[0]
    nodes, ranks = _shape(name, line, row)
    values: dict[str, list[float]] = {}
    for row_line, cells in group:
        for figure, value in _values(name, row_line, cells):
            values.setdefault(figure, []).append(value)
    figures = {figure: (statistics.fmean(samples), _error(samples)) for figure, samples in values.items()}
    return MeasuredFigures(nodes, ranks, figures, _settings(name, line, row), len(group))


def _error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _refuse_mixed(name: str, group: Sequence[tuple[Place, Row]]) -> None:
    """Repetitions are of one system: where a column of words differs, they are of several."""
    for column in group[0][1]:
        words = _words(column, group)
        if len(words) > 1:
            shown, first, second = column[:_MOST_SHOWN], words[0][:_MOST_SHOWN], words[1][:_MOST_SHOWN]
            raise UserError(
                f"{name}: rows with the same ranks have {shown} {first} and {second}; they would be averaged: choose one with --where {shown}={first}"
            )


def _values(name: str, line: Place, row: Row) -> Iterator[tuple[str, float]]:
    """Every figure of a row in our units, each checked; the first column that has it counts."""
    for figure, columns in _COLUMNS.items():
        for column, unit in columns:
            if text := row.get(column, ""):
                yield figure, _value(name, line, column, text, figure) * unit
                break
    if row.get("throughput_unit", "").lower() in ("mib/s", "gib/s") and (text := row.get("throughput", "")):
        unit = {"mib/s": 2.0**20, "gib/s": 2.0**30}[row["throughput_unit"].lower()]
        yield THROUGHPUT, _value(name, line, "throughput", text, THROUGHPUT) * unit


def _value(name: str, line: Place, column: str, text: str, figure: str) -> float:
    numbers = [_number(part) for part in text.split()] if figure == EPOCH else [_number(text)]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers) or min(known) < _LEAST:
        raise UserError(
            f"{_at(name, line)}: {column} = {text[:_MOST_SHOWN]}; must be a number above 0, at least {_LEAST:g}"
        )
    value = statistics.fmean(known[1:] or known)
    most = {"au_share": 1.0}.get(column, 100.0)
    if figure == SHARE and most > 1 and value <= 1:
        raise UserError(
            f"{_at(name, line)}: {column} = {text[:_MOST_SHOWN]}; must be in percent; a share of 1 is in a column au_share"
        )
    if figure == SHARE and value > most:
        raise UserError(
            f"{_at(name, line)}: {column} = {text[:_MOST_SHOWN]}; AU cannot be above {most:g}{' %' if most > 1 else ''}"
        )
    return value
