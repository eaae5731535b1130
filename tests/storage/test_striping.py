"""Files on Lustre where the user wants them, with a program that answers as `lfs` does."""

from pathlib import Path

import pytest

from tests.small_study import stage
from tests.tiny import tiny
from tierscope.errors import SpecError, UserError
from tierscope.mounts import filesystem_of
from tierscope.spec.study import Study, Tier
from tierscope.storage import striping
from tierscope.storage.files import DatasetFiles
from tierscope.storage.striping import ANYWHERE, StripeLayout, Striping

FOLDER = """/scratch/data
stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1 pool: fast
"""
FILE = """/scratch/data/000000000.raw
lmm_stripe_count:  2
lmm_stripe_size:   65536
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 3
\tobdidx\t\t objid\t\t objid\t\t group
\t     3\t             2\t          0x2\t             0
\t     0\t             7\t          0x7\t             0
"""
# Folders have a layout of their own, files that of their folder when they were made. OSTS is how many there are.
LFS = """#!/bin/bash
echo "$@" >> "{state}/calls"
verb=$1; shift; path=${{!#}}
if [ $verb = setstripe ]; then
  offset=-1; pool=
  while getopts c:S:i:p: option; do
    case $option in c) count=$OPTARG ;; S) size=$OPTARG ;; i) offset=$OPTARG ;; p) pool="pool: $OPTARG" ;; esac
  done
  [ ${{offset#-}} -lt ${{OSTS:-8}} ] || {{ echo "error: setstripe: invalid OST index $offset" >&2; exit 34; }}
  echo "stripe_count:  $count stripe_size:   $size pattern:       raid0 stripe_offset: $offset $pool" > "{state}/layout"
  exit 0
fi
[ -z "$MUTE" ] || exit 0
echo "$path"
if [ -d "$path" ]; then cat "{state}/layout"; exit; fi
sed 's/ *\\(stripe_[a-z]*\\|pool\\): */\\nlmm_\\1: /g' "{state}/layout"
"""


