from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spec.texts import SMALL, edited, parsed, refusal
from tierscope.errors import UserError
from tierscope.spec import presets
from tierscope.spec.load import load_study, parse_study

DEMO = presets.text("demo")


def load_refusal(name: str) -> str:
    with pytest.raises(UserError) as caught:
        load_study(name)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_file_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "my study.yaml"
    file.write_text(edited("batch_size: 4", "batch_sise: 4"))
    assert load_refusal(str(file)) == (f"{file}:8: workload.reader.batch_sise: unknown key; did you mean batch_size?")


@pytest.mark.parametrize("suffix", [".yaml", ".yml", "", ".txt"])
def test_a_file_may_have_any_name(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"study{suffix}"
    file.write_text(SMALL)
    assert load_study(str(file)) == parsed(SMALL)


def test_a_preset_is_loaded_by_name_and_named_in_errors() -> None:
    assert load_study("demo") == parse_study(DEMO, "demo")
    with pytest.raises(UserError, match=r"^--set num_files_train=3: .*makes 3 samples for 16 ranks"):
        load_study("demo", ["num_files_train=3"])


def test_a_file_goes_before_a_preset_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").write_text(SMALL)
    assert load_study("demo").study == "small"


def test_a_missing_file_comes_with_the_command_that_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "none.yaml"
    assert (
        load_refusal(str(file)) == f"{file}: no such file; 'tierscope presets demo > {file}' creates one to start from"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("dmeo", "did you mean the preset demo?"),
        ("zzz", "presets: bert, "),
        ("", ""),
        ("x" * 5000, "presets: bert, "),
        ("x" * 5000 + ".yaml", "cannot be read: File name too long"),
    ],
)
def test_what_is_neither_file_nor_preset(name: str, hint: str) -> None:
    assert hint in load_refusal(name)


def test_a_directory_is_no_study(tmp_path: Path) -> None:
    assert load_refusal(str(tmp_path)) == f"{tmp_path}: is a directory; name the YAML file of a study, or a preset"


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00s", b"study: \xe9t\xe9", b"\x89PNG\r\n\x1a\n\x00", bytes(range(256))]
)
def test_a_binary_file_is_no_study(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    assert load_refusal(str(file)) == f"{file}: is not UTF-8 text; a study is a YAML file"


def test_an_empty_file_is_no_study(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"")
    assert load_refusal(str(file)) == f"{file}: study is missing; name of the results: add it"


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_study(str(file)) == parsed(SMALL)


@pytest.mark.parametrize(
    ("setting", "same_as"),
    [
        ("batch_size=16", ("batch_size: 4", "batch_size: 16")),
        ("reader.batch_size=16", ("batch_size: 4", "batch_size: 16")),
        ("workload.reader.batch_size= 16 ", ("batch_size: 4", "batch_size: 16")),
        ("gfs.path=/lustre/x", ('"{out}/gfs"', "/lustre/x")),
        ("lfs.capacity=2 GiB", ("visible_to: node", "visible_to: node\n      capacity: 2 GiB")),
        ("lfs.capacity=", ("visible_to: node", "visible_to: node\n      capacity: null")),
        ("goal=4 s", ("seed: 7", "seed: 7\ngoal: 4 s")),
        ("epochs=5", ("system:\n", "  train: {epochs: 5}\nsystem:\n")),
        ("study=other", ("study: small", "study: other")),
    ],
)
def test_a_setting_is_as_good_as_writing_it(setting: str, same_as: tuple[str, str]) -> None:
    assert parsed(SMALL, setting) == parsed(edited(*same_as))


def test_the_last_setting_wins() -> None:
    assert parsed(SMALL, "seed=1", "seed=2").seed == 2


def test_a_setting_can_give_what_is_missing() -> None:
    assert parsed(edited("    num_files_train: 64\n", ""), "num_files_train=64") == parsed(SMALL)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("batch_size", "--set batch_size: must be key=value"),
        ("=4", "--set =4: must be key=value"),
        ("", "--set : must be key=value"),
        ("batch_sise=4", "--set batch_sise=4: batch_sise: unknown key; did you mean batch_size?"),
        ("path=/x", "--set path=/x: path is ambiguous: system.tiers.lfs.path or system.tiers.gfs.path; write more"),
        ("batch_size=four", "--set batch_size=four: workload.reader.batch_size = four; must be a whole number"),
        ("batch_size=", "--set batch_size=: workload.reader.batch_size has no value"),
        ("batch_size=[1, 2]", "--set batch_size=[1, 2]: workload.reader.batch_size is a list; must be a single value"),
        ("batch_size=[1", "--set batch_size=[1: not valid YAML"),
        ("cache_rate=140%", "--set cache_rate=140%: placement.cache_rate = 140%; must be within 0% – 100%"),
        ("sweep=5", "--set sweep=5: sweep must map keys to values"),
        ("sweep.cache_rat=[0]", "--set sweep.cache_rat=[0]: cache_rat: unknown key; did you mean cache_rate?"),
        ("sweep.cache_rate=[0, 2]", "--set sweep.cache_rate=[0, 2]: sweep.placement.cache_rate = 2; must be within"),
        (
            "seed=!!python/name:os.system 1",
            "--set seed=!!python/name:os.system 1: seed = !!python/name:os.system 1; must be a whole number",
        ),
        ("seed=1\n2", "--set seed=1\\n2: seed = 1\\n2; must be a whole number"),
        ("tiers={}", "--set tiers={}: tiers: unknown key"),
    ],
)
def test_one_line_for_every_bad_setting(setting: str, said: str) -> None:
    assert refusal(SMALL, setting).startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "setting", "said"),
    [
        ("  reader:\n    batch_size: 4\n", "  reader: 4\n", "batch_size=4", "my.yaml:7: workload.reader must be a mapping"),
        ("  reader:\n    batch_size: 4\n", "  reader: [4]\n", "batch_size=4", "my.yaml:7: workload.reader must be a mapping"),
        ("study: small\n", "study: small\nsweep: 4\n", "sweep.seed=[4]", "my.yaml:2: sweep must map keys to values"),
        ("    batch_size: 4\n", "    batch_sise: 4\n", "batch_size=4", "my.yaml:8: workload.reader.batch_sise: unknown key"),
    ],
)  # fmt: skip
def test_a_setting_does_not_hide_a_mistake_in_the_file(old: str, new: str, setting: str, said: str) -> None:
    assert refusal(edited(old, new), setting).startswith(said)


