"""Files of others in directories of ours: whoever deletes there, or writes there, leaves them as they are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.small_study import small_study, stage, stagers, tier_files
from tests.tiny import tiny
from tierscope.dataset.cleaning import FolderTally, cleaning
from tierscope.formats import FORMATS
from tierscope.output import manifest
from tierscope.output.ours import SUFFIXES, DatasetNames
from tierscope.output.result import make_scratch, open_result
from tierscope.storage.access import Directory
from tierscope.storage.sums import NAME as SUMS

STRANGERS = (
    "20240131120000.jpg",
    "999999999.docx",
    "999999999.tfrecord",
    "000000024.tfrecord",
    "000000003.tfrecord.bak",
)
STUDY = small_study("format=tfrecord", "cache_rate=0")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """24 files, and some of others."""
    stage(STUDY, str(tmp_path))
    folder = Path(tier_files(STUDY, str(tmp_path))[1].folder)
    for name in STRANGERS:
        (folder / name).write_text("mine")
    return folder


def rewrite(folder: Path, *, without: tuple[str, ...] = (), **facts: Any) -> None:
    """Its mark, with other facts."""
    mark = json.loads((folder / manifest.NAME).read_text()) | facts
    (folder / manifest.NAME).write_text(json.dumps({name: mark[name] for name in mark if name not in without}))


def clean(folder: Path) -> FolderTally:
    with cleaning([str(folder)], only_data=False) as plan:
        plan.delete()
    return plan.tallies[0]


def mine(folder: Path) -> list[str]:
    return [name for name in STRANGERS if (folder / name).read_text() == "mine"]


@pytest.mark.parametrize("older", [False, True])
def test_clean_deletes_the_files_of_the_dataset_and_no_others(dataset: Path, older: bool) -> None:
    """Those that the mark tells; one that does not say has those that the folder's name tells."""
    rewrite(dataset, without=("files",) if older else ())
    if older:
        (dataset / SUMS).unlink()  # there was none
    found = clean(dataset)
    assert set(os.listdir(dataset)) == {*STRANGERS, manifest.NAME}
    assert set(found.kept) == {str(dataset / name) for name in STRANGERS}
    assert found.files == (24 if older else 25)  # the mark stays with the folder
    assert mine(dataset) == list(STRANGERS)


def test_what_cannot_be_known_is_kept_and_named(dataset: Path) -> None:
    rewrite(dataset, without=("files",))
    found = clean(dataset.rename(dataset.parent / "my-data"))
    assert len(found.kept) == 24 + len([SUMS]) + len(STRANGERS)


@pytest.mark.parametrize(
    "facts",
    [
        *(None, [], "all", {}, {"suffix": ".docx"}),
        *({"suffix": ".*", "count": 9, "subfolders": 0, "extra": []},),
        *({"suffix": ".docx", "count": 1e9, "subfolders": 0, "extra": []},),
        *({"suffix": ".docx", "count": 10**9, "subfolders": 0, "extra": ["../x"]},),
        *({"suffix": ".docx", "count": -1, "subfolders": 0, "extra": [7]},),
    ],
)
def test_facts_that_cannot_be_are_none(dataset: Path, facts: object) -> None:
    assert DatasetNames.of_facts(facts) is None
    rewrite(dataset, files=facts)
    clean(dataset)
    assert mine(dataset) == list(STRANGERS)


def test_other_files_of_a_dataset_are_listed_by_name(dataset: Path) -> None:
    (dataset / "sums.bin").write_text("ours")
    rewrite(dataset, files=DatasetNames(".tfrecord", 24, extra=("sums.bin", SUMS)).facts())
    clean(dataset)
    assert set(os.listdir(dataset)) == {*STRANGERS, manifest.NAME}


def test_staging_anew_leaves_them(dataset: Path, tmp_path: Path) -> None:
    """After a restart of the machine an incomplete dataset is discarded."""
    rewrite(dataset, complete=False, boot_id="another")
    (dataset / ".tierscope-tmp-7-0123456789abcdef").write_text("of a killed writer")
    (dataset / "notes.5.tmp").write_text("mine")
    (stager,) = stagers(STUDY, str(tmp_path))
    stager.claim()
    stager.distrust()
    assert set(os.listdir(dataset)) == {*STRANGERS, manifest.NAME, "notes.5.tmp"}
    assert mine(dataset) == list(STRANGERS)


