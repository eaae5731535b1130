"""A system's file: what is read, what is refused, and what is written is read as the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spec.studies import section, tiers, values_of
from tests.spec.texts import edited
from tierscope.errors import SpecError, UserError
from tierscope.spec import kinds
from tierscope.spec.figures import KINDS, MAX_DRAWS, KnownFigure, number_keys, numbers
from tierscope.spec.known import KnownSystem, drawn_systems, dump_system, load_system, names, parse_system
from tierscope.spec.study import System

SYSTEM = """\
system: box
nodes: 2
tiers:
  lfs:
    path: /lfs
    visible_to: node
    read_ops: 100/s
  gfs:
    path: /gfs
    bandwidth: 2 GB/s
figures:
  nodes: {source: a book}
  tiers.lfs.read_ops: {fitted: to a run, low: 90/s, high: 110/s}
  tiers.gfs.bandwidth: {assumed: by age, low: 1 GB/s, high: 3 GB/s}
draws:
- tiers.lfs.read_ops: 95/s
- tiers.lfs.read_ops: 120/s
"""
READ_OPS = "  tiers.lfs.read_ops: {fitted: to a run, low: 90/s, high: 110/s}"


def parsed(text: str) -> KnownSystem:
    return parse_system(text, "box.yaml")


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parsed(text)
    line = str(caught.value)
    assert line.isprintable()
    assert line.startswith("box.yaml")
    return line


def test_a_file_is_a_name_a_system_its_figures_and_draws() -> None:
    known = parsed(SYSTEM)
    assert (known.name, known.system.nodes, known.system.tiers[1].bandwidth) == ("box", 2, 2e9)
    assert known.figures == {
        "nodes": KnownFigure(2, "source", "a book"),
        "tiers.lfs.read_ops": KnownFigure(100.0, "fitted", "to a run", 90.0, 110.0),
        "tiers.gfs.bandwidth": KnownFigure(2e9, "assumed", "by age", 1e9, 3e9),
    }
    assert known.draws == ({"tiers.lfs.read_ops": 95.0}, {"tiers.lfs.read_ops": 120.0})


def test_figures_and_draws_may_be_left_out() -> None:
    known = parsed(SYSTEM[: SYSTEM.index("figures:")])
    assert (known.figures, known.draws) == ({}, ())
    assert parsed(f"{SYSTEM[: SYSTEM.index('figures:')]}figures:\ndraws:\n") == known


def test_what_was_published_may_have_an_interval() -> None:
    figure = parsed(edited("{source: a book}", "{source: a book, low: 1, high: 2}", SYSTEM)).figures["nodes"]
    assert (figure.low, figure.high) == (1, 2)


@pytest.mark.parametrize(("low", "high"), [("90/s", "null"), ("null", "110/s")])
def test_a_fit_may_leave_one_end_open(low: str, high: str) -> None:
    known = parsed(edited("low: 90/s, high: 110/s", f"low: {low}, high: {high}", SYSTEM))
    figure = known.figures["tiers.lfs.read_ops"]
    assert (figure.low, figure.high) == (None if low == "null" else 90, None if high == "null" else 110)
    assert parsed(dump_system(known)) == known


def test_text_over_several_lines_is_one_line() -> None:
    known = parsed(edited("nodes: {source: a book}", "nodes:\n    source: >\n      a\n      book", SYSTEM))
    assert known == parsed(SYSTEM)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("system: box\n", "", "box.yaml:1: system is missing; a system file has 'system: NAME'"),
        ("system: box", "system: a b", "box.yaml:1: system = a b; must be letters, digits"),
        ("system: box", "system: {}", "box.yaml:1: system is a mapping; must be a single value (names the system)"),
        ("system: box", "system: box\nstudy: x", "box.yaml:2: study: this is a study, not a system; a system file starts"),
        ("nodes: 2", "node: 2", "box.yaml:2: node: unknown key; did you mean nodes?"),
        ("nodes: 2", "nodes: 0", "box.yaml:2: nodes = 0; must be within"),
        ("nodes: 2", "figure: {}", "box.yaml:2: figure: unknown key; did you mean figures?"),
        ("nodes: 2", "preset: fugaku", "box.yaml:2: preset: unknown key; "),
        ("bandwidth: 2 GB/s\n", "bandwith: 2 GB/s\n", "box.yaml:10: tiers.gfs.bandwith: unknown key; did you mean bandwidth?"),
        ("bandwidth: 2 GB/s\n", "bandwidth: 2 GB\n", "box.yaml:10: tiers.gfs.bandwidth = 2 GB; is an amount, not a rate"),
        ("    path: /gfs\n", "", "box.yaml:8: tiers.gfs.path is missing"),
        ("    path: /gfs", "    path: /lfs", "box.yaml:9: tiers.gfs.path = /lfs; tier lfs has the same"),
        ("    path: /gfs", "    path: /gfs\n    visible_to: node", "box.yaml:10: tiers.gfs.visible_to = node; the last tier"),
        ("    path: /gfs", "    path: /gfs\n    stripe_count: 4", "box.yaml:10: tiers.gfs.stripe_count = 4, but a device has 1 server"),
        ("nodes: 2", "nodes: !!python/name:os.x 2", "box.yaml:2: tag python/name:os.x is not allowed in a system"),
        ("nodes: 2", "nodes: [2", "box.yaml:3: not valid YAML"),
    ],
)  # fmt: skip
def test_one_line_for_every_mistake_in_a_system(old: str, new: str, said: str) -> None:
    assert refusal(edited(old, new, SYSTEM)).startswith(said)


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "- a"])
def test_what_is_no_mapping_is_no_system(text: str) -> None:
    assert "system is missing" in refusal(text)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("tiers.gfs.metadata_op: {source: x}", "figures.tiers.gfs.metadata_op: is not a number of this system; did you mean tiers.gfs.metadata_ops?"),
        ("tiers.bb.bandwidth: {source: x}", "figures.tiers.bb.bandwidth: is not a number of this system; did you mean tiers."),
        ("bandwidth: {source: x}", "figures.bandwidth: is not a number of this system; "),
        ("x: {source: x}", "figures.x: is not a number of this system; write its full path, e.g. tiers.gfs.bandwidth"),
        ("tiers.gfs.path: {source: x}", "figures.tiers.gfs.path: is not a number of this system; "),
        ("tiers.gfs.emulate: {source: x}", "figures.tiers.gfs.emulate: is not a number of this system; "),
        ("tiers.gfs.read_ops: {source: x}", "figures.tiers.gfs.read_ops: the system has no tiers.gfs.read_ops; set it or remove the figure"),
        ("tiers.lfs.read_ops: a book", "figures.tiers.lfs.read_ops must be a mapping, e.g. "),
        ("tiers.lfs.read_ops:", "figures.tiers.lfs.read_ops must be a mapping, e.g. "),
        ("tiers.lfs.read_ops: {}", "figures.tiers.lfs.read_ops has no source; give one of source, assumed, fitted"),
        ("tiers.lfs.read_ops: {low: 1, high: 200}", "figures.tiers.lfs.read_ops has no source"),
        ("tiers.lfs.read_ops: {source: x, fitted: y}", "figures.tiers.lfs.read_ops is source and fitted; give one of "),
        ("tiers.lfs.read_ops: {sauce: x}", "figures.tiers.lfs.read_ops.sauce: unknown key; did you mean source?"),
        ("tiers.lfs.read_ops: {source: x, qqq: 1}", "figures.tiers.lfs.read_ops.qqq: unknown key; known here: source, assumed, fitted, low, high"),
        ("tiers.lfs.read_ops: {source: }", "figures.tiers.lfs.read_ops.source has no text; write where it was published"),
        ("tiers.lfs.read_ops: {source: ' '}", "figures.tiers.lfs.read_ops.source has no text; write where it was published"),
        ("tiers.lfs.read_ops: {source: [x]}", "figures.tiers.lfs.read_ops.source has no text; write where it was published"),
        ("tiers.lfs.read_ops: {fitted: , low: 1, high: 200}", "figures.tiers.lfs.read_ops.fitted has no text; write to what"),
        ('tiers.lfs.read_ops: {source: "a\\x07"}', "figures.tiers.lfs.read_ops.source must be printable text of at most"),
        (f"tiers.lfs.read_ops: {{source: {'x' * 1001}}}", "figures.tiers.lfs.read_ops.source must be printable text of at most 1000"),
        ("tiers.lfs.read_ops: {assumed: x}", "figures.tiers.lfs.read_ops.low is missing; set low and high"),
        ("tiers.lfs.read_ops: {fitted: x, low: 1}", "figures.tiers.lfs.read_ops.high is missing; set low and high"),
        ("tiers.lfs.read_ops: {source: x, high: 200}", "figures.tiers.lfs.read_ops.low is missing; set low and high"),
        ("tiers.lfs.read_ops: {assumed: x, low: , high: 200}", "figures.tiers.lfs.read_ops.low has no value; only fitted figures may be open-ended"),
        ("tiers.lfs.read_ops: {source: x, low: 1, high: null}", "figures.tiers.lfs.read_ops.high has no value; only fitted figures"),
        ("tiers.lfs.read_ops: {fitted: x, low: , high: }", "figures.tiers.lfs.read_ops is open at both ends; set low or high"),
        ("tiers.lfs.read_ops: {assumed: x, low: few, high: 200}", "figures.tiers.lfs.read_ops.low = few; is not a number"),
        ("tiers.lfs.read_ops: {assumed: x, low: [1], high: 200}", "figures.tiers.lfs.read_ops.low is a list; must be a single value"),
        ("tiers.lfs.read_ops: {assumed: x, low: -1, high: 200}", "figures.tiers.lfs.read_ops.low = -1; must be at least"),
        ("tiers.lfs.read_ops: {assumed: x, low: nan, high: 200}", "figures.tiers.lfs.read_ops.low = nan; is not a number"),
        ("tiers.lfs.read_ops: {assumed: x, low: 200, high: 50}", "figures.tiers.lfs.read_ops: low = 200/s is above high = 50/s; swap them"),
        ("tiers.lfs.read_ops: {assumed: x, low: 1, high: 99}", "figures.tiers.lfs.read_ops: tiers.lfs.read_ops = 100/s is outside 1/s – 99/s; correct one of them"),
        ("tiers.lfs.read_ops: {fitted: x, low: 101, high: null}", "figures.tiers.lfs.read_ops: tiers.lfs.read_ops = 100/s is outside 101/s – open; "),
        ("nodes: {source: y}", "nodes is given twice; remove one"),
        ("ranks_per_node: {assumed: x, low: 0.5, high: 2}", "figures.ranks_per_node.low = 0.5; must be a whole number"),
    ],
)  # fmt: skip
def test_one_line_for_every_mistake_in_a_figure(entry: str, said: str) -> None:
    assert refusal(edited(READ_OPS, f"  {entry}", SYSTEM)).startswith(f"box.yaml:13: {said}")


@pytest.mark.parametrize("figures", ["figures: x", "figures: [x]"])
def test_figures_are_a_mapping(figures: str) -> None:
    text = f"{SYSTEM[: SYSTEM.index('figures:')]}{figures}\n"
    assert refusal(text).startswith("box.yaml:11: figures must map keys to their source, e.g. tiers.gfs.")


@pytest.mark.parametrize(
    ("draws", "said"),
    [
        ("draws: x", "box.yaml:15: draws must be a list of mappings from keys to values"),
        ("draws: {a: 1}", "box.yaml:15: draws must be a list of mappings from keys to values"),
        ("draws:\n- 5", "box.yaml:16: draws[0] must map keys to values, e.g. "),
        ("draws:\n- {}", "box.yaml:16: draws[0] must map keys to values, e.g. "),
        ("draws:\n-", "box.yaml:16: draws[0] must map keys to values, e.g. "),
        ("draws:\n- {tiers.lfs.read_op: 1}", "box.yaml:16: draws[0].tiers.lfs.read_op: is not a number of this system; did you mean tiers.lfs.read_ops?"),
        ("draws:\n- {nodes: 1}", "box.yaml:16: draws[0].nodes: only figures that are fitted or assumed can be drawn; add figures.nodes as fitted"),
        ("draws:\n- {tiers.lfs.latency: 1}", "box.yaml:16: draws[0].tiers.lfs.latency: only figures that are fitted or assumed can be drawn"),
        ("draws:\n- {tiers.lfs.read_ops: }", "box.yaml:16: draws[0].tiers.lfs.read_ops has no value; add one or remove the draw"),
        ("draws:\n- {tiers.lfs.read_ops: few}", "box.yaml:16: draws[0].tiers.lfs.read_ops = few; is not a number"),
        ("draws:\n- {tiers.lfs.read_ops: 0}", "box.yaml:16: draws[0].tiers.lfs.read_ops = 0; must be at least"),
    ],
)  # fmt: skip
def test_one_line_for_every_mistake_in_a_draw(draws: str, said: str) -> None:
    assert refusal(f"{SYSTEM[: SYSTEM.index('draws:')]}{draws}\n").startswith(said)


def test_draws_are_joint() -> None:
    text = edited("tiers.gfs.bandwidth: {assumed", "tiers.gfs.bandwidth: {fitted", SYSTEM)
    assert refusal(edited("120/s", "120/s\n  tiers.gfs.bandwidth: 2 GB/s", text)) == (
        "box.yaml:17: draws[1] and draws[0] do not both have tiers.gfs.bandwidth; draw all keys together"
    )


def test_draws_are_bounded() -> None:
    many = SYSTEM[: SYSTEM.index("- tiers")] + "- {tiers.lfs.read_ops: 95/s}\n" * MAX_DRAWS
    assert len(parsed(many).draws) == MAX_DRAWS
    assert refusal(f"{many}- {{tiers.lfs.read_ops: 95/s}}\n") == (
        "box.yaml:15: draws has 201 entries; at most 200: remove some"
    )


def test_a_drawn_system_differs_in_what_was_drawn() -> None:
    known = parsed(SYSTEM)
    first, second = drawn_systems(known.system, known)
    assert (first.tiers[0].read_ops, second.tiers[0].read_ops) == (95, 120)
    assert replace(first, tiers=known.system.tiers) == known.system
    assert drawn_systems(known.system, replace(known, draws=(), figures={})) == ()


def test_what_was_changed_since_stays_changed() -> None:
    known = parsed(SYSTEM)
    near, *others = known.system.tiers
    faster = replace(known.system, tiers=(replace(near, read_ops=1000.0), *others))
    first, second = drawn_systems(faster, known)
    assert (first.tiers[0].read_ops, second.tiers[0].read_ops) == (950, 1200)  # 5 % less, 20 % more
    without = replace(known.system, tiers=(replace(near, read_ops=None), *others))
    assert drawn_systems(without, known)[0].tiers[0].read_ops is None


def test_what_was_assumed_and_is_set_by_hand_is_known() -> None:
    known = replace(parsed(SYSTEM), draws=())
    near, far = known.system.tiers
    set_by_hand = replace(known.system, tiers=(near, replace(far, bandwidth=5e8)))
    assert {system.tiers[1].bandwidth for system in drawn_systems(set_by_hand, known)} == {5e8}
    assert len({system.tiers[1].bandwidth for system in drawn_systems(known.system, known)}) > 1


def test_some_draws_may_have_a_limit_that_the_system_has_not() -> None:
    """Another fit, about as good, has one in the place of something else."""
    text = edited("95/s", "95/s\n  tiers.gfs.node_bandwidth: 3 GB/s", SYSTEM)
    text = edited("120/s", "120/s\n  tiers.gfs.node_bandwidth: null", text)
    known = parsed(text)
    assert parsed(dump_system(known)) == known
    limited, free = drawn_systems(known.system, known)
    assert (limited.tiers[1].node_bandwidth, free.tiers[1].node_bandwidth) == (3e9, None)
    near, far = known.system.tiers
    set_by_hand = replace(known.system, tiers=(near, replace(far, node_bandwidth=1e9)))
    assert [system.tiers[1].node_bandwidth for system in drawn_systems(set_by_hand, known)] == [1e9, 1e9]


def test_a_system_is_found_by_name_or_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "box.yaml").write_text(SYSTEM)
    (tmp_path / "box").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    for name in ("box.yaml", "./box", str(tmp_path / "box.yaml")):
        assert load_system(name) == parsed(SYSTEM)
    monkeypatch.chdir("/")
    assert load_system("box.yaml", folder=tmp_path) == parsed(SYSTEM)
    assert "fugaku" in names()
    assert load_system("fugaku").system.nodes == 768


def test_a_file_of_the_same_name_does_not_hide_one_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study that says `system: fugaku` means the same everywhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fugaku").write_text(SYSTEM)
    assert load_system("fugaku").name == "fugaku"
    assert load_system("./fugaku").name == "box"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fugak", "fugak: no such system; did you mean fugaku?"),
        ("zzz", "zzz: no such system; known: cori-gpu, "),
        ("", ": no such system; known: cori-gpu, "),
        ("zzz.yaml", "zzz.yaml: no such file; built-in systems: cori-gpu, "),
        ("a\0.yaml", "a\\x00.yaml: no such file; "),
        ("x" * 5000 + ".yaml", "xxx"),
        ("/", "/: is a directory; name the YAML file of a system"),
        ("/dev/zero", "/dev/zero: is not a regular file; name the YAML file of a system"),
    ],
)
def test_what_is_no_system(name: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_system(name)
    assert str(caught.value).startswith(said)
    assert str(caught.value).isprintable()


def test_a_binary_file_is_no_system(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    with pytest.raises(UserError, match="is not UTF-8 text; a system is a YAML file"):
        load_system(str(file))


def test_a_large_file_is_no_system(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"system: x # {'x' * (1 << 20)}")
    with pytest.raises(UserError, match="larger than 1 MiB; a system is a page of YAML"):
        load_system(str(file))


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).map(lambda text: " ".join(text.split()))
ODD_TEXTS = st.sampled_from(
    ["null", "~", "a: b", "a #b", "'", '"x"', "- a", "{a}", "é 東", "1e3", "%", "!x", "&x", "|"]
)


@st.composite
def known_systems(draw: st.DrawFn) -> KnownSystem:
    """Any figures within any intervals, and draws of what is fitted."""
    places = (draw(tiers("near", st.booleans())), draw(tiers("far", st.booleans())))
    system: System = draw(
        section(System, nodes=st.integers(1, 8), ranks_per_node=st.integers(1, 8), tiers=st.just(places))
    )
    declared, values = number_keys(system), numbers(system)
    given_ones = [path for path, value in values.items() if value is not None]
    figures = {}
    for path in draw(st.lists(st.sampled_from(given_ones), unique=True, max_size=6)):
        ends: list[Any] = [draw(values_of(_plain(declared[path].kind))) for _ in range(2)]
        low, *_, high = sorted([*ends, values[path]])
        kind = draw(st.sampled_from(list(KINDS)))
        kept = draw(
            st.sampled_from({"source": [(0, 0), (1, 1)], "fitted": [(1, 1), (1, 0), (0, 1)]}.get(kind, [(1, 1)]))
        )
        text = draw((TEXTS | ODD_TEXTS).filter(lambda text: text and text.isprintable()))
        value = values[path]
        assert value is not None
        figures[path] = KnownFigure(value, kind, text, low if kept[0] else None, high if kept[1] else None)
    fitted = [path for path, figure in figures.items() if figure.kind == "fitted"]
    count = draw(st.integers(0, 3)) if fitted else 0
    draws = [{path: draw(values_of(_plain(declared[path].kind))) for path in fitted} for _ in range(count)]
    name = draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True) | st.sampled_from(["null", "1e3"]))
    return KnownSystem(name, system, figures, tuple(draws))


def _plain(kind: kinds.Kind) -> kinds.Kind:
    return kind.kind if isinstance(kind, kinds.Optional) else kind


@given(known_systems())
@settings(max_examples=examples(60), phases=(Phase.explicit, Phase.generate))
def test_any_system_round_trips(known: KnownSystem) -> None:
    assert parsed(dump_system(known)) == known


@given(known_systems())
@settings(max_examples=examples(20), phases=(Phase.explicit, Phase.generate))
def test_any_draw_is_in_its_system(known: KnownSystem) -> None:
    drawn = drawn_systems(known.system, known)
    if not known.draws:
        return
    for draw, system in zip(known.draws, drawn, strict=True):
        assert numbers(system) == {**numbers(known.system), **draw}


YAML_LIKE = st.text(alphabet="abst: -\n\t{}[],&*!|>'\"%#?0159.e~<=\\/é\x00\u2028", max_size=30)


@given(st.data())
@settings(max_examples=examples(200))
def test_any_spoilt_file_is_a_system_or_a_users_mistake(data: st.DataObject) -> None:
    text = SYSTEM
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(YAML_LIKE) + text[at + data.draw(st.integers(0, 12)) :]
    try:
        known = parsed(text)
    except UserError as error:
        line = str(error)
        assert line.isprintable()
        assert line.startswith("box.yaml")
    else:
        assert parsed(dump_system(known)) == known
