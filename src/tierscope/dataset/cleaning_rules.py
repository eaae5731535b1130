"""Which names in a directory of ours are ours, by the kind that its mark says. All others are somebody else's."""

import re
from dataclasses import dataclass

from tierscope.output.result import LOG_NAMES, SCRATCH
from tierscope.storage.sums import NAMES as SUMS_NAMES


@dataclass(frozen=True, slots=True)
class Rules:
    """Names of ours in a directory: files, and folders with the rules inside them.

    `between`: other folders lead to marked ones. `deep`: folders of all names, with the same rules.
    """

    files: str
    folders: tuple[tuple[str, "Rules"], ...] = ()
    between: bool = False
    deep: bool = False


NO_NAMES = r"(?!)"
BETWEEN = Rules(NO_NAMES, between=True)
_SAMPLES = r"\d{9,}\.[a-z0-9]+(\.part)?"
_DATASET = Rules(rf"{_SAMPLES}|{SUMS_NAMES}", ((r"\d{6}", Rules(_SAMPLES)),))
_CHECKPOINT = Rules(r"(part|weights|optimizer)-\d{6,}\.bin|rank-\d{6,}\.json|checkpoint\.json")
_RUN = r"\d{4,}-r\d+"
_FIGURES = "|".join(
    (
        "time|breakdown|estimate|goal|processes|beside",
        "training-(throughput|phases)|reads-(sizes|ranks|time|hidden)",
        "memory|roofline|movement|scaling|decomposition|efficiency",
    )
)
_RESULT = Rules(
    r"study\.yaml|(summary|tune|training|requirements|efficiency|shuffling)\.json|(report|requirements)\.html|shuffling-\w+\.(svg|png)",
    (
        ("runs", Rules(rf"{_RUN}\.parquet")),
        ("ops", Rules(rf"{_RUN}-node\d+\.parquet|files\.parquet")),
        ("figures", Rules(rf"({_FIGURES})\.(svg|png)")),
        ("logs", Rules(LOG_NAMES, ((_RUN, Rules(LOG_NAMES)),))),
        (re.escape(SCRATCH), Rules(r".*", deep=True)),
    ),
    between=True,
)
KINDS = {
    "tier": Rules(NO_NAMES),
    "dataset": _DATASET,
    "copies": _DATASET,
    "checkpoints": Rules(NO_NAMES, ((r"step-\d{6,}(\.part)?", _CHECKPOINT),)),
    "probe": Rules(NO_NAMES, ((r"\d+", Rules(r"\d{6}\.bin")),)),
    **dict.fromkeys(("result", "simulation", "trace", "import", "report", "tune"), _RESULT),
    **dict.fromkeys(("training", "requirements", "efficiency", "shuffling"), _RESULT),
}
