"""The table of checksums beside a dataset: whole, put together by all ranks, and read as if somebody else had written it."""

import gc
import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.small_study import NEEDS_LIBRARY, node_source, small_study, stage, stagers, tier_files
from tierscope.dataset import content, sums
from tierscope.dataset.sums import _pool_slices, generated_sums, salted_crc32c, sums_layout
from tierscope.formats import FORMATS, NOTHING
from tierscope.loaders.verify import SampleChecks, read_in
from tierscope.native import sums as native
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.storage.sums import HEADER_BYTES, NAME, SampleSums, SumsLayout

SOME = random.Random(5).randbytes(20_000)


@NEEDS_LIBRARY
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 2**32 - 1))
def test_c_computes_what_everybody_calls_crc32c(start: int, nbytes: int, before: int) -> None:
    lib, piece = native._library(), SOME[start : start + nbytes]
    assert lib is not None
    assert lib.ts_crc32c(before, piece, len(piece)) == crc32c(piece, before)


def table_of(study: Study, out: Path, tier: int = -1, node: int = 0) -> SampleSums:
    layout = sums_layout(study, make_format(study))
    assert layout is not None
    return SampleSums(f"{tier_files(study, str(out), node)[tier].folder}/{NAME}", layout)


def entries(table: SampleSums) -> list[int]:
    found: list[int] = np.frombuffer(table.part(0, table.layout.entries), "<u4").tolist()
    return found


def test_all_ranks_make_one_table_per_tier_and_node(tmp_path: Path) -> None:
    study = small_study("nodes=2", "ranks_per_node=3", "num_samples_per_file=2", "format=raw")
    stage(study, str(tmp_path))
    whole = entries(table_of(study, tmp_path))
    assert len(set(whole)) == len(whole) == 48
    assert 0 not in whole
    near = [entries(table_of(study, tmp_path, 0, node)) for node in (0, 1)]
    assert near[0] == near[1]
    assert [value for value in near[0] if value] == [value for value, here in zip(whole, near[0], strict=True) if here]
    assert sum(value != 0 for value in near[0]) == 24
    folder = Path(tier_files(study, str(tmp_path))[-1].folder)
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".raw") == [NAME, "tierscope.json"]
    assert table_of(study, tmp_path).intact()


def test_a_larger_cache_rate_adds_to_it(tmp_path: Path) -> None:
    stage(small_study(), str(tmp_path))
    before = entries(table_of(small_study(), tmp_path, 0))
    stage(small_study("cache_rate=1"), str(tmp_path))
    after = entries(table_of(small_study(), tmp_path, 0))
    assert sum(value != 0 for value in before) == 12
    assert 0 not in after
    assert all(old in (0, new) for old, new in zip(before, after, strict=True))


def test_what_was_staged_is_what_is_compared(tmp_path: Path) -> None:
    for name in FORMATS:
        form = FORMATS.load(name)
        if form.reading == NOTHING:
            assert sums_layout(small_study(f"format={name}"), make_format(small_study(f"format={name}"))) is None
            continue
        study = small_study(f"format={name}", "num_files_train=4")
        stage(study, str(tmp_path))
        table = table_of(study, tmp_path)
        assert table.knows(3)
        assert table.layout.sized is (make_format(study).file_bytes_of(0) is None)
        if table.layout.sized:
            assert table.size_of(3) == os.path.getsize(tier_files(study, str(tmp_path))[-1].path(3))


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:HEADER_BYTES],
        lambda whole: whole[:-1],
        lambda whole: whole + b"\0",
        lambda whole: b"X" + whole[1:],
        lambda whole: whole[:16] + struct.pack("<I", 2) + whole[20:],
        lambda whole: whole[:24] + struct.pack("<Q", 2**63) + whole[32:],
        lambda whole: whole[:40] + b"\xff" + whole[41:],
    ],
)
def test_a_table_that_is_none_is_refused_and_made_anew(tmp_path: Path, damage: object) -> None:
    study = small_study("format=raw")
    stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].folder, NAME)
    good = path.read_bytes()
    path.write_bytes(damage(good))  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"is not a table of checksums|is damaged|has version 2"):
        table_of(study, tmp_path)
    assert stage(study, str(tmp_path)) == 0
    assert path.read_bytes() == good


