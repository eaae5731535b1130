"""Commands that simulate and explore suggest: pasted as they are, they load the very point that they are about."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_commands import run
from tierscope.plan.file_format import make_format
from tierscope.spec import sweep
from tierscope.spec.load import load

pytestmark = pytest.mark.whole

SYSTEM = """
system: open
nodes: 2
ranks_per_node: 2
tiers:
  lfs: {path: "{out}/lfs/{node}", visible_to: node, capacity: 30 kB, bandwidth: 4 MB/s, read_ops: 2000/s}
  gfs: {path: "{out}/gfs", metadata_ops: 2000/s, metadata_servers: 2, servers: 4, bandwidth: 1 MB/s, latency: 1 ms}
figures:
  tiers.gfs.metadata_ops: {assumed: "nobody knows", low: 100/s, high: 40000/s}
  tiers.gfs.bandwidth: {assumed: "nobody knows", low: 100 kB/s, high: 20 MB/s}
"""
STUDY = """
study: pasted
workload:
  dataset: {format: FORMAT, num_files_train: 640, record_length_bytes: 1 kB}
  reader: {batch_size: 4}
  train: {epochs: 2, computation_time: COMPUTE}
SYSTEM
sweep: {SWEEP}
"""
OWN = "system: {nodes: 2, ranks_per_node: 2, tiers: {lfs: {path: '{out}/lfs/{node}', visible_to: node, capacity: 30 kB, bandwidth: 4 MB/s}, gfs: {path: '{out}/gfs', metadata_ops: 200/s, servers: 4, bandwidth: 1 MB/s}}}"
STUDIES = {
    "rates": {"SWEEP": "cache_rate: [0%, 100%]"},
    "servers": {"SWEEP": "cache_rate: [100%], gfs.servers: [2, 4]"},
    "zip": {"SWEEP": "zip: {cache_rate: [50%, 100%], lfs.capacity: [3 kB, 4 kB]}, gfs.stripe_count: [1, 2]"},
    "pictures": {"SWEEP": "cache_rate: [100%]", "FORMAT": "jpeg"},
    "unknown": {"SWEEP": "cache_rate: [0%, 100%], gfs.servers: [2, 4]", "SYSTEM": "system: open.yaml"},
    "computes": {"SWEEP": "cache_rate: [0%, 100%]", "SYSTEM": "system: open.yaml", "COMPUTE": "20 ms"},
}
COMMANDS = [
    "simulate study.yaml --quiet --out made",
    "explore --simulate study.yaml --set read_threads=3 --goal io=1us --vary gfs.servers=2,5",
    "explore --simulate study.yaml --set read_threads=3 --goal io=100ms --vary gfs.servers=2,4 --vary gfs.bandwidth=1MB/s,1.333MB/s",
    "explore --simulate study.yaml --set read_threads=3 --set sweep={} --goal io=200ms --most nodes=8",
]  # fmt: skip


def suggested(text: str) -> list[str]:
    """From `tierscope` to the name of the result, wherever it stands."""
    return re.findall(r"tierscope (?:run|simulate) .*?--out OUT", text)


def loads(command: str) -> None:
    words = shlex.split(command)[2:-2]
    options = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
    system = words[words.index("--system") + 1] if "--system" in words else None
    study = load(words[0], options, system).study
    (point,) = sweep.points(study)
    make_format(point.study)
    if "made/" not in command:
        assert (point.study.workload.reader.read_threads == 3) == ("read_threads=3" in command)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_suggested_command_can_be_pasted(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "4000")  # no command is broken
    Path("open.yaml").write_text(SYSTEM)
    text = STUDY
    for word, value in {"FORMAT": "tfrecord", "COMPUTE": "0 s", "SYSTEM": OWN, **STUDIES[name]}.items():
        text = text.replace(word, value)
    Path("study.yaml").write_text(text)
    assert run(*shlex.split(command)) == 0
    shown = capsys.readouterr().out
    assert "--set" not in re.sub("|".join(map(re.escape, suggested(shown))) or "$", "", shown)
    for pasted in dict.fromkeys(suggested(shown)):
        loads(pasted)
        if " simulate " in pasted:
            assert run(*shlex.split(pasted)[1:], "--quiet") == 0
            capsys.readouterr()
            Path("OUT").rename(f"done-{len(list(tmp_path.iterdir()))}")
    assert suggested(shown) or "=1us" not in command
    if "read_threads" in command:
        assert all("--set read_threads=3" in pasted for pasted in suggested(shown))


def test_a_section_that_has_a_key_of_a_tier_s_name_is_no_tier_of_a_system() -> None:
    for key in ("checkpoint.background", "workload.checkpoint.background"):
        study = load("bert", [f"{key}=true"], "polaris").study
        assert study.workload.checkpoint.background
