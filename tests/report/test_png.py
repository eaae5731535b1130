"""Pictures: as large as asked, on white, the same every time; or a reason why there are none."""

import builtins
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tierscope.report import png
from tierscope.report.png import png_problem, to_png

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400"><rect width="9" height="9"/></svg>'


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    png_problem.cache_clear()
    yield
    png_problem.cache_clear()


@pytest.fixture
def renderer() -> None:
    pytest.importorskip("resvg_py")
    if png_problem():
        pytest.skip(png_problem())


@pytest.mark.usefixtures("renderer")
def test_a_picture_has_the_width_that_was_asked_for() -> None:
    picture = to_png(DRAWING, width=320)
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (320, 200)


@pytest.mark.usefixtures("renderer")
def test_the_same_drawing_gives_the_same_bytes() -> None:
    assert to_png(DRAWING) == to_png(DRAWING)
    assert to_png(DRAWING) != to_png(DRAWING.replace(b'"9"', b'"99"'))


def test_without_the_extra_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "resvg_py":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert "pip install 'tierscope[png]'" in png_problem()


def test_without_fonts_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "_render", lambda _svg, _width: b"nothing to be seen")
    assert "no font" in png_problem()
