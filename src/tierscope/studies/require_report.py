"""The files of `tierscope require --out`: JSON, page and figures."""

from tierscope.report.drawn.requirements import NAMES, draw_requirements
from tierscope.report.png import png_problem
from tierscope.report.requirements_page import requirements_page
from tierscope.studies.drawn_folder import claim_folder, figure_files, json_bytes, write_files
from tierscope.studies.report import Written
from tierscope.studies.require import Answer, answer_json

KIND = "requirements"
_JSON, _PAGE = "requirements.json", "requirements.html"


def write_requirements(answer: Answer, out: str, layers: bool = False) -> Written:
    """Into a directory that is ours, or can be; what an earlier call wrote there is replaced. `layers`: in the JSON too."""
    folder = claim_folder(out, KIND)
    drawn = draw_requirements(answer.found)
    files = {
        _PAGE: requirements_page(answer.found, answer.findings, drawn),
        _JSON: json_bytes(answer_json(answer, layers)),
        **figure_files(drawn),
    }
    page, _, *figures = write_files(folder, files, NAMES)
    missing = tuple(figure.name for figure in drawn if figure.svg is None)
    return Written(page, tuple(figures), missing, png_problem())
