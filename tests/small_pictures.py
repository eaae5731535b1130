"""Reports with small pictures: drawing five of full size takes longer than all else that a command does."""

from collections.abc import Iterator

import pytest

from tierscope.report import png

WIDTH = 160
_render = png._render


@pytest.fixture(scope="module", autouse=True)
def small_pictures() -> Iterator[None]:
    """For a folder's conftest.py. Pictures of full size are for tests/report/test_png.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(png, "_render", lambda svg, width: _render(svg, min(width, WIDTH)))
        yield
