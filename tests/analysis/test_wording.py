"""Sentences of findings: how evidence is shown, and one of a thing in the singular."""

import re
import string
from typing import Any, get_args

import pytest

from tierscope.analysis.wording import ADVICE, CAUSES, DOUBTS, WORDING, Finding, shown_evidence
from tierscope.trace.description import Doubt

NAMES = {"tier", "filesystem", "class", "system", "network", "before", "after", "before_where", "after_where", "case"}
NOT_PLURAL = {"is", "was", "has", "process", "does", "needs", "changes", "depends"}


def one_of_everything(kind: str) -> dict[str, Any]:
    """Evidence with every amount 1."""
    evidence: dict[str, Any] = {}
    for _, name, spec, _ in string.Formatter().parse(" ".join(WORDING[kind])):
        if name is None or spec is None:
            continue
        how = spec.partition(" ")[0]
        if how in ("count", "if"):
            evidence[name] = 1
        elif how in ("advice", "doubt", "cause", "remedy"):
            evidence[name] = next(iter({"advice": ADVICE, "doubt": DOUBTS}.get(how, CAUSES)))
        elif how == "did":
            evidence[name] = "read"
        elif how in ("or", "below", "first") or (spec and not re.search(r"[a-z]$", spec)):  # a list, and what joins it
            evidence[name] = ["x"]
        else:
            evidence.setdefault(name, "x" if name in NAMES else 1)
    return evidence


@pytest.mark.parametrize(
    ("count", "shown"), [(1, "at 1: "), (3, "at 1; 2; 3: "), (4, "at 1; 2; 3 and 1 more: "), (21, "and 18 more: ")]
)
def test_of_many_points_the_first_are_named(count: int, shown: str) -> None:
    points = [str(number) for number in range(1, count + 1)]
    finding = Finding("not_identified", {"points": points, "why": "w", "command": "c"})
    assert shown in finding.text
    assert finding.evidence["points"] == points


@pytest.mark.parametrize("kind", WORDING)
def test_one_of_a_thing_has_no_plural(kind: str) -> None:
    finding = Finding(kind, one_of_everything(kind))
    found = re.findall(r"(?<![.,\d])\b1 (?:object |more )?([a-z]+s)\b", f"{finding.text}; {finding.suggestion}")
    assert not set(found) - NOT_PLURAL


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (1, "gfs: the only file is on the same object server"),
        (3, "gfs: all 3 files are on the same object server"),
    ],
)
def test_words_follow_an_amount(files: int, text: str) -> None:
    assert Finding("one_server", {"tier": "gfs", "files": files}).text == text


def test_amounts_stand_with_their_noun() -> None:
    trimmed = [Finding("trimmed", {"samples": samples}).text for samples in (1, 2)]
    assert trimmed == [
        "1 sample per epoch was dropped because it does not divide evenly among the ranks",
        "2 samples per epoch were dropped because they do not divide evenly among the ranks",
    ]
    assert "up to 2 processes of a rank" in Finding("wall_processes", {"processes": 2}).text


def test_evidence_can_be_shown_as_in_the_sentence() -> None:
    finding = Finding("probe_misfit", {"tier": "gfs", "size": 4096, "percent": 30.4, "more": "less"})
    assert shown_evidence(finding) == {"tier": "gfs", "size": "4 KiB", "percent": 30.4, "more": "less"}


def test_every_doubt_has_words() -> None:
    assert set(DOUBTS) == set(get_args(Doubt))


def test_advice_names_only_what_is_left_to_try() -> None:
    evidence = {"memory_bytes": 2**34, "batch": 8, "peak_bytes": 2**35, "largest": 4}
    advice = [
        Finding("batch_too_large", {**evidence, "untried": left}).suggestion for left in ([], ["--a"], ["--a", "--b"])
    ]
    assert advice == ["use at most that", "use at most that, or try --a", "use at most that, or try --a or --b"]


@pytest.mark.parametrize(
    ("files", "prefixes", "end"),
    [
        (2, ["/a", "/b"], "match no tier, most of them below /a, /b"),
        (1, ["/a"], "matches no tier, below /a"),
        (1, ["(no path)"], "matches no tier, without a path in the log"),
        (2, ["/a", "(no path)"], "match no tier, most of them below /a or without a path in the log"),
    ],
)
def test_files_on_no_tier_are_placed_in_words(files: int, prefixes: list[str], end: str) -> None:
    evidence = {"tier": "OTHER", "files": files, "of_bytes": 2.0, "of_seconds": 1.0, "bytes": 1024, "seconds": 5.0}
    assert Finding("other_paths", {**evidence, "prefixes": prefixes, "suggestion": "/"}).text.endswith(end)


@pytest.mark.parametrize(
    ("files", "said"), [(1, "1 file of 1 GiB or more is on a single object server"), (2, "server each")]
)
def test_one_large_file_is_not_each(files: int, said: str) -> None:
    finding = Finding("large_on_one_server", {"tier": "lustre", "files": files})
    assert finding.text.endswith(said)
    assert ("stripe it:" in finding.suggestion) == (files == 1)
