"""Both ways in which emulated queues move: by compare-and-swap in C, and with file locks where there is no C library."""

import pytest

from tierscope.native import queues as native_queues


@pytest.fixture(params=["swap", "locks"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the native library and without it."""
    if request.param == "swap" and not native_queues.available():
        pytest.skip("the native library is not built")
    if request.param == "locks":
        monkeypatch.setattr(native_queues, "available", lambda: False)
