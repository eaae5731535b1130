from functools import cache

import pytest
from hypothesis import Phase, example, given, settings

from tests.examples import examples
from tests.spec.studies import studies
from tests.spec.texts import SMALL, edited, parsed, swept
from tierscope.spec import dump, keys, presets, sweep
from tierscope.spec.load import load_study, parse_study
from tierscope.spec.study import Study

PRESETS = presets.names()
load_preset = cache(load_study)

# Making a failing study smaller takes minutes; the first one found says enough.
quick = settings(phases=(Phase.explicit, Phase.generate))


def assert_round_trip(study: Study) -> None:
    for comments in (False, True):
        assert parse_study(dump.to_yaml(study, comments), "again") == study


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name: str) -> None:
    assert_round_trip(load_preset(name))


@given(studies())
@settings(quick, max_examples=examples(30))
def test_any_study_round_trips(study: Study) -> None:
    assert_round_trip(study)


@given(studies())
@settings(quick, max_examples=examples(20))
def test_every_point_of_any_study_is_a_study_that_round_trips(study: Study) -> None:
    for point in sweep.points(study):
        assert parse_study(dump.to_yaml(point.study), "again") == point.study


@pytest.mark.parametrize(
    "path",
    ["d" * 100, "a #b", "a ", " a", "null", "Null", "~", "a: b", "a:", "it's", 'say "x"', "a\\n", "a\tb", "a\u2028b", "a\x85", "a\x07", "é 東 😀"],
)  # fmt: skip
def test_odd_paths_are_quoted_as_they_must_be(path: str) -> None:
    study = dump.with_settings(parsed(SMALL), {"system.tiers.gfs.path": path})
    assert study.system.tiers[1].path == path
    assert_round_trip(study)


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("name", PRESETS)
def test_every_key_is_printed_in_block_style(name: str, comments: bool) -> None:
    study = load_preset(name)
    lines = [line.split("#")[0].rstrip() for line in dump.to_yaml(study, comments).splitlines()]
    leaves = keys.leaf_keys(Study, [tier.name for tier in study.system.tiers])
    for path in (path for path, key in leaves.items() if key.dumped or comments):
        depth, last = path.count("."), path.rpartition(".")[2]
        assert any(line.startswith(f"{'  ' * depth}{last}: ") for line in lines), path
    assert not any(line.rpartition(": ")[2].startswith(("{o", "{n", "[")) for line in lines)


def test_a_storage_is_written_only_where_it_is_not_the_usual_one() -> None:
    """So that results of studies that know nothing of it say what they always said."""
    assert "storage:" not in dump.to_yaml(parsed(SMALL))
    assert dump.to_yaml(parsed(SMALL, "gfs.storage=memory")).count("      storage: memory\n") == 1


def test_comments_are_the_help_of_each_key() -> None:
    text = dump.to_yaml(parsed(SMALL), comments=True)
    for path, key in keys.leaf_keys(Study, ["lfs", "gfs"]).items():
        last = path.rpartition(".")[2]
        assert any(line.strip().startswith(f"{last}:") and line.endswith(f"# {key.help}") for line in text.splitlines())


def test_values_are_written_as_people_write_them() -> None:
    text = dump.to_yaml(
        parsed(swept("{cache_rate: 0..1 step 0.5}"), "computation_time=0.0015", "gfs.bandwidth=1000000000")
    )
    for line in (
        "    record_length_bytes: 4 KiB",
        "    transfer_size: 256 KiB",
        "    computation_time: 1.5 ms",
        "      bandwidth: 1 GB/s",
        "  cache_rate: 50%",
        "  placement.cache_rate:",
        "  - 100%",
    ):
        assert line in text.splitlines()


@given(studies())
@example(parsed(SMALL))
@settings(quick, max_examples=examples(20))
def test_a_study_does_not_differ_from_itself(study: Study) -> None:
    assert dump.differences(study, study) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (edited("seed: 7", "seed: 8"), ["seed: 7 → 8"]),
        (edited("4 KiB", "8 KiB"), ["workload.dataset.record_length_bytes: 4 KiB → 8 KiB"]),
        (edited("visible_to: node", "visible_to: node\n      capacity: 1 GiB"), ["system.tiers.lfs.capacity: null → 1 GiB"]),
        (swept("{cache_rate: [0%, 50%]}"), ["sweep.placement.cache_rate: (none) → [0%, 50%]"]),
        (swept("{gfs.capacity: [null, 1 GiB]}"), ["sweep.system.tiers.gfs.capacity: (none) → [null, 1 GiB]"]),
        (edited("seed: 7", "seed: 8\ngoal: 4 s"), ["goal: null → 4 s", "seed: 7 → 8"]),
    ],
)  # fmt: skip
def test_differences_name_the_key_and_both_values(text: str, said: list[str]) -> None:
    assert dump.differences(parsed(SMALL), parsed(text)) == said


def test_a_tier_more_is_a_difference() -> None:
    more = edited("    gfs:\n", "    bb:\n      path: /bb\n    gfs:\n")
    assert "system.tiers.bb.path: (none) → /bb" in dump.differences(parsed(SMALL), parsed(more))


def test_the_order_of_tiers_is_a_difference() -> None:
    """Nearest first: the same two tiers the other way round are another system."""
    two = "      path: /one\n    two:\n      path: /two\n"
    old = edited('      path: "{out}/gfs"\n', two, edited("    gfs:\n", "    one:\n"))
    new = old.replace("one", "x").replace("two", "one").replace("x", "two")
    assert dump.differences(parsed(old), parsed(new)) == ["system.tiers: lfs, one, two → lfs, two, one"]


def test_the_order_of_swept_keys_is_a_difference() -> None:
    """It numbers the points, and runs are stored under their numbers."""
    old, new = (parsed(swept(f"{{{axes}}}")) for axes in ("seed: [1, 2], nodes: [1, 2]", "nodes: [1, 2], seed: [1, 2]"))
    assert dump.differences(old, new) == ["sweep: seed, system.nodes → system.nodes, seed"]
