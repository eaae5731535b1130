"""Kinds of operation and their classes."""

import pytest

from tierscope.trace import ops


def test_every_kind_has_a_class_and_a_number() -> None:
    assert set(ops.CATEGORY) == {*ops.KINDS, "meta"}  # what logs of others do not tell apart
    assert set(ops.CATEGORY.values()) == set(ops.CATEGORIES)
    numbers = [getattr(ops, kind.upper()) for kind in ops.KINDS]
    assert numbers == list(range(len(ops.KINDS)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [("open", "GFS-META"), ("close", "GFS-META"), ("stat", "GFS-META"), ("read", "GFS-READ"), ("write", "GFS-WRITE")],
)
def test_classes_are_those_of_the_method(kind: str, name: str) -> None:
    assert ops.class_name("gfs", kind) == name


def test_every_kind_has_a_class_of_the_io_time() -> None:
    assert set(ops.CATEGORY.values()) == set(ops.CATEGORIES)
    assert set(ops.CATEGORIES) - set(ops.LOADING) == {"WRITE"}
