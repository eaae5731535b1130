"""A case by its number: which files it gets, what is done to them, and which command reads them."""

import glob
import importlib
import os
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tierscope.cli.main import COMMANDS
from tools.fuzz.kinds import swap_kind
from tools.fuzz.mutate import NUMBERS, TEXTS, damage

SENTINEL = "not ours: must stay as it is\n"
# In every folder: files that only resemble ours.
SENTINELS = ("precious.txt", "notes.md", "20240131120000.jpg", "999999999.docx", "backup.7.tmp", "old.parquet")


# In folders of ours: what only resembles what is written there. Older marks do not say what is theirs.
LOOKALIKES = {
    "res": ("logs/a.darshan", "logs/notes.pfw.gz", "figures/training-loss-curve.png"),
    "reproduced": (
        *("architecture.md", "figures/training-loss-curve.png", "tables/training-accuracy.csv"),
        *("logs/a.darshan", "runs/2024-r1.parquet"),
    ),
}
_DAMAGED_MARK = ("mark of a result", "resumed run")


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of file. `needs`: what is copied; `victims`: of these one is damaged; `commands`: of these one is run."""

    kind: str
    weight: int
    needs: tuple[str, ...]
    victims: tuple[str, ...]
    form: str
    commands: tuple[str, ...]


_READERS = (
    *("analyze {}", "analyze {} --json", "analyze {} --metrics", "analyze {} --basis wall --epoch 1", "analyze {} --csv new.csv", "characterise {}"),
    *("compare {} {}", "estimate {} --improve GFS-READ=50", "explore {} --goal 10ms --vary GFS-META=0:100:50", "report {} --out page"),
    *("estimate {} --goal epoch=1s --basis busy", "explore {} --goal au=90% --vary LFS-READ=0,50", "explore {} --goal 1s --vary GFS-META=0,50 --cost GFS-META=3/% --cost lfs.capacity=1/GiB --max-price 99", "analyze {} --classes read,meta --json"),
    "analyze {} --export parquet new.parquet",
    "analyze {} --export perfetto new.json",
)  # fmt: skip


def _read(name: str, *more: str) -> tuple[str, ...]:
    return (*(line.format(name, name) for line in _READERS), *more)


_STUDY = (
    *("simulate {} --out out", "simulate {} --out out --method events --json", "simulate {} --out out --scale 0.5", "explore {} --simulate --goal 1s --vary gfs.servers=1,2", "explore {} --simulate --goal au=50% --vary gfs.servers=1,2"),
    *("launch {} --with mpirun --script job.sh --nodes 2 --out out", "explore {} --simulate --method events --goal 1s --vary gfs.metadata_ops=100,1e9"),
    *("explore {} --simulate --most nodes=4 --goal au=50%", "explore {} --simulate --goal 1s --vary gfs.servers=1,2 --cost gfs.servers=3/server --cost lfs.capacity=1/TiB --max-price 9 --tender new"),
)  # fmt: skip
_CSV = ("analyze {}", "analyze {} --json", "analyze {} --csv new.csv", "estimate {} --improve GFS-READ=50", "estimate {} --goal epoch=1s", "analyze {} --classes write", "explore {} --goal 10ms --vary GFS-META=0:100:50")  # fmt: skip
_EXTREMES = ("--checkpoint-bandwidth 5e-324 --mean-time-between-failures 1h", "--checkpoint-bandwidth 1 --mean-time-between-failures 1e-300", "--checkpoint-bandwidth 1e308 --mean-time-between-failures 1e308", "--efficiency 5e-324")  # fmt: skip
_RUNS = "run tiny.yaml --out res --quiet --set sweep.placement.cache_rate=[0%,100%]"
TARGETS = (
    Target("study", 20, ("study.yaml",), ("study.yaml",), "yaml", tuple(line.format("study.yaml") for line in _STUDY)),
    Target("tiny study, run", 1, ("tiny.yaml",), ("tiny.yaml",), "yaml", ("run tiny.yaml --out out --quiet", "generate tiny.yaml --out out")),
    Target("system", 8, ("study.yaml", "system.yaml"), ("system.yaml",), "yaml", ("simulate study.yaml --system system.yaml --out out", "launch study.yaml --system system.yaml --with pbs --script job.sh", "launch study.yaml --system system.yaml --with slurm --script job.sh")),
    Target("machine", 3, ("machine.yaml",), ("machine.yaml",), "yaml", ("require lenet5 --system machine.yaml", "require resnet50 --system machine.yaml --batch 1,2 --nodes 1..2 --json")),
    Target("DLIO file", 8, (), (), "yaml", ("convert dlio.yaml", "simulate dlio.yaml --out out --system laptop", "simulate dlio.yaml --out out --system laptop --scale 0.01 --json")),
    Target("run, measured", 10, ("measured",), ("measured/runs/*",), "table", _read("measured")),
    Target("run, traced", 5, ("traced",), ("traced/runs/*",), "table", _read("traced")),
    Target("run, trained", 3, ("trained",), ("trained/runs/*",), "table", _read("trained")),
    Target("run, simulated", 3, ("simulated",), ("simulated/runs/*",), "table", _read("simulated")),
    Target("run, first touch", 3, ("first_touch",), ("first_touch/runs/*",), "table", _read("first_touch")),
    Target("run, imported", 3, ("imported_dftracer",), ("imported_dftracer/runs/*",), "table", _read("imported_dftracer")),
    Target("run, fitted to", 1, ("res",), ("res/runs/*",), "table", ("calibrate res -o new.yaml", "validate res", "estimate res --with-model --improve GFS-READ=50")),
    Target("operations", 6, ("measured", "traced"), ("measured/ops/*", "traced/ops/*"), "table", ("characterise measured", "characterise measured --point 0 --json", "characterise traced --json", "characterise traced", "compare measured traced")),
    Target("mark of a result", 4, ("res",), ("res/tierscope.json",), "json", (*_read("res"), "clean res --yes", "clean res --data --yes")),
    Target("mark of data", 3, ("res",), ("res/tiers/*/tierscope.json", "res/tiers/*/*/tierscope.json"), "json", ("clean res/tiers/gfs --yes", "clean res --data --yes", "clean res --yes")),
    Target("resumed run", 1, ("res", "tiny.yaml"), ("res/runs/*", "res/study.yaml", "res/tierscope.json"), "json", (_RUNS,)),
    Target("study of a result", 5, ("measured", "trained"), ("*/study.yaml",), "yaml", (*_read("measured"), "report trained --out page")),
    Target("summary.json", 3, ("res",), ("res/summary.json",), "json", ("analyze res --metrics", "analyze res --metrics --json", "clean res --yes")),
    Target("tune.json", 4, ("tuned", "tuned.yaml"), ("tuned/tune.json",), "json", ("tune tuned.yaml --vary reader.read_threads=1,2 --budget 1s --out tuned --quiet",)),
    Target("training.json", 1, ("trained",), ("trained/training.json",), "json", ("analyze trained", "train --take trained --out trained", "clean trained --yes")),
    Target("hand-over", 5, ("handed",), ("handed/*.npz",), "npz", ("train --take handed --out out --quiet", "train --take handed --out out --json")),
    Target("CSV table", 6, ("table.csv",), ("table.csv",), "csv", tuple(line.format("table.csv") for line in _CSV)),
    Target("DFTracer log", 5, ("log.pfw",), ("log.pfw",), "log", ("analyze log.pfw --tier lfs=/lfs --tier gfs=/gfs", "analyze log.pfw --tier gfs=/gfs --force --out out", "characterise log.pfw --tier gfs=/gfs")),
    Target("DFTracer log, packed", 3, ("log.pfw.gz",), ("log.pfw.gz",), "packed log", ("analyze log.pfw.gz --tier lfs=/lfs --tier gfs=/gfs",)),
    Target("benchmark output", 6, (), (), "csv", ("probe --from bench.txt", "probe --from bench.txt --json", "probe --from lfs=bench.txt --from bench.txt --nodes 2 -o new.yaml")),
    Target("measured table", 4, ("points.yaml", "points.csv"), ("points.csv",), "csv", ("validate points.csv --study points.yaml", "validate points.csv --study points.yaml --json", "validate points.csv --study points.yaml --where ranks<=4", "calibrate points.csv --study points.yaml --quiet")),
    Target("measured table, no rates", 2, ("bare.yaml", "points.csv"), ("bare.yaml", "points.csv"), "csv", ("calibrate points.csv --study bare.yaml", "validate points.csv --study bare.yaml")),
    Target("reproduction", 2, ("reproduced",), ("reproduced/*.json",), "json", ("clean reproduced --yes", "reproduce hierarchy --row H-S-1 --out reproduced")),
    Target("DLIO results", 3, ("points.yaml", "dlio"), ("dlio/*/*.json",), "json", ("validate dlio --study points.yaml", "validate dlio --study points.yaml --json")),
    Target("profiler trace", 4, ("marked.pfw", "profile.json"), ("profile.json",), "json", ("characterise marked.pfw --timeline profile.json --tier gfs=/gfs", "characterise marked.pfw --timeline 0=profile.json --tier gfs=/gfs --json", "characterise marked.pfw --timeline profile.json --tier gfs=/gfs --compute-span aten::mm --figure new.svg")),
    Target("device file", 4, ("device.yaml",), ("device.yaml",), "yaml", ("require lenet5 --system h200-node --device-file device.yaml", "require lenet5 --system h200-node --device-file device.yaml --json")),
    Target("transformer config", 3, ("decoder.json",), ("decoder.json",), "yaml", ("require decoder.json --system h200-node", "require decoder.json --system h200-node --json --zero 3 --data-parallel 8", "require decoder.json --system h200-node --checkpoint-bandwidth 1GB/s --mean-time-between-failures 1h", *(f"require decoder.json --system h200-node --json {options}" for options in _EXTREMES))),
    Target("live CSV", 1, ("tiny.yaml", "live.csv"), ("live.csv",), "csv", ("run tiny.yaml --out out --quiet --live-csv live.csv",)),
    Target("Darshan log", 1, (), (), "darshan", ("analyze log.darshan", "analyze log.darshan --tier gfs=/ --force", "analyze log.darshan --no-shared --json", "characterise log.darshan --tier gfs=/")),
)  # fmt: skip
# A healthy command line of every command; none that takes long: those have a mistake in them.
HEALTHY = {
    "run": "run study.yaml --out out --scale 0",
    "demo": "demo --out out --set no.such=1",
    "simulate": "simulate study.yaml --out out",
    "probe": "probe --tier gfs=nowhere --seconds 1",
    "calibrate": "calibrate table.csv",
    "validate": "validate table.csv",
    "trace": "trace --tier gfs=measured --out out",
    "convert": "convert dlio.yaml",
    "launch": "launch study.yaml --with slurm --script job.sh",
    "generate": "generate study.yaml --out out --scale 0",
    "analyze": "analyze measured",
    "characterise": "characterise measured",
    "compare": "compare measured table.csv",
    "estimate": "estimate measured --improve GFS-READ=50",
    "explore": "explore measured --goal 10ms --vary GFS-META=0:100:50",
    "tune": "tune study.yaml --vary reader.read_threads=0 --out out",
    "train": "train study.yaml --out out",
    "require": "require lenet5 --system h200-node",
    "kernels": "kernels lenet5",
    "shuffling": "shuffling --ranks 0",
    "reproduce": "reproduce hierarchy --row H-X-4 --short --out out",
    "report": "report measured --out page",
    "presets": "presets demo",
    "clean": "clean measured --yes",
    "doctor": "doctor measured",
}
OUTPUTS = {"--out", "--csv", "--script", "-o", "--output", "--hand-over", "--tender", "--live-csv", "--figure"}
# Of these one of several seeds is damaged, in the form that it has.
CHOSEN = ("DLIO file", "Darshan log", "benchmark output")
_READABLE = 1 << 20
ODD_PLACES = ("tiny study, run", "options", "environment", "surroundings")
UNSAFE = {"--submit", "--open"}  # would start something outside of the case
VARIABLES = (
    *("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURMD_NODENAME", "RANK", "WORLD_SIZE"),
    *("COLUMNS", "LINES", "TERM", "NO_COLOR", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "PATH", "USER", "TIERSCOPE_LIBRARY"),
    *("TIERSCOPE_RECORD", "POLARS_MAX_THREADS", "POLARS_VERBOSE", "OMP_NUM_THREADS", "LD_PRELOAD", "DARSHAN_LIB", "LD_LIBRARY_PATH"),
)  # fmt: skip
_WRITERS = {"clean", "run", "generate", "tune", "train", "trace", "report"}  # may change what they made themselves


@dataclass(slots=True)
class Case:
    """`kind`: of what is odd about it; `how`: what was done. `keeps`: glob patterns of files that the command must not touch;
    `makes`: of all that it may create."""

    number: int
    kind: str
    how: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] = ("*",)
    makes: tuple[str, ...] = ("*",)

    @property
    def command(self) -> str:
        return self.arguments[0] if self.arguments and self.arguments[0] in COMMANDS else "(other)"


def prepare(number: int, seed: int, seeds: Path, here: Path) -> Case:
    """In the folder `here`, which is the current one. The same number and seed give the same case."""
    dice = random.Random(f"{seed}/{number}")
    chance = dice.random()
    if chance < 0.20:
        case = _with_odd_options(number, dice, seeds, here)
    elif chance < 0.25:
        case = _in_odd_surroundings(number, dice, seeds, here)
    else:
        case = _with_damage(number, dice, seeds, here)
    for folder in (here, *(path for path in here.iterdir() if path.is_dir() and not path.is_symlink())):
        for name in SENTINELS:
            (folder / name).write_text(SENTINEL) if not (folder / name).exists() else None
    for path in lookalikes(case.kind, here):
        path.parent.mkdir(exist_ok=True)
        path.write_text(SENTINEL)
    for folder in here.glob("res/tiers/gfs/*/"):
        (folder / SENTINELS[2]).write_text(SENTINEL)
    case.keeps = _kept_by(case)
    case.makes = made_by(case)
    return case


def lookalikes(kind: str, here: Path) -> list[Path]:
    """None beside a mark of a result that is damaged: it may be one of an older version then."""
    roots = [] if kind in _DAMAGED_MARK else [root for root in LOOKALIKES if (here / root / "tierscope.json").is_file()]
    return [here / root / name for root in roots for name in LOOKALIKES[root]]


def made_by(case: Case) -> tuple[str, ...]:
    """What is named as output, with the folders above it, or is the default. Where data goes, an odd study or option may say."""
    words = case.arguments
    if case.kind in ODD_PLACES and case.command in (*_WRITERS, "probe", "demo", "(other)"):
        return ("*",)
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if word in OUTPUTS]
    named += [words[at + 2] for at, word in enumerate(words[:-2]) if word == "--export"]
    named += [os.path.dirname(name) for name in named if "/" in name]
    paths = [glob.escape(os.path.normpath(name)) for name in named if name]
    defaults = ("results", "results/*", *(("*.sh",) if case.command == "launch" else ("tiers", "tiers/*")))
    return (*defaults, *(pattern for path in paths for pattern in (path, f"{path}/*")))


def _kept_by(case: Case) -> tuple[str, ...]:
    """Foreign files always, finished runs but for `clean`, and everything where the command only reads."""
    always = tuple(pattern for name in SENTINELS for pattern in (name, f"*/{name}"))
    always += tuple(f"{root}/{name}" for root, names in LOOKALIKES.items() for name in names)
    if case.kind == "reproduction":
        return always
    if case.command not in _WRITERS:
        return ("*",)
    if case.kind == "live CSV":  # is continued
        return (*always, "*/runs/*", "*.yaml")
    return always if case.command == "clean" else (*always, "*/runs/*", "*.yaml", "*/ops/*", "*.csv", "*.npz")


def _with_damage(number: int, dice: random.Random, seeds: Path, here: Path) -> Case:
    (target,) = dice.choices(TARGETS, [target.weight for target in TARGETS])
    form = target.form
    _copy(seeds, here, target.needs)
    victims = sorted(path for pattern in target.victims for path in here.glob(pattern))
    if target.kind in CHOSEN:
        stem = target.commands[0].split()[-1]
        paths = sorted(seeds.glob(stem.replace(".", "-*.")))
        if not paths:
            return _with_odd_options(number, dice, seeds, here)
        shutil.copy(dice.choice(paths), here / stem)
        victims = [here / stem]
        form = "json" if victims[0].read_bytes()[:1] == b"{" else form
    if target.kind == "training.json":
        victims = [here / "trained/training.json"]
        victims[0].write_text('{"schema_version": 1, "kind": "training", "parts": []}')
    victim = dice.choice(victims)
    if target.kind in ("resumed run", "study of a result", "measured table, no rates"):
        form = {".parquet": "table", ".yaml": "yaml", ".json": "json", ".csv": "csv"}[victim.suffix]
    if target.kind == "operations":  # every list alike: a command reads those of one run
        same = dice.getrandbits(64)
        damaged = [path for path in victims if path.name != "files.parquet" or dice.random() < 0.5]
        hows = [damage(path, form, random.Random(same)) for path in damaged]
        return Case(number, target.kind, f"all lists: {hows[0]}", dice.choice(target.commands).split())
    how = damage(victim, form, dice)
    if victim.name == "tiny.yaml" and victim.is_file() and victim.stat().st_size < _READABLE:  # not a terabyte of zeros
        victim.write_bytes(runnable(victim.read_bytes()))
    return Case(number, target.kind, f"{victim.relative_to(here)}: {how}", dice.choice(target.commands).split())


def runnable(study: bytes) -> bytes:
    """A study that is run for real: a million files are no damage, but minutes of honest work. What is larger is refused, or has no room."""
    return re.sub(rb"(?<![\d.])\d{5,8}(?![\d.])", lambda number: number[0][:4], study)


def _copy(seeds: Path, here: Path, names: Sequence[str]) -> None:
    for name in names:
        if (seeds / name).is_dir():
            shutil.copytree(seeds / name, here / name)
        else:
            shutil.copy(seeds / name, here / name)


def _healthy(dice: random.Random, seeds: Path, here: Path) -> list[str]:
    _copy(seeds, here, ("measured", "study.yaml", "tiny.yaml", "table.csv"))
    shutil.copy(dice.choice(sorted(seeds.glob("dlio-*.yaml"))), here / "dlio.yaml")
    name = dice.choice(list(HEALTHY))
    transformer = name == "require" and dice.random() < 0.5
    return (HEALTHY[name].replace("lenet5", "gpt2") if transformer else HEALTHY[name]).split()


def _with_odd_options(number: int, dice: random.Random, seeds: Path, here: Path) -> Case:
    """One to three options of the command, or its arguments, with values that fit or do not."""
    arguments = _healthy(dice, seeds, here)
    command = importlib.import_module(COMMANDS[arguments[0]][0]).command
    options = [
        option for option in command.params if option.param_type_name == "option" and not UNSAFE & set(option.opts)
    ]
    for _ in range(dice.choice((1, 1, 2, 3))):
        if options and dice.random() < 0.75:
            option = dice.choice(options)
            values = [] if getattr(option, "is_flag", False) else [_value(dice, option) for _ in range(option.nargs)]
            arguments += [dice.choice(option.opts), *values]
        elif len(arguments) > 1:
            arguments[dice.randrange(1, len(arguments))] = _text(dice)
        else:
            arguments.append(_text(dice))
    if arguments[0] == "trace":
        arguments += dice.choice((["--", "true"], ["--", "cat", "table.csv"], ["--", "./precious.txt"], ["--"], []))
    return Case(number, "options", "odd options", arguments)


def _text(dice: random.Random) -> str:
    """An argument cannot hold a zero byte."""
    return (dice.choice(TEXTS) if dice.random() < 0.7 else str(dice.choice(NUMBERS))).replace("\x00", "")


def _value(dice: random.Random, option: object) -> str:
    choices = list(getattr(getattr(option, "type", None), "choices", ()))
    near = (
        *choices,
        "out",
        "measured",
        "study.yaml",
        "gfs=measured",
        "GFS-READ=50",
        "50%",
        "10ms",
        "1,2",
        "0..3",
        "workload.reader.batch_size=0",
    )
    return dice.choice(near) if dice.random() < 0.5 else _text(dice)


def _in_odd_surroundings(number: int, dice: random.Random, seeds: Path, here: Path) -> Case:
    """Odd variables, odd names of results, or something else where a folder is expected."""
    arguments = _healthy(dice, seeds, here)
    match dice.randrange(4):
        case 0 if not any(argument.startswith("measured") for argument in arguments):
            how = f"out: {_swapped(here / 'out', dice)}"
        case 0:
            name = "r" + dice.choice(TEXTS).replace("\x00", "").replace("/", "")[:100]
            (here / "measured").rename(here / name)
            arguments, how = [name if word == "measured" else word for word in arguments], "odd name"
        case 1:
            part = dice.choice(("runs", "ops", "lock", ".scratch", "summary.json", "report.html", "figures"))
            how = f"{part}: {_swapped(here / 'measured' / part, dice)}"
        case _:
            names = dice.sample(VARIABLES, dice.choice((1, 2, 4)))
            return Case(number, "environment", ", ".join(names), arguments, {name: _text(dice) for name in names})
    return Case(number, "surroundings", how, arguments)


def _swapped(path: Path, dice: random.Random) -> str:
    if not path.exists():
        path.touch()
    return swap_kind(path, dice)
