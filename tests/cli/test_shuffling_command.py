"""`tierscope shuffling` as a user types it."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tierscope.train.digits import load_digits

pytestmark = pytest.mark.whole

SMALL = ("--ranks", "16", "--epochs", "2", "--seeds", "1", "--batch", "8", "--quiet")


def test_a_small_one_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    assert run("shuffling", *SMALL, "--network", "ghost", "--out", tmp_path / "out") == 0
    said = capsys.readouterr()
    assert not said.err
    words = " ".join(said.out.split())
    assert "I/O simulated on fugaku" in words
    assert "only 1 seed: at least" in words
    document = json.loads((tmp_path / "out" / "shuffling.json").read_text())
    assert {row["shuffle"] for row in document["rows"]} == {"global", "chunked", "local"}
    assert {row["shuffle_nodes"] for row in document["rows"]} == {None, 1}  # of four nodes
    assert (tmp_path / "out" / "shuffling-ghost.svg").read_bytes().startswith(b"<?xml")
    assert run("shuffling", *SMALL, "--network", "plain", "--shuffle", "global", "--out", tmp_path / "out", "--json") == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out" / "shuffling.json").read_text())
    names = {entry.name for entry in (tmp_path / "out").iterdir()}
    assert "shuffling-plain.svg" in names
    assert not {name for name in names if "ghost" in name}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ranks", "2000"), "1,280 training samples"),
        (("--shuffle", "lokal"), "did you mean local?"),
        (("--ranks", "0"), "--ranks"),
        (("--near-room", "-1"), "--near-room"),
        (("--near-room", "nan"), "--near-room nan: must be a number"),
        (("--out", ""), "--out is empty"),
        (("--system", "nowhere"), "--system nowhere"),
    ],
)
def test_mistakes_get_one_clear_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("shuffling", *SMALL, *arguments) == 2
    assert said in one_line(capsys)


def test_without_scikit_learn_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load_digits.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert run("shuffling", *SMALL) == 2
    assert "pip install 'tierscope[shuffling]'" in one_line(capsys)
    load_digits.cache_clear()


def test_a_directory_of_others_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert run("shuffling", *SMALL, "--out", tmp_path) == 2
    assert "was not created by Tierscope" in one_line(capsys)
