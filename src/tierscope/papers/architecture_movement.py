"""What moving a sample's bytes costs on Cori GPU (A-F4), and how fast a node of a petaflop has to be fed (A-D-3)."""

from collections.abc import Mapping

from tierscope.arch.movement import Movement, byte_costs
from tierscope.papers.architecture_model import (
    AMP,
    beside,
    cori,
    judge,
    moved_at,
    operations,
    required,
    sample_bytes,
    seconds,
)
from tierscope.papers.architecture_printed import GIB, MIB, NAMES, PRINTED, TITLES, Rounded, by_network
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import Verdict, ratio_agrees
from tierscope.report.drawn.logs import seconds_word

NODES = 8  # the most of the study
BATCHES = {"cosmoflow": (1, 2, 4, 8, 16), "deepcam": (1, 2, 4), "resnet50": (1, 4, 16, 64, 256)}
PETAFLOP = 1e15
_WAYS = ("model + activations", "samples, PCIe", "samples, NVMe", "all-reduce")
_WHERE = f"Cori GPU, {NODES} nodes; all that layers read and write through HBM"
_SMALL = 0.2  # of streaming samples is minimal
_REACH, _BEYOND = 4, 10  # drives that a node takes, and that it does not


def make(short: bool) -> Section:
    del short  # nothing here takes long
    moved = {(name, batch): moved_at(name, batch, NODES) for name in NAMES for batch in BATCHES[name]}
    caption = (
        f"Seconds that the bytes of a sample take on one accelerator of Cori GPU against the local batch, {NODES} nodes at work: parameters and activations through HBM, the sample over PCIe (lower) or its file "
        "from NVMe (upper), and the ring's gradients over the network. Lower bounds: peak bandwidths, no preprocessing."
    )
    panels = [_panel(name, moved) for name in NAMES]
    drawing = draw_chart("architecture-f4", "Cost of moving the bytes of a sample", caption, panels)
    figure = PaperFigure("A-F4", "f4-movement", drawing, "modelled", caption)
    verdicts = (*_costs(), *_cosmoflow(moved), _deepcam(moved), *_resnet(moved), _starved(moved), _band(), *_fed())
    return Section(verdicts, (figure,), (_table(moved),))


def parts(of: Movement) -> dict[str, float]:
    values = (of.memory, seconds(of.samples_dram), seconds(of.samples_nvme), seconds(of.allreduce))
    return dict(zip(_WAYS, values, strict=True))


def _panel(name: str, moved: Mapping[tuple[str, int], Movement]) -> ChartPanel:
    batches = BATCHES[name]
    lines = tuple(
        Line(way, tuple(parts(moved[name, batch])[way] for batch in batches), LOOKS[number], number)
        for number, way in enumerate(_WAYS)
    )
    return ChartPanel(TITLES[name], "batch", "local batch size", "time of a sample", tuple(map(float, batches)), lines, word=seconds_word)  # fmt: skip


def _table(moved: Mapping[tuple[str, int], Movement]) -> PaperTable:
    lines: list[tuple[str | float | int, ...]] = [
        (TITLES[name], batch, *(round(1e3 * value, 4) for value in parts(of).values()))
        for (name, batch), of in moved.items()
    ]
    columns = ("network", "local batch", *(f"{way}, ms" for way in _WAYS))
    return PaperTable(
        "A-F4", "movement", columns, tuple(lines), "modelled", f"time of a sample's bytes on each way; {_WHERE}"
    )


def _costs() -> list[Verdict]:
    costs = byte_costs(cori())
    ours = {"HBM": costs["memory"], "PCIe": costs["host"], "InfiniBand": costs["network"], "NVMe": costs["lfs"]}
    return [
        beside("A-F4", "three panels", "modelled", "curves and units are not published"),
        judge("A-F4-1", ", ".join(f"{way} {cost:,.4g}" for way, cost in ours.items()), [round(cost) for cost in ours.values()] == [1, 56, 72, 2250], "arithmetic", "900 GB/s over 16, 12.5 and 0.4 GB/s for each accelerator; PCIe of 8 GB/s would cost 112 (A-C-11)"),
    ]  # fmt: skip


