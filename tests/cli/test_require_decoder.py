"""`tierscope require` of a transformer, as a user types it."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import one_line, run


def first_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run("require", *arguments) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_first_sentence_says_whether_it_fits_and_what_storage_must_do(capsys: pytest.CaptureFixture[str]) -> None:
    alone = first_line(capsys, "llama3-8b", "--sequence", "8192")
    assert alone.startswith(
        "llama3-8b: 8,030,261,248 parameters; does not fit: a device needs 159 GiB, and one of h200-node has 140 GiB. "
    )
    assert "Storage for tokens does not matter" in alone
    assert "for checkpoints it does: 105 GiB each" in alone
    assert "It fits with --tensor-parallel 2: " in alone
    split = first_line(capsys, "llama3-8b", "--zero", "1", "--tensor-parallel", "8", "--recompute", "full")
    assert "; fits: a device needs" in split
    assert "divides nothing over one replica" in split


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    saves = ("--checkpoint-bandwidth", "10GB/s", "--mean-time-between-failures", "12h")
    assert run("require", "llama3-8b", *saves, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fits"] == "no"
    assert document["memory_bytes"]["peak"] > document["device_memory_bytes"]
    assert document["checkpoint_seconds"] == document["checkpoint_bytes"]["all"] / 10e9
    assert 0.9 < document["best"]["goodput"] < 1
    assert document["precision"] == "amp"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("llama3-8b", "--nodes", "4"), "--nodes: llama3-8b is a transformer"),
        (("llama3-8b", "--optimizer", "sgd"), "--optimizer: llama3-8b is a transformer"),
        (("llama3-8b", "--out", "x"), "--out: llama3-8b is a transformer"),
        (("cosmoflow", "--system", "cori-gpu", "--zero", "0"), "--zero: cosmoflow is not a transformer"),
        (("lama3-8b",), "did you mean llama3-8b?"),
        (("gpt2", "--sequence", "2048"), "--sequence 2048: gpt2 has 1,024 positions"),
        (("gpt2", "--tensor-parallel", "5"), "does not divide the 12 attention heads"),
        (("llama3-8b", "--tensor-parallel", "16"), "does not divide the 8 key-value heads"),
        (("gpt2", "--pipeline-parallel", "13"), "gpt2 has 12 layers"),
        (("gpt2", "--batch", "1,2"), "one batch at a time"),
        (("gpt2", "--efficiency", "140%"), "must be at most 100%"),
        (("gpt2", "--efficiency", "0"), "must be more than 0%"),
        (("gpt2", "--checkpoint-bandwidth", "10GB"), "is an amount, not a rate"),
        (("gpt2", "--checkpoint-bandwidth", "5e-324"), "--checkpoint-bandwidth 5e-324: must be at least 1 B/s"),
        (("gpt2", "--checkpoint-bandwidth", "1e300"), "must be at most"),
        (("gpt2", "--checkpoint-bandwidth", "1", "--mean-time-between-failures", "1e-300 s"), "must be within 1 s"),
        (("gpt2", "--checkpoint-bandwidth", "1", "--mean-time-between-failures", "1e200 h"), "must be within 1 s"),
        (("gpt2", "--efficiency", "5e-324"), "--efficiency 5e-324: must be at least"),
        (("gpt2", "--mean-time-between-failures", "12h"), "needs --checkpoint-bandwidth"),
        (("gpt2", "--system", "nowhere"), "--system nowhere"),
        (("gpt2", "--data-parallel", "100000"), "devices; at most"),
        (("missing.json",), "missing.json: no such file"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run("require", *arguments) == 2
    assert said in one_line(capsys)


def test_a_config_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("name: small\nlayers: 2\nhidden: 64\nheads: 4\nffn: 128\nvocabulary: 100\nsequence: 32\n")
    assert first_line(capsys, str(path)).startswith("small: ")
