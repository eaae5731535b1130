"""What the tables in validation/h200 were made with: `python validation/measure_h200.py FOLDER` on a machine with a CUDA device and torch.

NumPy and torch are enough; the part `trained` also needs PyYAML, which reads studies, and the C library (src/tierscope/native/libtierscope.so, built by `pip install -e .` on any machine of
this kind): without it samples would be read by Python threads, and their files take minutes to make. Hardware counters need Nsight Compute (`ncu`); without it those tables are left out.

One call measures for at most 8 minutes (`--minutes`), all together for at most 25 (`--minutes-in-all`), and rerunning it resumes: every row is written at once, and no row is
measured again. It ends with exit code 3 while something is left, with 4 where there is no time for it, and prints what, and how long all calls took. Parts come in the order
of how much rests on them; hardware counters, which take longest, are last.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import torch  # noqa: E402

from tierscope.arch import efficiency  # noqa: E402
from tierscope.arch.device_file import dump_device  # noqa: E402
from tierscope.arch.networks import build_network, find_network  # noqa: E402
from tierscope.arch.precision import PRECISIONS  # noqa: E402
from tierscope.arch.step_time import with_smooth  # noqa: E402
from tierscope.errors import StoppedError, UserError  # noqa: E402
from tierscope.train import counters, operations  # noqa: E402
from tierscope.train.ceilings import Ceilings, measure_ceilings  # noqa: E402
from tierscope.train.device_probe import probe_device  # noqa: E402
from tierscope.train.steps import Trainer, measure_steps  # noqa: E402
from validation.measure_counters import allowed, count_product, count_step, tensor_metrics, took_all, wanted_metrics  # noqa: E402
from validation.measure_decoder import decoder_wishes, measure_wish  # noqa: E402
from validation.measure_loaders import plain_reader, torch_loader, write_files  # noqa: E402
from validation.measured_device import DEVICE, PROFILED, origin  # noqa: E402
from validation.resumable import Ledger, OtherOriginError, Row, Wish  # noqa: E402

BATCHES = {
    "cosmoflow": (1, 4, 8),
    "deepcam": (1, 2, 4),
    "resnet50": (16, 64, 128),
    "resnet101": (32,),
    "alexnet": (64, 256),
    "lenet5": (1024,),
}
STEPS = 15
MINUTES, MINUTES_IN_ALL = 8.0, 25.0  # of one call, of all
PROBE_SECONDS = 400.0  # that the device file takes, about
COUNT_SECONDS = (
    60.0  # that a count takes at least: one that takes longer than a call has left is begun again by the next
)

STUDY = """
study: {name}
seed: 8
workload:
  dataset: {{format: raw, num_files_train: {files}, num_samples_per_file: 1, record_length_bytes: {nbytes}}}
  reader: {{batch_size: {batch}, read_threads: 8, prefetch_size: 4, transfer_size: 4 MiB}}
  train: {{epochs: 2}}
  model: {{network: {network}, device: cuda, arithmetic: amp}}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    disk: {{path: "{{out}}/tiers/disk", visible_to: global}}
placement: {{cache_rate: 0%}}
sweep:
  workload.model.data: [tiers, memory, synthetic]
repetitions: 5
"""
# files and their bytes: those that storage must deliver for a sample (Ibrahim et al., PMBS 2021)
STUDIES = {"cosmoflow": (256, 17_000_000, 4), "deepcam": (192, 61_000_000, 2), "resnet50": (4096, 117_081, 64)}


def step_wishes() -> list[Wish]:
    wishes = [(name, batch, "sgd", False) for name, batches in BATCHES.items() for batch in batches]
    wishes += [("resnet50", 64, "adam", False), ("alexnet", 64, "adam", False)]
    wishes += [(name, batch, "sgd", True) for name, batch in PROFILED.items()]
    names = ("network", "batch", "precision", "solver", "recompute")
    return [
        dict(zip(names, (name, batch, precision, solver, recompute), strict=True))
        for name, batch, solver, recompute in wishes
        for precision in PRECISIONS
    ]


@cache
def library_bytes() -> int:
    """Of torch's allocator, when libraries have taken their memory."""
    torch.randn(64, 64, device=DEVICE) @ torch.randn(64, 64, device=DEVICE)
    return int(torch.cuda.memory_allocated(DEVICE))


