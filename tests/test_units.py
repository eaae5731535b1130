import math
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tierscope import units

Parse = Callable[[str], float]
PARSERS: list[Parse] = [
    units.parse_bytes,
    units.parse_seconds,
    units.parse_rate,
    units.parse_bandwidth,
    units.parse_fraction,
]
QUANTITIES = st.floats(min_value=0, allow_infinity=False, allow_nan=False)


def reason(parse: Parse, text: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "131072", 131072),
        (units.parse_bytes, "128 KiB", 131072),
        (units.parse_bytes, "128KiB", 131072),
        (units.parse_bytes, " 1.5 KiB ", 1536),
        (units.parse_bytes, "1 kB", 1000),
        (units.parse_bytes, "1 KB", 1000),
        (units.parse_bytes, "2 GiB", 2 * 2**30),
        (units.parse_bytes, "2 GB", 2 * 10**9),
        (units.parse_bytes, "1_000_000 B", 1_000_000),
        (units.parse_bytes, "1e3", 1000),
        (units.parse_bytes, "9007199254740993", 2**53 + 1),
        (units.parse_bytes, "8191 PiB", 8191 * 2**50),
        (units.parse_seconds, "4", 4.0),
        (units.parse_seconds, "1.5 ms", 0.0015),
        (units.parse_seconds, "3 ms", 0.003),
        (units.parse_seconds, "7 us", 7e-6),
        (units.parse_seconds, "7 µs", 7e-6),
        (units.parse_seconds, "9 ns", 9e-9),
        (units.parse_seconds, "2 min", 120.0),
        (units.parse_seconds, ".5 h", 1800.0),
        (units.parse_rate, "900/s", 900.0),
        (units.parse_rate, "900 / s", 900.0),
        (units.parse_rate, "12.5", 12.5),
        (units.parse_bandwidth, "40 MiB/s", 40 * 2**20),
        (units.parse_bandwidth, "12.5 GB/s", 12.5e9),
        (units.parse_bandwidth, "1000", 1000.0),
        (units.parse_fraction, "65%", 0.65),
        (units.parse_fraction, "65 %", 0.65),
        (units.parse_fraction, "0.65", 0.65),
        (units.parse_fraction, "12.5%", 0.125),
        (units.parse_fraction, "1", 1.0),
    ],
)
def test_reads_what_people_write(parse: Parse, text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        (units.parse_bytes, "128 kib", "did you mean KiB?"),
        (units.parse_bytes, "128 mb", "did you mean MB?"),
        (units.parse_bytes, "128 KiBi", "did you mean KiB?"),
        (units.parse_bytes, "128 apples", "write it like 128 KiB"),
        (units.parse_bytes, "0x10", "write it like 128 KiB"),
        (units.parse_bytes, "1..2", "write it like 128 KiB"),
        (units.parse_seconds, "5 MS", "did you mean ms?"),
        (units.parse_seconds, "5 mins", "did you mean min?"),
        (units.parse_seconds, "5 fortnights", "write it like 1.5 ms"),
        (units.parse_seconds, "5 KiB", "write it like 1.5 ms"),
        (units.parse_rate, "900/min", "write it like 900/s"),
        (units.parse_rate, "900 ops/s", "write it like 900/s"),
        (units.parse_bandwidth, "40 MiB", "write it like 40 MiB/s"),
        (units.parse_bandwidth, "40 MiB/h", "write it like 40 MiB/s"),
        (units.parse_bandwidth, "40 mib/s", "did you mean MiB?"),
        (units.parse_fraction, "65 percent", "write it like 0.65 or 65%"),
        (units.parse_fraction, "65 %%", "write it like 0.65 or 65%"),
    ],
)
def test_a_wrong_unit_gets_the_right_hint(parse: Parse, text: str, hint: str) -> None:
    assert hint in reason(parse, text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", ["", " ", "KiB", "%", "/s", "--1", "1 2", "nan", "inf", "-inf", "."])
def test_what_is_not_a_number_is_refused(parse: Parse, text: str) -> None:
    assert "number" in reason(parse, text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400, "9" * 5000])
