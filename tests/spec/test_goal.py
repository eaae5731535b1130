"""A goal is of one of three kinds, in a study and on the command line."""

from pathlib import Path

import pytest

from tests.spec.texts import edited, parsed, refusal
from tierscope.errors import UserError
from tierscope.spec.dump import identity, to_yaml
from tierscope.spec.goal import Goal
from tierscope.spec.load import load
from tierscope.spec.whatif import read_goal


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("4 s", Goal("io", 4.0)),
        ("{io: 4 s}", Goal("io", 4.0)),
        ("{epoch: 10 min}", Goal("epoch", 600.0)),
        ("{au: 90%}", Goal("au", 0.9)),
        ("{au: 0.9}", Goal("au", 0.9)),
        ('"epoch=10 min"', Goal("epoch", 600.0)),
    ],
)
def test_a_study_names_its_goal_and_is_written_so_that_it_reads_back(text: str, goal: Goal) -> None:
    study = parsed(edited("seed: 7", f"seed: 7\ngoal: {text}"))
    assert study.goal == goal
    assert parsed(to_yaml(study)) == study
    assert identity(study) == identity(parsed(edited("seed: 7", "seed: 7")))


def test_a_goal_of_io_is_written_as_earlier_versions_wrote_and_read_it() -> None:
    written = to_yaml(parsed(edited("seed: 7", "seed: 7\ngoal: {io: 4 s}")))
    assert "\ngoal: 4 s\n" in written
    assert "\ngoal: {epoch: 600 s}\n" in to_yaml(parsed(edited("seed: 7", "seed: 7\ngoal: {epoch: 10 min}")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{speed: 3}", "goal = speed=3; speed is not a kind of goal"),
        ("{epochs: 3 s}", "did you mean epoch?"),
        ("{io: 4 s, au: 90%}", "must be one goal"),
        ("{epoch: [1 s]}", "goal.epoch must be a single value"),
        ("{au: 90}", "must be within 0% – 100%"),
        ("{epoch: 0 s}", "must be more than 0 s"),
        ("{epoch: }", "has no value"),
        ("[4 s]", "goal is a list"),
    ],
)
def test_what_is_no_goal_is_one_line(text: str, reason: str) -> None:
    assert reason in refusal(edited("seed: 7", f"seed: 7\ngoal: {text}"))


@pytest.mark.parametrize(
    ("text", "goal"), [("io=4s", Goal("io", 4.0)), ("epoch=10min", Goal("epoch", 600.0)), ("au=90%", Goal("au", 0.9))]
)
def test_the_option_takes_all_three(text: str, goal: Goal) -> None:
    assert read_goal(text) == goal


@pytest.mark.parametrize("text", ["speed=3", "au=2", "epoch=", "=4s", "au=x"])
def test_a_wrong_option_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match=f"--goal {text}: ") as caught:
        read_goal(text)
    assert "\n" not in str(caught.value)


def test_dlios_au_is_the_goal_where_it_is_given(tmp_path: Path) -> None:
    text = "workload:\n  dataset: {num_files_train: 8, record_length: 1000}\n  reader: {batch_size: 2}\n"
    plain, given = tmp_path / "plain.yaml", tmp_path / "given.yaml"
    plain.write_text(text)
    given.write_text(f"{text}  metric: {{au: 0.7}}\n")
    assert load(str(given), is_dlio=True).study.goal == Goal("au", 0.7)
    assert load(str(plain), is_dlio=True).study.goal is None


def test_meeting_a_goal_exactly_is_meeting_it() -> None:
    assert Goal("io", 0.3).is_met(0.1 + 0.2)
    assert Goal("au", 0.3).is_met(0.3 - 1e-16)
    assert not Goal("epoch", 4.0).is_met(4.001)
    assert not Goal("au", 0.9).is_met(0.899)
