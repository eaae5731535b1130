"""Figures that are known within an interval are drawn within it; what a fit left goes together."""

from pathlib import Path

import pytest

from tierscope.spec.known import drawn_systems, load_system
from tierscope.spec.load import load

STUDY = """
study: x
workload: {dataset: {num_files_train: 4096, record_length_bytes: 1 KiB}}
"""


def test_a_system_that_ships_is_drawn_within_its_intervals() -> None:
    known = load_system("fugaku")
    assert not known.draws
    systems = drawn_systems(known.system, known)
    assert len(systems) > 10
    gfs = [system.tiers[-1] for system in systems]
    assert all(1e9 <= (tier.bandwidth or 0) <= 1.8e9 for tier in gfs)
    assert min(tier.bandwidth or 0 for tier in gfs) < 1.2e9
    assert max(tier.bandwidth or 0 for tier in gfs) > 1.6e9
    assert {tier.servers for tier in gfs} == {60}  # published
    assert drawn_systems(known.system, known) == systems


@pytest.mark.parametrize("system", ["fugaku", "{preset: fugaku, nodes: 16}"])
def test_a_study_that_names_a_system_knows_its_figures(system: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY + f"system: {system}\n")
    loaded = load(str(path))
    assert loaded.known is not None
    assert loaded.known.name == "fugaku"


def test_one_that_is_written_out_has_none(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY + "system: {tiers: {gfs: {path: /x}}}\n")
    assert load(str(path)).known is None
    given = load(str(path), system="polaris").known
    assert given is not None
    assert given.name == "polaris"
