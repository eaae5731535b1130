"""The report's page for everyone: axe-core finds nothing serious, on phones all can be reached, and what is asked wrongly gets no old answer."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cased import write_cases
from tests.cli.test_epoch_option import MEASURED, RESULTS
from tests.integration import test_page_browser as shared
from tests.integration.test_page_browser import Opened, browser, tierscope, write_times

__all__ = ["browser"]

pytestmark = shared.pytestmark
axe_base = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed: make test-browser")
AXE = Path(axe_base.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
KINDS = ("measured", "simulated", "cases")
LONG = "a_tier_too_long_for_phones"  # class names are limited


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind, made once: a measured sweep, a simulated plan, cases side by side."""
    folder = tmp_path_factory.mktemp("pages")
    for kind in ("measured", "simulated"):
        shutil.copytree(RESULTS / kind, folder / kind)
        tierscope("report", folder / kind)
    tierscope("report", write_cases(folder / "cases.csv"))
    return {
        **{kind: folder / kind / "report.html" for kind in KINDS[:2]},
        "cases": folder / "cases-report" / "report.html",
    }


@pytest.fixture
def phone(browser: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    page = Opened(browser, pages["measured"], viewport=PHONE, has_touch=True, is_mobile=True)
    yield page
    assert page.troubles == []
    page.context.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [PHONE, DESK], ids=["390", "1280"])
