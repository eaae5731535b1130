"""What the Architecture study concludes without a figure, recommends or leaves open, and what Tierscope has for it."""

from tierscope.papers.architecture_model import absent
from tierscope.papers.section import Section
from tierscope.papers.verdict import Verdict

_LISTED = {
    "A-I-5": "advice, nothing to compute; what waits for what: `tierscope require`",
    "A-W-1": "`tierscope require --nodes`: what a node's accelerators need of storage",
    "A-W-2": "`tierscope require --batch`: memory against batch, and where storage is hidden",
    "A-W-3": "`tierscope require --compression RATIO[:RATE]`: smaller files, and the time to unpack them",
    "A-W-4": "bytes and opens are separate stations of every tier",
    "A-W-5": "`tierscope require MODULE:FUNCTION`: your own network on the same machine",
    "A-W-6": "`tierscope kernels`: the efficiency of every kernel, and what is lost where",
    "A-W-7": "transformers and an H200: requirements.md",
    "A-W-8": "queues of Lustre are simulated (`tierscope simulate`), preprocessing is a key of a study; other jobs are not modelled",
}


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return Section(
        (
            absent("A-D-11", "Tierscope splits transformers (tensor and pipeline parallel), not convolutional networks; nothing was run on several GPUs"),
            absent("A-D-12", "Tierscope's samples are made up, so how far real data compress is unknown; what a given ratio would do: `tierscope require --compression`"),
            *(Verdict(row, text, "listed") for row, text in _LISTED.items()),
        )
    )  # fmt: skip
