"""Files onto tiers: right, shared by ranks, and only what is missing."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.formats.any_file import read
from tests.in_memory import tmp_path_factory
from tests.small_disks import mounted
from tests.small_study import plan_of, small_study, stage, stagers, tier_files
from tierscope.dataset import content
from tierscope.errors import ForeignDirectoryError, OutOfSpaceError, StoppedError, UserError
from tierscope.formats import FORMATS, NOTHING
from tierscope.output import durable, manifest
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.storage.sums import NAME as SUMS

__all__ = ["tmp_path_factory"]

STUDY = small_study()
NAMED_LAST = ["hdf5", "lmdb", "parquet", "png", "jpeg"]
FILE = make_format(STUDY).file_bytes


def data_files(out: Path) -> dict[str, os.stat_result]:
    """Every data file below, by its path relative to `out`."""
    ours = (manifest.NAME, SUMS)
    found = (path for path in sorted(out.rglob("*")) if path.is_file() and not path.name.startswith(ours))
    return {str(path.relative_to(out)): path.stat() for path in found}


def changed(before: dict[str, os.stat_result], after: dict[str, os.stat_result]) -> set[str]:
    """Files that are new or were written between two looks."""

    def version(stat: os.stat_result) -> tuple[int, int]:
        return stat.st_ino, stat.st_mtime_ns

    return {name for name in after if name not in before or version(before[name]) != version(after[name])}


def payloads(study: Study, path: str) -> list[bytes]:
    """The samples of a file, read as its format says and checked."""
    form = make_format(study)
    whole = Path(path).read_bytes()
    assert len(whole) == form.file_bytes
    found = []
    for inside in range(study.workload.dataset.num_samples_per_file):
        slot = b"".join(whole[at.offset : at.offset + at.nbytes] for at in form.extents(inside))
        form.check(memoryview(slot))
        found.append(slot[form.payload(inside)])
    return found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "disk", "1m")


@pytest.fixture
def other_boot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Pretend that the machine was restarted."""
    boots = iter(range(100))

    def restart() -> None:
        number = next(boots)
        monkeypatch.setattr(durable, "boot_id", lambda: f"boot {number}")

    return restart


