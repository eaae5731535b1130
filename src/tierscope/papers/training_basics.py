"""Definitions, networks, machine and printed arithmetic of the Training study, its drawings of principle, and what it concludes or leaves open."""

from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.section import Section
from tierscope.papers.training_model import NAMES, TITLES, network_of, summitdev
from tierscope.papers.verdict import Verdict

_LAYERS = {"lenet5": (2, 2, 60e3), "alexnet": (5, 3, 61e6), "resnet50": (49, 1, 25e6), "resnet101": (100, 1, 45e6)}
GAINS = {"lenet5": 1211.0, "resnet50": 1094.0, "resnet101": 1012.0}  # percent, 32 workers
WORKERS = 32
_LISTED = {
    "T-W-1": "bytes by link of a gather on GPU 0: T-T3; a ring: `tierscope require`",
    "T-W-2": "`workload.checkpoint.mode: all_ranks`: every rank writes its part",
    "T-W-3": "not a question of storage; Tierscope has nothing for it",
    "T-W-4": "not tried; accuracy against the global batch at a constant rate: T-F13-2",
}


def make(short: bool) -> Section:
    del short  # nothing here takes long
    drawn = [beside(row, "–", "", "a diagram, nothing to compute") for row in ("T-F1", "T-F2", "T-F3")]
    tables = [beside("T-T1", "four networks", "modelled", "each row is judged by itself"), beside("T-T2", "the system `summitdev`", "input", "each row is judged by itself")]  # fmt: skip
    listed = [Verdict(row, text, "listed") for row, text in _LISTED.items()]
    return Section((*_definitions(), *_networks(), *_machine(), *drawn, *tables, *_printed(), *listed))


def improvement(ratio: float) -> float:
    """Percent."""
    return 100 * (ratio - 1)


def variability(runs: tuple[float, ...]) -> float:
    """Percent of the shortest."""
    return 100 * (max(runs) / min(runs) - 1)


def _definitions() -> list[Verdict]:
    return [
        judge("T-E-1", f"13.11× is {improvement(13.11):,.0f} %", round(improvement(13.11)) == 1211, "arithmetic"),
        judge("T-E-2", f"runs of 10, 10.2 and 10.9 s: {variability((10.0, 10.2, 10.9)):.1f} %", round(variability((10.0, 10.2, 10.9)), 6) == 9.0, "arithmetic"),
        judge("T-E-3", f"13.11× with {WORKERS} workers: {13.11 / WORKERS:.0%}", round(100 * 13.11 / WORKERS) == 41, "arithmetic"),
    ]  # fmt: skip


def _networks() -> list[Verdict]:
    verdicts = []
    for number, name in enumerate(NAMES, start=1):
        network = network_of(name)
        convolutions = sum(layer.kind.startswith("Conv") for layer in network.layers)
        linear = sum(layer.kind == "Linear" for layer in network.layers)
        wanted, linear_wanted, parameters = _LAYERS[name]
        close = abs(network.parameters / parameters - 1) <= 0.05
        why = "parameters within 5 % of the printed, rounded number"
        if name.startswith("resnet"):
            why += "; projections of shortcuts are convolutions too, and the study does not count them"
        if name == "lenet5":
            why += "; LeNet-5 has three linear layers (T-C-14)"
        verdicts.append(judge(f"T-T1-{number}", f"{TITLES[name]}: {convolutions} convolutions, {linear} fully connected, {network.parameters:,} parameters", (convolutions, linear) == (wanted, linear_wanted) and close, "modelled", why))  # fmt: skip
    return verdicts


def _machine() -> list[Verdict]:
    machine = summitdev()
    assert machine.near
    assert machine.near.capacity
    assert machine.node_memory
    assert machine.network_bandwidth
    assert machine.peer_bandwidth
    given = "a figure of the system `summitdev`, written from the study"
    return [
        judge("T-T2-1", f"{machine.nodes}", machine.nodes == 54, "input", given),
        judge("T-T2-2", f"{machine.accelerators}, {machine.memory / 2**30:g} GiB each", machine.accelerators == 4, "input", given),
        judge("T-T2-3", f"{machine.cores} cores of a node", machine.cores == 20, "input", given),
        judge("T-T2-4", f"{machine.node_memory / 1e9:g} GB", machine.node_memory == 256e9, "input", given),
        beside("T-T2-5", f"{machine.peer_bandwidth / 1e9:g} GB/s, as measured", "input", f"{given}: what was measured (T-F7-1) instead of the nominal 40 GB/s"),
        judge("T-T2-6", f"{8 * machine.network_bandwidth / 1e9:g} Gb/s", machine.network_bandwidth == 12.5e9, "input", given),
        judge("T-T2-7", f"tiers {machine.far.name} (Lustre) and {machine.near.name} (NVMe, {machine.near.capacity / 1e9:g} GB)", machine.near.capacity == 800e9, "input", given),
    ]  # fmt: skip


def _printed() -> list[Verdict]:
    ratios = {name: gain / 100 + 1 for name, gain in GAINS.items()}
    agree = [round(ratio, 2) for ratio in ratios.values()] == [13.11, 11.94, 11.12]
    shares = [round(100 * ratio / WORKERS) for ratio in ratios.values()]
    serial = {name: (WORKERS / ratio - 1) / (WORKERS - 1) for name, ratio in ratios.items()}
    return [
        judge("T-X-1", f"{', '.join(f'{ratio:.2f}×' for ratio in ratios.values())}: {', '.join(map(str, shares))} %", agree and shares == [41, 37, 35], "arithmetic", f"our arithmetic on its figures; as a part that does not scale: {', '.join(f'{share:.1%}' for share in serial.values())} of one worker's time"),
        beside("T-F4-7", "NVMe 7.15 GB/s, Lustre 3.6 GB/s for a node", "input", "rates of the system `summitdev`, taken from these; probably the page cache for NVMe (T-C-12)"),
        judge("T-F4-8", f"{7.3 - 7.0:.1f} and {5.2 - 2.0:.1f} GB/s", (round(7.3 - 7.0, 1), round(5.2 - 2.0, 1)) == (0.3, 3.2), "arithmetic", "on the printed ranges"),
        absent("T-D-6", "no other accelerator with such links was measured"),
        absent("T-D-7", "which factor is largest needs the study's own node: its host's preprocessing is not known"),
    ]  # fmt: skip
