"""A directory of ours into which a command writes JSON, a page and figures."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.jsonable import JsonObject
from tierscope.output import manifest
from tierscope.output.disk_errors import explained, plain
from tierscope.output.durable import remove_file
from tierscope.output.ours import DOCUMENTS
from tierscope.output.ours import FIGURES as FIGURE_NAMES
from tierscope.output.result import check_folders, locked
from tierscope.output.walk import remove_leftovers
from tierscope.report.drawn.view import Figure
from tierscope.report.figures import standalone
from tierscope.report.png import png_problem, to_png

FIGURES = "figures"
_KINDS = ("svg", "png")
_PIXELS = 2.5  # of a picture, for a unit of the drawing
_TAKEN = "another command is writing there; wait for it to finish or choose another --out"


def claim_folder(out: str, kind: str) -> str:
    """Before anything takes long: a directory that is ours, or can be."""
    if out == "":
        raise UserError("--out is empty; name a directory, or remove --out")
    folder = os.path.abspath(out)
    manifest.claim(folder, kind)
    return folder


def json_bytes(document: JsonObject) -> bytes:
    """As `--json` prints it."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def figure_files(drawn: Iterable[Figure], inside: str = FIGURES) -> dict[str, bytes]:
    """As SVG, and as PNG where this machine can; by their places in the directory."""
    problem, files = png_problem(), {}
    for figure in drawn:
        if figure.svg is not None:
            whole = standalone(figure)
            files[os.path.join(inside, f"{figure.name}.svg")] = whole
            if not problem:
                files[os.path.join(inside, f"{figure.name}.png")] = to_png(whole, round(_PIXELS * figure.size.width))
    return files


def write_files(folder: str, files: Mapping[str, bytes], names: Iterable[str], inside: str = FIGURES) -> list[str]:
    """As `put_files`, while nobody else writes there."""
    with locked(folder, _TAKEN):
        remove_leftovers(os.path.join(folder, inside), f"{FIGURE_NAMES}|{DOCUMENTS}", folder)
        return put_files(folder, files, names, inside)


def put_files(
    folder: str,
    files: Mapping[str, bytes],
    names: Iterable[str],
    inside: str = FIGURES,
    fix: str = "choose another --out",
) -> list[str]:
    """Each of them durably. Figures with these names that an earlier call left, about other data, give way."""
    check_folders(folder)
    with explained(folder, plain(fix), by_name=True):
        paths = manifest.put(folder, files)
    for old in {os.path.join(inside, f"{name}.{kind}") for name in names for kind in _KINDS} - files.keys():
        with suppress(OSError):
            remove_file(os.path.join(folder, old), folder)
    return paths


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """`missing`: names of figures that cannot be drawn; `problem`: why there are no PNG files, or empty."""

    page: str
    figures: tuple[str, ...]
    missing: tuple[str, ...]
    problem: str
