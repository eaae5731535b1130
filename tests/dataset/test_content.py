"""Samples: reproducible, told apart, and nothing that a compressor could gain on."""

import hashlib
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.small_study import small_study
from tierscope.dataset import content
from tierscope.plan.file_format import make_format

MIB = 2**20


def sample(number: int, nbytes: int, seed: int = 7, compressibility: float = 0.0) -> bytes:
    return b"".join(content.payload(seed, number, nbytes, compressibility))


def test_equal_on_every_machine_and_call() -> None:
    first = sample(123, 5000)
    content._pool.cache_clear()
    assert sample(123, 5000) == first
    # Pinned: data staged by another version or machine stays valid.
    assert hashlib.blake2b(first, digest_size=8).hexdigest() == "fe6f0496d93140e2"


@given(st.integers(0, 2**62), st.integers(8, 4096))
def test_a_sample_knows_its_number(number: int, nbytes: int) -> None:
    assert content.sample_number(memoryview(sample(number, nbytes))) == number


@pytest.mark.parametrize("nbytes", range(1, 8))
def test_a_tiny_sample_knows_the_low_bytes_of_it(nbytes: int) -> None:
    number = 0x0102030405060708
    assert content.sample_number(memoryview(sample(number, nbytes))) == number % 256**nbytes


@pytest.mark.parametrize(
    "nbytes", [1, 7, 8, 9, 4096, 8 * MIB, 8 * MIB + 8, 8 * MIB + 9, 16 * MIB, 20 * MIB - 1, 20 * MIB]
)
def test_sizes_are_exact(nbytes: int) -> None:
    assert sum(len(piece) for piece in content.payload(7, 3, nbytes)) == nbytes


def test_samples_and_seeds_differ() -> None:
    bodies = {sample(number, 200)[8:] for number in range(2000)}
    assert len(bodies) == 2000  # not only in their number
    assert sample(5, 200, seed=7)[8:] != sample(5, 200, seed=8)[8:]


@pytest.mark.parametrize("nbytes", [1000, 4096, 100_000, 128 * 1024, MIB])
def test_zlib_gains_nothing(nbytes: int) -> None:
    whole = b"".join(sample(number, nbytes) for number in range(-(-MIB // nbytes)))
    assert len(zlib.compress(whole, 6)) > 0.99 * len(whole)


@pytest.mark.parametrize("nbytes", [128 * 1024, 20 * MIB])
def test_no_block_occurs_twice(nbytes: int) -> None:
    """What a filesystem that deduplicates 4 KiB blocks would look for."""
    whole = b"".join(sample(number, nbytes) for number in range(max(2, 4 * MIB // nbytes)))
    blocks = Counter(whole[start : start + 4096] for start in range(0, len(whole) - 4095, 4096))
    assert blocks.most_common(1)[0][1] == 1


def test_pieces_are_not_copied() -> None:
    body = content.payload(7, 3, 100_000)[1]
    assert isinstance(body, memoryview)
    assert body.obj is content.pool(7).obj


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("nbytes", [4096, 1_000_000])
def test_compressibility_is_what_zlib_saves(share: float, nbytes: int) -> None:
    whole = b"".join(sample(number, nbytes, compressibility=share) for number in range(-(-MIB // nbytes)))
    assert len(zlib.compress(whole, 6)) / len(whole) == pytest.approx(1 - share, abs=0.04)


def test_compressible_samples_know_their_numbers_and_sizes_too() -> None:
    for number in (0, 5, 2**40):
        whole = sample(number, 5000, compressibility=0.7)
        assert len(whole) == 5000
        assert content.sample_number(memoryview(whole)) == number
    assert sample(5, 5000, compressibility=0.7) != sample(5, 5000)
    assert len({sample(number, 600, compressibility=0.5)[8:] for number in range(500)}) == 500


@pytest.mark.parametrize("stdev", [0, 40])
def test_a_sample_without_a_file_is_the_one_that_would_be_in_it(stdev: int) -> None:
    settings = ("format=synthetic", "num_samples_per_file=3", f"record_length_bytes_stdev={stdev}")
    study = small_study(*settings, "compressibility=0.25", "record_length_bytes=300")
    make, slot = content.maker(study), memoryview(bytearray(make_format(study).slot_bytes))
    sizes = set()
    for number in range(24):
        nbytes = make(number, slot)
        assert bytes(slot[:nbytes]) == sample(number, nbytes, compressibility=0.25)
        assert nbytes == make_format(study).payload(number % 3, number // 3).stop
        sizes.add(nbytes)
    assert (sizes == {300}) == (stdev == 0)
