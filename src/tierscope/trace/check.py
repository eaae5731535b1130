"""What the table and the description of a run may hold. A checksum says that a file is whole, not that we wrote it.

Numbers of epochs, ranks and nodes are those of the study, where the description has it. What others recorded knows less: nulls are
refused only where no writer of ours leaves one.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from tierscope.trace.ops import BINS, CATEGORY
from tierscope.trace.rank_trace import MAX_STEPS
from tierscope.trace.trace import COLUMNS, RunKey

KINDS = ("measured", "simulated", "traced", "imported")
RECORDS = ("io", "rank", "cold")
MOST_SECONDS = 1e12  # sums of them stay numbers
MOST_COUNTED = 2**62
_LARGEST = 2**31 - 1  # of 32 bits
_MOST_EPOCHS = 1 << 20  # where nobody marked them by numbers of their own
_MOST_TIERS = 256
_STEPS = ("step_read_seconds", "step_stall_seconds", "step_compute_seconds")
_LENGTHS = {"size_histogram": BINS, "latency_histogram": BINS, **dict.fromkeys(_STEPS, MAX_STEPS)}
_NEEDED = {
    **dict.fromkeys(("epoch", "node", "rank"), RECORDS),
    "tier": ("io", "cold"),
    **dict.fromkeys(("lane", "kind", "busy_seconds", "ops", "bytes"), ("io",)),
    "checked_bytes": ("cold",),
}
_UNKNOWN = {("traced", "rank"), ("imported", "node")}  # in rows about I/O: processes beside the ranks
_EPOCHS = re.compile(r"^ +epochs: (\d{1,5})$", re.MULTILINE)
_TIER = re.compile(r"[a-z][a-z0-9_]{0,15}")
_SWEPT = re.compile(r"[a-z0-9_]{1,64}(\.[a-z0-9_]{1,64}){0,8}")
_TAKEN = {*COLUMNS, "class", "seconds"} - {"tier"}


def wrong_in_table(table: pl.DataFrame, key: RunKey, about: dict[str, Any]) -> str | None:
    """The first thing in the table that cannot be; `about` is checked."""
    for name, dtype in COLUMNS.items():
        if table.schema.get(name) != dtype:
            return f"column {name} is missing or not {dtype}"
    for wrong in (
        _wrong_rows(table, key, about),
        _wrong_names(table, about),
        _wrong_numbers(table, about),
        _wrong_lists(table),
    ):
        for reason in wrong:
            return reason
    return None


def _wrong_rows(table: pl.DataFrame, key: RunKey, about: dict[str, Any]) -> Iterator[str]:
    records = {name: table["record"] == name for name in RECORDS}
    if not records["rank"].any():
        yield "has no times of ranks"
    if sum(rows.sum() for rows in records.values()) != len(table):
        yield "has an unknown kind of record"
    for name, number in (("point", key.point), ("repetition", key.repetition)):
        if table[name].has_nulls() or (table[name].min(), table[name].max()) != (number, number):
            yield "holds another run than its name says"
    for name, needed in _NEEDED.items():
        missing = table[name].is_null()
        for record in needed if missing.any() else ():
            unknown = record == "io" and (about.get("kind"), name) in _UNKNOWN
            if not unknown and (missing & records[record]).any():
                yield f"{name} is not known everywhere"


def _wrong_names(table: pl.DataFrame, about: dict[str, Any]) -> Iterator[str]:
    if not _found(table, "kind") <= set(CATEGORY):
        yield "has an unknown kind of operation"
    tiers = _found(table, "tier")
    if not all(map(_TIER.fullmatch, tiers)):
        yield "has a tier whose name cannot be"
    if "tiers" in about and not tiers <= {tier["name"] for tier in about["tiers"]}:
        yield "has a tier that its description does not name"
    if not table["order_digest"].drop_nulls().str.contains("^[0-9a-f]{0,128}$").all():
        yield "has an order of samples that cannot be"


def _found(table: pl.DataFrame, column: str) -> set[str]:
    return set(table[column].unique().drop_nulls())


def _wrong_numbers(table: pl.DataFrame, about: dict[str, Any]) -> Iterator[str]:
    for name, low, high in _limits(about):
        if not _within(table[name], low, high):
            yield f"{name} is not within {low} – {high}"
    for name, dtype in COLUMNS.items():
        if dtype == pl.Float64 and not _within(table[name], 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if dtype == pl.Int64 and not _within(table[name], 0, _most_counted(about)):
            yield _bad_counts(name)


def _wrong_lists(table: pl.DataFrame) -> Iterator[str]:
    for name, most in _LENGTHS.items():
        lists = table[name].drop_nulls()  # first: without nulls there is nothing to copy
        entries, lengths = lists.explode(), lists.list.len()
        if (lengths > most).any():
            yield f"{name} has more than {most} entries"
        if entries.count() != lengths.sum():  # an empty list is a null among the entries
            yield f"{name} is not known everywhere"
        if entries.dtype == pl.Float64 and not _within(entries, 0, MOST_SECONDS):
            yield _bad_seconds(name)
        if entries.dtype == pl.Int64 and not _within(entries, 0, MOST_COUNTED):
            yield _bad_counts(name)
    lengths = table[_STEPS[0]].list.len()
    for name in _STEPS[1:]:
        if not lengths.equals(table[name].list.len()):
            yield f"{name} has other steps than {_STEPS[0]}"


def _bad_seconds(name: str) -> str:
    return f"{name} has a negative or non-finite value, or one that is too large"


def _bad_counts(name: str) -> str:
    return f"{name} has a negative value, or one that is too large"


def _within(values: pl.Series, low: float, high: float) -> bool:
    """Nulls are, and NaN is not, though Polars leaves it out of the least and the most."""
    least: Any = values.min()
    most: Any = values.max()
    if least is None:
        return True
    return bool(low <= least and most <= high) and not (values.dtype.is_float() and values.is_nan().any())


def _limits(about: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Of a program that marks its epochs, and of ranks that launchers number, any number is good."""
    ours = about.get("kind") in ("measured", "simulated")
    study = _EPOCHS.search(about.get("study", ""))
    marked = about.get("kind") == "traced"
    yield "epoch", 1, int(study[1]) if ours and study else _LARGEST if marked else _MOST_EPOCHS
    for name, all_of in (("rank", "ranks"), ("node", "nodes")):
        yield name, 0, about[all_of] - 1 if ours and all_of in about else _LARGEST
    yield "lane", 0, _LARGEST


