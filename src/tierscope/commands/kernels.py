"""The files of `tierscope kernels --out`: JSON and figure."""

from tierscope.report.drawn.efficiency import NAME, draw_efficiency
from tierscope.report.folder import claim_folder, figure_files, json_bytes, write_files
from tierscope.train.kernels import Efficiency, to_json

KIND = "efficiency"


def claim_efficiency(out: str) -> str:
    """Before a step is run: a directory that is ours, or can be."""
    return claim_folder(out, KIND)


def write_efficiency(efficiency: Efficiency, folder: str) -> list[str]:
    """What an earlier call wrote there is replaced."""
    drawn = draw_efficiency(efficiency.histogram, efficiency.title)
    return write_files(folder, {"efficiency.json": json_bytes(to_json(efficiency)), **figure_files([drawn])}, [NAME])