def measured_step(wish: Wish) -> Row:
    library = library_bytes()
    torch.cuda.empty_cache()
    network, precision = build_network(wish["network"]), PRECISIONS[wish["precision"]]
    trainer = Trainer(network, wish["batch"], precision, wish["solver"], DEVICE, wish["recompute"])
    return {"library_bytes": library, **asdict(measure_steps(trainer, STEPS))}


def kernel_wishes(by_counters: bool) -> list[Wish]:
    sources = [efficiency.COUNTED, *([efficiency.COUNTERS] if by_counters else [])]
    return [
        {"network": name, "batch": batch, "precision": precision, "source": source}
        for source in sources
        for name, batch in PROFILED.items()
        for precision in PRECISIONS
    ]


def measured_kernels(wish: Wish, ceilings: Ceilings, seconds_left: float) -> Row:
    """By counted operations and bytes here; by Nsight Compute in a process of its own."""
    network = build_network(wish["network"])
    if wish["source"] == efficiency.COUNTERS:
        seconds = allowed(seconds_left)
        try:
            kernels = counters.profile_step(network, wish["batch"], wish["precision"], seconds=seconds)
        except StoppedError:
            raise took_all(seconds) from None
    else:
        trainer = Trainer(network, wish["batch"], PRECISIONS[wish["precision"]], "sgd", DEVICE)
        kernels = operations.as_kernels(operations.watch_step(trainer), ceilings)
    histogram = efficiency.histogram(kernels, wish["source"])
    return {
        "kernels": histogram.kernels,
        "bins_seconds": histogram.seconds,
        "total_seconds": histogram.total_seconds,
        "ideal_seconds": histogram.ideal_seconds,
        "potential": histogram.potential,
        "slowest": [asdict(kernel) for kernel in efficiency.slowest(kernels, 5)],
    }


def count(ledger: Ledger) -> None:
    """counters.json: a matrix product of known size first, so that it can be seen what the counters say of it."""
    tensor = tensor_metrics()
    metrics = wanted_metrics(tensor)
    kinds: list[Wish] = [{"kind": kind} for kind in ("bfloat16", "float32")]
    products = ledger.rows(
        "products.json",
        kinds,
        lambda wish: count_product(wish["kind"], metrics, tensor, allowed(ledger.seconds_left)),
        lambda _: COUNT_SECONDS,
    )
    wishes: list[Wish] = [
        {"network": name, "batch": batch, "precision": precision}
        for precision in ("amp", "fp32")
        for name, batch in PROFILED.items()
    ]
    ledger.rows(
        "counters.json",
        wishes,
        lambda wish: count_step(
            wish["network"], wish["batch"], wish["precision"], metrics, tensor, allowed(ledger.seconds_left)
        ),
        lambda _: COUNT_SECONDS,
        metrics=metrics,
        products=products,
    )


def train(ledger: Ledger) -> None:
    """After every run a plain reader in C reads the same files from the same disk, which is not equally fast from one minute to the next."""
    from tierscope.measure.away import run_away  # noqa: PLC0415  (PyYAML)
    from tierscope.spec.load import load_study  # noqa: PLC0415

    path = ledger.folder / "disk.json"
    disk: dict[str, list[float]] = json.loads(path.read_text())["bytes_per_second"] if path.exists() else {}
    for name, (files, nbytes, batch) in STUDIES.items():
        data = ledger.folder / "data" / name
        data.mkdir(parents=True, exist_ok=True)
        study = data / "study.yaml"
        study.write_text(STUDY.format(name=f"h200-{name}", files=files, nbytes=nbytes, batch=batch, network=name))

        def say(line: str, name: str = name, data: Path = data) -> None:
            rates = disk.setdefault(name, [])
            rates += plain_reader(sorted(map(str, data.joinpath("tiers", "disk").rglob("*.raw"))), data, 1)
            ledger.put("disk.json", {"bytes_per_second": disk})
            ledger.say(f"{line} beside it {rates[-1] / 1e9:.2f} GB/s in C")

        def has_time(name: str = name) -> bool:
            return ledger.has_time(f"training of {name}", 60.0)

        if not run_away(load_study(str(study)), str(ledger.folder / name), str(data), say, has_time):
            ledger.leave(f"training of {name}")
            return
        shutil.rmtree(data)


