"""Somebody's script with torch's DataLoader, traced: whether its loader or storage limits it is the first sentence."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import run

pytestmark = pytest.mark.torch
pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

SCRIPT = """
import pathlib, sys
import torch
from torch.utils.data import DataLoader, Dataset

files = sorted(pathlib.Path(sys.argv[1]).glob("*.bin"))

class Samples(Dataset):
    def __len__(self):
        return len(files)

    def __getitem__(self, number):
        sample = torch.frombuffer(bytearray(files[number].read_bytes()), dtype=torch.uint8).float()
        for _ in range(int(sys.argv[2])):
            sample = sample.sqrt()
        return sample

for batch in DataLoader(Samples(), batch_size=4, num_workers=int(sys.argv[3])):
    files[0].stat()
"""


@pytest.mark.parametrize(
    ("rounds", "workers", "emulate", "answer", "start"),
    [
        (1000, 2, (), "loader", "The loader, not storage, limits this program"),
        (0, 1, ("--emulate", "gfs.bandwidth=800KB/s"), "storage", "Storage, not the loader's own work, limits this program"),
        (200, 0, (), "unclear", "Whether storage or the loader limits this program cannot be determined: no worker process"),
    ],
)  # fmt: skip
def test_the_first_sentence_is_about_what_limits_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: int, workers: int, emulate: tuple[str, ...], answer: str, start: str
) -> None:  # fmt: skip
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "data").mkdir()
    for number in range(40):
        (tmp_path / "data" / f"{number}.bin").write_bytes(bytes(65536))
    command = (sys.executable, tmp_path / "train.py", tmp_path / "data", rounds, workers)
    options = ("--quiet", "--tier", f"gfs={tmp_path / 'data'}", *emulate, "--out", tmp_path / "out")
    assert run("trace", *options, "--", *command) == 0
    above_table = " ".join(capsys.readouterr().out.partition("bottleneck")[0].split())  # without line breaks
    assert start in above_table
    assert run("analyze", tmp_path / "out", "--json") == 0
    loader = json.loads(capsys.readouterr().out)["loader"]
    assert loader["answer"] == answer
    assert (loader["frameworks"], loader["workers"]) == (["torch"], workers)
