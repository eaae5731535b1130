"""Figures and page of requirements: their marks are what was computed, and what is not known is not drawn."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from tests.arch.machines import changed, named, small, storage
from tests.report.test_page import HOSTILE, OTHER, Parsed
from tierscope.analysis.wording import Finding
from tierscope.arch.efficiency import COUNTED, Histogram, Kernel, histogram
from tierscope.arch.machine import Machine
from tierscope.arch.movement import Compression
from tierscope.arch.networks import NETWORKS, TrainingSet, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, curve, movements, requirements
from tierscope.arch.scaling import fits_from
from tierscope.arch.ways import device_ways, peak_rate, sample_ways, spent
from tierscope.report.drawn.efficiency import draw_efficiency
from tierscope.report.drawn.logs import LogAxis, LogScale, count_word, seconds_word, short_word
from tierscope.report.drawn.requirements import NAMES, draw_requirements
from tierscope.report.drawn.view import Figure
from tierscope.report.figures import standalone
from tierscope.report.requirements_page import requirements_page
from tierscope.units import about_bytes, about_seconds

WISH = Wish(PRECISIONS["fp32"], batches=(1, 4), nodes=(1, 2, 4, 8, 16))
DATA = TrainingSet(1000, 4, 4096, "made up")


def needed(name: str = "cosmoflow", system: str = "cori-gpu", **wish: object) -> Requirements:
    asked = replace(WISH, **wish)  # type: ignore[arg-type]
    return requirements(build_network(name), named(system), NETWORKS[name].data, asked)


def on(machine: Machine, **wish: object) -> Requirements:
    return requirements(small(), machine, DATA, replace(WISH, **wish))  # type: ignore[arg-type]


def drawn(found: Requirements) -> dict[str, Figure]:
    return {figure.name: figure for figure in draw_requirements(found)}


def tips(figure: Figure) -> list[str]:
    """What marks say."""
    assert figure.svg is not None
    root = ET.fromstring(figure.svg)
    return [title.text or "" for mark in root for title in mark if title.tag.endswith("title")]


def words(figure: Figure) -> list[str]:
    assert figure.svg is not None
    return [text.text or "" for text in ET.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("system", ["cori-gpu", "fugaku"])
@pytest.mark.parametrize("name", ["deepcam", "lenet5"])
def test_all_five_are_drawn_and_labelled(name: str, system: str) -> None:
    figures = draw_requirements(needed(name, system))
    assert tuple(figure.name for figure in figures) == NAMES
    for figure in figures:
        ET.fromstring(standalone(figure))
        assert "odelled" in figure.caption
        assert "modelled" in figure.note
    assert draw_requirements(needed(name, system)) == figures


# Memory


@pytest.mark.parametrize("name", ["cosmoflow", "deepcam", "lenet5"])
def test_the_curve_reaches_beyond_what_fits(name: str) -> None:
    found = needed(name)
    points = curve(found)
    assert {point.batch for point in points} >= {1, found.max_batch}
    assert points[-1].batch <= 2 * found.max_batch
    assert [point.fits for point in points] == [point.batch <= found.max_batch for point in points]
    assert not points[-1].fits


def test_the_batch_that_is_marked_is_the_largest_that_fits() -> None:
    found = needed("deepcam")
    peak = next(point.memory.peak for point in curve(found) if point.batch == found.max_batch)
    figure = drawn(found)["memory"]
    assert tips(figure) == [f"batch {found.max_batch}: {about_bytes(peak)}, the largest that fits"]
    assert f"largest that fits: {found.max_batch}" in words(figure)
    assert {"device memory: 16 GiB", "L2: 6 MiB"} <= set(words(figure))


def test_where_nothing_fits_nothing_is_marked() -> None:
    found = on(changed(memory=1000, l2=None))
    assert found.max_batch == 0
    assert [point.batch for point in curve(found)] == [1, 2]
    figure = drawn(found)["memory"]
    assert not tips(figure)
    assert "Not even one sample fits" in figure.caption
    assert not any(word.startswith("L2") for word in words(figure))


# Roofline


def test_ways_have_the_rates_of_the_movement() -> None:
    found = needed()
    rates = {way.name: way.samples_per_second for way in sample_ways(found)}
    assert rates["lfs"] == pytest.approx(1 / (found.movement.samples_nvme or 0))
    assert rates["gfs"] == pytest.approx(1 / (found.movement.samples_pfs or 0))
    assert rates["host"] == pytest.approx(peak_rate(found))  # its bytes come faster than the units work
    least = device_ways(found)["limit"]
    assert least.bytes_per_sample == found.hbm_limit_bytes


def test_unpacking_holds_files_back() -> None:
    plain, slow = needed(), needed(compression=Compression(4.0, 1e9))
    (rate,) = [way.samples_per_second for way in sample_ways(slow) if way.name == "gfs"]
    assert rate == pytest.approx(1e9 / slow.data.file_bytes / slow.machine.accelerators)
    assert sample_ways(slow)[-1].bytes_per_sample == pytest.approx(plain.data.file_bytes / 4)


def test_marks_of_the_roofline() -> None:
    found = needed()
    figure = drawn(found)["roofline"]
    said = " ".join(words(figure))
    for way in sample_ways(found):
        assert f"{way.name}: {way.samples_per_second:,.3g} samples/s" in said
    assert "16 bit: 125 TFLOP/s, not used" in said
    assert f"an epoch of {found.data.samples:,} samples" in figure.caption
    layers = [cost for cost in found.costs if cost.flops]
    assert len(tips(figure)) == len(layers) + 2 + len(sample_ways(found))
    assert "not used" not in " ".join(words(drawn(needed(precision=PRECISIONS["amp"]))["roofline"]))


# Movement


def test_costs_of_every_batch_stand_over_their_ways() -> None:
    found = needed()
    expected = []
    for batch, moved in movements(found).items():
        assert moved.samples_pfs == found.movement.samples_pfs
        expected += [f"memory: {about_seconds(moved.memory)}", f"all-reduce: {about_seconds(moved.allreduce or 0)}"]
        assert batch in found.wish.batches
    figure = drawn(found)["movement"]
    assert {*expected, f"gfs: {about_seconds(found.movement.samples_pfs or 0)}"} <= set(tips(figure))
    assert {"batch 1", "batch 4", "any batch", "× 2,250", "× 56.2"} <= set(words(figure))
    assert movements(found)[found.wish.batches[0]] == found.movement


def test_of_many_batches_some_are_drawn() -> None:
    figure = drawn(needed(batches=tuple(range(1, 21))))["movement"]
    assert {"batch 1", "batch 20"} <= set(words(figure))
    assert "Of 20 batches, 6 are drawn." in figure.caption


# Scaling


def test_marks_of_the_scaling() -> None:
    found = needed()
    figure = drawn(found)["scaling"]
    nodes = fits_from(found.scaling)
    assert f"share fits in memory: {nodes} nodes or more" in words(figure)
    waiting = [point.nodes for point in found.scaling if point.storage_matters]
    assert f"storage matters: {waiting[0]} to {waiting[-1]} nodes" in tips(figure)
    for point in found.scaling:
        many = "node" if point.nodes == 1 else "nodes"
        assert f"{point.nodes} {many}, later epochs: {about_seconds(point.later_seconds)}" in tips(figure)
        assert f"{point.nodes} {many}, compute: {about_seconds(point.compute_seconds)}" in tips(figure)


def test_storage_that_does_not_matter_is_not_shaded() -> None:
    figure = drawn(needed("resnet50"))["scaling"]
    assert "storage matters" not in words(figure)
    assert "Storage does not matter after the first epoch." in figure.caption


def test_one_number_of_nodes_is_no_curve() -> None:
    figure = drawn(needed(nodes=(4,)))["scaling"]
    assert figure.svg is None
    assert "only one node count, so there is nothing to plot; use --nodes" in figure.missing


# Decomposition


def test_parts_of_a_sample_add_up() -> None:
    found = needed()
    memory, near, far = spent(found)
    compute = found.step_seconds / found.wish.batches[0]
    assert memory.parts == {
        "compute": compute,
        "all-reduce": found.movement.allreduce,
        "copy": found.movement.samples_dram,
    }
    assert far.read == found.movement.samples_pfs
    assert far.together == pytest.approx(sum(far.parts.values()))
    assert near.overlapped == max(near.parts.values())
    figure = drawn(found)["decomposition"]
    assert f"gfs: read {about_seconds(far.read or 0)}" in tips(figure)
    assert {"main memory", "lfs", "gfs", about_seconds(far.overlapped)} <= set(words(figure))


# What a system does not say


def test_what_is_unknown_is_not_drawn_and_said() -> None:
    bare = changed(
        host_bandwidth=None, network_bandwidth=None, near=None, far=storage("gfs", None), node_memory=None, l2=None
    )
    found = on(bare)
    figures = drawn(found)
    assert figures["decomposition"].svg is None
    assert "neither" in figures["decomposition"].missing
    assert (
        "Not drawn, because the system does not state their speed: host, a near tier, gfs."
        in figures["roofline"].caption
    )
    assert (
        "Unknown, because the system does not state their speed: host, gfs, all-reduce." in figures["movement"].caption
    )
    assert "unknown: the system does not state its memory" in figures["scaling"].caption
    assert "Exchange is not drawn" in figures["scaling"].caption
    assert words(figures["movement"]).count("unknown") == 3


def test_a_host_alone_is_unknown() -> None:
    figure = drawn(on(changed(host_bandwidth=None)))["decomposition"]
    assert "main memory" not in words(figure)
    assert "Copying and samples from main memory are not included" in figure.caption


def test_one_accelerator_exchanges_nothing() -> None:
    figure = drawn(on(changed(accelerators=1, nodes=1), nodes=(1,)))["movement"]
    assert "none" in words(figure)


# Strangers' names


def test_no_name_is_markup() -> None:
    found = on(changed(name=HOSTILE, near=storage(OTHER, 0.5, capacity=400), far=storage(HOSTILE * 9, 0.25, 0.5)))
    found = replace(found, network=replace(found.network, name=OTHER))
    figures = draw_requirements(found)
    for figure in figures:
        ET.fromstring(standalone(figure))
        assert "<img" not in (figure.svg or "")
    page = requirements_page(found, [Finding("fits_memory", {"nodes": 2})], figures).decode()
    parsed = Parsed(page)
    assert not parsed.scripts
    assert "img" not in [name for name, _ in parsed.elements]
    assert HOSTILE in parsed.text


# Page


def test_the_page_has_tables_and_figures_and_fetches_nothing() -> None:
    found = needed()
    parsed = Parsed(
        requirements_page(found, [Finding("fits_memory", {"nodes": 16})], draw_requirements(found)).decode()
    )
    assert "script-src 'none'" in parsed.policy
    assert "default-src 'none'" in parsed.policy
    for name in NAMES:
        assert parsed.having(id=f"figure-{name}")
    assert not [given for _, given in parsed.elements if (given.get("src") or "").startswith("http")]
    assert {given["href"][:5] for name, given in parsed.elements if name == "link" and given["href"]} == {"data:"}
    assert "Does storage matter? Unclear on 1 to 4 nodes: with the shortest step that may be (15.5 ms)" in parsed.text
    assert f"Largest batch that fits: {found.max_batch}." in parsed.text
    assert len([name for name, _ in parsed.elements if name == "table"]) == 3


def test_the_page_says_why_a_figure_is_missing() -> None:
    found = needed(nodes=(4,))
    parsed = Parsed(requirements_page(found, [], draw_requirements(found)).decode())
    assert "Not drawn: only one node count" in parsed.text


# Axes


def test_ticks_of_powers_are_few_and_within() -> None:
    for low, high in ((1e-9, 1e12), (3.0, 5.0), (1.0, 100.0), (1e-3, 2e-3), (0.7, 1e5)):
        for base in (2, 10):
            axis = LogAxis.over([low, high], "", count_word, base)
            ticks = [value for value, _ in axis.ticks()]
            assert 2 <= len(ticks) <= 10
            assert all(axis.low <= value <= axis.high for value in ticks)
            assert ticks == sorted(ticks)


def test_a_scale_of_powers() -> None:
    scale = LogScale(1.0, 100.0, 0.0, 10.0)
    assert [scale(value) for value in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 5.0, 10.0])
    assert (short_word(1e12), short_word(2.5e9), short_word(12.0)) == ("1 T", "2.5 G", "12")
    assert seconds_word(10.0**-3) == "1 ms"


# Efficiency


def test_ten_bars_and_the_ideal_time() -> None:
    kernels = [Kernel("one", 0.004, 0.05, 0.0, 0.0), Kernel("two", 0.001, 0.0, 0.0, 0.95)]
    found = histogram(kernels, COUNTED)
    figure = draw_efficiency(found, f"{HOSTILE}, batch 4")
    assert tips(figure) == [
        f"measured: {about_seconds(found.total_seconds)}",
        f"ideal: {about_seconds(found.ideal_seconds)}",
        "0–10 % efficient: 4 ms, 80 %",
        "0–10 % efficient: 200 µs at full efficiency",
        "90–100 % efficient: 1 ms, 20 %",
        "90–100 % efficient: 950 µs at full efficiency",
    ]
    assert "Below: kernels by name." in figure.caption
    assert COUNTED in figure.caption
    assert f"{found.potential:.1f} times as fast" in figure.caption
    ET.fromstring(standalone(figure))


def test_bins_that_were_not_kept_are_not_drawn() -> None:
    """Older tables have the times alone."""
    figure = draw_efficiency(Histogram(COUNTED, (0.004, *[0.0] * 9), 0.001, 3), "lenet5")
    assert tips(figure) == ["measured: 4 ms", "ideal: 1 ms", "0–10 % efficient: 4 ms, 100 %"]
    assert "Below" not in figure.caption


def test_no_time_is_no_histogram() -> None:
    figure = draw_efficiency(Histogram(COUNTED, (0.0,) * 10, 0.0, 0), "lenet5")
    assert figure.svg is None
    assert figure.missing == "no kernel took any time"
