"""A reproduction as a folder: pages, rows, figures and tables."""

import os
from dataclasses import dataclass

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
_PIXELS = 2.5  # of a picture, for a unit of the drawing


@dataclass(frozen=True, slots=True)
class WrittenReproduction:
    """`problem`: why there are no PNG files, or empty."""

    page: str
    folder: str
    problem: str


def claim_reproduction(out: str) -> str:
    """Before anything takes long."""
    return claim_folder(out, KIND)


def write_reproduction(made: Reproduction, folder: str) -> WrittenReproduction:
    name = made.study.name
    files = {
        f"{name}.md": markdown(made).encode(),
        f"{name}.html": page(made),
        f"{name}.json": json_bytes(reproduction_json(made)),
        f"{name}-rows.csv": rows_csv(made).encode(),
    }
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
