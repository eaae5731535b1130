"""What the pages share: markup in which no stranger's text is markup, looks, figures, and a policy that fetches nothing.

Names and values come from files of strangers, so all text goes through `tag`, which escapes it.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from importlib import resources

from tierscope.analysis.severity import by_severity, severity_of
from tierscope.analysis.wording import Finding
from tierscope.report.drawn.looks import FIGURE_CSS, LIGHT
from tierscope.report.drawn.view import Figure

_TURNS_TEXT = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Html(str):
    """Markup that is made here; any other text is a stranger's."""


def read_asset(name: str) -> str:
    return (resources.files("tierscope.report") / "assets" / name).read_text(encoding="utf-8")


def policy(scripts: Iterable[str]) -> str:
    """Nothing is fetched, and only these scripts run."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def css() -> Html:
    colours = "".join(f"{name}:{colour};" for name, colour in LIGHT.items())
    return Html(f":root{{{colours}}}\n{read_asset('page.css')}\n{FIGURE_CSS}")


def escaped(text: str) -> Html:
    """What turns the direction of the text around it is made visible."""
    return Html(html.escape(_TURNS_TEXT.sub("\ufffd", text)))


def join(parts: Iterable[Html]) -> Html:
    return Html("\n".join(parts))


def tag(name: str, *children: str, **attributes: str) -> Html:
    """Attributes are written as `class_` and `data_class`. An attribute keeps its value as it is, so that it can be compared."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
    inside = "".join(child if isinstance(child, Html) else escaped(child) for child in children)
    return Html(f"<{name}{given}>{inside}</{name}>")


def void(name: str, **attributes: str) -> Html:
    return Html(tag(name, **attributes).removesuffix(f"</{name}>"))


def named(name: str) -> Html:
    """A name of unknown writing direction."""
    return tag("bdi", name)


def table(caption: str, headers: Sequence[str], rows: Iterable[Html]) -> Html:
    head = tag("tr", *(tag("th", named(header), scope="col") for header in headers))
    body = tag("tbody", *rows)
    whole = tag("table", tag("caption", caption), tag("thead", head), body)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def findings_list(findings: Sequence[Finding]) -> Html:
    """All of them, most severe first."""
    items = (
        tag(
            "li",
            tag("strong", f"{severity_of(finding)}: ", class_=severity_of(finding)),
            finding.text,
            tag("span", f" → {finding.suggestion}", class_="suggestion"),
        )
        for finding in by_severity(findings)
    )
    return tag("ul", *items, class_="findings")


def figure_of(figure: Figure) -> Html:
    """The drawing with its caption, or why there is none."""
    drawing = tag("p", f"Not drawn: {figure.missing}.", class_="missing") if figure.svg is None else _drawing(figure)
    caption = [tag("figcaption", figure.caption)] if figure.caption else []
    several = {"class_": "several"} if figure.panels else {}
    return tag("figure", tag("h3", figure.title), drawing, *caption, id=f"figure-{figure.name}", **several)


def _drawing(figure: Figure) -> Html:
    """Panels each by itself, below one legend: how many are side by side is up to the window."""
    if not figure.panels:
        return Html(figure.svg or "")
    key = tag("ul", *(tag("li", Html(sample), text) for sample, text in figure.key), class_="key samples")
    return join([key, tag("div", *(Html(panel) for panel in figure.panels), class_="panels")])
