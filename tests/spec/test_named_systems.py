"""Studies that name their system instead of writing it."""

from pathlib import Path

import pytest

from tests.spec.texts import SMALL, edited, parsed, refusal
from tierscope.errors import UserError
from tierscope.spec import dump
from tierscope.spec.known import load_system
from tierscope.spec.load import load_study, parse_study
from tierscope.spec.study import Study

OWN = SMALL[SMALL.index("system:") : SMALL.index("placement:")]
MINE = """\
system: mine
nodes: 3
tiers:
  ssd: {path: /ssd, visible_to: node, capacity: 1 GiB}
  nas: {path: /nas, bandwidth: 1 GB/s, servers: 2}
"""


def on(system: str, more: str = "") -> str:
    """The small study, large enough for any system, on another one; `system:` is line 9."""
    text = edited("num_files_train: 64", "num_files_train: 10000", edited(OWN, f"system: {system}\n", SMALL))
    return text + more


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(on("mine.yaml"))
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path


def load_refusal(path: Path, *settings: str, system: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        load_study(str(path), settings, system)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_name_is_as_good_as_writing_all_keys() -> None:
    study = parsed(on("fugaku"))
    assert study.system == load_system("fugaku").system
    assert parsed(on("{preset: fugaku}")) == study


def test_the_resolved_study_has_every_key_of_the_system() -> None:
    """Results do not change when a system's file does."""
    study = parsed(on("{preset: theta, nodes: 5}"))
    text = dump.to_yaml(study)
    assert "preset" not in text
    assert "theta" not in text
    assert "      stripe_count: 48\n" in text
    assert parse_study(text, "again") == study


def test_what_is_written_beside_a_preset_wins_key_by_key() -> None:
    plain = load_system("fugaku").system
    system = parsed(on("{preset: fugaku, nodes: 64, tiers: {gfs: {servers: 1, path: /x}}}")).system
    assert (system.nodes, system.ranks_per_node) == (64, 4)
    assert [tier.name for tier in system.tiers] == ["lfs", "gfs"]
    assert system.tiers[0] == plain.tiers[0]
    assert (system.tiers[1].servers, system.tiers[1].path) == (1, "/x")
    assert system.tiers[1].metadata_ops == plain.tiers[1].metadata_ops


def test_tiers_keep_the_order_of_the_preset() -> None:
    system = parsed(on("{tiers: {gfs: {servers: 1}, lfs: {capacity: null}}, preset: fugaku}")).system
    assert [tier.name for tier in system.tiers] == ["lfs", "gfs"]
    assert system.tiers[0].capacity is None


@pytest.mark.parametrize("changes", ["tiers: ", "tiers: {}", "tiers: {gfs: }", "tiers: {gfs: {}}"])
def test_nothing_written_changes_nothing(changes: str) -> None:
    assert parsed(on(f"{{preset: fugaku, {changes}}}")) == parsed(on("fugaku"))


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("fugak", "my.yaml:9: system = fugak; no such system; did you mean fugaku?"),
        ("zzz", "my.yaml:9: system = zzz; no such system; known: cori-gpu, "),
        ("''", "my.yaml:9: system = ; no such system; known: "),
        ("none.yaml", "my.yaml:9: system = none.yaml; no such file; built-in systems: cori-gpu, "),
        ("/", "my.yaml:9: system = /; is a directory; name the YAML file of a system"),
        ("[fugaku]", "my.yaml:9: system must be a mapping of keys to values"),
        ("", "my.yaml:9: system.tiers is missing; "),
        ("{preset: fugak}", "my.yaml:9: system.preset = fugak; no such system; did you mean fugaku?"),
        ("{preset: }", "my.yaml:9: system.preset must be a system's name or file"),
        ("{preset: [fugaku]}", "my.yaml:9: system.preset must be a system's name or file"),
        ("{preset: fugaku, node: 4}", "my.yaml:9: system.node: unknown key; did you mean nodes?"),
        ("{preset: fugaku, nodes: many}", "my.yaml:9: system.nodes = many; must be a whole number"),
        ("{preset: fugaku, figures: {}}", "my.yaml:9: system.figures: unknown key; "),
        ("{preset: fugaku, tiers: 5}", "my.yaml:9: system.tiers must be a mapping of keys to values"),
        ("{preset: fugaku, tiers: {gfs: 5}}", "my.yaml:9: system.tiers.gfs must be a mapping of keys to values"),
        ("{preset: fugaku, tiers: {gsf: {servers: 1}}}", "my.yaml:9: system.tiers.gsf: the system fugaku has no such tier; did you mean gfs?"),
        ("{preset: fugaku, tiers: {x: {path: /x}}}", "my.yaml:9: system.tiers.x: the system fugaku has no such tier; its tiers: lfs, gfs"),
        ("\n  preset: fugaku\n  tiers:\n    gfs:\n      bandwith: 4", "my.yaml:13: system.tiers.gfs.bandwith: unknown key; did you mean bandwidth?"),
        ("{presets: fugaku}", "my.yaml:9: system.presets: unknown key; "),
    ],
)  # fmt: skip
def test_one_line_for_every_mistake(system: str, said: str) -> None:
    assert refusal(on(system)).startswith(said)


def test_a_contradiction_with_the_preset_names_where_the_key_stands() -> None:
    with pytest.raises(UserError) as caught:
        parsed(on("{preset: theta, tiers: {gfs: {servers: 8}}}"))
    place, _, said = str(caught.value).partition(": ")
    assert place.startswith("system theta:")
    assert said == "system.tiers.gfs.stripe_count = 48, but a device has 8 servers; lower it or raise servers"