def _most_counted(about: dict[str, Any]) -> int:
    """Importers write down what a log says, as far as it is a number of 64 bits."""
    return 2**63 - 1 if about.get("kind") == "imported" else MOST_COUNTED


def is_description(about: dict[str, Any]) -> bool:
    """Whether all that analyses read from a description is of the right kind."""
    if not all(is_right(about[name]) for name, is_right in _FIELDS.items() if name in about):
        return False
    kind = about.get("kind")
    if kind is not None and not {"sweep", "tiers"} <= about.keys():
        return False
    if kind != "imported" and "habits" in about:  # else they are counted from the table
        return False
    return (kind != "simulated" or "spread" in about) and (kind != "traced" or _is_traced(about))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**64 and math.isfinite(value)


def _is_amount(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= MOST_SECONDS)


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value <= MOST_COUNTED)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and 1 <= value <= _LARGEST


def _are(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, list) and all(map(is_right, values))


def _by_name(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, dict) and all(map(is_right, values.values()))


def _by_epoch(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: _by_name(is_right)(values) and all(re.fullmatch(r"[0-9]{1,10}", name) for name in values)


def _is_share(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and None not in value and all(map(_is_amount, value))


def _is_sweep(values: Any) -> bool:
    return isinstance(values, dict) and all(
        _SWEPT.fullmatch(name)
        and name not in _TAKEN
        and (
            value is None
            or (isinstance(value, str) and value.isprintable() and name != "cache_rate")
            or (_is_number(value) and abs(value) < 2**63)
        )
        for name, value in values.items()
    )


def _are_tiers(values: Any) -> bool:
    if not _are(lambda tier: isinstance(tier, dict) and isinstance(tier.get("name"), str))(values):
        return False
    names = {tier["name"] for tier in values if _TIER.fullmatch(tier["name"])}
    return len(names) == len(values) <= _MOST_TIERS


def _is_station(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("station")) and _is_amount(value.get("seconds", ""))


def _is_training(value: Any) -> bool:
    """A loss may be infinite or not a number: that is news, and no damage."""
    if not value:
        return value is None or value == {}
    return (
        isinstance(value, dict)
        and all(_is_text(value.get(name)) for name in ("network", "device", "software", "arithmetic", "solver", "data"))
        and all(isinstance(value.get(name), float | int) for name in ("first_loss", "last_loss"))
        and all(_is_count(value.get(name)) for name in ("peak_memory_bytes", "predicted_memory_bytes", "repeated"))
    )


def _is_import(value: Any) -> bool:
    """What another profiler's logs of a run of ours were like."""
    return (
        isinstance(value, dict)
        and all(_are(_is_text)(value.get(name) or []) for name in ("unreadable_logs", "damaged_logs", "cut_files"))
        and _are(_is_long_meta)(value.get("long_meta") or [])
        and all(_is_count(value.get(name)) for name in _DOUBTS)
        and _by_name(lambda count: count is not None and _is_count(count))(value.get("partial_modules") or {})
        and _by_name(_is_amount)(value.get("outside_epochs") or {})
    )


def _is_long_meta(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("log")):
        return False
    return all(_is_number(value.get(name)) for name in ("meta_seconds", "run_seconds"))


_DOUBTS = (
    *("negative_times", "impossible_ranks", "broken_lines", "broken_last_lines", "no_names"),
    *("missed_ops", "missed_bytes"),
)
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: value in KINDS,
    "study": _is_text,
    "point": _is_count,
    "sweep": _is_sweep,
    "tiers": _are_tiers,
    "ranks": _is_size,
    "nodes": _is_size,
    "trimmed_samples": _is_count,
    "overhead": _by_name(_is_amount),
    "profiler": _is_text,
    "import": _is_import,
    "provenance": lambda value: isinstance(value, dict),
    "checkpoint": lambda value: isinstance(value, dict) and _is_text(value.get("tier")),
    "training": _is_training,
    "process_count": _is_count,
    "spread": _by_epoch(_is_pair),
    "hit_rate": _by_epoch(_is_share),
    "staging_seconds": _is_amount,
    "stations": _are(_is_station),
}


_COUNTS = (
    "process_count",
    "outside_ops",
    "lost_ops",
    "lost_rows",
    "cut_lanes",
    "still_running",
    "under_way_ops",
    "unemulated_processes",
    "scattered_processes",
    "unrecorded_processes",
    "unrecorded_ops",
    "damaged_file_count",
)


def _is_traced(about: dict[str, Any]) -> bool:
    """Whether the description of a traced command has what is read from it, in the right kind."""
    processes = about.get("processes", [])
    return (
        isinstance(about.get("exit_code") or 0, int)
        and all(_is_count(about.get(name)) for name in _COUNTS)
        and all(_is_amount(about.get(name)) for name in ("span_seconds", "outside_seconds", "under_way_seconds"))
        and all(f"{name}_seconds" in about for name in ("outside", "under_way") if about.get(f"{name}_ops"))
        and all(_are(_is_text)(about.get(name)) for name in ("damaged_files", "command"))
        and all(_are(_is_text)(tier.get("prefixes")) for tier in about["tiers"])
        and _are(_is_size)(about.get("running", []))
        and isinstance(processes, list)
        and all(isinstance(process, dict) and isinstance(process.get("lanes"), int) for process in processes)
        and all(isinstance(process.get("rank"), int | None) for process in processes)
        and _by_name(_is_sums)(about.get("mapped"))
    )


def _is_sums(value: Any) -> bool:
    return isinstance(value, dict) and all(
        value.get(name) is not None and _is_count(value[name]) for name in ("ops", "bytes")
    )
