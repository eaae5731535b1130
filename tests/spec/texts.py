"""A small study as text, ways to spoil it, and what is said about it."""

import pytest

from tierscope.errors import SpecError
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study

SOURCE = "my.yaml"
SMALL = """\
study: small
seed: 7
workload:
  dataset:
    num_files_train: 64
    record_length_bytes: 4 KiB
  reader:
    batch_size: 4
system:
  nodes: 2
  ranks_per_node: 2
  tiers:
    lfs:
      path: "{out}/lfs/{node}"
      visible_to: node
    gfs:
      path: "{out}/gfs"
placement:
  cache_rate: 50%
"""


def edited(old: str, new: str, text: str = SMALL) -> str:
    """The text with the one place that says `old` saying `new`."""
    assert text.count(old) == 1
    return text.replace(old, new)


def swept(axes: str) -> str:
    return f"{SMALL}sweep: {axes}\n"


def parsed(text: str, *settings: str) -> Study:
    return parse_study(text, SOURCE, settings)


def refusal(text: str, *settings: str) -> str:
    """The one line that is said about a study that cannot be."""
    with pytest.raises(SpecError) as caught:
        parsed(text, *settings)
    line = str(caught.value)
    assert line.isprintable(), "one line, and safe on a terminal"
    assert line.startswith((SOURCE, "--set ")), "where it was found"
    return line
