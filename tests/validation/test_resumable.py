"""Measurements in parts: what is there is kept, a part ends in time, and rows of another machine are refused."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from validation.resumable import Ledger, OtherOriginError, OutOfTimeError, TooLongError, Wish

ORIGIN = {"device": "a device", "torch": "2", "cudnn": 9, "time": "now"}
WISHES: list[dict[str, Any]] = [{"network": name, "batch": batch} for name in ("a", "b") for batch in (1, 2)]


class FakeMachine:
    """Every row takes ten seconds."""

    def __init__(self) -> None:
        self.now, self.measured, self.said = 0.0, list[dict[str, Any]](), list[str]()
        self.in_all = math.inf

    def clock(self) -> float:
        return self.now

    def measure(self, wish: Wish) -> dict[str, Any]:
        self.now += 10.0
        self.measured.append(dict(wish))
        return {"seconds": self.now}

    def ledger(self, folder: Path, seconds: float, **changed: object) -> Ledger:
        return Ledger(folder, seconds, {**ORIGIN, **changed}, self.said.append, self.clock, self.in_all)


def test_a_part_ends_in_time_and_the_next_one_goes_on(tmp_path: Path) -> None:
    machine = FakeMachine()
    for call, wanted in ((1, 2), (2, 4), (3, 4)):
        ledger = machine.ledger(tmp_path, 25.0)
        started = machine.now
        rows = ledger.rows("t.json", WISHES, machine.measure, lambda _: 5.0)
        assert len(rows) == wanted, call
        assert machine.now - started <= 25.0
        assert ledger.left == (["t.json: 2 of 4"] if wanted < 4 else [])
    assert machine.measured == WISHES, "each once"
    table = json.loads((tmp_path / "t.json").read_text())
    assert [row["seconds"] for row in table["rows"]] == [10.0, 20.0, 30.0, 40.0]
    assert (table["schema_version"], table["origin"]) == (1, ORIGIN)
    assert json.loads((tmp_path / "spent.json").read_text()) == {"seconds": 40.0}


def test_all_calls_together_end_in_time(tmp_path: Path) -> None:
    """A machine is lent for so long: what is left then is said, and nobody is told to try again."""
    machine = FakeMachine()
    machine.in_all = 30.0
    for rows, verdict in ((2, "left: t.json: 2 of 4; rerun the same command"), (3, "all 0.5 minutes are used up")):
        ledger = machine.ledger(tmp_path, 20.0)
        assert len(ledger.rows("t.json", WISHES, machine.measure, lambda _: 5.0)) == rows
        assert ledger.verdict.endswith(verdict)
    assert machine.now == 30.0
    assert not machine.ledger(tmp_path, 20.0).has_time("t.json", 1.0)


def test_every_row_is_on_disk_before_the_next_one_is_measured(tmp_path: Path) -> None:
    machine = FakeMachine()

    def fails(wish: Wish) -> dict[str, Any]:
        if wish == WISHES[2]:
            raise MemoryError
        return machine.measure(wish)

    with pytest.raises(MemoryError):
        machine.ledger(tmp_path, 100.0).rows("t.json", WISHES, fails)
    assert len(json.loads((tmp_path / "t.json").read_text())["rows"]) == 2
    assert len(machine.ledger(tmp_path, 100.0).rows("t.json", WISHES, machine.measure)) == 4
    assert machine.measured == WISHES


@pytest.mark.parametrize("changed", [{"device": "another"}, {"torch": "3"}, {"cudnn": 8}])
def test_rows_of_another_machine_or_version_are_not_mixed(tmp_path: Path, changed: dict[str, object]) -> None:
    machine = FakeMachine()
    machine.ledger(tmp_path, 100.0).rows("t.json", WISHES[:1], machine.measure)
    with pytest.raises(OtherOriginError, match=r"t\.json: has (device|torch|cudnn) .*; choose another folder"):
        machine.ledger(tmp_path, 100.0, **changed).rows("t.json", WISHES, machine.measure)


def test_a_row_that_takes_too_long_is_left_out_and_not_tried_again(tmp_path: Path) -> None:
    machine = FakeMachine()

    def slow(wish: Wish) -> dict[str, Any]:
        row = machine.measure(wish)
        if wish == WISHES[1]:
            raise TooLongError("more than 5 s")
        return row

    for _ in range(2):
        ledger = machine.ledger(tmp_path, 100.0)
        assert len(ledger.rows("t.json", WISHES, slow)) == 3
        assert not ledger.left
    assert machine.measured == WISHES
    assert json.loads((tmp_path / "t.json").read_text())["left_out"] == [{**WISHES[1], "why": "more than 5 s"}]


def test_a_row_that_had_too_little_of_a_call_is_tried_again(tmp_path: Path) -> None:
    """Nobody knows how long it takes, so it gets what is left; only a row that had a whole call is too long."""
    machine, given = FakeMachine(), list[float]()

    def counts(wish: Wish) -> dict[str, Any]:
        given.append(ledger.seconds_left)
        if wish == WISHES[1] and given[-1] < 25.0:
            machine.now += given[-1]
            raise OutOfTimeError
        return machine.measure(wish)

    for wanted in (1, 4):
        ledger = machine.ledger(tmp_path, 30.0)
        assert len(ledger.rows("t.json", WISHES, counts, lambda _: 5.0)) == wanted
        assert ledger.left == ([] if wanted == 4 else [f"t.json: {4 - wanted} of 4"])
        machine.now = 100.0
    assert given == [30.0, 20.0, 30.0, 20.0, 10.0]
    assert "left_out" not in json.loads((tmp_path / "t.json").read_text())


def test_what_comes_first_is_measured_once(tmp_path: Path) -> None:
    machine = FakeMachine()
    for _ in range(2):
        value = machine.ledger(tmp_path, 100.0).value("c.json", "ceilings", lambda: machine.measure({}))
        assert value == {"seconds": 10.0}
    assert json.loads((tmp_path / "c.json").read_text())["ceilings"] == {"seconds": 10.0}


def test_a_file_that_is_made_in_one_go_waits_for_a_part_with_room(tmp_path: Path) -> None:
    machine = FakeMachine()
    short, long = machine.ledger(tmp_path, 100.0), machine.ledger(tmp_path, 300.0)
    assert not short.once("device.yaml", lambda: "made", expected=200.0)
    assert short.left == ["device.yaml"]
    assert long.once("device.yaml", lambda: "made", expected=200.0)
    assert (tmp_path / "device.yaml").read_text() == "made"
    assert long.once("device.yaml", lambda: "made again", expected=200.0)
    assert (tmp_path / "device.yaml").read_text() == "made"


def test_a_row_of_a_longer_kind_is_not_begun_on_the_word_of_shorter_ones(tmp_path: Path) -> None:
    machine = FakeMachine()
    expected = {"a": 5.0, "b": 300.0}
    for wanted in (2, 4):
        ledger = machine.ledger(tmp_path, 310.0)
        assert len(ledger.rows("t.json", WISHES, machine.measure, lambda wish: expected[wish["network"]])) == wanted
        machine.now += 10_000.0
    assert machine.measured == WISHES