class TestFiles:
    @pytest.mark.parametrize("form", list(FORMATS))
    @pytest.mark.parametrize("per_file", [1, 3])
    @pytest.mark.parametrize("stdev", [0, 90])
    def test_every_file_is_there_with_its_samples(self, tmp_path: Path, form: str, per_file: int, stdev: int) -> None:
        per_file = per_file if FORMATS.load(form).indexed else 1
        settings = (f"format={form}", f"num_samples_per_file={per_file}", f"record_length_bytes_stdev={stdev}")
        study = small_study(*settings, "num_files_train=6")
        written = stage(study, str(tmp_path))
        gfs, adapter = tier_files(study, str(tmp_path))[1], make_format(study)
        kept = 6 if adapter.reading != NOTHING else 0
        for file in range(kept):
            numbers = range(file * per_file, (file + 1) * per_file)
            sizes = adapter.shape.of_file(file).tolist()
            expected = [
                b"".join(content.payload(study.seed, number, size)) for number, size in zip(numbers, sizes, strict=True)
            ]
            exact = [8] if form == "jpeg" else sizes
            found = read(adapter, Path(gfs.path(file)), file)
            assert [sample[:size] for sample, size in zip(found, exact, strict=True)] == [
                sample[:size] for sample, size in zip(expected, exact, strict=True)
            ]
        files = data_files(tmp_path)
        assert (len(data_files(tmp_path / "gfs")), len(files)) == (kept, kept * 3 // 2)
        assert written == sum(found.st_size for found in files.values())
        assert stage(study, str(tmp_path)) == 0
        assert changed(files, data_files(tmp_path)) == set()

    def test_near_copies_are_what_the_plan_reads_there(self, tmp_path: Path) -> None:
        stage(STUDY, str(tmp_path))
        plan, (lfs, gfs) = plan_of(STUDY), tier_files(STUDY, str(tmp_path))
        near = {
            int(file)
            for block in plan.reads(0, 1)
            for file, tier in zip(block.files, block.tiers, strict=True)
            if tier == 0
        }
        assert len(near) == 12
        assert {os.path.basename(name) for name in data_files(tmp_path / "lfs")} == {
            os.path.basename(lfs.path(file)) for file in near
        }
        for file in near:
            assert Path(lfs.path(file)).read_bytes() == Path(gfs.path(file)).read_bytes()

    def test_every_node_has_copies_of_its_own(self, tmp_path: Path) -> None:
        study = small_study("nodes=3", "ranks_per_node=2")
        stage(study, str(tmp_path))
        copies = [set(data_files(tmp_path / "lfs" / str(node))) for node in range(3)]
        assert copies[0] == copies[1] == copies[2]
        assert len(copies[0]) == 12
        assert len(data_files(tmp_path / "gfs")) == 24

    def test_with_a_local_shuffle_a_node_keeps_only_what_it_reads(self, tmp_path: Path) -> None:
        study = small_study("nodes=3", "shuffle=local")
        stage(study, str(tmp_path))
        for node in range(3):
            files = tier_files(study, str(tmp_path), node)[0]
            read = {
                os.path.basename(files.path(int(file)))
                for block in plan_of(study).reads(node, 1)
                for file, tier in zip(block.files, block.tiers, strict=True)
                if tier == 0
            }
            assert {os.path.basename(name) for name in data_files(tmp_path / "lfs" / str(node))} == read

    def test_subfolders_are_made(self, tmp_path: Path) -> None:
        study = small_study("num_subfolders_train=5")
        stage(study, str(tmp_path))
        gfs = tier_files(study, str(tmp_path))[1]
        assert all(os.path.getsize(gfs.path(file)) == FILE for file in range(24))
        assert len(os.listdir(gfs.folder)) == 5 + 2  # and the marker, and checksums

    def test_ranks_share_the_work_without_overlap(self, tmp_path: Path) -> None:
        study = small_study("nodes=2", "ranks_per_node=3", "num_files_train=100")
        crew = stagers(study, str(tmp_path))
        for stager in crew:
            stager.claim()
        missing = [stager.missing() for stager in crew]
        assert sum(part[1].files for part in missing) == 100
        assert sum(part[0].files for part in missing) == 2 * 50
        written = []
        for stager in crew:
            before = data_files(tmp_path)
            assert stager.write(lambda _: None) == len(changed(before, data_files(tmp_path))) * FILE
            written.append(len(changed(before, data_files(tmp_path))))
        assert sum(written) == 200
        assert min(written) > 0
        assert [part.nbytes for rank in crew for part in rank.missing()] == [0] * 12

    def test_progress_adds_up(self, tmp_path: Path) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        told: list[int] = []
        assert stager.write(told.append) == sum(told) == 36 * FILE
        assert len(told) == 36


class TestMissing:
    def test_says_where_and_how_much(self, tmp_path: Path) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        lfs, gfs = stager.missing()
        assert (lfs.tier_name, lfs.files) == ("lfs", 12)
        assert (gfs.tier_name, gfs.files) == ("gfs", 24)
        assert (lfs.nbytes, gfs.nbytes) == (12 * FILE, 24 * FILE)
        assert gfs.disk_bytes == 2 * lfs.disk_bytes
        block = min(4096, os.statvfs(tmp_path).f_frsize)
        assert gfs.disk_bytes == 24 * -(-FILE // block) * block
        assert gfs.directory == tier_files(STUDY, str(tmp_path))[1].folder
        assert lfs.device == gfs.device == os.stat(tmp_path).st_dev
        assert 0 < gfs.free_bytes <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize

    def test_a_link_is_not_followed_but_named(self, tmp_path: Path) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        gfs = tier_files(STUDY, str(tmp_path))[1]
        (tmp_path / "precious").write_text("years of work")
        os.symlink(tmp_path / "precious", gfs.path(3))
        assert stager.missing()[1].files == 24
        with pytest.raises(UserError, match=r"000000003\.tfrecord: cannot be written: Too many levels"):
            stager.write(lambda _: None)


class TestResume:
    def test_what_is_there_stays(self, tmp_path: Path) -> None:
        stage(STUDY, str(tmp_path))
        before = data_files(tmp_path)
        assert stage(STUDY, str(tmp_path)) == 0
        assert changed(before, data_files(tmp_path)) == set()

    @pytest.mark.parametrize("sealed", [True, False], ids=["complete", "incomplete"])
    def test_only_what_is_gone_or_short_is_written(self, tmp_path: Path, sealed: bool) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.write(lambda _: None)
        if sealed:
            stager.seal()
        gfs = tier_files(STUDY, str(tmp_path))[1]
        os.unlink(gfs.path(4))
        os.truncate(gfs.path(9), FILE - 1)
        os.truncate(gfs.path(11), 0)
        before = data_files(tmp_path)
        assert stage(STUDY, str(tmp_path)) == 3 * FILE
        after = data_files(tmp_path)
        assert {os.path.basename(name)[:9] for name in changed(before, after)} == {
            "000000004",
            "000000009",
            "000000011",
        }
        for file in (4, 9, 11):
            assert content.sample_number(memoryview(payloads(STUDY, gfs.path(file))[0])) == file

    def test_a_file_that_is_too_long_is_written_anew(self, tmp_path: Path) -> None:
        stage(STUDY, str(tmp_path))
        path = tier_files(STUDY, str(tmp_path))[1].path(2)
        with open(path, "ab") as out:
            out.write(b"more")
        assert stage(STUDY, str(tmp_path)) == FILE
        assert len(payloads(STUDY, path)) == 1

    def test_a_larger_cache_rate_only_adds(self, tmp_path: Path) -> None:
        stage(STUDY, str(tmp_path))
        before = data_files(tmp_path)
        assert stage(small_study("cache_rate=75%"), str(tmp_path)) == 6 * FILE
        assert len(changed(before, data_files(tmp_path))) == 6
        assert stage(small_study("cache_rate=25%"), str(tmp_path)) == 0

    def test_another_dataset_beside_it_touches_nothing(self, tmp_path: Path) -> None:
        stage(STUDY, str(tmp_path))
        before = data_files(tmp_path)
        stage(small_study("seed=8"), str(tmp_path))
        after = data_files(tmp_path)
        assert before.keys() < after.keys()
        assert all("seed8" in name for name in changed(before, after))


class TestNamedLast:
    """Files whose size only their content decides have their names when they are complete."""

    @pytest.mark.parametrize("form", NAMED_LAST)
    def test_what_a_killed_writer_left_is_written_again(self, tmp_path: Path, form: str) -> None:
        study = small_study(f"format={form}")
        stage(study, str(tmp_path))
        gfs = tier_files(study, str(tmp_path))[1]
        good, before = Path(gfs.path(4)).read_bytes(), data_files(tmp_path)
        os.unlink(gfs.path(4))
        Path(gfs.unfinished(4)).write_bytes(good[:100])
        Path(gfs.path(9)).write_bytes(b"")
        assert stage(study, str(tmp_path)) > len(good)
        assert Path(gfs.path(4)).read_bytes() == good
        assert data_files(tmp_path).keys() == before.keys()  # and nothing unfinished is left
        assert len(read(make_format(study), Path(gfs.path(9)))) == 1

    @pytest.mark.parametrize("form", NAMED_LAST)
    def test_nothing_has_its_name_before_it_is_whole(
        self, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study, seen = small_study(f"format={form}"), []
        really = os.replace

        def look(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
            if source.endswith(".part") and not target.endswith(SUMS):
                nbytes = os.stat(source, dir_fd=src_dir_fd).st_size
                seen.append((target in os.listdir(dst_dir_fd), nbytes > 0))
            really(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(os, "replace", look)
        stage(study, str(tmp_path))
        assert seen == [(False, True)] * 36

    @pytest.mark.parametrize("form", NAMED_LAST)
    def test_a_link_is_not_followed(self, tmp_path: Path, form: str) -> None:
        study = small_study(f"format={form}")
        (stager,) = stagers(study, str(tmp_path))
        stager.claim()
        gfs = tier_files(study, str(tmp_path))[1]
        (tmp_path / "precious").write_text("years of work")
        for name in (gfs.path(3), gfs.unfinished(5)):
            os.symlink(tmp_path / "precious", name)
        assert stager.missing()[1].files == 24
        stager.write(lambda _: None)
        assert (tmp_path / "precious").read_text() == "years of work"
        assert not os.path.islink(gfs.path(3))

    @pytest.mark.parametrize("form", NAMED_LAST)
    def test_after_a_restart_unsealed_ones_are_written_again(
        self, tmp_path: Path, form: str, other_boot: Callable[[], None]
    ) -> None:
        study = small_study(f"format={form}")
        (stager,) = stagers(study, str(tmp_path))
        stager.claim()
        stager.distrust()
        written = stager.write(lambda _: None)
        other_boot()
        assert stage(study, str(tmp_path)) == written

    @pytest.mark.parametrize("form", NAMED_LAST)
    def test_a_full_disk_can_be_resumed_from(self, small_disk: Path, form: str) -> None:
        """Whatever the library says when it cannot write."""
        study = small_study(f"format={form}", "record_length_bytes=200000", "cache_rate=0")
        with pytest.raises(OutOfSpaceError) as caught:
            stage(study, str(small_disk))
        assert "No space left on device while generating" in str(caught.value)
        assert str(small_disk) in str(caught.value).partition(": ")[0]
        fewer = small_study(f"format={form}", "record_length_bytes=200000", "cache_rate=0", "num_files_train=1")
        shutil.rmtree(small_disk / "gfs")
        assert stage(fewer, str(small_disk)) > 0


class TestRestart:
    """After a restart of the machine only what was sealed can be trusted."""

    def test_a_complete_dataset_is_kept(self, tmp_path: Path, other_boot: Callable[[], None]) -> None:
        stage(STUDY, str(tmp_path))
        before = data_files(tmp_path)
        other_boot()
        assert stage(STUDY, str(tmp_path)) == 0
        assert changed(before, data_files(tmp_path)) == set()

    def test_an_incomplete_one_is_written_again(self, tmp_path: Path, other_boot: Callable[[], None]) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.distrust()
        stager.write(lambda _: None)
        gfs = tier_files(STUDY, str(tmp_path))[1]
        Path(gfs.path(5)).write_bytes(bytes(FILE))  # the right size, but the data never reached the device
        other_boot()
        assert stage(STUDY, str(tmp_path)) == 36 * FILE
        assert len(payloads(STUDY, gfs.path(5))) == 1

    def test_in_the_same_boot_an_incomplete_one_is_kept(self, tmp_path: Path) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.write(lambda _: None)
        assert stage(STUDY, str(tmp_path)) == 0

    def test_a_complete_one_that_grew_is_incomplete_until_sealed(
        self, tmp_path: Path, other_boot: Callable[[], None]
    ) -> None:
        stage(STUDY, str(tmp_path))
        (stager,) = stagers(small_study("cache_rate=75%"), str(tmp_path))
        stager.claim()
        stager.reopen()
        stager.write(lambda _: None)  # and then the power fails
        other_boot()
        assert stage(small_study("cache_rate=75%"), str(tmp_path)) == (18 + 24) * FILE

    def test_looking_alone_does_not_unseal(self, tmp_path: Path, other_boot: Callable[[], None]) -> None:
        stage(STUDY, str(tmp_path))
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.missing()
        other_boot()
        assert stage(STUDY, str(tmp_path)) == 0

    def test_foreign_files_in_the_folder_survive(self, tmp_path: Path, other_boot: Callable[[], None]) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.write(lambda _: None)
        folder = Path(tier_files(STUDY, str(tmp_path))[1].folder)
        names = ["notes.txt", "000000001.raw", "12.tfrecord", "000000001.tfrecord.bak", "x000000001.tfrecord"]
        for name in names:
            (folder / name).write_text("mine")
        other_boot()
        stage(STUDY, str(tmp_path))
        assert [(folder / name).read_text() for name in names] == ["mine"] * len(names)

    def test_sealing_reaches_the_device_before_it_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[bool] = []
        monkeypatch.setattr(
            durable,
            "sync_filesystem",
            lambda folder: seen.append(bool((manifest.read(folder) or {}).get("complete"))),
        )
        stage(STUDY, str(tmp_path))
        assert seen == [False, False]


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    gfs = tier_files(STUDY, str(tmp_path))[1]
    (tmp_path / "elsewhere").mkdir()
    os.makedirs(gfs.tier_root)
    manifest.write(gfs.tier_root, "tier", {})
    os.symlink(tmp_path / "elsewhere", gfs.folder)
    with pytest.raises(ForeignDirectoryError, match="is a symbolic link"):
        stage(STUDY, str(tmp_path))
    assert not list((tmp_path / "elsewhere").rglob("*.tfrecord"))


class TestFaults:
    def test_a_foreign_tier_directory_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "gfs").mkdir()
        (tmp_path / "gfs" / "thesis.tex").write_text("years of work")
        with pytest.raises(ForeignDirectoryError):
            stage(STUDY, str(tmp_path))
        assert os.listdir(tmp_path / "gfs") == ["thesis.tex"]

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    def test_a_full_disk_names_the_file_and_can_be_resumed(self, tmp_path: Path, number: int) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        left = 5
        really = os.writev

        def full(fd: int, pieces: list[bytes]) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(number, os.strerror(number))
            return really(fd, pieces)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "writev", full)
            with pytest.raises(OutOfSpaceError) as caught:
                stager.write(lambda _: None)
        named = str(caught.value).split(":")[0]
        assert os.stat(named).st_size == 0  # the one that was being written
        assert os.strerror(number) in str(caught.value)
        assert "free some space and rerun the same command to continue" in str(caught.value)
        assert stage(STUDY, str(tmp_path)) == 31 * FILE

    @pytest.mark.parametrize("step", ["distrust", "reopen", "seal"])
    def test_a_disk_too_full_for_a_marker_is_one_line_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        if step == "distrust":  # killed after the first markers
            for share in stager.shares:
                manifest.claim(share.files.tier_root, "tier")
                manifest.claim(share.files.folder, "dataset")
        else:
            stage(STUDY, str(tmp_path))
        monkeypatch.setattr(durable, "write_file", _full)
        with pytest.raises(OutOfSpaceError, match="No space left on device while generating"):
            getattr(stager, step)()

    def test_a_device_that_fails_to_sync_is_one_line_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        stager.write(lambda _: None)

        def fail(folder: str) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), folder)

        monkeypatch.setattr(durable, "sync_filesystem", fail)
        with pytest.raises(StoppedError, match="cannot be written: Input/output error"):
            stager.sync()

    def test_any_other_refusal_names_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (stager,) = stagers(STUDY, str(tmp_path))
        stager.claim()
        gfs = tier_files(STUDY, str(tmp_path))[1]
        Path(gfs.path(7)).mkdir()
        with pytest.raises(UserError, match=r"000000007\.tfrecord: cannot be written: Is a directory"):
            stager.write(lambda _: None)

    @pytest.mark.parametrize("at_most", [1, 100, 1007])
    def test_partial_writes_are_finished(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_most: int) -> None:
        """As a signal, a quota or the 2 GiB limit of one write make them."""
        study = small_study("num_files_train=4")

        def partly(fd: int, pieces: list[bytes]) -> int:
            return os.write(fd, b"".join(pieces)[:at_most])

        monkeypatch.setattr(os, "writev", partly)
        stage(study, str(tmp_path))
        for file in range(4):
            numbers = [
                content.sample_number(memoryview(p))
                for p in payloads(study, tier_files(study, str(tmp_path))[1].path(file))
            ]
            assert numbers == [file]

    def test_more_pieces_than_one_system_call_takes(self, tmp_path: Path) -> None:
        study = small_study("num_files_train=2", "num_samples_per_file=700", "record_length_bytes=20", "cache_rate=0")
        stage(study, str(tmp_path))
        found = payloads(study, tier_files(study, str(tmp_path))[1].path(1))
        assert [content.sample_number(memoryview(payload)) for payload in found] == list(range(700, 1400))

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (
                ("format=png", "num_samples_per_file=2"),
                "png; a picture holds one sample; set .*num_samples_per_file: 1",
            ),
            (("format=lmdb", "record_length_bytes=5 GiB"), "lmdb; a value of LMDB must stay below 4 GiB"),
            (
                ("format=hdf5", "hdf5.chunk_size=2001", "num_samples_per_file=2"),
                r"hdf5; workload\.dataset\.hdf5\.chunk_size = 2001, but a file holds 2000 bytes of samples; lower it",
            ),
        ],
    )
    def test_what_a_format_cannot_do(self, settings: tuple[str, ...], words: str) -> None:
        with pytest.raises(UserError, match=rf"^workload\.dataset\.format = {words}"):
            make_format(small_study(*settings))
        make_format(small_study("format=hdf5", "hdf5.chunk_size=2000", "num_samples_per_file=2"))

    def test_a_format_that_cannot_hold_it_is_the_user_s_to_change(self) -> None:
        with pytest.raises(UserError, match=r"^workload\.dataset\.format = npz; .*4 GiB"):
            make_format(small_study("format=npz", "record_length_bytes=5 GiB"))


def _full(path: str, *_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
