from tierscope.formats.base import Extent, Shape
from tierscope.formats.raw import Raw


def test_samples_lie_one_after_another_without_anything_between() -> None:
    format_ = Raw(Shape(3, 4))
    assert b"".join(format_.encode([[b"abcd"], [b"ef", b"gh"], [b"ijkl"]])) == b"abcdefghijkl"
    assert [format_.extents(inside) for inside in range(3)] == [(Extent(at, 4),) for at in (0, 4, 8)]
