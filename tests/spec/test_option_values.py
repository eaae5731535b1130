"""Options of `require`: what they read, and one line for what they cannot."""

import pytest

from tierscope.errors import UserError
from tierscope.spec.option_values import powers, read_batches, read_compression, read_nodes, read_shape, read_size


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("1..64", (1, 2, 4, 8, 16, 32, 64)),
        ("1..6", (1, 2, 4, 6)),
        ("3..9", (3, 4, 8, 9)),
        ("5..5", (5,)),
        ("1,2,3", (1, 2, 3)),
        ("8, 1..2", (1, 2, 8)),
        ("7", (7,)),
    ],
)
def test_nodes(text: str, nodes: tuple[int, ...]) -> None:
    assert read_nodes(text) == nodes


def test_powers_end_with_the_end() -> None:
    assert powers(1, 1) == [1]
    assert powers(1, 18) == [1, 2, 4, 8, 16, 18]


def test_batches_stay_in_their_order() -> None:
    assert read_batches("8,1, 4") == (8, 1, 4)


def test_shapes_compressions_and_sizes() -> None:
    assert read_shape("3x224x224") == (3, 224, 224)
    assert read_shape("784") == (784,)
    assert read_compression("4") == (4.0, None)
    assert read_compression("2.5:2 GB/s") == (2.5, 2e9)
    assert read_size("--sample-file-bytes", "17 MB") == 17_000_000


@pytest.mark.parametrize("text", ["", "a", "0", "1.5", "-1", "1,,2", "1 2", "²", "1..", "..4", "4..1", "99999999999"])
def test_nodes_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--nodes "):
        read_nodes(text)


@pytest.mark.parametrize("text", ["", "a", "0", "1.5", "-1", "1,,2", "1..4", str(2**21)])
def test_batches_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--batch .*write it like 1,2,4,8"):
        read_batches(text)


@pytest.mark.parametrize("text", ["", "3x", "3x0x4", "3×4", "axb", "3x4.5"])
def test_shapes_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--input .*like 3x224x224"):
        read_shape(text)


@pytest.mark.parametrize("text", ["", "0.5", "x", "nan", "inf", "4:", "4:0GB/s", "4:fast", "4:2GB", ":1GB/s"])
def test_compressions_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--compression .*4:2GB/s"):
        read_compression(text)


@pytest.mark.parametrize("text", ["", "0", "big", "-1 MB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"^--sample-file-bytes "):
        read_size("--sample-file-bytes", text)
