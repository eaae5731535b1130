"""Copies of one run go before the next; nothing else does."""

from pathlib import Path

import pytest

from tierscope.dataset.copies import Copies
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.output import manifest
from tierscope.spec.study import Dataset, Tier
from tierscope.storage.base import TierPlace
from tierscope.storage.directory import DirectoryStorage
from tierscope.storage.files import DatasetFiles


def files_in(folder: Path, subfolders: int = 0) -> DatasetFiles:
    dataset = Dataset(format="raw", num_files_train=8, record_length_bytes=4, num_subfolders_train=subfolders)
    return DatasetFiles.of(Tier(name="lfs", path=str(folder)), "/out", 0, dataset, 42, ".raw", copies=True)


def copies_of(files: DatasetFiles) -> Copies:
    place = TierPlace(Tier(name="lfs", path=files.tier_root), files.tier_root)
    return Copies(DirectoryStorage(place), files)


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).rglob("*") if path.is_file() or path.is_symlink()}


@pytest.mark.parametrize("subfolders", [0, 3])
def test_copies_go_and_all_else_stays(tmp_path: Path, subfolders: int) -> None:
    files = files_in(tmp_path / "lfs", subfolders)
    copies_of(files).begin()
    for number in range(5):
        Path(files.path(number)).write_bytes(b"copy")
    Path(files.unfinished(5)).write_bytes(b"co")
    strangers = {"notes.txt", "000000001.npz", "1.raw", "000000001.raw.bak", "a000000001.raw"}
    for name in strangers:
        (Path(files.path(0)).parent / name).write_bytes(b"a stranger's")
    (Path(files.folder) / "elsewhere").mkdir()
    (Path(files.folder) / "elsewhere" / "000000007.raw").write_bytes(b"not in a folder of the dataset")
    Path(files.path(6)).symlink_to(tmp_path / "target")
    (tmp_path / "target").write_bytes(b"a stranger's")
    copies_of(files).begin()
    assert names(files.folder) == {manifest.NAME, *strangers, "000000007.raw", "000000006.raw"}
    assert (tmp_path / "target").exists()


def test_they_are_apart_from_what_was_staged(tmp_path: Path) -> None:
    copies = files_in(tmp_path)
    assert copies.folder == f"{tmp_path}/raw-8x1-4B-seed42-first-touch"
    copies_of(copies).begin()
    marker = manifest.read(copies.folder)
    assert marker is not None
    assert marker["kind"] == "copies"


def test_a_folder_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    Path(files.folder).mkdir()
    Path(files.path(3)).write_bytes(b"a stranger's")
    with pytest.raises(ForeignDirectoryError, match="is not empty and was not created by Tierscope"):
        copies_of(files).begin()
    assert Path(files.path(3)).read_bytes() == b"a stranger's"


def test_a_folder_with_staged_files_is_refused(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    manifest.claim(files.folder, "dataset")
    Path(files.path(3)).write_bytes(b"staged")
    with pytest.raises(ForeignDirectoryError, match="contains Tierscope's dataset, not a copies"):
        copies_of(files).begin()
    assert Path(files.path(3)).exists()


def test_what_the_system_refuses_is_said(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    with pytest.raises(UserError, match=r"cannot be written: No such file or directory; check the directory"):
        copies_of(files).sync()
