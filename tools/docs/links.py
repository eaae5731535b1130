"""Links of Markdown documents: which there are, and whether they lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def links(path: Path) -> list[str]:
    """Targets as they are written, code left out."""
    text = _FENCED.sub("", path.read_text(encoding="utf-8"))
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", text))


def anchors(path: Path) -> set[str]:
    """Of the headings, as MkDocs and GitHub name them."""
    text = _FENCED.sub("", path.read_text(encoding="utf-8"))
    return {_slug(heading) for heading in _HEADING.findall(text)}


def _slug(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
    return re.sub(r"[-\s]+", "-", words)


def broken(path: Path, generated: tuple[str, ...] = ()) -> Iterator[str]:
    """Links into the repository that lead nowhere. `generated`: pages that exist in the built site only."""
    for link in links(path):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve() if target else path
        if target and page.name in generated:
            continue
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in anchors(page)):
            yield link


def has_link(start: Path, target: str) -> bool:
    """Whether `start` has a link to `target`, a page relative to the repository, with #anchor if given."""
    root = Path(__file__).resolve().parents[2]
    name, _, anchor = target.partition("#")
    wanted = (root / name).resolve()
    for link in links(start):
        page, _, there = link.partition("#")
        if not re.match(r"[a-z]+:", link) and (start.parent / page).resolve() == wanted and there == anchor:
            return True
    return False
