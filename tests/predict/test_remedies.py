"""What would fit where the best does not: each fits, is simulated, and says what it costs in randomness."""

from dataclasses import replace
from typing import Any

import pytest

from tests.predict.planning import FILE_BYTES, held_on_worst_node, loaded
from tierscope.formats import FORMATS
from tierscope.predict.exploration import Remedy
from tierscope.predict.remedies import remedies
from tierscope.spec.study import Study


def study_of(**changes: Any) -> Study:
    """64 files on four nodes, and room for 20 of them on each."""
    found = loaded(**{"capacity": f"{20 * FILE_BYTES} B", **changes}).study
    return replace(found, sweep=(), placement=replace(found.placement, cache_rate=1.0))


def by_policy(found: tuple[Remedy, ...]) -> dict[str, Remedy]:
    return {remedy.name.partition(":")[0].partition(" of ")[0]: remedy for remedy in found}


def test_what_fits_is_proposed_with_what_it_costs_in_randomness() -> None:
    found = by_policy(remedies(study_of(), "bound"))
    assert set(found) == {"the largest cache rate that fits", "first touch", "shuffle among 1", "local shuffle"}
    assert round(64 * found["the largest cache rate that fits"].option.cache_rate) == 20
    assert found["shuffle among 1"].mixed_share == 1 / 4
    assert found["local shuffle"].mixed_share == 1 / 8
    assert found["the largest cache rate that fits"].randomness.startswith("full randomness")
    assert "sees only 12.5 % of the samples" in found["local shuffle"].randomness
    for remedy in found.values():
        assert remedy.option.feasibility.fits == "yes"
        assert remedy.option.io_seconds > 0
    staged = [
        remedy for remedy in found.values() if remedy.option.study and remedy.option.study.placement.policy == "pinned"
    ]
    assert all(remedy.option.staging_seconds for remedy in staged)


def test_the_largest_rate_that_fits_is_the_largest() -> None:
    (pinned,) = [
        remedy for remedy in remedies(study_of(), "bound") if remedy.name == "the largest cache rate that fits"
    ]
    assert pinned.option.study is not None
    assert held_on_worst_node(pinned.option.study) <= 20 * FILE_BYTES
    assert round((pinned.option.cache_rate + 0.001) * 64) * FILE_BYTES > 19 * FILE_BYTES


def test_the_largest_chunk_that_fits_is_taken() -> None:
    chunked = [
        remedy for remedy in remedies(study_of(capacity=f"{40 * FILE_BYTES} B"), "bound") if "nodes" in remedy.name
    ]
    assert [remedy.settings["workload.reader.shuffle_nodes"] for remedy in chunked if "among" in remedy.name] == [2]


def test_files_are_packed_where_there_are_enough() -> None:
    (packed,) = [each for each in remedies(study_of(files=640), "bound") if each.name.startswith("packed")]
    assert packed.together == 10
    assert packed.settings["workload.dataset.num_files_train"] == 64
    assert "the 10 samples of a file stay together" in packed.randomness
    assert packed.option.feasibility.fits == "yes"


def test_nothing_is_proposed_without_a_near_tier() -> None:
    study = study_of()
    alone = replace(
        study,
        system=replace(study.system, tiers=study.system.tiers[1:]),
        placement=replace(study.placement, cache_rate=0.0),
    )
    assert remedies(alone, "bound") == ()


def test_what_cannot_be_simulated_in_part_is_left_out_of_large_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.predict.remedies.DRAWN_FROM", 10)
    assert set(by_policy(remedies(study_of(), "bound"))) == {
        "the largest cache rate that fits",
        "shuffle among 1",
        "local shuffle",
    }


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_format_that_refuses_a_remedy_only_loses_that_one(form: str) -> None:
    """Pictures hold one sample, so that they cannot be packed; what is made in memory has no files."""
    study = study_of(capacity="0 B", record="1 kB", files=640)
    dataset = replace(study.workload.dataset, format=form)
    names = by_policy(remedies(replace(study, workload=replace(study.workload, dataset=dataset)), "bound"))
    assert any(name.startswith("packed") for name in names) == (form not in {"jpeg", "png", "synthetic"})
