"""A soak that was stopped goes on where it was."""

from collections import Counter
from pathlib import Path

from tools.soak import State, Tally, table
from tools.soak_faults import FAULTS


def test_what_is_done_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "build" / "soak.state"
    tally = Tally(2, 7, Counter({"disk full": 3}), Counter({"disk full": 1}), ["1/4: hangs"])
    State(path, "8 faults, seed 1").add(4, tally)
    with path.open("a") as file:
        file.write('5 {"studies": 1, ')  # killed while it wrote
    assert State(path, "8 faults, seed 1").done == {4: tally}
    assert State(path, "9 faults, seed 1").done == {}
    assert "LOST 1/4: hangs" in table(tally)


def test_stops_and_signals_are_among_the_faults() -> None:
    assert {"kill -HUP of the director", "a rank stopped for 8 s", "the director stopped for 1 s", "all stopped for 8 s"} <= set(FAULTS)  # fmt: skip
