from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.studies import values_of
from tierscope.spec import kinds

KINDS: list[kinds.Kind] = [
    kinds.Integer(-5, 10**12),
    kinds.Integer(low=0),
    kinds.Bytes(1, 2**40),
    kinds.Bytes(0),
    kinds.Seconds(0, 3600),
    kinds.Seconds(above=0),
    kinds.Rate(above=0),
    kinds.Bandwidth(above=0),
    kinds.Fraction(0, 1),
    kinds.Choice("a", "b", "off"),
    kinds.Flag(),
    kinds.FlagOr("more"),
    kinds.Name(),
    kinds.PathPattern(),
    kinds.Optional(kinds.Fraction(0, 1)),
]


def reason(kind: kinds.Kind, text: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        kind.parse(text)
    return str(caught.value)


@given(st.data(), st.sampled_from(KINDS))
def test_what_is_written_reads_back_as_the_same_value(data: st.DataObject, kind: kinds.Kind) -> None:
    value = data.draw(values_of(kind))
    if value is None:
        return
    back = kind.parse(kind.format(value))
    assert back == value
    assert type(back) is type(value)


@given(st.sampled_from(KINDS), st.text())
def test_any_text_is_a_value_or_gets_a_reason(kind: kinds.Kind, text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        assert reason(kind, text)
    else:
        assert kind.parse(kind.format(value)) == value


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (kinds.Integer(1, 8), "0", "must be within 1 – 8"),
        (kinds.Integer(1, 8), "9", "must be within 1 – 8"),
        (kinds.Integer(1, 8), "2.5", "must be a whole number"),
        (kinds.Integer(1, 8), "1e0", "must be a whole number"),
        (kinds.Integer(1, 8), "many", "must be a whole number"),
        (kinds.Integer(1, 8), "9" * 30, "must be within 1 – 8"),
        (kinds.Integer(1), "0", "must be at least 1"),
        (kinds.Integer(high=3), "4", "must be at most 3"),
        (kinds.Bytes(512, 2**40), "100", "must be within 512 B – 1 TiB"),
        (kinds.Bytes(0), "-1", "must be at least 0 B"),
        (kinds.Bytes(0), "1.5", "is not a whole number of bytes (expected a size like 128 KiB)"),
        (kinds.Bytes(0), "1 kib", "has the unknown unit 'kib'; did you mean KiB? (expected a size like 128 KiB)"),
        (kinds.Seconds(above=0), "0 s", "must be more than 0 s"),
        (kinds.Seconds(0, 60), "2 min", "must be within 0 s – 60 s"),
        (kinds.Rate(above=0), "-1/s", "must be more than 0/s"),
        (kinds.Bandwidth(above=0), "fast", "is not a number (expected bytes per second like 40 MiB/s)"),
        (kinds.Fraction(0, 1), "1.4", "must be within 0% – 100%"),
        (kinds.Fraction(0, 1), "101%", "must be within 0% – 100%"),
        (kinds.Fraction(0, 1), "-1%", "must be within 0% – 100%"),
        (kinds.Choice("node", "global"), "Node", "must be node or global; did you mean node?"),
        (
            kinds.Choice("raw", "npz", "tfrecord"),
            "tfrecrod",
            "must be one of raw, npz, tfrecord; did you mean tfrecord?",
        ),
        (kinds.Choice("raw", "npz", "tfrecord"), "xyz", "must be one of raw, npz, tfrecord"),
        (kinds.Flag(), "yes", "must be true or false"),
        (kinds.FlagOr("more"), "mor", "must be one of true, false, more; did you mean more?"),
        (kinds.Flag(), "True", "must be true or false"),
        (kinds.PathPattern(), "/data/{rank}", "has the unknown placeholder {rank}; known: {out}, {node}"),
        (kinds.PathPattern(), " ", "must be a directory"),
        (kinds.PathPattern(), "a\nb", "must be a directory"),
        (kinds.PathPattern(), "a\0b", "must be a directory"),
    ],
)
def test_the_reason_says_what_would_do(kind: kinds.Kind, text: str, said: str) -> None:
    assert reason(kind, text) == said


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-x", "_x", "é", "a\n", "x" * 65, "../up"])
def test_a_name_is_safe_in_file_names(name: str) -> None:
    assert "must be letters, digits" in reason(kinds.Name(), name)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (kinds.Integer(), "1_000", 1000),
        (kinds.Integer(), " +5 ", 5),
        (kinds.Bytes(), "4 KiB", 4096),
        (kinds.Fraction(0, 1), "0%", 0.0),
        (kinds.Fraction(0, 1), "100%", 1.0),
        (kinds.Flag(), "true", True),
        (kinds.FlagOr("more"), "false", False),
        (kinds.FlagOr("more"), "more", "more"),
        (kinds.Choice("off", "on"), "off", "off"),
        (kinds.PathPattern(), "$TMP/{node}/{out}", "$TMP/{node}/{out}"),
        (kinds.Optional(kinds.Bytes()), "1 KiB", 1024),
    ],
)
def test_values(kind: kinds.Kind, text: str, value: Any) -> None:
    assert kind.parse(text) == value


BOUNDED = [
    kind for kind in KINDS if isinstance(kind, kinds.Bounded) and not isinstance(kind, kinds.Integer | kinds.Bytes)
]


@given(st.sampled_from(BOUNDED), st.floats(-1e200, 1e200))
def test_the_nearest_value_is_one_that_is_read(kind: kinds.Bounded, value: float) -> None:
    kept = kind.nearest(value)
    assert kind.parse(kind.format(kept)) == kept
    try:
        taken = kind.parse(kind.format(value)) == value
    except ValueError:
        taken = False
    assert (kept == value) == taken


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (kinds.Seconds(0, 60), 1.694e-21, 0.0),
        (kinds.Seconds(0, 60), -1.694e-21, 0.0),
        (kinds.Seconds(0, 60), 61.0, 60.0),
        (kinds.Seconds(above=0), 1e-21, 1e-12),
        (kinds.Rate(0.001), 1e-9, 0.001),
        (kinds.Bandwidth(1), 1e25, 1e21),
        (kinds.Bandwidth(1), float("inf"), 1e21),
    ],
)
def test_the_nearest_value(kind: kinds.Bounded, value: float, kept: float) -> None:
    assert kind.nearest(value) == kept
