"""Measurements in parts that fit a borrowed machine: every row is written at once, what is there is not measured again, and a part ends before its time is up.

Each table is a file of rows in one folder, with what was measured on (`origin`). Rerun the same command until nothing is left. `spent.json` adds up the seconds of all calls.
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Wish = Mapping[str, Any]  # what tells a row from the others of its table
Row = dict[str, Any]
SCHEMA_VERSION = 1
_SPENT = "spent.json"
_SAME = ("device", "torch", "cudnn")  # of the origin: rows of others do not belong into one table


class OtherOriginError(Exception):
    """The folder has rows of another machine or version."""


class TooLongError(Exception):
    """A row that no call has time for: it is left out, and not tried again."""


class OutOfTimeError(Exception):
    """A row that had what was left of a call, and may take less than a whole one: a later call begins with it."""


@dataclass(slots=True)
class Ledger:
    """One folder of tables, and how long this call and all calls together may go on. `origin`: what is measured on."""

    folder: Path
    seconds: float
    origin: Wish
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    seconds_in_all: float = math.inf
    left: list[str] = field(default_factory=list)  # of which tables something is missing
    is_last: bool = False  # no time is left for another call
    _start: float = 0.0
    _before: float = 0.0
    _longest: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._start = self.clock()
        spent = self.folder / _SPENT
        self._before = float(json.loads(spent.read_text())["seconds"]) if spent.exists() else 0.0
        self.is_last = self._before + self.seconds >= self.seconds_in_all
        self.seconds = min(self.seconds, self.seconds_in_all - self._before)

    @property
    def verdict(self) -> str:
        if not self.left:
            return "complete"
        more = f"all {self.seconds_in_all / 60:g} minutes are used up" if self.is_last else "rerun the same command"
        return f"left: {'; '.join(self.left)}; {more}"

    @property
    def spent(self) -> float:
        """By all calls."""
        return self._before + self.clock() - self._start

    def has_time(self, name: str, expected: float) -> bool:
        """For one more row, if it takes as long as the longest so far, and at least as long as expected."""
        return max(self._longest.get(name, 0.0), expected) <= self.seconds_left

    @property
    def seconds_left(self) -> float:
        """Of this call."""
        return self.seconds - (self.clock() - self._start)

    def rows(
        self,
        name: str,
        wishes: Sequence[Wish],
        measure: Callable[[Wish], Row],
        expected: Callable[[Wish], float] = lambda _: 20.0,
        **more: Any,
    ) -> list[Row]:
        """Of the table, in the order of the wishes; those that there was no time for are missing. `expected`: seconds; `more`: is written beside them."""
        table = self._table(name)
        known, left_out = list(table.get("rows", ())), list(table.get("left_out", ()))
        for number, wish in enumerate(wishes):
            if _row_of(wish, known) is not None or _row_of(wish, left_out) is not None:
                continue
            if not self.has_time(name, expected(wish)):
                self.leave(f"{name}: {len(wishes) - number} of {len(wishes)}")
                break
            row_start = self.clock()
            try:
                known.append({**wish, **measure(wish)})
            except OutOfTimeError:
                self.leave(f"{name}: {len(wishes) - number} of {len(wishes)}")
                break
            except TooLongError as error:
                left_out.append({**wish, "why": str(error)})
            self._longest[name] = max(self._longest.get(name, 0.0), self.clock() - row_start)
            ordered = [row for row in (_row_of(wish, known) for wish in wishes) if row is not None]
            self.put(name, {**more, **({"left_out": left_out} if left_out else {}), "rows": ordered})
            self.say(f"{name}: {dict(wish)}, {self.clock() - row_start:.1f} s")
        return [row for row in (_row_of(wish, known) for wish in wishes) if row is not None]

    def value(self, name: str, key: str, make: Callable[[], Row]) -> Row:
        """What is measured first, of a table that has nothing else."""
        table = self._table(name)
        if key not in table:
            table[key] = make()
            self.put(name, {key: table[key]})
        return dict(table[key])

    def once(self, name: str, make: Callable[[], str], expected: float) -> bool:
        """A file that is made in one go; whether it is there now."""
        path = self.folder / name
        if path.exists():
            return True
        if not self.has_time(name, expected):
            self.leave(name)
            return False
        start = self.clock()
        _replace(path, make())
        self._note_spent()
        self.say(f"{name}: {self.clock() - start:.1f} s")
        return True

    def _table(self, name: str) -> Row:
        path = self.folder / name
        if not path.exists():
            return {}
        table: Row = json.loads(path.read_text())
        for what in _SAME:
            there, here = table["origin"].get(what), self.origin.get(what)
            if there != here:
                raise OtherOriginError(f"{path}: has {what} {there}, but here it is {here}; choose another folder")
        return table

    def leave(self, what: str) -> None:
        """For a later call."""
        if what not in self.left:
            self.left.append(what)

    def put(self, name: str, content: Row) -> None:
        """A whole table, anew."""
        table = {"schema_version": SCHEMA_VERSION, "origin": dict(self.origin), **content}
        _replace(self.folder / name, json.dumps(table, indent=1) + "\n")
        self._note_spent()

    def _note_spent(self) -> None:
        _replace(self.folder / _SPENT, json.dumps({"seconds": round(self.spent, 1)}) + "\n")


def _row_of(wish: Wish, rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if all(row.get(key) == value for key, value in wish.items())), None)


def _replace(path: Path, text: str) -> None:
    """The old file or the new one, whatever happens meanwhile."""
    partial = path.with_name(f"{path.name}.part")
    with open(partial, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