def _cosmoflow(moved: Mapping[tuple[str, int], Movement]) -> list[Verdict]:
    every = {batch: parts(moved["cosmoflow", batch]) for batch in BATCHES["cosmoflow"]}
    memory, host, near, _ = every[1].values()
    largest = max(BATCHES["cosmoflow"])
    ratio = every[largest]["samples, NVMe"] / every[largest]["model + activations"]
    share = every[1]["all-reduce"] / near
    together = {batch: sum(cost for way, cost in every[batch].items() if way != "samples, PCIe") for batch in every}
    saved = 1 - together[largest] / together[1]
    bound = all(max(of, key=lambda way: of[way]) == "samples, NVMe" for of in every.values())
    least = required("cosmoflow").movement.memory
    return [
        judge("A-F4-2", f"bound by samples from NVMe: {'yes' if bound else 'no'}; they cost {ratio:.1f} times model + activations", bound and ratio_agrees(ratio, 10.0), "modelled", f"{_WHERE}; the first half holds. With the bytes that the study counted 5.5 times, with half of them 11 times (A-X-4)"),
        judge("A-F4-3", f"all-reduce is {share:.0%} of streaming at batch 1, {every[largest]['all-reduce'] / near:.1%} at {largest}; a batch of {largest} saves {saved:.0%} of the sum", share < _SMALL and saved < _SMALL, "modelled", f"{_WHERE}; minimal and slightly: less than a fifth"),
        judge("A-F4-4", f"PCIe {host * 1e3:.2f} ms, model + activations {memory * 1e3:.2f} ms", host > memory, "modelled", f"{_WHERE}; even kept activations written and read once take {least * 1e3:.2f} ms. The study's own numbers agree (A-X-4: 1.05 ms beside 3.8 to 7.6 ms); PCIe of 8 GB/s would take {2e3 * host:.2f} ms"),
    ]  # fmt: skip


def _deepcam(moved: Mapping[tuple[str, int], Movement]) -> Verdict:
    trained = {batch: parts(moved["deepcam", batch]) for batch in (2, 4)}
    inside = all(of["model + activations"] > max(of["samples, PCIe"], of["all-reduce"]) for of in trained.values())
    outside = all(of["samples, NVMe"] > of["model + activations"] for of in trained.values())
    ours = "; ".join(f"batch {batch}: {', '.join(f'{way} {1e3 * cost:.3g} ms' for way, cost in of.items())}" for batch, of in trained.items())  # fmt: skip
    return judge(
        "A-F4-5",
        ours,
        inside and outside,
        "modelled",
        f"{_WHERE}; at batch 1, which the study does not train, all-reduce would lead",
    )


def _resnet(moved: Mapping[tuple[str, int], Movement]) -> list[Verdict]:
    every = {batch: parts(moved["resnet50", batch]) for batch in BATCHES["resnet50"]}
    exceed = all(min(of["all-reduce"], of["model + activations"]) > of["samples, PCIe"] for of in every.values())
    first, last = every[1], every[max(every)]
    crossing = next(batch for batch in range(1, 1 << 12) if _all_reduce_leads(batch) is False)
    shares = {batch: of["samples, PCIe"] / (sum(of.values()) - of["samples, NVMe"]) for batch, of in every.items()}
    return [
        judge("A-F4-6", f"samples over PCIe least at all batches; all-reduce leads up to batch {crossing - 1}, model + activations from {crossing}", exceed and first["all-reduce"] > first["model + activations"] and last["model + activations"] > last["all-reduce"], "modelled", f"{_WHERE}; its data fit main memory, so samples come over PCIe"),
        judge("A-F4-7", f"samples over PCIe are {min(shares.values()):.2%} of the sum at batch 1, {max(shares.values()):.1%} at {max(every)}", max(shares.values()) < _SMALL and shares[max(every)] > shares[1], "modelled", f"{_WHERE}; read as the movement of samples (A-C-20)"),
    ]  # fmt: skip


def _all_reduce_leads(batch: int) -> bool:
    of = moved_at("resnet50", batch, NODES)
    return seconds(of.allreduce) > of.memory


