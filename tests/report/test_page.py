"""The page: one file that fetches nothing, in which no stranger's text is markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.report.sources import alone, random_times, source_of, swept
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.times import from_csv
from tierscope.analysis.wording import Finding
from tierscope.report.figures import figures
from tierscope.report.page import embedded, page
from tierscope.report.report_source import ReportSource

pytestmark = pytest.mark.whole

HOSTILE = "<img src=x onerror=alert(1)>"
OTHER = "</script>'`&\u202ex"


class Parsed(HTMLParser):
    """The elements of a page, with what stands in its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._script: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts.append((self._script, data))
        else:
            self.text += data

    def having(self, **attributes: str) -> list[tuple[str, dict[str, str | None]]]:
        return [(tag, given) for tag, given in self.elements if attributes.items() <= given.items()]

    @property
    def policy(self) -> str:
        ((_, given),) = self.having(**{"http-equiv": "Content-Security-Policy"})
        return given["content"] or ""


def made(source: ReportSource) -> str:
    return page(source, figures(source)).decode()


@pytest.fixture(scope="module")
def plain() -> str:
    return made(source_of(swept()))


def hostile_source(path: Path) -> ReportSource:
    lines = ["rank,epoch,class,seconds,cache_rate,<b>key"]
    for tier in (HOSTILE, OTHER):
        for kind in ("READ", "META"):
            for value in ("<svg onload=alert(2)>", "&amp;'\u2028"):
                lines += [f"{rank},1,{tier}-{kind},{1 + rank},0.5,{value}" for rank in range(3)]
    path.write_text("\n".join(lines) + "\n")
    return source_of(
        from_csv(str(path)),
        name=f"{HOSTILE}.csv",
        workload=HOSTILE,
        study_yaml=f"study: {OTHER}\n",
        findings=[Finding("emulated", {"tiers": [HOSTILE]})],
        conditions=Conditions(emulated=(HOSTILE,)),
    )


def test_no_stranger_text_becomes_markup(tmp_path: Path) -> None:
    source = hostile_source(tmp_path / "times.csv")
    text = made(source)
    parsed = Parsed(text)
    assert "<img" not in text
    assert "<svg onload" not in text
    assert text.count("</script>") == len(parsed.scripts) == 5
    assert not {"img", "b"} & {tag for tag, _ in parsed.elements}
    assert not [name for _, given in parsed.elements for name in given if name.startswith("on")]
    assert HOSTILE in parsed.text


def test_names_stay_what_they_are_where_they_are_compared(tmp_path: Path) -> None:
    source = hostile_source(tmp_path / "times.csv")
    parsed = Parsed(made(source))
    ranges = [given["data-class"] for _, given in parsed.having(type="range")]
    data = next(json.loads(text) for given, text in parsed.scripts if given.get("id") == "data")
    assert ranges == data["classes"] == list(source.processes.classes)


def test_text_that_turns_its_surroundings_is_made_visible(tmp_path: Path) -> None:
    assert "\u202e" not in Parsed(made(hostile_source(tmp_path / "times.csv"))).text


def test_json_cannot_end_its_element() -> None:
    value = {"</script><!--": "\u2028\u2029&<>"}
    text = embedded(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_the_policy_names_every_script_and_nothing_else(plain: str) -> None:
    parsed = Parsed(plain)
    scripts = [text for given, text in parsed.scripts if "type" not in given]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert re.findall(r"'sha256-([^']+)'", parsed.policy) == hashes
    assert parsed.policy.startswith("default-src 'none'; script-src 'sha256-")
    for rule in ("style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'", "form-action 'none'"):
        assert rule in parsed.policy


def test_nothing_is_fetched(plain: str) -> None:
    assert set(re.findall(r"https?://[^\"' )<]+", plain)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"@import|url\((?!#)|@font-face|<iframe|<object|<embed", plain)
    for tag, given in Parsed(plain).elements:
        assert "src" not in given
        if "href" in given:
            assert (given["href"] or "").startswith(("#", "data:")), tag


def test_scripts_set_text_and_never_markup(plain: str) -> None:
    for given, script in Parsed(plain).scripts:
        if "type" not in given:
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


def test_it_is_small_for_many_processes(tmp_path: Path) -> None:
    source = source_of(random_times(tmp_path / "times.csv", rates=21, ranks=3072, epochs=3))
    assert len(page(source, figures(source))) < 3_000_000


def test_every_control_has_a_name(plain: str) -> None:
    parsed = Parsed(plain)
    labelled = {given.get("for") for tag, given in parsed.elements if tag == "label"}
    for tag, given in parsed.elements:
        if tag in ("input", "select"):
            assert given.get("aria-label") or given.get("id") in labelled, given
    ids = [given["id"] for _, given in parsed.elements if "id" in given]
    assert len(ids) == len(set(ids))


def test_figures_that_cannot_be_drawn_say_why_and_the_rest_stays() -> None:
    text = made(source_of(alone()))
    assert "Not drawn: nothing was swept, so there is nothing to plot." in text
    assert 'id="pareto"' in text
    assert "Only the times are known." in text
    assert "<p>None.</p>" in text


def test_figures_of_the_sliders_are_for_readers_without_script(plain: str) -> None:
    without = plain[plain.index("<noscript>") : plain.index("</noscript>")]
    assert 'id="figure-estimate"' in without
    assert 'id="figure-goal"' in without
    assert 'id="figure-breakdown"' in without
    assert plain.count('id="figure-breakdown"') == 1  # with script it is drawn above the sliders' answers
    assert 'id="figure-time"' not in without
    assert 'id="figure-time"' in plain


def test_writes_have_a_slider_like_reads(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,1\n0,1,GFS-WRITE,2\n")
    parsed = Parsed(made(source_of(from_csv(str(path)))))
    assert [given["data-class"] for _, given in parsed.having(type="range")] == ["GFS-READ", "GFS-WRITE"]
    assert "GFS-WRITE" in parsed.text


def test_emulated_tiers_are_named_at_the_top(plain: str) -> None:
    text = made(source_of(swept(), conditions=Conditions(emulated=("gfs", "lfs"))))
    assert "emulated: gfs, lfs" in text
    assert "emulated: " not in plain


def test_a_name_that_is_no_unicode_does_no_harm() -> None:
    source = source_of(swept(), name="caf\udce9.csv")
    assert b"caf?.csv" in page(source, figures(source))


def test_classes_that_gain_nothing_are_called_waste() -> None:
    text = made(source_of(swept()))
    assert "Do not spend on LFS-META alone" in text
    assert 'class="wasted"' in text
