"""Where files lie: placeholders, variables, subfolders."""

import os
from dataclasses import replace
from typing import Any

import pytest

from tierscope.errors import UserError
from tierscope.spec.study import Dataset, Tier
from tierscope.storage.files import DatasetFiles, dataset_name, tier_root

DATASET = Dataset(format="raw", num_files_train=100, num_samples_per_file=3, record_length_bytes=4096)


def lfs(path: str) -> Tier:
    return Tier(name="lfs", path=path)


def test_placeholders_are_filled_in() -> None:
    assert tier_root(lfs("{out}/tiers/{node}/x{node}"), "/res", 12) == "/res/tiers/12/x12"


def test_variables_and_home_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    monkeypatch.setenv("HOME", "/home/me")
    assert tier_root(lfs("$SCRATCH/a"), "/res", 0) == "/scratch/me/a"
    assert tier_root(lfs("${SCRATCH}b/{node}"), "/res", 3) == "/scratch/meb/3"
    assert tier_root(lfs("~/c"), "/res", 0) == "/home/me/c"


def test_a_relative_path_becomes_absolute() -> None:
    assert tier_root(lfs("data/./x/../y"), "/res", 0) == os.path.join(os.getcwd(), "data/y")


@pytest.mark.parametrize("path", ["$TIERSCOPE_UNSET/x", "${TIERSCOPE_UNSET}/x"])
def test_an_unset_variable_is_one_clear_line(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIERSCOPE_UNSET", raising=False)
    with pytest.raises(UserError) as caught:
        tier_root(lfs(path), "/res", 0)
    assert str(caught.value) == (
        f"system.tiers.lfs.path = {path}; $TIERSCOPE_UNSET is not set in the environment: set it or write the path"
    )


def test_the_results_directory_is_taken_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    assert tier_root(lfs("{out}/lfs"), "/res/$SCRATCH/$no/{node}", 1) == "/res/$SCRATCH/$no/{node}/lfs"


def test_files_have_numbered_names() -> None:
    files = DatasetFiles.of(lfs("/lfs/{node}"), "/res", 2, DATASET, 42, ".raw")
    assert files.tier_root == "/lfs/2"
    assert files.folder == "/lfs/2/raw-100x3-4096B-seed42"
    assert files.path(7) == "/lfs/2/raw-100x3-4096B-seed42/000000007.raw"
    assert files.path(10**10) == "/lfs/2/raw-100x3-4096B-seed42/10000000000.raw"
    assert files.folders() == [files.folder]


def test_copies_have_a_folder_of_their_own_and_know_their_names() -> None:
    files = DatasetFiles.of(lfs("/lfs/{node}"), "/res", 2, DATASET, 42, ".raw", copies=True)
    assert files.folder == "/lfs/2/raw-100x3-4096B-seed42-first-touch"
    assert files.unfinished(7) == files.path(7) + ".part"
    ours = [os.path.basename(path) for file in (0, 7, 99) for path in (files.path(file), files.unfinished(file))]
    assert all(files.names.owns(name) for name in ours)
    others = ["tierscope.json", "7.raw", "000000007.npz", "000000007xraw", "x000000007.raw", "000000007.raw.part.part"]
    others += ["000000100.raw", "0000000007.raw", "000000007", "٠٠٠٠٠٠٠٠٧.raw"]
    assert not any(files.names.owns(name) for name in others)


def test_subfolders_take_files_in_turn() -> None:
    dataset = replace(DATASET, num_subfolders_train=3)
    files = DatasetFiles.of(lfs("/lfs"), "/res", 0, dataset, 42, ".raw")
    assert [os.path.dirname(files.path(file)) for file in range(4)] == [
        *files.folders()[1:],
        files.folders()[1],
    ]
    assert files.folders() == [files.folder, *(f"{files.folder}/00000{number}" for number in range(3))]
    assert len({files.path(file) for file in range(100)}) == 100


def test_whatever_decides_content_or_place_has_a_folder_of_its_own() -> None:
    changes: list[dict[str, Any]] = [
        {"format": "npz"},
        {"num_files_train": 101},
        {"num_samples_per_file": 4},
        {"record_length_bytes": 4097},
        {"num_subfolders_train": 2},
    ]
    names = [dataset_name(DATASET, 42), dataset_name(DATASET, 43)]
    names += [dataset_name(replace(DATASET, **change), 42) for change in changes]
    assert len(set(names)) == len(names)
