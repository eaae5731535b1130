"""Cases, zips, and what is said of those that cannot be meant."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spec.texts import SMALL, edited, parsed, refusal, swept
from tierscope.errors import UserError
from tierscope.spec import dump, sweep
from tierscope.spec.load import load_study
from tierscope.spec.scale import scale_note, scale_study
from tierscope.spec.study import Study
from tierscope.spec.vary import value_at

FILES, LENGTH = "workload.dataset.num_files_train", "workload.dataset.record_length_bytes"
BATCH, SERVERS = "workload.reader.batch_size", "system.tiers.gfs.servers"
CASES = "{few: {num_files_train: 8, record_length_bytes: 32 KiB}, many: {num_files_train: 128, gfs.servers: 3}}"
ZIP = "{zip: {num_files_train: [16, 64], record_length_bytes: [16 KiB, 4 KiB]}, cache_rate: [0%, 50%]}"


def cased(cases: str = CASES, axes: str = "{cache_rate: [0%, 50%]}") -> str:
    return f"{swept(axes)}cases: {cases}\n"


def seen(study: Study, *paths: str) -> list[tuple[Mapping[str, Any], tuple[Any, ...]]]:
    """Swept values of every point, and what its own study says for some keys."""
    found = list(sweep.points(study))
    assert [point.index for point in found] == list(range(len(found)))
    assert sweep.runs(study) == len(found) * study.repetitions
    return [(point.sweep, tuple(value_at(point.study, path) for path in paths)) for point in found]


def test_each_case_has_the_whole_sweep_and_its_name_comes_first() -> None:
    found = seen(parsed(cased()), FILES, LENGTH, SERVERS)
    assert [(list(values.items()), own) for values, own in found] == [
        ([("case", "few"), ("cache_rate", 0.0)], (8, 32768, 1)),
        ([("case", "few"), ("cache_rate", 0.5)], (8, 32768, 1)),
        ([("case", "many"), ("cache_rate", 0.0)], (128, 4096, 3)),
        ([("case", "many"), ("cache_rate", 0.5)], (128, 4096, 3)),
    ]


def test_keys_of_a_zip_change_together_and_cross_with_the_rest() -> None:
    found = seen(parsed(swept(ZIP)), FILES, LENGTH)
    assert [tuple(values.values()) for values, _ in found] == [
        (16, 16384, 0.0), (16, 16384, 0.5), (64, 4096, 0.0), (64, 4096, 0.5),
    ]  # fmt: skip
    assert all((values["num_files_train"], values["record_length_bytes"]) == own for values, own in found)


def test_several_zips_cross() -> None:
    axes = "{zip: [{num_files_train: [16, 64], record_length_bytes: [16 KiB, 4 KiB]}, {nodes: [1, 2], batch_size: [8, 4]}]}"
    found = seen(parsed(swept(axes)), "system.nodes", BATCH)
    assert [tuple(values.values()) for values, _ in found] == [
        (16, 16384, 1, 8), (16, 16384, 2, 4), (64, 4096, 1, 8), (64, 4096, 2, 4),
    ]  # fmt: skip
    assert {nodes * batch for _, (nodes, batch) in found} == {8}


def test_a_zip_may_repeat_the_value_of_one_key_but_not_of_all() -> None:
    assert len(seen(parsed(swept("{zip: {nodes: [1, 2], batch_size: [4, 4]}}")))) == 2
    assert "nodes, batch_size contain the same combination twice" in refusal(
        swept("{zip: {nodes: [1, 1], batch_size: [4, 4]}}")
    )


def test_a_case_without_keys_is_the_study_as_it_stands() -> None:
    found = seen(parsed(cased("{today: {}, more: {gfs.servers: 4}}", "{}")), SERVERS)
    assert found == [({"case": "today"}, (1,)), ({"case": "more"}, (4,))]


def test_what_every_case_sets_need_not_be_in_the_study() -> None:
    text = cased("{a: {num_files_train: 8}, b: {num_files_train: 16}}", "{}")
    bare = edited("    num_files_train: 64\n", "", text)
    assert seen(parsed(bare), FILES) == seen(parsed(text), FILES)
    only_one = edited("    num_files_train: 64\n", "", cased("{a: {num_files_train: 8}, b: {batch_size: 2}}", "{}"))
    assert "workload.dataset.num_files_train is missing" in refusal(only_one)


@pytest.mark.parametrize(
    "text", [cased(), swept(ZIP), cased("{a: {}, 1.5: {seed: 1}, null: {gfs.capacity: null, seed: 3}}", ZIP)]
)
def test_the_resolved_study_reads_back_as_the_same_points(text: str) -> None:
    study = parsed(text)
    again = parsed(dump.to_yaml(study))
    assert again == study
    assert list(sweep.points(again)) == list(sweep.points(study))
    assert not dump.differences(study, again)
    for point in sweep.points(study):
        assert not point.study.cases
        assert not point.study.sweep
        assert parsed(dump.to_yaml(point.study)) == point.study


@given(
    st.lists(st.lists(st.sampled_from(["nodes", "batch_size", "prefetch_size", "seed", "epochs"]), min_size=2, unique=True), max_size=2),
    st.integers(1, 3),
    st.lists(st.sampled_from(["a", "b.c", "0-x", "null"]), unique=True),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=examples(30))
def test_any_zips_and_cases_round_trip(zips: list[list[str]], length: int, names: list[str], first: bool) -> None:
    used: set[str] = set()
    groups = [[name for name in group if not (name in used or used.add(name))] for group in zips]  # type: ignore[func-returns-value]
    listed = [{name: list(range(1, length + 1)) for name in group} for group in groups if len(group) > 1]
    zipped, plain = (f"zip: {listed}" if listed else "", "cache_rate: [0%, 100%]")
    axes = ", ".join(part for part in ((zipped, plain) if first else (plain, zipped)) if part)
    cases = "{" + ", ".join(f"{name}: {{gfs.servers: {number}}}" for number, name in enumerate(names, 1)) + "}"
    study = parsed(cased(cases, f"{{{axes}}}".replace("'", "")))
    assert sweep.runs(study) == max(1, len(names)) * 2 * length ** len(listed) == len(list(sweep.points(study)))
    assert parsed(dump.to_yaml(study)) == study


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (swept("{zip: {num_files_train: [16, 64], record_length_bytes: [4 KiB]}}"), "sweep.zip: num_files_train has 2 values and record_length_bytes 1"),
        (swept("{zip: {nodes: [1, 2]}}"), "sweep.zip must map two or more keys"),
        (swept("{zip: 3}"), "sweep.zip must map two or more keys"),
        (swept("{zip: [[1]]}"), "sweep.zip must map two or more keys"),
        (swept("{nodes: [1, 2], zip: {nodes: [1, 2], batch_size: [2, 1]}}"), "system.nodes is swept twice"),
        (swept("{zip: [{nodes: [1, 2], batch_size: [2, 1]}, {batch_size: [1, 2], seed: [1, 2]}]}"), "workload.reader.batch_size is swept twice"),
        (swept("{zip: {nodes: [1, 2], system.nodes: [1, 2]}}"), "system.nodes is swept twice"),
        (swept("{zip: {nods: [1, 2], seed: [1, 2]}}"), "nods: unknown key; did you mean nodes?"),
        (swept("{zip: {goal: [1, 2], seed: [1, 2]}}"), "sweep.zip.goal: goal cannot be swept"),
        (swept("{zip: {nodes: [0, 2], seed: [1, 2]}}"), "sweep.zip.nodes = 0; "),
        (cased("{a: {num_file_train: 3}}"), "my.yaml:21: cases.a: num_file_train: unknown key; did you mean num_files_train?"),
        (cased("{a: {servers: 3}}"), "cases.a: servers is ambiguous: system.tiers.lfs.servers or system.tiers.gfs.servers"),
        (cased("{a: {nodes: 0}}"), "my.yaml:21: cases.a.system.nodes = 0; "),
        (cased("{a: {nodes: [1, 2]}}"), "cases.a.system.nodes is a list"),
        (cased("{a: {nodes: }}"), "cases.a.system.nodes has no value"),
        (cased("{a: {repetitions: 3}}"), "cases.a.repetitions: repetitions is set once for the study"),
        (cased("{a: {nodes: 1, system.nodes: 2}}"), "cases.a.system.nodes: system.nodes is set twice"),
        (cased("{a: {cache_rate: 0%}}"), "cases.a: placement.cache_rate is also swept"),
        (cased("{a: {seed: 7}, b: {}}"), "cases a and b are the same study"),
        (cased("{a: 3}"), "cases.a must map keys to values"),
        (cased("[a, b]"), "cases must map names to keys"),
        (cased("{a b: {}}"), "'a b' is not a valid case name"),
        (cased("{'': {}}"), "'' is not a valid case name"),
        (cased("{'a\\u0661': {}}".replace("'", '"')), "is not a valid case name"),
        (cased(f"{{{'a' * 33}: {{}}}}"), "is not a valid case name"),
        (cased("{a: {num_files_train: 3}}"), "my.yaml:21: "),
        (cased("{a: {seed: 1}, b: {seed: 2}}", "{seed: 1..6000 step 1}"), "cases.a: seed is also swept"),
        (cased("{a: {nodes: 1}, b: {nodes: 2}}", "{seed: 1..6000 step 1}"), "sweep has 12000 points in 2 cases"),
        ("case: x\n" + SMALL, "case: unknown key; did you mean cases?"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text: str, said: str) -> None:
    assert said in refusal(text)


def test_a_point_that_cannot_be_is_found_where_its_case_is_written() -> None:
    line = refusal(cased("{a: {}, b: {num_files_train: 3}}"))
    assert line.startswith("my.yaml:21: ")
    assert "(at case = b, cache_rate = 0.0)" in line


def test_one_case_alone_by_set_before_any_other_setting() -> None:
    study = parsed(cased(), "gfs.servers=9", "case=many")
    assert not study.cases
    assert seen(study, FILES, SERVERS) == [({"cache_rate": 0.0}, (128, 9)), ({"cache_rate": 0.5}, (128, 9))]
    assert "the study has no case 'mayn'; did you mean many?" in refusal(cased(), "case=mayn")
    assert "it has no cases" in refusal(SMALL, "case=x")


def test_a_setting_that_a_case_or_a_zip_would_overrule_is_refused() -> None:
    """Whoever types it expects it to count everywhere."""
    assert "system.tiers.gfs.servers is set by case many" in refusal(cased(), "gfs.servers=9")
    assert f"{FILES} is set by cases few, many" in refusal(cased(), "num_files_train=9")
    assert f"{FILES} is part of a zip" in refusal(swept(ZIP), "num_files_train=9")
    assert parsed(swept(ZIP), "num_files_train=16", "sweep={}").workload.dataset.num_files_train == 16
    assert parsed(cased(), "gfs.servers=9", "cases={}").system.tiers[1].servers == 9
    assert len(seen(parsed(swept(ZIP), "sweep.zip={nodes: [1, 2], batch_size: [4, 2]}"))) == 4


def test_differences_name_the_case_and_the_zip() -> None:
    old, new = parsed(cased()), parsed(cased(CASES.replace("gfs.servers: 3", "gfs.servers: 4")))
    assert dump.differences(old, new) == ["cases.many.system.tiers.gfs.servers: 3 → 4"]
    assert dump.differences(parsed(swept(ZIP)), parsed(swept("{num_files_train: [16, 64], record_length_bytes: [16 KiB, 4 KiB], cache_rate: [0%, 50%]}")))  # fmt: skip
    assert dump.differences(old, replace(old, cases=old.cases[::-1])) == ["cases: few, many → many, few"]


@pytest.mark.parametrize(
    ("together", "alone"),
    [
        ("fugaku-hierarchy", ["fugaku-small-60ost", "fugaku-small-1ost", "fugaku-large-60ost"]),
        ("mini-hierarchy", ["mini-small-many-osts", "mini-small-one-ost", "mini-large-many-osts"]),
    ],
)
def test_the_three_cases_of_the_hierarchy_study_are_the_three_presets(together: str, alone: list[str]) -> None:
    one = [replace(point.study, study="") for point in sweep.points(load_study(together))]
    three = [replace(point.study, study="") for name in alone for point in sweep.points(load_study(name))]
    assert one == three
    names = list(dict.fromkeys(point.sweep["case"] for point in sweep.points(load_study(together))))
    assert [f"{together.partition('-')[0]}-{name}" for name in names] == alone


@pytest.mark.parametrize("share", [0.001, 0.03, 0.5])
def test_a_scaled_case_is_the_scaled_study_of_that_case(share: float) -> None:
    full = load_study("fugaku-hierarchy")
    small = scale_study(full, share)
    for case, name in zip(small.cases, ["small-60ost", "small-1ost", "large-60ost"], strict=True):
        own = scale_study(replace(load_study(f"fugaku-{name}"), sweep=()), share)
        assert replace(dump.in_case(small, case), study="") == replace(own, study="")
        assert f"{name}: " in scale_note(full, small)


def test_a_scaled_zip_of_what_shrinks_is_refused() -> None:
    with pytest.raises(UserError, match=r"would scale workload\.dataset\.num_files_train, which the study sweeps"):
        scale_study(parsed(swept(ZIP)), 0.5)