def test_settings_and_sweeps_work_on_keys_of_a_named_system() -> None:
    study = parsed(on("fugaku", "sweep: {gfs.servers: [1, 60]}\n"), "nodes=32", "lfs.capacity=1 GiB")
    assert (study.system.nodes, study.system.tiers[0].capacity) == (32, 2**30)
    assert study.sweep[0].path == "system.tiers.gfs.servers"
    assert refusal(on("fugaku"), "gfs.bandwith=1").startswith(
        "--set gfs.bandwith=1: gfs.bandwith: unknown key; did you mean gfs.bandwidth?"
    )


def test_a_file_is_seen_from_the_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    study = load_study(str(folder / "study.yaml"))
    assert [tier.name for tier in study.system.tiers] == ["ssd", "nas"]
    (folder / "sub").mkdir()
    (folder / "sub" / "study.yaml").write_text(on("{preset: ../mine.yaml, nodes: 1}"))
    assert load_study(str(folder / "sub" / "study.yaml")).system.nodes == 1
    monkeypatch.chdir(folder)
    assert load_study("study.yaml") == study


def test_a_mistake_in_a_systems_file_names_that_file(folder: Path) -> None:
    (folder / "mine.yaml").write_text(edited("bandwidth", "bandwith", MINE))
    assert load_refusal(folder / "study.yaml") == (
        f"{folder}/mine.yaml:5: tiers.nas.bandwith: unknown key; did you mean bandwidth?"
    )
    (folder / "mine.yaml").write_text(f"{MINE}figures: {{nodes: {{assumed: x, low: 4, high: 5}}}}\n")
    assert load_refusal(folder / "study.yaml").startswith(f"{folder}/mine.yaml:6: figures.nodes: nodes = 3 is outside")


def test_a_study_is_no_system(folder: Path) -> None:
    (folder / "mine.yaml").write_text(SMALL)
    assert load_refusal(folder / "study.yaml").startswith(
        f"{folder}/mine.yaml:1: study: this is a study, not a system; "
    )


def test_another_system_can_be_given_for_the_studys_own(folder: Path) -> None:
    own = load_study(str(folder / "study.yaml"))
    study = load_study(str(folder / "study.yaml"), ["nodes=16"], "fugaku")
    assert study.system.nodes == 16
    assert study.system.tiers == load_system("fugaku").system.tiers
    assert (study.workload, study.placement) == (own.workload, own.placement)


def test_a_given_file_is_seen_from_here(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    study = tmp_path_factory.mktemp("elsewhere") / "study.yaml"
    study.write_text(on("fugaku"))
    assert [tier.name for tier in load_study(str(study), system=str(folder / "mine.yaml")).system.tiers] == [
        "ssd",
        "nas",
    ]


def test_a_study_without_a_system_takes_the_given_one() -> None:
    without: Study = parse_study(edited("system: fugaku\n", "", on("fugaku")), "x", system="laptop")
    assert without.system == load_system("laptop").system


@pytest.mark.parametrize(
    ("more", "settings", "said"),
    [
        ("sweep: {gfs.bandwidth: [1 GB/s]}\n", (), "STUDY:12: sweep.gfs.bandwidth: the system MINE has no tier gfs; its tiers: ssd, nas"),
        ("sweep:\n  system.tiers.lfs.latency: [1 ms]\n", (), "STUDY:13: sweep.system.tiers.lfs.latency: the system MINE has no tier lfs; its tiers: ssd, nas"),
        ("", ("gfs.path=/x",), "--set gfs.path=/x: the system MINE has no tier gfs; its tiers: ssd, nas"),
        ("", ("sweep.gfs.servers=[1, 2]",), "--set sweep.gfs.servers=[1, 2]: the system MINE has no tier gfs; its tiers: ssd, nas"),
        ("", ("sweep={gfs.servers: [1]}",), "--set sweep={gfs.servers: [1]}: sweep.gfs.servers: the system MINE has no tier gfs; its tiers: ssd, nas"),
        ("", ("nas.bandwith=1",), "--set nas.bandwith=1: nas.bandwith: unknown key; did you mean nas.bandwidth?"),
    ],
)  # fmt: skip
def test_keys_of_tiers_that_the_given_system_lacks(
    folder: Path, more: str, settings: tuple[str, ...], said: str
) -> None:
    study, mine = folder / "study.yaml", str(folder / "mine.yaml")
    study.write_text(on("fugaku", more))
    assert load_refusal(study, *settings, system=mine) == said.replace("STUDY", str(study)).replace("MINE", mine)


def test_a_sweep_that_is_set_aside_does_not_matter(folder: Path) -> None:
    study = folder / "study.yaml"
    study.write_text(on("fugaku", "sweep: {gfs.bandwidth: [1 GB/s]}\n"))
    assert load_study(str(study), ["sweep={nas.servers: [1, 2]}"], str(folder / "mine.yaml")).sweep[0].values == (1, 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fugak", "--system fugak: no such system; did you mean fugaku?"),
        ("none.yaml", "--system none.yaml: no such file; built-in systems: "),
        ("", "--system : no such system; known: "),
    ],
)
def test_what_is_given_must_be_a_system(folder: Path, name: str, said: str) -> None:
    assert load_refusal(folder / "study.yaml", system=name).startswith(said)


@pytest.mark.parametrize("text", ["[1, 2]", "5"])
def test_what_is_no_study_stays_none_on_another_system(text: str) -> None:
    with pytest.raises(UserError, match="a study must be a mapping"):
        parse_study(text, "x", ["nodes=4"], "fugaku")


def test_too_few_samples_for_the_given_system() -> None:
    with pytest.raises(UserError, match=r"num_files_train = 512 makes 512 samples for 3072 ranks"):
        load_study("demo", system="fugaku")
