"""What can be tried on the report page: sliders, choosers and the tables of where money would help."""

from collections.abc import Sequence

from tierscope.analysis.breakdown import Breakdown
from tierscope.jsonable import JsonObject
from tierscope.predict.processes import LIMITS
from tierscope.predict.whatif import Sensitivity
from tierscope.report.estimates import left_out_text, limit_text
from tierscope.report.figures import class_marks
from tierscope.report.markup import Html, escaped, join, named, table, tag, void
from tierscope.report.page_data import SLIDER
from tierscope.report.parts import WASTED_PERCENT, wasted_sentence
from tierscope.report.report_source import ReportPart, ReportSource
from tierscope.spec.prices import CAPACITY
from tierscope.spec.sweep import CASE


def _swatch(tier: int, hatched: bool) -> Html:
    return tag("span", class_=f"swatch hue{tier}{' hatched' if hatched else ''}", aria_hidden="true")


def slider(name: str, tier: int, hatched: bool) -> Html:
    slider = void(
        "input",
        type="range",
        min=str(SLIDER["low"]),
        max=str(SLIDER["high"]),
        step=str(SLIDER["step"]),
        value="0",
        class_=f"hue{tier}",
        data_class=name,
        aria_label=f"{name}, percent more throughput",
    )
    box = void(
        "input",
        type="number",
        min=f"{LIMITS[0]:g}",
        max=f"{LIMITS[1]:.0f}",
        step="any",
        value="0",
        data_box="",
        data_class=name,
        aria_label=f"{name}, percent more throughput, as a number",
    )
    label = tag("span", _swatch(tier, hatched), named(name), class_="name")
    return tag("div", label, slider, tag("span", box, " %", class_="percent"), class_="slider")


def case_chooser(source: ReportSource) -> Html:
    """A choice among the cases, which all that can be tried follows."""
    if len(source.parts) < 2:
        return Html("")
    what = "case" if source.breakdown.groups[0].case is not None else "points of"
    options = (tag("option", part.name, value=str(index)) for index, part in enumerate(source.parts))
    left = source.parts_left_out
    note = [tag("span", f" {left_out_text(left)}", class_="hint")] if left else []
    return tag("p", tag("label", what, for_="case"), " ", tag("select", *options, id="case"), *note, class_="chooser")


def slice_chooser(parts: Sequence[JsonObject]) -> Html:
    """A choice among the combinations of the keys that do not run along the axis, of the case that is shown; the page fills it."""
    if all(len(part["slices"]) < 2 for part in parts):
        return Html("")
    first = parts[0]["slices"]
    options = (tag("option", part["text"], value=str(index)) for index, part in enumerate(first))
    return tag("p", tag("label", "slice", for_="slice"), " ", tag("select", *options, id="slice"), id="slices")


def room_prices(tiers: Sequence[str], units: Sequence[str]) -> Html:
    """What is held on a near tier can have a price, where a study says how much that is."""
    options = join(tag("option", f"/ {unit}", value=unit) for unit in units)
    return join(
        tag(
            "p",
            tag("label", named(f"{tier}.{CAPACITY}"), for_=f"price-room-{index}"),
            " ",
            tag(
                "span",
                void(
                    "input",
                    id=f"price-room-{index}",
                    data_tier=tier,
                    inputmode="decimal",
                    autocomplete="off",
                    spellcheck="false",
                    aria_describedby="price-wrong",
                ),
                " ",
                tag("select", options, data_unit=tier, aria_label=f"unit of the price of {tier}.{CAPACITY}"),
                class_="unit",
            ),
        )
        for index, tier in enumerate(tiers)
    )


def class_key(classes: tuple[str, ...]) -> Html:
    entries = (tag("li", _swatch(tier, hatched), named(name)) for name, tier, hatched in class_marks(classes))
    return tag("ul", *entries, class_="key")


def goal_caption(has_rates: bool) -> Html:
    colour = ", coloured by the smallest sufficient cache rate" if has_rates else ""
    return escaped(f"Dots: combinations of more throughput in two classes that meet the goal{colour}.")


def place_name(breakdown: Breakdown) -> str:
    """What a point of the sweep is called, where its values stand under it."""
    keys = [key for key in breakdown.sweep_keys if key != CASE]
    return "at" if len(keys) > 1 else "".join(key.replace("_", " ") for key in keys)


def sensitivity_tables(source: ReportSource) -> Html:
    """A table for each case; where one is chosen above, the page shows only its own."""
    parts = enumerate(source.parts)
    return join(
        tag(
            "div", *([tag("h3", part.name)] if part.name else []), _part_sensitivity(source, part), data_part=str(index)
        )
        for index, part in parts
    )


def _part_sensitivity(source: ReportSource, part: ReportPart) -> Html:
    sensitivities = part.estimate.sensitivity
    steps = list(sensitivities[0].change_percent)
    marks = {name: (tier, hatched) for name, tier, hatched in class_marks(source.processes.classes)}
    headers = ["class", *(f"{step:+g} %" for step in steps), "at most"]
    what = "epoch" if sensitivities[0].measure == "epoch" else "I/O time"
    moves = any(sensitivity.limit_sweep is not None or sensitivity.limit_is_nothing for sensitivity in sensitivities)
    headers += ["then"] if moves else []
    rows = [
        _sensitivity_row(sensitivity, _swatch(*marks[sensitivity.class_name]), moves) for sensitivity in sensitivities
    ]
    of_case = f" of {part.name}" if part.name else ""
    caption = (
        f"Change of the best {source.conditions.came} {what}{of_case}, estimated by scaling, if only one class had more throughput; "
        "at most: if it took no time"
    )
    wasted = wasted_sentence(sensitivities)
    return join([table(caption, headers, rows), *([tag("p", wasted)] if wasted else [])])


def _sensitivity_row(sensitivity: Sensitivity, swatch: Html, moves: bool) -> Html:
    changes = [*sensitivity.change_percent.values(), sensitivity.limit_percent]
    cells = (tag("td", _bar(-change), _change(change), class_="bar-cell") for change in changes)
    name = tag("th", swatch, named(sensitivity.class_name), scope="row")
    then = [tag("td", limit_text(sensitivity), class_="words")] if moves else []
    return tag("tr", name, *cells, *then, class_="wasted" if -sensitivity.limit_percent < WASTED_PERCENT else "")


def _bar(percent: float) -> Html:
    return tag("span", class_="bar", style=f"width:{min(max(percent, 0.0), 100.0):.1f}%", aria_hidden="true")


def _change(percent: float) -> Html:
    return tag("span", f"−{-percent:.1f} %" if percent <= -0.05 else "0 %")
