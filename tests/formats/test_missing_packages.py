"""A format whose package is not installed says how to install it."""

import sys

import pytest

from tests.small_study import small_study
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.plan.file_format import make_format

PACKAGES = {"hdf5": "h5py", "lmdb": "lmdb", "parquet": "pyarrow", "jpeg": "PIL", "png": "PIL"}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_line_that_cures_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, entry = PACKAGES[name], FORMATS.entries[name]
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, entry.target.partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError) as caught:
        make_format(small_study(f"format={name}"))
    assert str(caught.value) == f"format '{name}' needs the package {package}; pip install 'tierscope[{entry.extra}]'"


def test_the_others_need_nothing() -> None:
    assert {name for name in FORMATS if FORMATS.entries[name].extra} == set(PACKAGES)
