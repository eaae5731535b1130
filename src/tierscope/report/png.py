"""PNG pictures of drawings, for programs that take no SVG. Needs the extra `png`."""

from functools import cache

_EXTRA = "png"
_LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32">'
    '<text x="4" y="26" font-family="Helvetica,Arial,\'DejaVu Sans\',sans-serif" font-size="24">{letter}</text></svg>'
)


@cache
def png_problem() -> str:
    """Why there can be no pictures on this machine, and what to do; empty when all is well."""
    try:
        letter, blank = (_render(_LETTER.format(letter=letter), 32) for letter in ("A", " "))
    except ImportError:
        return f"needs resvg_py; install it with: pip install 'tierscope[{_EXTRA}]'"
    if letter == blank:
        return "no font on this machine, so all text would be missing; install one, e.g. fonts-dejavu-core"
    return ""


def to_png(svg: bytes, width: int = 1600) -> bytes:
    """The drawing on white; only where `png_problem` says nothing. The same bytes for the same drawing on the same machine."""
    return _render(svg.decode(), width)


def _render(svg: str, width: int) -> bytes:
    import resvg_py  # noqa: PLC0415 (optional)

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, background="#ffffff"))