def _starved(moved: Mapping[tuple[str, int], Movement]) -> Verdict:
    """Whether each way takes longer than model and activations, for both scientific networks at their largest batch."""
    times = {}
    for name in NAMES[:2]:
        of = moved[name, max(BATCHES[name])]
        ways = {"PCIe": of.samples_dram, "NVMe": of.samples_nvme, "Lustre": of.samples_pfs}
        times[name] = {way: seconds(cost) / of.memory for way, cost in ways.items()}
    slow = {way: all(times[name][way] > 1 for name in times) for way in ("PCIe", "NVMe", "Lustre")}
    ours = by_network(
        {name: ", ".join(f"{way} {value:.2g}×" for way, value in of.items()) for name, of in times.items()}
    )
    return judge("A-I-2", f"time of a sample over that of model + activations: {ours}", all(slow.values()), "modelled", f"{_WHERE}; Lustre's rate for a node is fitted (A-F8-1); it holds for {' and '.join(way for way, is_slow in slow.items() if is_slow)}, not for {', '.join(way for way, is_slow in slow.items() if not is_slow) or 'none'}")  # fmt: skip


def _band() -> Verdict:
    """From the printed cost of a byte, the printed sample and the printed bytes of HBM."""
    printed, bandwidth = PRINTED["cosmoflow"], cori().device.memory_bandwidth
    sample = float(printed.sample) * MIB
    near, host = (1e3 * sample * cost / bandwidth for cost in (2250, 56.25))
    counted = 1e3 * float(printed.moved) * GIB / bandwidth
    values = {"40": 2250 / 56, "41.9": near, "1.05": host, "7.6": counted, "3.8": counted / 2, "5.5": near / counted, "11": 2 * near / counted}  # fmt: skip
    return judge(
        "A-X-4",
        f"{values['40']:.1f}×; {near:.1f} and {host:.2f} ms; {counted:.1f} and {counted / 2:.1f} ms; {near / counted:.1f}× to {2 * near / counted:.0f}×",
        all(Rounded(value, value).meets(text) for text, value in values.items()),
        "arithmetic",
        "our arithmetic on its figures",
    )


def _fed() -> list[Verdict]:
    """Samples that a node of one petaflop takes in: from printed operations for each byte, and from our layers."""
    printed = {name: PETAFLOP / (PRINTED[name].rounded("per_sample_byte").middle * 1e9) for name in NAMES}
    own = {name: PETAFLOP / (operations(name) / sample_bytes(name)) / 1e9 for name in NAMES}
    holds = Rounded(printed["cosmoflow"], printed["cosmoflow"]).meets("65") and Rounded(printed["deepcam"], printed["deepcam"]).meets("9")  # fmt: skip
    machine = cori()
    assert machine.near
    drive = seconds(machine.near.per_node(1)) / 1e9
    drives = {name: printed[name] / drive for name in NAMES[:2]}
    host = machine.accelerators * seconds(machine.host_bandwidth) / 1e9
    peak = machine.accelerators * machine.device.peak(AMP) / PETAFLOP
    reach = drives["deepcam"] <= _REACH and drives["cosmoflow"] > _BEYOND and host > printed["cosmoflow"]
    return [
        judge("A-D-3", f"GB/s: {by_network({name: f'{value:.1f}' for name, value in printed.items()})} with the operations that the study counted; {by_network({name: f'{value:.1f}' for name, value in own.items()})} with those of our layers", holds, "arithmetic", f"A-E-9 on the printed FLOP per sample byte; a node of Cori GPU is {peak:g} PF. Our layers have fewer operations, so the node wants samples faster"),
        judge("A-D-4", f"{drives['deepcam']:.1f} NVMe drives of {drive:g} GB/s for DeepCAM, {drives['cosmoflow']:.0f} for CosmoFlow; PCIe of a node {host:.0f} GB/s", reach, "arithmetic", f"within reach: up to {_REACH} drives in a node, out of reach: more than {_BEYOND}. The one drive of Cori GPU is too slow for both"),
    ]  # fmt: skip