def test_what_is_too_large_for_a_number_is_refused(parse: Parse, number: str) -> None:
    assert "too large" in reason(parse, number)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bytes, "1e308 PiB"),
        (units.parse_bytes, "8192 PiB"),
        (units.parse_bytes, "9223372036854775808"),
        (units.parse_seconds, "1e308 h"),
        (units.parse_bandwidth, "1e308 GB/s"),
        (units.parse_bandwidth, "-1e308 GB/s"),
    ],
)
def test_what_its_unit_makes_too_large_is_refused(parse: Parse, text: str) -> None:
    assert "too large" in reason(parse, text)


@pytest.mark.parametrize("text", ["0.5", "1.5 B", "0.0001 KiB", "1e-3"])
def test_bytes_come_whole(text: str) -> None:
    assert "whole number of bytes" in reason(units.parse_bytes, text)


@given(st.integers(0, 2**63 - 1))
@example(2**53 + 1)
@example(2**63 - 1)
@example(10**12)
def test_bytes_round_trip(value: int) -> None:
    assert units.parse_bytes(units.format_bytes(value)) == value


@given(st.integers(0, 2**13 - 1), st.sampled_from(sorted(units.BYTE_UNITS)))
def test_every_byte_unit_is_exact(number: int, unit: str) -> None:
    value = number * units.BYTE_UNITS[unit]
    assert units.parse_bytes(f"{number} {unit}") == value
    assert units.parse_bytes(units.format_bytes(value)) == value


@given(st.integers(0, 10**7), st.sampled_from(["kB", "MB", "GB", "TB"]))
@example(16100, "kB")
def test_sizes_with_decimals_are_exact(thousandths: int, unit: str) -> None:
    text = f"{thousandths // 1000}.{thousandths % 1000:03d} {unit}"
    assert units.parse_bytes(text) == thousandths * units.BYTE_UNITS[unit] // 1000


@pytest.mark.parametrize("text", ["1e-999999999", "0." + "0" * 10**5 + "1", "1e-400"])
def test_an_absurdly_small_number_is_zero_and_costs_nothing(text: str) -> None:
    assert units.parse_seconds(text) == 0.0


@given(QUANTITIES)
@example(5e-324)
@example(1e-9)
@example(0.0015)
@example(1e300)
def test_seconds_round_trip(value: float) -> None:
    assert units.parse_seconds(units.format_seconds(value)) == value


@given(QUANTITIES)
def test_rate_round_trip(value: float) -> None:
    assert units.parse_rate(units.format_rate(value)) == value


@given(QUANTITIES | st.integers(0, 2**60).map(float))
@example(1e22)
@example(1.5)
def test_bandwidth_round_trip(value: float) -> None:
    back = units.parse_bandwidth(units.format_bandwidth(value))
    assert back == value
    assert isinstance(back, float)


@given(st.floats(0, 1))
@example(0.65)
@example(1 / 3)
def test_fraction_round_trip(value: float) -> None:
    assert units.parse_fraction(units.format_fraction(value)) == value


@given(st.integers(0, 10**4))
def test_a_percentage_is_the_nearest_fraction_and_is_printed_as_written(hundredths: int) -> None:
    value = hundredths / 10**4
    text = f"{hundredths / 100:g}%"
    assert units.parse_fraction(text) == value
    assert units.format_fraction(value) == text


