"""The checker of documents finds what is wrong, and ignores nothing silently."""

from pathlib import Path

import pytest

from tools.docs.blocks import MEASURED, DocumentError, blocks, plain, renewed, same
from tools.docs.check import Wish, check


def document(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def problems(folder: Path, text: str, wish: Wish = Wish()) -> list[str]:  # noqa: B008
    return check(document(folder, text), wish).problems or []


def test_a_document_that_tells_the_truth_passes(tmp_path: Path) -> None:
    assert problems(tmp_path, "```console\n$ echo one\none\n$ printf 'a\\nb\\n'\na\nb\n```\n") == []


@pytest.mark.parametrize("shown", ["two", "one\ntwo", "…\ntwo"])
def test_other_output_is_found(tmp_path: Path, shown: str) -> None:
    (problem,) = problems(tmp_path, f"```console\n$ echo one\n{shown}\n```\n")
    assert "+one" in problem or "-two" in problem
    assert problem.startswith("page.md:2: $ echo one") or ":2: $ echo one" in problem


def test_a_command_that_fails_is_found_though_its_output_is_right(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "```console\n$ echo one; false\none\n```\n")
    assert "exit code 1, not 0" in problem


def test_an_expected_failure_that_does_not_happen_is_found(tmp_path: Path) -> None:
    rule = "<!-- check: exit 2 -->\n"
    assert problems(tmp_path, f"{rule}```console\n$ echo bad >&2; exit 2\nbad\n```\n") == []
    (problem,) = problems(tmp_path, f"{rule}```console\n$ echo bad\nbad\n```\n")
    assert "exit code 0, not 2" in problem


def test_only_what_a_rule_names_may_vary(tmp_path: Path) -> None:
    rule = "<!-- check: varies \\d+\\.\\d+ -->\n"
    assert problems(tmp_path, f"{rule}```console\n$ echo 1.5 s GFS-META\n2.5 s GFS-META\n```\n") == []
    assert problems(tmp_path, f"{rule}```console\n$ echo 1.5 s GFS-META\n2.5 s GFS-READ\n```\n")
    assert problems(tmp_path, f"{rule}```console\n$ echo 25% 1.5\n50% 1.5\n```\n")


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("1.278 s of I/O", "812 ms of I/O", True),
        ("50% 0.712 0.702–0.721 GFS-META ████", "50% <0.001 1,024–1,025 GFS-META ██", True),
        ("range, n=2 (-24.1 %)", "range, n=2 (-3 %)", True),
        ("50% 0.712", "60% 0.712", False),
        ("100% 0.712", "10% 0.712", False),
        ("n=2 0.712", "n=3 0.712", False),
        ("0.712 GFS-META", "0.712 GFS-READ", False),
        ("met", "missed", False),
    ],
)
def test_measured_numbers_may_differ_but_neither_words_nor_settings(shown: str, printed: str, agree: bool) -> None:
    assert same(plain([shown], list(MEASURED)), plain([printed], list(MEASURED))) is agree


@pytest.mark.parametrize(("rule", "tries"), [("<!-- check: measured -->\n", 3), ("", 1)])
def test_only_a_document_that_measures_is_run_again(tmp_path: Path, rule: str, tries: int) -> None:
    log = tmp_path / "log"
    text = f"{rule}```console\n$ echo x >>{log}; [ $(wc -l <{log}) -ge 2 ] && echo fast || echo slow\nfast\n```\n"
    outcome = check(document(tmp_path, text), Wish())
    assert (outcome.tries, outcome.problems == []) == ((2, True) if tries > 1 else (1, False))
    always_wrong = check(document(tmp_path, f"{rule}```console\n$ echo slow\nfast\n```\n"), Wish())
    assert always_wrong.tries == tries
    assert always_wrong.problems


def test_a_rule_is_for_the_next_block_only(tmp_path: Path) -> None:
    block = "```console\n$ echo 1.5\n2.5\n```\n"
    assert len(problems(tmp_path, f"<!-- check: varies \\d+\\.\\d+ -->\n{block}{block}")) == 1


def test_files_setup_and_replaced_paths_come_before_the_command(tmp_path: Path) -> None:
    text = (
        "<!-- check: replace /lustre/me $PWD/gfs -->\n"
        '```text title="list"\n/lustre/me/data\n```\n'
        "<!-- check: setup mkdir -p /lustre/me/data && touch /lustre/me/data/x -->\n"
        "```console\n$ ls $(cat list)\nx\n$ echo /lustre/me\n/lustre/me\n```\n"
    )
    assert problems(tmp_path, text) == []
    assert problems(tmp_path, text.replace("touch", "false")) != []


def test_a_click_needs_its_link(tmp_path: Path) -> None:
    assert problems(tmp_path, "<!-- check: click README.md docs/concepts.md -->\n") == []
    (problem,) = problems(tmp_path, "<!-- check: click README.md docs/nowhere.md -->\n")
    assert "README.md has no link to docs/nowhere.md" in problem


def test_update_writes_what_was_printed_and_keeps_what_was_cut(tmp_path: Path) -> None:
    text = "```console\n$ seq 5\nold\nold\n…\nold\n$ echo \\\n  done\nold\n```\nend\n"
    assert problems(tmp_path, text, Wish(update=True)) == []
    assert (tmp_path / "page.md").read_text() == "```console\n$ seq 5\n1\n2\n…\n5\n$ echo \\\n  done\ndone\n```\nend\n"
    assert problems(tmp_path, (tmp_path / "page.md").read_text()) == []


def test_update_does_not_hide_a_failure(tmp_path: Path) -> None:
    text = "```console\n$ echo new; false\nold\n```\n"
    assert problems(tmp_path, text, Wish(update=True))
    assert "old" in (tmp_path / "page.md").read_text()


def test_what_takes_long_is_left_out_and_counted(tmp_path: Path) -> None:
    text = "<!-- check: nightly -->\n```console\n$ false\n```\n"
    outcome = check(document(tmp_path, text), Wish())
    assert (outcome.problems, outcome.ran, outcome.left_to_nightly) == ([], 0, 1)
    assert problems(tmp_path, text, Wish(nightly=True))


@pytest.mark.parametrize(
    "text",
    [
        "```\n$ tierscope run\n```\n",
        "```bash\ntierscope run\n```\n",
        "```console\nno prompt\n```\n",
        "<!-- check: nonsense -->\n",
        "<!-- check: nightly -->\nno block\n",
        "```console\n$ true\n",
    ],
)
def test_what_it_does_not_understand_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentError):
        [block.commands for block in blocks(document(tmp_path, text))]
    assert problems(tmp_path, text)


def test_lines_that_are_left_out() -> None:
    assert same(["a", "…"], ["a", "b"])
    assert same(["a", "…", "c"], ["a", "b", "c"])
    assert not same(["a", "…", "c"], ["a", "b"])
    assert not same(["a"], ["a", "b"])
    assert plain(["  a   1 ", "", "───"], []) == ["a 1"]
    assert renewed(("x", "…"), ["1", "2", "3"]) == ["1", "…"]