@pytest.fixture
def lustre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything is on Lustre, and `lfs` is on the PATH; its calls are in the file that is given."""
    state = tmp_path / "lfs"
    state.mkdir()
    program = state / "lfs"
    program.write_text(LFS.format(state=state))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{state}:/usr/bin:/bin")
    monkeypatch.setattr(striping, "filesystem_of", lambda _: "lustre")
    return state / "calls"


def placed(*settings: str) -> Study:
    return tiny("gfs.servers=8", *settings)


def gfs_folder(study: Study, out: Path) -> str:
    dataset, seed = study.workload.dataset, study.seed
    return DatasetFiles.of(study.system.tiers[-1], str(out), 0, dataset, seed, ".raw").folder


def test_what_lfs_says_of_a_folder_and_of_a_file() -> None:
    assert striping.parse(FOLDER) == StripeLayout(4, 2**20, ANYWHERE, "fast")
    assert striping.parse(FILE) == StripeLayout(2, 2**16, 3, None)
    assert striping.parse("/scratch/data has no stripe info\n") is None


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        ("stripe_count:   -1 stripe_size:    1048576 stripe_offset:  0", StripeLayout(-1, 2**20, 0, None)),
        ("stripe_count:   3 stripe_size:    33554432 stripe_offset:  -1 ", StripeLayout(3, 2**25, ANYWHERE, None)),
        (
            "stripe_count:  1 stripe_size:   1048576 pattern:       0 stripe_offset: -1",
            StripeLayout(1, 2**20, ANYWHERE, None),
        ),
    ],
)
def test_how_folders_were_told_by_other_versions(line: str, layout: StripeLayout) -> None:
    """Older ones know no pattern, or give its number; as sites document it."""
    assert striping.parse(f"/scratch/data\n{line}\n") == layout


def test_a_file_of_several_parts_has_no_one_layout() -> None:
    part = "  lcme_id: {}\n    lmm_stripe_count: 1\n    lmm_stripe_size: 1048576\n    lmm_stripe_offset: 0\n"
    assert striping.parse(f"/scratch/file\nlcm_entry_count: 2\n{part.format(1)}{part.format(2)}") is None


def test_what_it_is_told() -> None:
    tier = Tier(name="gfs", path="/scratch", lustre_ost=5)
    wanted = Striping.of(tier)
    assert wanted
    assert striping.set_tokens(wanted, "/x") == ["lfs", "setstripe", "-c", "1", "-S", "1048576", "-i", "5", "/x"]
    pool = Striping.of(Tier(name="gfs", path="/scratch", lustre_pool="fast", stripe_count=4, servers=4))
    assert pool
    assert striping.set_tokens(pool, "/x") == ["lfs", "setstripe", "-c", "4", "-S", "1048576", "-p", "fast", "/x"]
    assert Striping.of(Tier(name="gfs", path="/scratch", stripe_count=4, servers=4)) is None


def test_each_placement_is_a_dataset_of_its_own(tmp_path: Path) -> None:
    settings = [
        (),
        ("gfs.lustre_ost=0",),
        ("gfs.lustre_ost=3",),
        ("gfs.lustre_ost=-1",),
        ("gfs.lustre_ost=-1", "gfs.stripe_count=4"),
        ("gfs.lustre_ost=-1", "gfs.stripe_size=64 KiB"),
        ("gfs.lustre_pool=fast",),
    ]
    folders = [gfs_folder(placed(*each), tmp_path) for each in settings]
    assert len(set(folders)) == len(folders)
    assert folders[0].endswith("-seed7")
    assert folders[2].endswith("-seed7-ost3-1x1048576B")
    assert folders[-1].endswith("-seed7-pool-fast-1x1048576B")


def test_a_dataset_is_placed_when_it_is_made_and_only_looked_at_later(lustre: Path, tmp_path: Path) -> None:
    study = placed("gfs.lustre_ost=3", "gfs.stripe_count=2")
    folder = gfs_folder(study, tmp_path)
    stage(study, str(tmp_path))
    made, looked, file = lustre.read_text().splitlines()
    assert [made, looked] == [f"setstripe -c 2 -S 1048576 -i 3 {folder}", f"getstripe -d {folder}"]
    assert file.startswith(f"getstripe -d {folder}/0000000")
    lustre.unlink()
    stage(study, str(tmp_path))
    assert lustre.read_text().splitlines()[0] == f"getstripe -d {folder}"
    assert "setstripe" not in lustre.read_text()


def test_a_dataset_that_lies_elsewhere_is_refused(lustre: Path, tmp_path: Path) -> None:
    study = placed("gfs.lustre_pool=fast")
    stage(study, str(tmp_path))
    (lustre.parent / "layout").write_text("stripe_count: 1 stripe_size: 1048576 stripe_offset: 2\n")
    with pytest.raises(UserError) as caught:
        stage(study, str(tmp_path))
    assert (
        str(caught.value)
        == f"{gfs_folder(study, tmp_path)}: has 1 stripe of 1048576 bytes from OST 2 on, but system.tiers.gfs.lustre_pool = fast means 1 stripe of 1048576 bytes in pool fast; "
        "remove the dataset, or change the key"
    )


def test_an_ost_that_is_not_there(lustre: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        stage(placed("gfs.lustre_ost=9"), str(tmp_path))
    assert (
        str(caught.value)
        == "system.tiers.gfs.lustre_ost = 9: lfs setstripe failed: error: setstripe: invalid OST index 9"
    )


def test_an_answer_that_says_nothing(lustre: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTE", "yes")
    with pytest.raises(UserError, match=r"lfs getstripe reports no plain layout \(no output\); is it on Lustre\?"):
        stage(placed("gfs.lustre_ost=3"), str(tmp_path))


def test_what_is_not_lustre_gets_one_line(tmp_path: Path) -> None:
    study = placed("gfs.lustre_ost=3")
    with pytest.raises(UserError) as caught:
        stage(study, str(tmp_path))
    kind = filesystem_of(str(tmp_path))
    assert (
        str(caught.value)
        == f"system.tiers.gfs.lustre_ost = 3, but {gfs_folder(study, tmp_path)} is on {kind}, not on Lustre; remove the key, or use a path on Lustre"
    )


def test_without_the_program(lustre: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError) as caught:
        stage(placed("gfs.lustre_ost=3"), str(tmp_path))
    assert (
        str(caught.value)
        == "system.tiers.gfs.lustre_ost = 3 needs the program lfs, which is not in PATH; load Lustre's tools, or remove the key"
    )


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            ("gfs.lustre_ost=3", "gfs.emulate=true", "gfs.bandwidth=1 MB/s"),
            "system.tiers.gfs.lustre_ost = 3 works only on a real Lustre, but emulate = true; remove one of them",
        ),
        (
            ("gfs.lustre_ost=3", "gfs.lustre_pool=fast"),
            "system.tiers.gfs.lustre_ost = 3 and lustre_pool = fast exclude each other; remove one",
        ),
        (
            ("lfs.lustre_pool=fast", "policy=first-touch"),
            "system.tiers.lfs.lustre_pool = fast, but with placement.policy: first-touch its files are copied",
        ),
    ],
)
def test_keys_that_do_not_go_together(settings: tuple[str, ...], line: str) -> None:
    with pytest.raises(SpecError) as caught:
        placed(*settings)
    assert line in str(caught.value)