def test_axe_finds_nothing_serious_in_light_and_dark(
    browser: Any, pages: dict[str, Path], kind: str, window: dict[str, int]
) -> None:
    page = Opened(browser, pages[kind], viewport=window, bypass_csp=True)
    page.evaluate(AXE)
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # the others see no colours
        page.page.emulate_media(color_scheme=scheme)
        found = page.evaluate(
            "async rules => (await axe.run(document, {...rules, resultTypes: ['violations']})).violations", rules
        )
        serious = [
            (one["id"], [(node["target"], node["failureSummary"]) for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], scheme
    page.context.close()


def test_on_a_phone_what_goes_on_says_so_and_targets_are_big_enough(phone: Opened) -> None:
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    silent = phone.evaluate(
        """() => [...document.querySelectorAll('.scroll')].filter(box => box.offsetParent && box.scrollWidth > box.clientWidth + 2
            && !(box.classList.contains('more-right') && !box.nextElementSibling.hidden)).length"""
    )
    assert silent == 0
    assert phone.evaluate("document.querySelectorAll('.scroll.more-right').length") > 0
    small = phone.evaluate(
        """() => [...document.querySelectorAll('#goal-grid .target, button, select, input, summary')].filter(one => one.getClientRects().length)
            .map(one => [one.id || one.className.baseVal || one.textContent, one.getBoundingClientRect()])
            .filter(([, box]) => box.width < 24 || box.height < 24).map(([name]) => name)"""
    )
    assert small == []


def test_a_tap_shows_what_a_mouse_would_see(phone: Opened) -> None:
    phone.page.locator("#live-estimate g[data-point] rect").first.tap()
    assert "GFS-META" in phone.page.inner_text("#tip")
    phone.page.locator("h1").tap()
    assert phone.page.locator("#tip").is_hidden()
    phone.page.locator("#goal-grid .cell").nth(3).tap()
    assert "of I/O" in phone.page.inner_text("#goal-cell")


def test_the_glossary_is_one_tap_away(phone: Opened) -> None:
    phone.page.locator("#open-glossary").tap()
    assert "full copy of that share on every node" in phone.page.inner_text("#glossary")
    phone.page.keyboard.press("Escape")
    assert phone.page.locator("#glossary").is_hidden()


@pytest.fixture
def desk(browser: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    page = Opened(browser, pages["measured"], viewport=DESK)
    yield page
    assert page.troubles == []
    page.context.close()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1,5 ms", "with a point"),
        ("soon", "not a number"),
        ("", "There is no goal"),
        ("-3 s", "above 0"),
        ("4 sec", "sec is not a unit"),
    ],
)
def test_a_goal_that_cannot_be_read_leaves_no_old_answer(desk: Opened, typed: str, said: str) -> None:
    desk.page.fill("#goal", "20 ms")
    assert desk.page.locator("#pareto tbody tr").count() > 0
    desk.page.fill("#goal", typed)
    assert said in desk.page.inner_text("#goal-wrong")
    assert desk.page.locator("#pareto tbody tr").count() == 0
    assert desk.page.locator("#goal-grid svg").count() == 0
    assert desk.page.locator("#live-estimate .goal").count() == 0
    assert desk.page.inner_text("#goal-sentence").startswith("No answer yet.")
    desk.page.fill("#goal", "20 ms")
    assert desk.page.locator("#pareto tbody tr").count() > 0


def test_a_bare_number_says_that_it_is_read_as_seconds(desk: Opened) -> None:
    desk.page.fill("#goal", "30")
    assert "Read as 30 s" in desk.page.inner_text("#goal-read")
    desk.page.fill("#goal", "30 ms")
    assert desk.page.locator("#goal-read").is_hidden()
    assert desk.evaluate("tierscope.state().goal") == 0.03


def test_a_percentage_that_cannot_be_read_leaves_no_old_estimate(desk: Opened) -> None:
    box = desk.page.locator("#what-if input[type=number]").first
    box.fill("")
    assert desk.page.inner_text("#after-seconds") == "–"
    box.fill("50")
    assert desk.shown_seconds() > 0


@pytest.mark.parametrize(
    "costs",
    [("GFS-META=3/%", "LFS-READ=1/%"), ("GFS-META=0.25/%", "lfs.capacity=900000/TiB"), ("lfs.capacity=10/GiB",)],
)
def test_prices_rank_as_the_command_does(browser: Any, pages: dict[str, Path], costs: tuple[str, ...]) -> None:
    asked = ["--vary", "GFS-META=0:200:10", "--vary", "LFS-READ=0:200:10", "--goal", "20ms"]
    given = [word for cost in costs for word in ("--cost", cost)]
    printed = json.loads(tierscope("explore", MEASURED, *asked, *given, "--json"))["pareto"]
    page = Opened(browser, pages["measured"], "#goal=0.02&x=GFS-META&y=LFS-READ", viewport=DESK)
    page.page.locator("#prices summary").click()
    for cost in costs:
        name, _, price = cost.partition("=")
        number, _, unit = price.partition("/")
        box = "#price-x" if name == "GFS-META" else "#price-y" if name == "LFS-READ" else "#price-room-0"
        if name.startswith("lfs."):
            page.page.select_option("#prices select", unit)
        page.page.fill(box, number)
        page.page.press(box, "Enter")
    rows = page.page.locator("#pareto tbody tr").all()
    assert len(rows) == min(12, len(printed))
    for row, option in zip(rows, printed, strict=False):
        cells = row.locator("td").all_inner_texts()
        assert [float(cell.strip(" +%")) for cell in cells[:2]] == list(option["improve"].values())
        assert float(cells[4].replace(",", "")) == pytest.approx(option["cost"], rel=1e-5)
        assert option["feasibility"]["fits"] != "no"
    page.page.fill("#price-x", "1,5")
    assert page.page.locator("#pareto tbody tr").count() == 0
    assert "GFS-META: 1,5 is not a price" in page.page.inner_text("#price-wrong")
    assert page.troubles == []
    page.context.close()


def test_arrows_move_in_the_grid_and_enter_sets_the_sliders(desk: Opened) -> None:
    desk.page.select_option("#goal-x", "LFS-READ")
    desk.page.select_option("#goal-y", "GFS-META")
    desk.page.locator("#goal-grid [tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Enter"):
        desk.page.keyboard.press(key)
    assert {name: percent for name, percent in desk.sliders().items() if percent} == {
        "LFS-READ": 20.0,
        "GFS-META": 10.0,
    }
    assert desk.evaluate("document.activeElement.dataset.improveX") == "20"
    assert desk.evaluate("getComputedStyle(document.activeElement.querySelector('.target')).strokeWidth") == "3px"


@pytest.mark.parametrize("kind", KINDS)
def test_the_breakdown_is_drawn_once(browser: Any, pages: dict[str, Path], kind: str) -> None:
    page = Opened(browser, pages[kind], viewport=DESK)
    assert page.page.locator("#figure-breakdown").count() == 0
    assert page.page.locator("#live-estimate svg").count() == (3 if kind == "cases" else 1)
    page.context.close()


@pytest.fixture(scope="module")
def corners(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Many points; long names and marks that turn text; one point without findings; more groups than are estimated."""
    folder = tmp_path_factory.mktemp("corners")
    write_times(folder / "many.csv", rates=120, ranks=2)
    turned = tuple(f"{LONG}{number}-{kind}" for number in (1, 2) for kind in ("READ", "META"))
    write_times(folder / "names\u202e\u200f.csv", turned, rates=3, ranks=2)
    (folder / "one.csv").write_text("rank,epoch,class,seconds\n0,1,GFS-READ,4\n0,1,GFS-META,1\n")
    lines = ["rank,epoch,class,seconds,ops,bytes,nodes"]
    lines += [
        f"0,{epoch},GFS-{kind},{nodes / 7},{nodes},{nodes * 4096},{nodes}"
        for nodes in range(1, 31)
        for epoch in (1, 2)
        for kind in ("READ", "META")
    ]
    (folder / "groups.csv").write_text("\n".join(lines) + "\n")
    for path in folder.glob("*.csv"):
        tierscope("report", path)
    return sorted(folder.glob("*-report/report.html"))


def test_corner_cases_fit_a_phone_and_paper(browser: Any, corners: list[Path], pages: dict[str, Path]) -> None:
    for path in [*corners, *pages.values()]:
        page = Opened(browser, path, viewport=PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.page.emulate_media(media="print")
        page.page.set_viewport_size({"width": 680, "height": 900})  # of A4, without its margins
        assert page.evaluate("document.documentElement.scrollWidth") <= 700, path
        shown = page.evaluate(
            "[...document.querySelectorAll('button, #sliders, #goal-form')].filter(one => one.getClientRects().length).length"
        )
        assert shown == 0
        order = page.evaluate(
            "['verdict', 'breakdown', 'numbers', 'findings', 'provenance'].map(id => document.getElementById(id).getBoundingClientRect().top)"
        )
        assert order == sorted(order)
        assert page.page.pdf(format="A4").startswith(b"%PDF")
        assert page.troubles == []
        page.context.close()