@given(st.integers(1, 10**6), st.sampled_from(["s", "ms", "us"]))
def test_whole_times_are_printed_without_noise(number: int, unit: str) -> None:
    text = units.format_seconds(units.parse_seconds(f"{number} {unit}"))
    digits = text.split()[0].rstrip("0").replace(".", "")
    assert len(digits.lstrip("0")) <= len(str(number))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (131072, "128 KiB"),
        (131073, "131073 B"),
        (2**31, "2 GiB"),
        (10**9, "1 GB"),
        (10**12, "1 TB"),
        (15 * 10**14, "1500 TB"),
        (1000 * 1024, "1000 KiB"),
    ],
)
def test_bytes_are_printed_in_the_largest_unit_that_divides_them(value: int, text: str) -> None:
    assert units.format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 s"), (4.0, "4 s"), (0.0015, "1.5 ms"), (2.5e-5, "25 us"), (90.0, "90 s")]
)
def test_seconds_are_printed_as_people_write_them(value: float, text: str) -> None:
    assert units.format_seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (201_326_592, "192 MiB"),
        (1536, "1.5 KiB"),
        (1023 * 2**20, "1023 MiB"),
        (999.7 * 2**20, "1000 MiB"),
    ],
)
def test_about_bytes(value: float, text: str) -> None:
    assert units.about_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2_513_406_798.2, "2.51 GB/s"), (12.5e9, "12.5 GB/s"), (999.9e6, "1 GB/s"), (170e6, "170 MB/s"), (12.0, "12 B/s")],
)
def test_about_bandwidth(value: float, text: str) -> None:
    assert units.about_bandwidth(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0 ns"), (0.00123, "1.23 ms"), (12.3456, "12.3 s"), (4.2e-6, "4.2 µs"), (5e-9, "5 ns")),
        *((0.9996, "1 s"), (0.9994, "999 ms"), (999.6e-6, "1 ms"), (999.6e-9, "1 µs"), (999.6, "1,000 s")),
        *((5.35e-296, "<1 ns"), (-0.9996, "-1 s"), (1e15, "1e+15 s")),
    ],
)
def test_about_seconds(value: float, text: str) -> None:
    assert units.about_seconds(value) == text


@given(st.floats(1e-9, 1e12 - 1), st.sampled_from([units.about_seconds, units.about_bytes, units.about_number]))
def test_what_is_rounded_for_reading_has_no_exponent(value: float, about: Callable[[float], str]) -> None:
    text = about(value)
    assert "e+" not in text
    if about is units.about_seconds:
        assert units.parse_seconds(text.replace(",", "")) == pytest.approx(value, rel=0.006)


@given(st.sampled_from(PARSERS), st.text() | st.from_regex(r"[+-]?[0-9_.eE+-]{1,12} ?[A-Za-z%/µ]{0,5}", fullmatch=True))
def test_any_text_is_a_finite_number_or_a_reason(parse: Parse, text: str) -> None:
    try:
        value = parse(text)
    except ValueError:
        assert reason(parse, text)
    else:
        assert math.isfinite(value)


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("batch_sise", ["batch_size", "read_threads"], "batch_size"),
        ("zzz", ["batch_size", "read_threads"], None),
        ("x", [], None),
    ],
)
def test_closest(word: str, known: list[str], found: str | None) -> None:
    assert units.closest(word, known) == found


@pytest.mark.parametrize(
    ("amount", "noun", "text"),
    [
        (1, "file", "1 file"),
        (0, "file", "0 files"),
        (2, "process", "2 processes"),
        (1, "process", "1 process"),
        (3, "epoch", "3 epochs"),
        (2, "prefix", "2 prefixes"),
        (1234, "file", "1234 files"),
    ],
)
def test_an_amount_with_its_noun(amount: int, noun: str, text: str) -> None:
    assert units.counted(amount, noun) == text
    assert units.counted(1234, "node", grouped=True) == "1,234 nodes"


@pytest.mark.parametrize("text", ["1" * 500_000 + " 1", "1" * 500_000 + "x\ny", "1" + " " * 500_000 + "1"])
def test_no_number_takes_the_square_of_its_text(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="is not a number"):
        units.parse_bytes(text)
    assert time.process_time() - start < 0.5
