"""The report's page in a real browser, with the network blocked: it computes what the commands print, and nothing in it runs but our script."""

import contextlib
import io
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cased import write_cases
from tests.cli.test_epoch_option import MEASURED
from tierscope.cli.main import main

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)"),
]

CLASSES = ("GFS-READ", "GFS-META", "LFS-READ", "LFS-META")
HOSTILE = "<IMG SRC=X ONERROR=alert(1)>"  # a tier's name; class names have at most 32 signs of it


def tierscope(*arguments: object) -> str:
    """What a command prints, in this process: starting one for each command takes longer than the command."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert not ended.value.code, said.getvalue()
    return said.getvalue()


def write_times(
    path: Path, classes: tuple[str, ...] = CLASSES, rates: int = 11, ranks: int = 40, digits: int | None = None
) -> Path:
    """Made-up times in the shape of a sweep: metadata of the far tier shrinks with the cache rate, reads of the near one grow."""
    dice = random.Random(5)
    lines = ["rank,epoch,repetition,class,seconds,ops,bytes,cache_rate"]
    for rate in (step / (rates - 1) for step in range(rates)):
        for repetition, epoch, rank in ((r, e, k) for r in (1, 2) for e in (1, 2, 3) for k in range(ranks)):
            near = round(100 * rate) + dice.randint(-5, 5)
            near = min(100, max(0, near)) if 0 < rate < 1 else round(100 * rate)
            far = 100 - near
            seconds = (0.005 * far, 0.05 * far, 0.04 * near * (1 + rank % 5 / 20), 0.001 * near)
            ops = (far, 2 * far, near, 2 * near)
            for name, value, count in zip(classes, seconds, ops, strict=True):
                noisy = value * dice.uniform(0.9, 1.1)
                noisy = noisy if digits is None else round(noisy, digits)
                lines.append(f"{rank},{epoch},{repetition},{name},{noisy!r},{count},{count * 131072},{rate}")
    path.write_text("\n".join(lines) + "\n")
    return path


class Opened:
    """A page in the browser, and what went wrong in it."""

    def __init__(self, browser: Any, path: Path, fragment: str = "", **context: Any) -> None:
        self.troubles: list[str] = []
        self.context = browser.new_context(offline=True, **context)
        self.page = self.context.new_page()
        self.page.on(
            "console", lambda said: self.troubles.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on(
            "request",
            lambda asked: self.troubles.append(asked.url) if asked.url.split(":")[0] not in ("file", "data") else None,
        )
        self.page.goto(path.as_uri() + fragment)

    def _refuse(self, dialog: Any) -> None:
        self.troubles.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def evaluate(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def set_slider(self, name: str, percent: float) -> None:
        """As a hand would: the value, then the event that a browser sends."""
        self.evaluate(
            """([name, value]) => {
                const slider = [...document.querySelectorAll('#what-if input[type=range]')].find(one => one.dataset.class === name);
                slider.value = value;
                slider.dispatchEvent(new Event('input', {bubbles: true}));
            }""",
            [name, percent],
        )

    def shown_seconds(self) -> float:
        return float(self.page.get_attribute("#after-seconds", "data-value"))

    def sliders(self) -> dict[str, float]:
        found = self.evaluate(
            "[...document.querySelectorAll('#what-if input[type=range]')].map(one => [one.dataset.class, Number(one.value)])"
        )
        return {name: float(value) for name, value in found}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_times(tmp_path_factory.mktemp("times") / "times.csv")
    tierscope("report", path)
    return path


@pytest.fixture(scope="module")
def report(times: Path) -> Path:
    return times.with_name("times-report") / "report.html"


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Opened]:
    page = Opened(browser, report)
    yield page
    assert page.troubles == []
    page.context.close()


def test_it_loads_without_network_and_without_complaint(opened: Opened) -> None:
    assert opened.page.locator("#verdict p").count() >= 3
    assert opened.page.locator("svg").count() >= 5
    assert opened.sliders() == dict.fromkeys(CLASSES, 0.0)


def test_a_hundred_settings_give_what_the_command_prints(opened: Opened, times: Path) -> None:
    from tierscope.commands.analyze import analyze  # noqa: PLC0415  (the command's own way, without a hundred processes)
    from tierscope.commands.estimate import estimated  # noqa: PLC0415

    analysis = analyze(str(times))
    dice = random.Random(7)
    for number in range(100):
        most = 401 if number % 10 else 1  # some only with slower classes
        improvements = {name: float(dice.randrange(-50, most, 5)) for name in CLASSES if dice.random() < 0.8}
        for name in CLASSES:
            opened.set_slider(name, improvements.get(name, 0.0))
        found, _ = estimated(analysis, [f"{name}={percent}" for name, percent in improvements.items()])
        (expected,) = found.parts
        assert opened.shown_seconds() == pytest.approx(expected.after.best.io.median, rel=1e-9)
        computed = opened.evaluate("improvements => tierscope.estimate(improvements)", improvements)
        assert computed["change_percent"] == pytest.approx(expected.change_percent, rel=1e-9, abs=1e-9)
        assert computed["best"]["sweep"] == expected.after.best.sweep
        assert computed["best"]["classes"] == pytest.approx(expected.after.best.classes, rel=1e-9)
        assert computed["best"]["bottleneck"] == expected.after.best.bottleneck
        assert computed["bottleneck_moved"] == expected.bottleneck_moved
        assert computed["slowest_rank_changed"] == expected.slowest_rank_changed
        assert [one["text"] for one in computed["warnings"]] == [one.text for one in expected.warnings]
        shown = opened.page.locator("#warnings li").all_inner_texts()
        assert len(shown) == len(expected.warnings)
        assert all(warning.text in text for warning, text in zip(expected.warnings, shown, strict=True))


def test_ties_fall_the_same_way(browser: Any, tmp_path: Path) -> None:
    """Times of tenths of a second, so that many processes, epochs and rates are equal."""
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.estimate import estimated  # noqa: PLC0415

    path = write_times(tmp_path / "coarse.csv", rates=6, ranks=12, digits=1)
    tierscope("report", path)
    page = Opened(browser, tmp_path / "coarse-report" / "report.html")
    analysis = analyze(str(path))
    dice = random.Random(3)
    for _ in range(60):
        improvements = {name: float(dice.choice((-50, 0, 25, 100, 300))) for name in CLASSES}
        found, _ = estimated(analysis, [f"{name}={percent}" for name, percent in improvements.items()])
        (expected,) = found.parts
        computed = page.evaluate("improvements => tierscope.estimate(improvements)", improvements)
        assert computed["best"]["sweep"] == expected.after.best.sweep
        assert computed["best"]["classes"] == pytest.approx(expected.after.best.classes, rel=1e-9, abs=1e-12)
        assert computed["bottleneck_moved"] == expected.bottleneck_moved
        assert computed["slowest_rank_changed"] == expected.slowest_rank_changed
        assert [one["kind"] for one in computed["warnings"]] == [one.kind for one in expected.warnings]
    assert page.troubles == []


def test_more_than_a_slider_gives_can_be_typed(opened: Opened, times: Path) -> None:
    printed = json.loads(tierscope("estimate", times, "--improve", "GFS-META=900", "--json"))
    box = opened.page.locator("#what-if input[type=number]").nth(CLASSES.index("GFS-META"))
    box.fill("900")
    box.press("Enter")
    assert opened.shown_seconds() == pytest.approx(printed["best"]["io_seconds"], rel=1e-9)
    assert box.input_value() == "900"


def test_a_setting_gives_the_very_number_of_the_command(opened: Opened, times: Path) -> None:
    printed = json.loads(
        tierscope("estimate", times, "--improve", "GFS-META=50", "--improve", "LFS-READ=120", "--json")
    )
    opened.set_slider("GFS-META", 50)
    opened.set_slider("LFS-READ", 120)
    assert opened.shown_seconds() == pytest.approx(printed["best"]["io_seconds"], rel=1e-9)
    change = re.findall(r"[-−+]?\d+\.?\d*", opened.page.inner_text("#change"))[0].replace("−", "-")
    assert float(change) == pytest.approx(printed["change_percent"], abs=0.06)


@pytest.mark.parametrize("improve", [(), ("LFS-META=100",)])
def test_the_goal_box_gives_the_grid_of_the_command(opened: Opened, times: Path, improve: tuple[str, ...]) -> None:
    asked = ["--vary", "GFS-META=0:200:10", "--vary", "LFS-READ=0:200:10", "--goal", "2.2s"]
    fixed = [part for text in improve for part in ("--improve", text)]
    printed = json.loads(tierscope("explore", times, *asked, *fixed, "--json"))
    for text in improve:
        name, _, percent = text.partition("=")
        opened.set_slider(name, float(percent))
    opened.page.select_option("#goal-x", "GFS-META")
    opened.page.select_option("#goal-y", "LFS-READ")
    opened.page.fill("#goal", "2.2 s")
    shown = opened.evaluate(
        """() => [...document.querySelectorAll('#goal-grid svg [data-improve-x]')].map(
            dot => [Number(dot.dataset.improveX), Number(dot.dataset.improveY), dot.dataset.rate])"""
    )
    assert len(shown) == len(printed["grid"]) == 441
    rates = {(x, y): float(rate) if rate else None for x, y, rate in shown}
    expected = {tuple(entry["improve"].values()): entry["min_cache_rate"] for entry in printed["grid"]}
    assert rates == expected
    assert None in expected.values()
    assert len(set(expected.values())) > 3
    options = opened.page.locator("#pareto tbody tr").count()
    assert options == min(12, len(printed["pareto"]))


def test_the_address_holds_the_state(browser: Any, report: Path, opened: Opened) -> None:
    opened.set_slider("GFS-META", 55)
    opened.page.fill("#goal", "1.5 s")
    opened.page.select_option("#goal-x", "LFS-META")
    fragment = opened.evaluate("location.hash")
    other = Opened(browser, report, fragment)
    assert other.sliders() == {**dict.fromkeys(CLASSES, 0.0), "GFS-META": 55.0}
    assert other.shown_seconds() == opened.shown_seconds()
    assert other.page.input_value("#goal-x") == "LFS-META"
    assert other.page.inner_text("#pareto") == opened.page.inner_text("#pareto")
    assert other.troubles == []


@pytest.mark.parametrize(
    "fragment",
    ["#GFS-META=1e999&goal=-3&x=nothing", "#%", "#GFS-META=abc", "#a=b=c&&&", "#GFS-META=99999", "#<script>"],
)
def test_a_broken_address_does_no_harm(browser: Any, report: Path, fragment: str) -> None:
    page = Opened(browser, report, fragment)
    assert all(-50 <= percent <= 400 for percent in page.sliders().values())
    assert page.shown_seconds() > 0
    assert page.troubles == []


def test_a_hostile_name_does_nothing(browser: Any, tmp_path: Path) -> None:
    classes = tuple(f"{tier}-{kind}" for tier in (HOSTILE, "</script>") for kind in ("READ", "META"))
    path = write_times(tmp_path / "hostile<b>.csv", classes, rates=3, ranks=4)
    tierscope("report", path)
    page = Opened(browser, tmp_path / "hostile<b>-report" / "report.html")
    assert page.page.locator("img").count() == 0
    assert page.page.locator("main b, body b").filter(has_text=".csv").count() == 0
    assert set(page.sliders()) == set(classes)
    page.set_slider(classes[0], 100)
    assert HOSTILE in page.page.inner_text("#what-if")
    assert page.troubles == []


def test_the_keyboard_is_enough(opened: Opened) -> None:
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        if opened.evaluate("document.activeElement.type") == "range":
            break
    before = opened.shown_seconds()
    for _ in range(10):
        opened.page.keyboard.press("ArrowRight")
    assert max(opened.sliders().values()) == 50.0
    assert opened.shown_seconds() <= before


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(browser: Any, report: Path, width: int, scheme: str) -> None:
    page = Opened(browser, report, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert (brightness < 80) == (scheme == "dark")
    assert page.troubles == []


def test_one_rate_only_says_what_is_missing_and_still_estimates(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("rank,epoch,class,seconds\n0,1,GFS-READ,4\n0,1,GFS-META,1\n1,1,GFS-READ,3\n1,1,GFS-META,1.5\n")
    tierscope("report", path)
    page = Opened(browser, tmp_path / "one-report" / "report.html")
    assert "nothing to plot" in page.page.inner_text("body")
    page.set_slider("GFS-READ", 100)
    assert page.shown_seconds() == pytest.approx(3.0)
    assert page.troubles == []


@pytest.mark.parametrize(("kind", "goal", "value"), [("epoch", "25ms", 0.025), ("au", "30%", 0.3)])
def test_goals_of_an_epoch_and_of_au_give_the_grid_of_the_command(
    kind: str, goal: str, value: float, browser: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(MEASURED, out)
    tierscope("report", out)
    asked = ("--vary", "GFS-META=0:200:10", "--vary", "LFS-READ=0:200:10", "--goal", f"{kind}={goal}")
    expected = json.loads(tierscope("explore", out, *asked, "--json"))
    opened = Opened(browser, out / "report.html")
    opened.page.select_option("#goal-kind", kind)
    opened.page.fill("#goal", goal)
    found = opened.page.evaluate(f"tierscope.explore({value}, 'GFS-META', 'LFS-READ', {{}}, '{kind}')")
    name = "au" if kind == "au" else "epoch_seconds"
    assert [cell["met"] for cell in found["grid"]] == [cell["met"] for cell in expected["grid"]]
    assert [cell["value"] for cell in found["grid"]] == pytest.approx(
        [cell[name] for cell in expected["grid"]], rel=1e-9
    )
    assert opened.page.evaluate("tierscope.state()")["goal"] == pytest.approx(value)
    assert opened.page.inner_text("#goal-sentence")
    opened.page.wait_for_url(re.compile(rf"goal={value}"))  # an address is remembered a moment later
    again = Opened(browser, out / "report.html", opened.page.evaluate("location.hash"))
    assert (again.page.input_value("#goal-kind"), again.page.inner_text("#goal-sentence")) == (
        kind,
        opened.page.inner_text("#goal-sentence"),
    )
    assert opened.troubles == again.troubles == []
    opened.context.close()
    again.context.close()


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_cases(tmp_path_factory.mktemp("cases") / "cases.csv")
    tierscope("report", path)
    return path


@pytest.mark.parametrize("case", ["zoo", "bee", "cat"])
def test_all_that_can_be_tried_follows_the_chosen_case(browser: Any, cases: Path, case: str) -> None:
    from tierscope.analysis.counting import Counting  # noqa: PLC0415
    from tierscope.commands.analyze import analyze  # noqa: PLC0415
    from tierscope.commands.estimate import estimated  # noqa: PLC0415

    page = Opened(browser, cases.with_name("cases-report") / "report.html")
    page.page.select_option("#case", label=case)
    analysis, whole = analyze(str(cases), Counting(case=case)), analyze(str(cases))
    place = ["zoo", "bee", "cat"].index(case)
    dice = random.Random(place)
    for _ in range(20):
        improvements = {name: float(dice.randrange(-50, 401, 5)) for name in CLASSES}
        for name, percent in improvements.items():
            page.set_slider(name, percent)
        asked = [f"{name}={percent}" for name, percent in improvements.items()]
        (expected,) = estimated(analysis, asked)[0].parts
        assert estimated(whole, asked)[0].parts[place].change_percent == expected.change_percent
        computed = page.evaluate("improvements => tierscope.estimate(improvements)", improvements)
        assert page.shown_seconds() == pytest.approx(expected.after.best.io.median, rel=1e-9)
        assert computed["change_percent"] == pytest.approx(expected.change_percent, rel=1e-9, abs=1e-9)
        assert computed["best"]["sweep"] == expected.after.best.sweep
        assert computed["best"]["classes"] == pytest.approx(expected.after.best.classes, rel=1e-9)
        assert [one["text"] for one in computed["warnings"]] == [one.text for one in expected.warnings]
    shown = page.evaluate(
        "[...document.querySelectorAll('[data-part]')].filter(one => !one.hidden).map(one => one.dataset.part)"
    )
    assert shown == [str(place)]
    assert page.page.locator("#live-estimate .chosen svg g[data-point]").count() == 5
    assert page.page.locator("#live-estimate svg").count() == 3
    page.page.click("#reset")
    assert page.page.locator("#case").evaluate("box => box.selectedOptions[0].textContent") == case
    assert page.troubles == []


@pytest.mark.parametrize("case", ["zoo", "bee", "cat"])
def test_the_goal_of_a_case_gives_the_grid_of_the_command(browser: Any, cases: Path, case: str) -> None:
    asked = ["--vary", "GFS-META=0:200:10", "--vary", "LFS-READ=0:200:10", "--goal", "1.2s"]
    printed = json.loads(tierscope("explore", cases, *asked, "--case", case, "--json"))
    page = Opened(
        browser, cases.with_name("cases-report") / "report.html", f"#case={case}&goal=1.2&x=GFS-META&y=LFS-READ"
    )
    computed = page.evaluate("() => tierscope.explore(1.2, 'GFS-META', 'LFS-READ')")
    for mine, theirs in zip(computed["grid"], printed["grid"], strict=True):
        assert mine["min_cache_rate"] == theirs["min_cache_rate"]
        assert mine["io_seconds"] == pytest.approx(theirs["io_seconds"], rel=1e-9)
    assert [one["improve"] for one in computed["pareto"]] == [one["improve"] for one in printed["pareto"]]
    assert page.page.locator("#pareto tbody tr").count() in (0, min(12, len(printed["pareto"])))
    assert page.troubles == []


def test_the_address_holds_the_case(browser: Any, cases: Path) -> None:
    report = cases.with_name("cases-report") / "report.html"
    page = Opened(browser, report)
    page.set_slider("LFS-READ", 100)
    page.page.select_option("#case", label="bee")
    other = Opened(browser, report, page.evaluate("location.hash"))
    assert other.evaluate("tierscope.state().case") == 1
    assert other.shown_seconds() == page.shown_seconds()
    for broken in ("#case=nobody", "#case=", "#case=%00"):
        assert Opened(browser, report, broken).evaluate("tierscope.state().case") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_panels_are_no_wider_than_the_window(browser: Any, cases: Path, width: int) -> None:
    page = Opened(browser, cases.with_name("cases-report") / "report.html", viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lefts = page.evaluate(
        "[...document.querySelectorAll('#live-estimate.panels svg')].map(one => one.getBoundingClientRect().left)"
    )
    assert len(set(lefts)) == (1 if width == 390 else 3)
