"""Which names in a directory of ours are ours: one list for all who delete. All other names are somebody else's, and stay.

The kind that a mark says gives the names that there can be. A mark of a dataset says which of them there are (suffix, number of files, subfolders,
others by name), and a mark of a result lists the files that have fixed names, and logs of profilers. A mark can only narrow the list: who forges
one gains no name. Marks that were written before say neither. Then a dataset's names are those that its folder's name tells, and a result's are
all of its kind; of tenders and reproductions, whose names anyone may give, there are none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.jsonable import JsonObject
from tierscope.output.durable import TEMPORARY

NO_NAMES = r"(?!)"
MARK = r"tierscope\.json"
SCRATCH = ".scratch"  # of the running command, inside the result
LOG_NAMES = r".+\.(darshan|pfw[.\w]*)"  # of all profilers
NAMES = "files"  # where the mark of a dataset says which names there are
FIXED, LOGS = (
    "names",
    "logs",
)  # where that of a result lists its files with fixed names, and the logs below its folder of logs
PART = ".part"  # no digits: an emulated tier finds a file's servers by the last number in its name
DATA = ("dataset", "copies")
_OLDER_TEMPORARY = r"\.\d+\.tmp"  # behind a name of ours
_SUFFIX = re.compile(r"\.[a-z0-9]{1,16}")
_EXTRA = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_MOST_FILES = 10**15
_MOST_SUBFOLDERS = 10**6


@dataclass(frozen=True, slots=True)
class DatasetNames:
    """What the files of a dataset are called: numbers below `count`, spread over so many subfolders (0: none), and `extra` beside them.

    `within`: only those of the subfolder with this number.
    """

    suffix: str
    count: int
    subfolders: int = 0
    extra: tuple[str, ...] = ()
    within: int | None = None

    def place(self, file: int) -> str:
        """Where a file lies, from the dataset's folder on."""
        name = f"{file:09d}{self.suffix}"
        return f"{file % self.subfolders:06d}/{name}" if self.subfolders else name

    def owns(self, name: str) -> bool:
        """Whether a file in this folder is one of them, finished or not."""
        if self._is_extra(name.removesuffix(PART)):
            return True
        digits = name.removesuffix(PART).removesuffix(self.suffix)
        if not digits.isdecimal() or not digits.isascii() or len(digits) > 15:
            return False
        file = int(digits)
        inside = f"{self.within:06d}/" if self.within is not None else ""
        return file < self.count and self.place(file) in (inside + name, inside + name.removesuffix(PART))

    def _is_extra(self, name: str) -> bool:
        """Or a rank's piece of one, which has the rank's number behind it."""
        whole, _, rank = name.rpartition(".")
        return name in self.extra or (whole in self.extra and rank.isdecimal() and len(rank) >= 6)

    def inside(self, folder: str) -> "DatasetNames | None":
        """The names in a subfolder; None: it is none of the dataset's."""
        if self.within is None and re.fullmatch(r"[0-9]{6}", folder) and int(folder) < self.subfolders:
            return replace(self, within=int(folder), extra=())
        return None

    def facts(self) -> JsonObject:
        """As a mark has them."""
        return {
            "suffix": self.suffix,
            "count": self.count,
            "subfolders": self.subfolders,
            "extra": list(self.extra),
        }

    @classmethod
    def of_facts(cls, facts: Any) -> "DatasetNames | None":
        """Of a mark, which is not trusted; None: it says nothing that can be."""
        match facts:
            case {"suffix": str(suffix), "count": int(count), "subfolders": int(subfolders), "extra": list(extra)}:
                names = [name for name in extra if isinstance(name, str) and _EXTRA.fullmatch(name)]
                plausible = 0 <= count <= _MOST_FILES and 0 <= subfolders <= _MOST_SUBFOLDERS
                if plausible and _SUFFIX.fullmatch(suffix) and len(names) == len(extra):
                    return cls(suffix, count, subfolders, tuple(names))
        return None

    @classmethod
    def of_folder(cls, name: str) -> "DatasetNames | None":
        """As the name of a dataset's folder tells; None: it is no such name, or of a format that is not known here."""
        told = re.match(r"([a-z0-9_]+)-([0-9]{1,15})x[0-9]+-[0-9]+B-seed", name)
        subfolders = re.search(r"-in([0-9]{1,6})(-|$)", name)
        if told is None or told[1] not in SUFFIXES:
            return None
        return cls(SUFFIXES[told[1]], int(told[2]), int(subfolders[1]) if subfolders else 0)