def beside(wish: Wish, repeats: int = 3) -> Row:
    """torch's DataLoader on files as those of the studies."""
    files, nbytes, batch = STUDIES[wish["network"]]
    trainer = Trainer(build_network(wish["network"]), batch, PRECISIONS["amp"], "sgd", DEVICE)
    with tempfile.TemporaryDirectory() as data:
        paths = write_files(Path(data), files, nbytes)
        return {"torch": torch_loader(trainer, paths, batch, find_network(wish["network"]).data.element_bytes, repeats)}


def probed(say: Callable[[str], None]) -> str:
    """As `tierscope probe --accelerator cuda` writes it."""
    return dump_device(with_smooth(probe_device(DEVICE, say)))


PARTS = ("device", "steps", "kernels", "decoder", "trained", "beside", "counters")


def measure(ledger: Ledger, parts: list[str]) -> None:
    ceilings = Ceilings(**ledger.value("ceilings.json", "ceilings", lambda: asdict(measure_ceilings(DEVICE))))
    by_counters = "counters" in parts and shutil.which("ncu") is not None
    if "counters" in parts and not by_counters:
        ledger.say("counters: ncu is not in PATH; left out")
    if "device" in parts:
        ledger.once("device.yaml", lambda: probed(ledger.say), PROBE_SECONDS)
    if "steps" in parts:
        ledger.rows("steps.json", step_wishes(), measured_step)
    if "kernels" in parts:
        profile(ledger, ceilings, by_counters=False)
    if "decoder" in parts:
        ledger.rows("decoder.json", decoder_wishes(), lambda wish: measure_wish(wish, DEVICE))
    if "trained" in parts:
        train(ledger)
    if "beside" in parts:
        wishes = [
            {"network": name, "batch": batch, "sample_bytes": nbytes} for name, (_, nbytes, batch) in STUDIES.items()
        ]
        ledger.rows("beside.json", wishes, beside, lambda _: 120.0)
    if by_counters:  # last: counting takes longer than all else
        if "kernels" in parts:
            profile(ledger, ceilings, by_counters=True)
        count(ledger)


def profile(ledger: Ledger, ceilings: Ceilings, by_counters: bool) -> None:
    ledger.rows(
        "kernels.json",
        kernel_wishes(by_counters),
        lambda wish: measured_kernels(wish, ceilings, ledger.seconds_left),
        lambda wish: COUNT_SECONDS if wish["source"] == efficiency.COUNTERS else 20.0,
    )


def missing_for_training() -> str | None:
    from tierscope.native import library  # noqa: PLC0415

    if find_spec("yaml") is None:
        return "PyYAML is missing, which studies are read with; install it, or name the other parts"
    if library.load() is None:
        return "the C library is missing; build it with pip install -e . and bring libtierscope.so along, or name the other parts"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of this call, about (default: %(default)g)")
    parser.add_argument(
        "--minutes-in-all",
        type=float,
        default=MINUTES_IN_ALL,
        help="of all calls on this folder (default: %(default)g)",
    )
    asked = parser.parse_args()
    parts = asked.parts or list(PARTS)
    if strange := [part for part in parts if part not in PARTS]:
        parser.error(f"{strange[0]}: is no part; use {', '.join(PARTS)}")
    if not torch.cuda.is_available():
        parser.error("torch finds no CUDA device here; run it on a machine that has one")
    if "trained" in parts and (missing := missing_for_training()):
        parser.error(f"trained: {missing}")
    try:
        ledger = Ledger(
            asked.folder,
            60 * asked.minutes,
            origin(),
            lambda line: print(line, flush=True),
            seconds_in_all=60 * asked.minutes_in_all,
        )
        measure(ledger, parts)
    except (OtherOriginError, UserError) as error:
        parser.error(str(error))
    print(f"{ledger.spent / 60:.1f} minutes in all calls; {ledger.verdict}")
    if not ledger.left:
        return 0
    return 4 if ledger.is_last else 3


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    sys.exit(main())
