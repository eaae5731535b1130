"""characterise and compare as a user types them."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run
from tests.tiny import TINY

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(TINY)
    assert run("run", folder / "tiny.yaml", "--out", folder / "out", "--quiet") == 0
    return folder / "out"


@pytest.mark.parametrize("spelling", ["characterise", "characterize"])
def test_characterise_in_words(finished: Path, spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(spelling, finished) == 0
    said = capsys.readouterr().out
    for words in ("I/O characteristics", "the best)", "Transfer sizes", "By rank", "Bandwidth over time", "I/O hidden"):
        assert words in said


def test_characterise_as_json(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("characterise", finished, "--point", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["kind"], found["run"]["point"]) == (1, "character", 2)
    assert found["metrics"]["bytes"] == {"value": 49152.0, "basis": "exact", "unit": "B"}
    assert found["metrics"]["sequential_percent"]["value"] is None
    assert "--ops" in found["metrics"]["sequential_percent"]["reason"]
    assert found["timeline"]["value"]["basis"] in ("steps", "epochs")
    assert found["hidden"] == {**found["hidden"], "value": 0.0}
    assert sum(row["read_bytes"] for row in found["by_rank"]["rows"]) == 49152
    assert isinstance(found["findings"], list)


def test_compare_with_itself(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", finished, finished, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["kind"]) == (1, "similarity")
    assert found["cosine"] == pytest.approx(1.0)
    assert all(each["difference"] == 0 for each in found["metrics"])
    assert {each["metric"] for each in found["left_out"]} == {"sequential_percent", "consecutive_percent"}
    assert isinstance(found["findings"], list)


def test_compare_in_words(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", finished, finished, "--point", 0) == 0
    said = capsys.readouterr().out
    assert "Cosine similarity 1.0000 (n=8 of 10 metrics)" in said
    assert "Not compared: sequential" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("characterise", "nowhere"), "no such file or directory"),
        (("characterise", "{out}", "--point", 77), "--point 77"),
        (("characterise", "{out}", "--tier", "gfs=/x"), "is not a log"),
        (("characterise", "x.darshan", "--point", 0), "have no points"),
        (("characterise", "{out}", "{out}"), "one result at a time"),
        (("characterise", "{out}/study.yaml"), "is neither a result nor a log"),
        (("compare", "{out}", "nowhere"), "no such file or directory"),
        (("compare", "{out}"), "Missing argument"),
        (("compare", "{out}", "{out}/study.yaml"), "is neither a result nor a log"),
    ],
)
def test_mistakes_get_one_line(
    finished: Path, arguments: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*(str(word).format(out=finished) for word in arguments)) == 2
    assert said in one_line(capsys)