SUFFIXES = {  # by format, for datasets of versions whose marks do not say it; later formats need no line here
    **{name: f".{name}" for name in ("raw", "npy", "npz", "csv", "tfrecord", "lmdb", "parquet", "png")},
    "hdf5": ".h5",
    "jpeg": ".jpg",
    "synthetic": ".statistics",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Names of ours in a directory: files, and folders with the rules inside them. Files that are being written are ours anywhere in it.

    `between`: other folders lead to marked ones. `deep`: folders of all names, with the same rules. `numbered`: files of a dataset.
    """

    files: str = NO_NAMES
    folders: tuple[tuple[str, "Rules"], ...] = ()
    between: bool = False
    deep: bool = False
    numbered: DatasetNames | None = None

    def owns(self, name: str) -> bool:
        if re.fullmatch(rf"({self.files})({_OLDER_TEMPORARY})?|{TEMPORARY}", name, re.DOTALL):
            return True
        return self.numbered is not None and self.numbered.owns(name)

    def inside(self, folder: str) -> "Rules | None":
        """The rules in one of its folders; None: it is not ours, or it has a mark of its own."""
        if self.deep:
            return self
        if self.numbered is not None:
            names = self.numbered.inside(folder)
            return Rules(numbered=names) if names else None
        return next((rules for names, rules in self.folders if re.fullmatch(names, folder, re.DOTALL)), None)


def leftovers(files: str = NO_NAMES) -> Rules:
    """Only what killed writers left: of older versions where these are the files' names, or that of a mark."""
    return Rules(rf"({files}|{MARK}){_OLDER_TEMPORARY}")


BETWEEN = Rules(between=True)
CHECKPOINT = Rules(r"(part|weights|optimizer)-\d{6,}\.bin|rank-\d{6,}\.json|checkpoint\.json")
STEPS = r"step-\d{6,}(\.part)?"
PROBE = Rules(folders=((r"\d+", Rules(r"\d{6}\.bin")),))
RUN = r"\d{4,}-r\d+"
RUNS = rf"{RUN}\.parquet"
OPS = rf"{RUN}-node\d+\.parquet|files\.parquet"
SCRATCH_RULES = Rules(
    r"trace\.json|meeting-[0-9a-f]{32}",
    ((rf"record|(ops|preload|profile)-{RUN}", Rules(r".*", deep=True)),),
)
_FIGURES = "|".join(
    (
        "time|breakdown|estimate|goal|processes|beside",
        "training-(throughput|phases)|reads-(sizes|ranks|time|hidden)",
        "memory|roofline|movement|scaling|decomposition|efficiency",
    )
)
FIGURES = rf"({_FIGURES})\.(svg|png)"
DOCUMENTS = r"study\.yaml|(summary|tune|training|requirements|efficiency|shuffling)\.json|(report|requirements)\.html|shuffling-\w+\.(svg|png)"
# Names that anyone may give: ours only where the mark lists them.
REPRODUCED = r"[a-z]{1,40}(\.(md|html|json)|-rows\.csv)"
_REPRODUCED_NAME = "[a-z0-9-]{1,100}"
REPRODUCED_FOLDERS = (("figures", rf"{_REPRODUCED_NAME}\.(svg|png)"), ("tables", rf"{_REPRODUCED_NAME}\.csv"))
TENDER = r"README\.md|accept\.sh|required\.json|study\.yaml"
RESULTS = (
    *("result", "simulation", "trace", "import", "report", "tune"),
    *("training", "requirements", "efficiency", "shuffling", "tender", "reproduction"),
)
WITH_RUNS = ("result", "simulation", "trace", "import")
WITH_LOGS = ("result", "trace")  # of a site's profiler
KINDS = frozenset({"tier", *DATA, "checkpoints", "probe", *RESULTS})


def rules_of(kind: str, mark: JsonObject, folder: str) -> Rules:
    """In a marked directory; `folder` is its name. A dataset of which nothing is known has no names."""
    if kind in DATA:
        return Rules(numbered=DatasetNames.of_facts(mark.get(NAMES)) or DatasetNames.of_folder(folder))
    if kind == "checkpoints":
        return Rules(folders=((STEPS, CHECKPOINT),))
    fixed = _listed(mark, FIXED)
    if kind == "tender":
        return Rules(_among(TENDER, fixed or ()))
    if kind == "reproduction":
        folders = tuple((name, Rules(_among(files, _below(name, fixed or ())))) for name, files in REPRODUCED_FOLDERS)
        return Rules(_among(REPRODUCED, fixed or ()), folders)
    if kind in RESULTS:
        return _result_rules(kind, fixed, _listed(mark, LOGS))
    return PROBE if kind == "probe" else Rules()


def _listed(mark: JsonObject, key: str) -> list[str] | None:
    """What is no list is a mark without one."""
    given = mark.get(key)
    return [name for name in given if isinstance(name, str)] if isinstance(given, list) else None


def _below(folder: str, names: Sequence[str]) -> list[str]:
    return [name.removeprefix(f"{folder}/") for name in names if name.startswith(f"{folder}/")]


def _result_rules(kind: str, fixed: list[str] | None, logs: list[str] | None) -> Rules:
    folders = [("figures", Rules(_among(FIGURES, None if fixed is None else _below("figures", fixed))))]
    if kind in WITH_RUNS:
        folders += [("runs", Rules(RUNS)), ("ops", Rules(OPS)), (re.escape(SCRATCH), SCRATCH_RULES)]
    if kind in WITH_LOGS:
        folders.append(("logs", log_rules(logs)))
    return Rules(_among(DOCUMENTS, fixed), tuple(folders), between=True)


def log_rules(logs: Sequence[str] | None) -> Rules:
    """In the folder of logs. `logs`: those that were recorded, from that folder on; None: an older mark does not say."""
    if logs is None:
        return Rules(LOG_NAMES, ((RUN, Rules(LOG_NAMES)),))
    of_run: dict[str, list[str]] = {}
    for name in logs:
        folder, _, file = name.rpartition("/")
        of_run.setdefault(folder, []).append(file)
    runs = [(run, Rules(_among(LOG_NAMES, files))) for run, files in of_run.items() if re.fullmatch(RUN, run)]
    return Rules(_among(LOG_NAMES, of_run.get("", ())), (*runs, (RUN, Rules())))


def _among(pattern: str, names: Sequence[str] | None) -> str:
    if names is None:
        return pattern
    return "|".join(re.escape(name) for name in names if re.fullmatch(pattern, name, re.DOTALL)) or NO_NAMES