def test_a_flip_in_the_table_is_the_table_s(tmp_path: Path) -> None:
    study = small_study("format=raw", "reader.verify=all")
    stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].folder, NAME)
    whole = bytearray(path.read_bytes())
    whole[HEADER_BYTES + 9] ^= 1
    path.write_bytes(whole)
    assert not table_of(study, tmp_path).intact()
    stagers(study, str(tmp_path))[0].distrust()
    assert not path.exists()


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_not_read_nor_waited_for(tmp_path: Path, what: str) -> None:
    study = small_study("format=raw")
    stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].folder, NAME)
    kept = tmp_path / "kept"
    path.rename(kept)
    match what:
        case "link":
            path.symlink_to(kept)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    with pytest.raises(OSError, match=r"."):
        table_of(study, tmp_path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    study = small_study("format=raw", "reader.verify=all")
    stage(study, str(tmp_path))
    gc.collect()  # what earlier tests left is not ours
    before = sorted(os.listdir("/proc/self/fd"))
    source = node_source(study, str(tmp_path))
    assert source.checks is not None
    source.checks.prepare()
    assert len(os.listdir("/proc/self/fd")) == len(before) + 2
    del source
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_table_takes_four_bytes_a_sample() -> None:
    assert SumsLayout(10**6, 10**6, sized=False).nbytes == HEADER_BYTES + 4 * 10**6
    assert SumsLayout(10**6, 10, sized=True).nbytes == HEADER_BYTES + 4 * (10**6 + 10)


class TestWhichOnes:
    def test_each_has_its_turn_once(self) -> None:
        samples = np.arange(5000)
        turns = [SampleChecks(128, (), turn).chosen(samples) for turn in range(128)]
        assert sorted(at for chosen in turns for at in chosen) == list(range(5000))
        assert all(20 <= len(chosen) <= 60 for chosen in turns)
        assert SampleChecks(128, (), 128).chosen(samples) == turns[0]

    def test_it_is_the_sample_s_own_number_that_counts(self) -> None:
        checks, samples = SampleChecks(128, (), 3), np.random.default_rng(1).permutation(4000) + 2**40
        chosen = {int(samples[at]) for at in checks.chosen(samples)}
        again = np.sort(samples)
        assert chosen == {int(again[at]) for at in checks.chosen(again)}

    def test_all_and_none(self) -> None:
        assert SampleChecks(1, ()).chosen(np.arange(5)) == [0, 1, 2, 3, 4]
        assert SampleChecks(0, ()).chosen(np.arange(5)) == []

    def test_one_read_in_so_many_follows_from_the_size(self) -> None:
        assert [read_in("sample", nbytes) for nbytes in (1, 4096, 128 << 10, 1 << 20, 1 << 40)] == [
            *(2048, 2048, 512, 128, 128)
        ]
        assert (read_in("all", 5), read_in("off", 5)) == (1, 0)


SIZES = [1, 7, 8, 9, 100, 263, 264, 520, 521, 4096, 131_072, (8 << 20) + 8, (8 << 20) + 9, 17 << 20]


def read_sum(seed: int, sample: int, nbytes: int, compressibility: float = 0.0) -> int:
    """Of every byte, as anybody would."""
    return salted_crc32c(sample, b"".join(content.payload(seed, sample, nbytes, compressibility)))


@pytest.mark.parametrize("with_library", [pytest.param(True, marks=NEEDS_LIBRARY), False])
@pytest.mark.parametrize("compressibility", [0.0, 0.5])
def test_checksums_of_generated_samples_are_those_of_their_bytes(
    monkeypatch: pytest.MonkeyPatch, with_library: bool, compressibility: float
) -> None:
    if not with_library:
        monkeypatch.setattr(native, "_library", lambda: None)
    _pool_slices.cache_clear()
    numbers = np.array([0, 1, 2**31, 2**40 + 7, 2**62, *range(100, 100 + len(SIZES) - 5)])
    found = generated_sums((11, compressibility), numbers, np.array(SIZES))
    expected = [read_sum(11, *each, compressibility) for each in zip(numbers.tolist(), SIZES, strict=True)]
    assert found.tolist() == expected
    _pool_slices.cache_clear()


@NEEDS_LIBRARY
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SOME)), st.integers(0, len(SOME)), st.integers(0, 2**32 - 1)), max_size=20)
)
def test_slices_continue_checksums(places: list[tuple[int, int, int]]) -> None:
    spans = [(min(one, two), max(one, two)) for one, two, _ in places]
    sums = np.array([before for _, _, before in places], np.uint32)
    starts, ends = np.array([span[0] for span in spans], np.int64), np.array([span[1] for span in spans], np.int64)
    native.Slices(memoryview(SOME)).extend(sums, starts, ends - starts)
    expected = [crc32c(SOME[a:b], before) for (a, b), (_, _, before) in zip(spans, places, strict=True)]
    assert sums.tolist() == expected


@pytest.mark.parametrize(("start", "length"), [(-1, 5), (0, -1), (19_999, 2), (20_001, 0)])
def test_nothing_outside_the_memory_is_summed(start: int, length: int) -> None:
    with pytest.raises(ValueError, match="ends behind the memory"):
        native.Slices(memoryview(SOME)).extend(np.zeros(1, np.uint32), np.array([start]), np.array([length]))


@pytest.mark.parametrize(
    "changes", [("format=raw",), ("format=raw", "record_length_bytes_stdev=300"), ("format=tfrecord",)]
)
def test_staging_reads_no_generated_sample_for_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sums, "salted_crc32c", lambda *_: pytest.fail("was read for its checksum"))
    monkeypatch.setattr(sums, "_KEPT", 5)  # in several goes, and in the middle of files
    study = small_study("num_samples_per_file=3", "num_files_train=8", *changes)
    stage(study, str(tmp_path))
    sizes = [nbytes for file in range(8) for nbytes in make_format(study).shape.of_file(file).tolist()]
    assert entries(table_of(study, tmp_path)) == [read_sum(study.seed, at, nbytes) for at, nbytes in enumerate(sizes)]


def test_a_checksum_is_of_what_was_meant_not_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that flips a bit while it writes must not have it taken for the sample's own."""
    written = os.writev

    def flipping(fd: int, pieces: list[bytes]) -> int:
        whole = bytearray(b"".join(pieces))
        whole[20] ^= 1
        return written(fd, [whole])

    study = small_study("format=raw", "num_files_train=4")
    with monkeypatch.context() as disk:
        disk.setattr(os, "writev", flipping)
        stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].path(3))
    nbytes = path.stat().st_size
    assert (
        entries(table_of(study, tmp_path))[3] == read_sum(study.seed, 3, nbytes) != salted_crc32c(3, path.read_bytes())
    )


def test_swapped_samples_differ_even_with_equal_bytes() -> None:
    assert len({salted_crc32c(number, b"the same") for number in range(1000)}) == 1000
