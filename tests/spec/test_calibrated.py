"""What a system was calibrated with: read, written, refused; and how far a question is from it."""

import pytest

from tests.spec.test_known import SYSTEM, parsed, refusal
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.known import dump_system

CALIBRATED = SYSTEM + "calibrated:\n  read_bytes: [128 KiB]\n  ranks: [4, 8]\n  cache_rates: [0%, 50%, 100%]\n"


def test_it_is_read_and_written() -> None:
    known = parsed(CALIBRATED)
    assert known.measured == CalibratedRange((131072,), (4, 8), (0.0, 0.5, 1.0))
    assert parsed(dump_system(known)) == known
    assert parsed(SYSTEM).measured is None


def test_what_the_last_tier_served_is_read_and_written() -> None:
    known = parsed(SYSTEM + "calibrated:\n  ranks: [4]\n  device_bandwidth: [1.5 GB/s]\n")
    assert known.measured is not None
    assert known.measured.served == {"device_bandwidth": 1.5e9}
    assert parsed(dump_system(known)) == known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("calibrated: 3\n", "calibrated must be a mapping"),
        ("calibrated:\n  sizes: [1]\n", "calibrated.sizes: unknown key"),
        ("calibrated:\n  ranks: 4\n", "calibrated.ranks must be a list"),
        ("calibrated:\n  ranks: []\n", "calibrated.ranks must be a list"),
        ("calibrated:\n  cache_rates: [120%]\n", "calibrated.cache_rates[0] = 120%"),
        ("calibrated:\n  ranks: [[1]]\n", "calibrated.ranks[0] is a list"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, words: str) -> None:
    assert words in refusal(SYSTEM + text)


def test_the_error_grows_with_the_distance() -> None:
    measured = CalibratedRange((131072.0,), (4, 8), (0.0, 0.5))
    assert measured.times_the_error(131072, 6, 0.3) == 1
    twice, four = (measured.times_the_error(131072, ranks, 0.3) for ranks in (16, 32))
    assert 1 < twice < four
    assert measured.times_the_error(131072, 8, 0.9) > measured.times_the_error(131072, 8, 0.6) > 1
    assert measured.times_the_error(2**21, 8, 0.3) > 1


def test_another_size_than_the_only_one_is_told() -> None:
    one, two = CalibratedRange((131072.0,), (4,), (0.0,)), CalibratedRange((16384.0, 131072.0), (4,), (0.0,))
    assert one.is_other_size(2**21)
    assert not one.is_other_size(131072 + 40)
    assert not two.is_other_size(2**21)
    assert not two.is_other_size(65536)
    assert two.is_other_size(4096), "larger reads hardly show what a read itself takes"
    assert not CalibratedRange().is_other_size(2**21)
