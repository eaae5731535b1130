"""The eight workloads of DLIO's paper as studies: whole on Theta's rates, with other numbers of processes, and small on an emulated tier."""

from dataclasses import dataclass, replace

from tierscope.plan.order import Order
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.spec import presets
from tierscope.spec.load import parse_study
from tierscope.spec.scale import scale_study
from tierscope.spec.study import Study, Tier

OWN_FILES = ("imagenet", "cosmoflow", "frnn")
SHARED_FILE = ("cosmic-tagger", "dffn", "candle")
READING = ("cosmic-tagger", "dffn", "cosmoflow", "candle", "frnn", "imagenet")  # in the order of the figures
TITLES = {
    "cosmic-tagger": "Cosmic Tagger",
    "dffn": "DFFN",
    "cosmoflow": "CosmoFlow",
    "candle": "CANDLE",
    "frnn": "FRNN",
    "imagenet": "ImageNet",
    "climate": "Climate segmentation",
    "l2hmc": "L2HMC",
}
RANKS = 512
FILES_TO_SCALE = 40_960  # of FRNN: its 2,800 cannot be dealt to 8,192 processes
SEED = 7
# ImageNet's 100 steps of 512 processes read 1.64 M of 1.05 M images (D-C-20): nobody dealt them out, each process went through files in an order of its own.
# Smaller files, so that a small run has several.
_OWN_ORDERS = ("rank_reads=all", "file_access=shared", "num_files_train=16384", "num_samples_per_file=64")
# How small, and which steps: seconds of a run here. Compute times and what a request takes stay as they are.
_SMALL = {
    "cosmic-tagger": (0.0002, ("total_training_steps=80",)),
    "dffn": (0.0001, ("total_training_steps=160",)),
    "cosmoflow": (0.00006, ("epochs=1",)),
    "candle": (0.00021, ()),
    "frnn": (0.005, ()),
    "imagenet": (0.000002, ("epochs=1", "total_training_steps=16000", *_OWN_ORDERS)),
    "climate": (0.001, ("num_samples_per_file=20480",)),
    "l2hmc": (0.001, ()),
}


_TO_SCALE = {
    "frnn": (f"num_files_train={FILES_TO_SCALE}",),
    "cosmic-tagger": ("hdf5.chunk_size=40 KB",),  # a chunk for each sample
    "dffn": ("hdf5.chunk_size=128 KiB",),
}


def study_of(name: str, *settings: str) -> Study:
    return parse_study(presets.text(name), name, settings)


def small_study(name: str) -> Study:
    """On one emulated tier where each request takes what it takes on Theta when nobody else is there: so few ranks load no server."""
    share, settings = _SMALL[name]
    study = scale_study(study_of(name, *settings), share)
    home = study.system.tiers[-1]
    alone = Tier(
        name=home.name,
        path="{out}/tiers/gfs",
        latency=home.latency,
        metadata_latency=home.metadata_latency,
        stream_bandwidth=home.stream_bandwidth,
        emulate=True,
    )
    return replace(study, system=replace(study.system, tiers=(alone,)))


def scaled_study(name: str, ranks: int, *settings: str, without_compute: bool = False) -> Study:
    """The same data and work on another number of processes, four on a node: strong scaling, with tuned chunks as the paper had them."""
    study = study_of(name, f"nodes={ranks // 4}", *_TO_SCALE.get(name, ()), *settings)
    workload = study.workload
    train, dataset = workload.train, workload.dataset
    if workload.reader.rank_reads == "all":  # nobody deals samples: steps are dealt
        steps = train.total_training_steps or -(-dataset.samples // workload.reader.batch_size)
        train = replace(train, total_training_steps=-(-steps * RANKS // ranks))
    else:
        train = replace(train, total_training_steps=None)
    if without_compute:
        train = replace(train, computation_time=0.0)
    return replace(study, workload=replace(workload, train=train))


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A whole run. Seconds of I/O are the mean of ranks, the run ends with the last. `hidden`: of the seconds of I/O."""

    ranks: int
    seconds: float
    io_seconds: float
    meta_seconds: float
    write_seconds: float
    hidden: float | None
    read_bytes: float
    reads: float
    most_written_share: float  # of the run's time, of the rank that writes most

    @property
    def io_share(self) -> float:
        return self.io_seconds / self.seconds

    @property
    def bandwidth(self) -> float:
        """Bytes a second of all ranks while they read."""
        return self.read_bytes / self.io_seconds if self.io_seconds else 0.0

    @property
    def rank_bandwidth(self) -> float:
        return self.bandwidth / self.ranks


def simulate_run(study: Study, method: str = "events") -> SimulatedRun:
    """By its first epoch, which stands for all; where that loads everything, by the second too, which stands for all later ones."""
    simulation, epochs = Simulation.of(study), study.workload.train.epochs
    turns = [(simulation.epoch(1, method, SEED), epochs)]
    if epochs > 1 and study.workload.reader.read_ahead == "all":
        turns = [(turns[0][0], 1), (simulation.epoch(2, method, SEED), epochs - 1)]

    def total(part: str) -> float:
        return sum(_of(outcome, part) * times for outcome, times in turns)

    io, stall = total("io"), total("stall")
    computed = study.workload.train.computation_time > 0
    seconds = total("seconds")
    return SimulatedRun(
        ranks=study.system.ranks,
        seconds=seconds,
        io_seconds=io,
        meta_seconds=total("meta"),
        write_seconds=total("write"),
        hidden=round(max(0.0, 1 - stall / io), 6) if io and computed else None,
        read_bytes=total("bytes"),
        reads=total("reads"),
        most_written_share=total("most written") / seconds,
    )


def _of(outcome: Outcome, part: str) -> float:
    if part == "seconds":
        return float(outcome.seconds.max())
    if part == "stall":
        return float(outcome.stall.mean())
    if part == "bytes":
        return float(outcome.nbytes[:, :, 1].sum())
    if part == "reads":
        return float(outcome.ops[:, :, 1].sum())
    classes = outcome.busy_classes
    if part == "most written":
        return float(classes[:, :, 2].sum(axis=1).max())
    kinds = {"meta": slice(0, 1), "write": slice(2, 3), "io": slice(0, 3)}[part]
    return float(classes[:, :, kinds].sum(axis=(1, 2)).mean())


def samples_read(study: Study) -> int:
    """Of all ranks in a run."""
    return Order.of(study).samples_per_rank * study.system.ranks * study.workload.train.epochs
