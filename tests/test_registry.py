import sys

import pytest

from tierscope.errors import UserError
from tierscope.registry import Entry, Registry
from tierscope.units import parse_bytes

THINGS: Registry[object] = Registry(
    "thing",
    {
        "bytes": Entry("tierscope.units:parse_bytes", "a thing that is there"),
        "optional": Entry("package_that_is_not_there.part:Thing", "needs an extra", extra="things"),
        "broken": Entry("package_that_is_not_there:Thing", "needs a package that no extra installs"),
        "ours": Entry("tierscope.not_there:Thing", "our own bug", extra="things"),
    },
)


def test_listing_names_imports_nothing() -> None:
    assert list(THINGS) == ["bytes", "optional", "broken", "ours"]
    assert "package_that_is_not_there" not in sys.modules


def test_loads_what_the_entry_names() -> None:
    assert THINGS.load("bytes") is parse_bytes


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bites", "did you mean bytes?"), ("zzz", "known: bytes, optional, broken, ours"), ("", "known: bytes")],
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        THINGS.load(name)
    assert str(caught.value).startswith(f"thing '{name}' is unknown; {hint}")


def test_a_missing_extra_is_named_with_its_cure() -> None:
    with pytest.raises(UserError) as caught:
        THINGS.load("optional")
    assert str(caught.value) == (
        "thing 'optional' needs the package package_that_is_not_there; pip install 'tierscope[things]'"
    )


@pytest.mark.parametrize("name", ["broken", "ours"])
def test_a_missing_module_that_no_extra_cures_is_our_bug(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        THINGS.load(name)
