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
        "llama3-8b: 8,030,261,248 parameters; does not fit with batch 1 of 8,192 tokens: a device needs 159 GiB, and one of h200-node has 140 GiB. "
    )
    assert "So there is no verdict on storage for tokens: no such step can run." in alone
    assert "Storage for checkpoints matters: 105 GiB each" in alone
    assert "It fits with --tensor-parallel 2: " in alone
    assert "6,831 tokens/s over all devices, if it fitted;" in alone
    split = first_line(capsys, "llama3-8b", "--zero", "1", "--tensor-parallel", "8", "--recompute", "full")
    assert "; fits with batch 1 of 8,192 tokens: a device needs" in split
    assert "Storage for tokens does not matter" in split
    assert "for checkpoints it does: 105 GiB each" in split
    assert "divides nothing over one replica" in split


def test_more_devices_than_the_system_has_are_named_in_the_first_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    whole = ("gpt2", "--system", "cori-gpu", "--data-parallel")  # 18 nodes of 8
    assert "of the 16 GiB of cori-gpu. Storage" in first_line(capsys, *whole, "144")
    beyond = first_line(capsys, *whole, "145")
    assert "of the 16 GiB of cori-gpu (extrapolated: 145 devices, and cori-gpu has 144). Storage" in beyond
    assert "of a device (extrapolated: 2 devices, and h200-node has 1)." in first_line(capsys, "llama3-8b")


def test_a_pipeline_that_does_not_fit_where_one_device_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"  # its first stage keeps the activations of six layers
    sizes = "layers: 4\nhidden: 8192\nheads: 64\nkv_heads: 8\nffn: 28672\nvocabulary: 1000\nsequence: 8192\n"
    path.write_text(sizes)
    said = first_line(capsys, str(path), "--batch", "6", "--pipeline-parallel", "3")
    assert "does not fit" in said
    assert "It fits without splitting a replica: 124 GiB of a device." in said


def test_the_first_sentence_says_whether_a_known_bandwidth_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    needed = "needs 18.5 MiB/s to pause training for 5% of the time"
    assert f"{needed}. " in first_line(capsys, "gpt2")
    assert f"{needed}, and 20 MB/s is enough. " in first_line(capsys, "gpt2", "--checkpoint-bandwidth", "20MB/s")
    assert f"{needed}, and 10 MB/s is too little. " in first_line(capsys, "gpt2", "--checkpoint-bandwidth", "10MB/s")


def test_what_is_suggested_is_supported(capsys: pytest.CaptureFixture[str]) -> None:
    assert "It fits with --tensor-parallel 2: " in first_line(capsys, "llama3-8b", "--data-parallel", "32768")
    most = first_line(capsys, "llama3-8b", "--data-parallel", "65536")
    assert "No split of powers of two over at most 65,536 devices fits either" in most


def test_attention_is_named_as_it_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert "fp32, flash attention, " in first_line(capsys, "gpt2", "--precision", "fp32")
    grouped = first_line(capsys, "llama3-8b", "--precision", "fp32")
    assert "fp32, plain attention (there is no flash kernel for grouped queries in fp32), " in grouped


def test_small_numbers_are_written_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = first_line(capsys, "gpt2", "--sequence", "1", "--efficiency", "0.1%")
    assert "of 1 token for each replica" in said
    assert "At 0.1% of the peak" in said
    assert "(2.61 KiB/s for the whole job at 0.1% of the peak)" in said


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


def test_options_of_every_command_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert first_line(capsys, "gpt2", "--all") == first_line(capsys, "gpt2")


def test_a_config_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("name: small\nlayers: 2\nhidden: 64\nheads: 4\nffn: 128\nvocabulary: 100\nsequence: 32\n")
    assert first_line(capsys, str(path)).startswith("small: ")