def test_the_mark_of_an_older_version_is_completed(dataset: Path, tmp_path: Path) -> None:
    before = json.loads((dataset / manifest.NAME).read_text())
    rewrite(dataset, without=("files",))
    assert stage(STUDY, str(tmp_path)) == 0
    assert json.loads((dataset / manifest.NAME).read_text()) == before


def test_subfolders_are_told_apart(tmp_path: Path) -> None:
    study = small_study("format=raw", "cache_rate=0", "num_subfolders_train=3")
    stage(study, str(tmp_path))
    files = tier_files(study, str(tmp_path))[1]
    strangers = [Path(files.folder, name) for name in ("000000/000000001.raw", "000001/000000024.raw", "000003/x.raw")]
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    clean(Path(files.folder))
    left = [path for path in Path(files.folder).rglob("*") if path.is_file()]
    assert {*left} == {*strangers, Path(files.folder, manifest.NAME)}


def test_suffixes_of_older_datasets_are_those_of_their_formats() -> None:
    assert {name: FORMATS.load(name).suffix for name in SUFFIXES} == SUFFIXES


@pytest.mark.parametrize("form", ["raw", "npz", "hdf5"])
def test_a_file_that_has_another_name_elsewhere_is_not_emptied(tmp_path: Path, form: str) -> None:
    """One of another size: it is written anew."""
    study = small_study(f"format={form}", "cache_rate=0")
    (stager,) = stagers(study, str(tmp_path))
    stager.claim()
    files = tier_files(study, str(tmp_path))[1]
    (tmp_path / "thesis").write_text("")
    for path in (files.path(3), files.unfinished(5)):
        os.link(tmp_path / "thesis", path)
    (tmp_path / "thesis").write_text("" if form == "hdf5" else "mine")
    before = (tmp_path / "thesis").stat()
    stager.write(lambda _: None)
    after = (tmp_path / "thesis").stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert not os.path.samefile(files.path(3), tmp_path / "thesis")


def test_what_a_rank_creates_is_a_new_file(tmp_path: Path) -> None:
    """A copy, or a part of a checkpoint."""
    (tmp_path / "thesis").write_text("mine")
    os.link(tmp_path / "thesis", tmp_path / "part")
    access = Directory()
    access.close(access.create(str(tmp_path / "part")))
    assert (tmp_path / "thesis").read_text() == "mine"
    assert (tmp_path / "part").read_bytes() == b""


def test_a_run_leaves_temporary_files_of_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with open_result(str(out), tiny()):
        pass
    (out / "runs").mkdir()
    (out / ".scratch").mkdir()
    mine = ("notes.5.tmp", "runs/thesis.2024.tmp", ".tierscope-tmp-mine", ".scratch/notes.txt")
    ours = ("study.yaml.7.tmp", "runs/0000-r1.parquet.77.tmp", "runs/.tierscope-tmp-7-0123456789abcdef")
    for name in (*mine, *ours):
        (out / name).write_text("x")
    with open_result(str(out), tiny()):
        left = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert left == {*mine, manifest.NAME, "study.yaml", "lock"}


def test_scratch_of_a_killed_run_goes_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    with open_result(str(out), tiny()):
        folder = Path(make_scratch(str(out), "ops-0000-r1"))
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "rank-0").write_text("ours")
    with open_result(str(out), tiny()):
        assert not (out / ".scratch").exists()
        folder = Path(make_scratch(str(out), "ops-0000-r1"))
        (folder / "link").symlink_to(victim)
    with open_result(str(out), tiny()):
        assert os.listdir(folder) == ["link"]
    assert (victim / "precious").read_text() == "mine"


MOUNTING = 'mkdir -p "$OUT/.scratch/record/mnt" && mount --bind "$VICTIM" "$OUT/.scratch/record/mnt" && exec "$@"'
OPENING = "import sys; from tests.tiny import tiny; from tierscope.output.result import open_result\nwith open_result(sys.argv[1], tiny()): pass"


def test_what_is_mounted_in_scratch_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mounting needs root and a namespace of its own")
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    with open_result(str(out), tiny()):
        pass
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTING, "sh", sys.executable, "-c", OPENING, str(out)],
        env={**os.environ, "VICTIM": str(victim), "OUT": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (victim / "precious").read_text() == "mine"
