"""A reproduction as a folder: pages, rows, figures and tables."""

import os
from dataclasses import dataclass

from tierscope.output import manifest
from tierscope.papers.pages import (
    FIGURES,
    TABLES,
    file_stem,
    markdown,
    page,
    reproduction_json,
    rows_csv,
    table_csv,
    whole_svg,
    width_of,
)
from tierscope.papers.reproduce import Reproduction
from tierscope.report.folder import claim_folder, json_bytes, write_files
from tierscope.report.png import png_problem, to_png

KIND = "reproduction"
_PAGES = (".md", ".html", ".json", "-rows.csv")
_PIXELS = 2.5  # of a picture, for a unit of the drawing


@dataclass(frozen=True, slots=True)
class WrittenReproduction:
    """`problem`: why there are no PNG files, or empty."""

    page: str
    folder: str
    problem: str


def claim_reproduction(out: str, study: str) -> str:
    """Before anything takes long. `study`: its name, with which files begin."""
    folder = claim_folder(out, KIND)
    manifest.refuse_strangers(folder, [study + ending for ending in _PAGES])
    return folder


def write_reproduction(made: Reproduction, folder: str) -> WrittenReproduction:
    name = made.study.name
    pages = (markdown(made).encode(), page(made), json_bytes(reproduction_json(made)), rows_csv(made).encode())
    files = {name + ending: content for ending, content in zip(_PAGES, pages, strict=True)}
    problem = png_problem()
    for figure in made.figures:
        place = os.path.join(FIGURES, file_stem(made, figure.name))
        files[f"{place}.svg"] = whole_svg(figure)
        if not problem:
            files[f"{place}.png"] = to_png(files[f"{place}.svg"], round(_PIXELS * width_of(figure)))
    for given in made.tables:
        files[os.path.join(TABLES, f"{file_stem(made, given.name)}.csv")] = table_csv(given).encode()
    write_files(folder, files, ())
    return WrittenReproduction(os.path.join(folder, f"{name}.md"), folder, problem)