def load_or_refuse(text: str, *changes: str) -> None:
    """Anything but a study or a UserError of one line ends the test."""
    try:
        parse_study(text, "fuzz", changes)
    except UserError as error:
        line = str(error)
        assert line.isprintable()
        assert line.startswith(("fuzz", "--set"))


YAML_LIKE = st.text(alphabet="abst: -\n\t{}[],&*!|>'\"%#?0159.e~<=\\/é\x00\u2028", max_size=60)


@given(st.text() | YAML_LIKE)
def test_any_text_is_a_study_or_a_users_mistake(text: str) -> None:
    load_or_refuse(text)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A preset of which lines were lost, repeated and moved, and pieces overwritten."""
    lines = DEMO.splitlines()
    for _ in range(draw(st.integers(0, 3))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        line = lines[at]
        match draw(st.sampled_from(["drop", "repeat", "move", "indent"])):
            case "drop":
                lines[at] = ""
            case "repeat":
                lines.insert(to, line)
            case "move":
                lines.insert(to, lines.pop(at))
            case "indent":
                lines[at] = " " * draw(st.integers(0, 6)) + line.lstrip()
    text = "\n".join(lines)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(YAML_LIKE) + text[at + draw(st.integers(0, 12)) :]
    return text


@given(mutated())
@settings(max_examples=examples(200))
def test_any_spoilt_preset_is_a_study_or_a_users_mistake(text: str) -> None:
    load_or_refuse(text)


VALUES = st.sampled_from(
    ["", "~", "0", "-1", "1e999", "1e308 PiB", "1e-999", "nan", "[]", "{}", "[null]", "[1, a]", "0:1:0", "1..2 step 1e-9",
     "'", "*x", "!!set {a}", "{a: &b [*b]}", "9" * 30, "x" * 200, "0..1e300 step 1", "..", "a:b:c", "1:2:3", "null..1 step 1"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["seed", "goal", "nodes", "cache_rate", "sweep", "sweep.seed", "sweep.cache_rate", "sweep.gfs.capacity", "gfs.capacity",
     "sweep.goal", "sweep.nodes", "sweep.gfs.path", "gfs.path", "latency", "lfs.latency", "sweep.lfs.latency", "format",
     "num_files_train", "sweep.num_files_train", "record_length_bytes", "shuffle", "sweep.lfs.emulate", "sweep.", "."]
)  # fmt: skip


@given(st.lists(st.tuples(KEYS, VALUES | YAML_LIKE).map("=".join), min_size=1, max_size=3))
@settings(max_examples=examples(200))
def test_any_settings_make_a_study_or_a_users_mistake(changes: list[str]) -> None:
    load_or_refuse(SMALL, *changes)
