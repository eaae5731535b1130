"""The files of `tierscope require --out`: JSON, page and figures."""

from collections.abc import Sequence
from typing import Any

from tierscope.analysis.wording import Finding
from tierscope.arch.requirements import Requirements
from tierscope.report.drawn.requirements import NAMES, draw_requirements
from tierscope.report.folder import WrittenReport, claim_folder, figure_files, json_bytes, write_files
from tierscope.report.png import png_problem
from tierscope.report.requirements_page import requirements_page

KIND = "requirements"


def write_requirements(
    requirements: Requirements, findings: Sequence[Finding], answer: dict[str, Any], out: str
) -> WrittenReport:
    """`answer`: as JSON. Into a directory that is ours, or can be; what an earlier call wrote there is replaced."""
    folder = claim_folder(out, KIND)
    drawn = draw_requirements(requirements)
    files = {
        "requirements.html": requirements_page(requirements, findings, drawn),
        "requirements.json": json_bytes(answer),
        **figure_files(drawn),
    }
    page, _, *figures = write_files(folder, files, NAMES)
    missing = tuple(figure.name for figure in drawn if figure.svg is None)
    return WrittenReport(page, tuple(figures), missing, png_problem())
