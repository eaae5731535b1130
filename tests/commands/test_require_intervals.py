"""A verdict on storage that rests on figures which are known only within an interval."""

from dataclasses import replace
from pathlib import Path

import pytest

from tierscope.arch.requirements import Requirements
from tierscope.arch.storage_span import with_storage_span
from tierscope.commands.require import Answer, RequireOptions, answer_json, require
from tierscope.report.drawn.requirements import draw_requirements
from tierscope.report.requirements import step_sentence
from tierscope.report.requirements_page import requirements_page
from tierscope.report.storage_verdict import storage_sentence
from tierscope.spec.known import load_system
from tierscope.units import about_bandwidth

SYSTEM = """\
system: box
nodes: 2
hardware: {{accelerator: {{count: 1, memory: 16 GB, memory_bandwidth: 900 GB/s, fp32: 15.7 TFLOP/s}}, network_bandwidth: 10 GB/s}}
tiers: {{gfs: {{path: /tmp/x, {rates}}}}}
"""
SETTLE = (
    " To settle it, measure the storage with 'tierscope probe', or set tiers.gfs.node_bandwidth in the system's file."
)
NEEDED = "170 MB/s"  # 10 samples of 17 MB in a second


def asked(tmp_path: Path, rates: str, *figures: str, step_seconds: float | None = 0.1, nodes: str = "1,2") -> Answer:
    path = tmp_path / "box.yaml"
    told = "".join(f"  tiers.gfs.{figure}\n" for figure in figures)
    path.write_text(SYSTEM.format(rates=rates) + (f"figures:\n{told}" if told else ""))
    return require("cosmoflow", RequireOptions(system=str(path), step_seconds=step_seconds, nodes=nodes))


def assumed(key: str, low: str, high: str) -> str:
    return f"{key}: {{assumed: by age, low: {low}, high: {high}}}"


def test_a_yes_that_a_faster_tier_within_its_interval_would_turn_is_unclear(tmp_path: Path) -> None:
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s", assumed("node_bandwidth", "50 MB/s", "400 MB/s"))
    assert answer.required.described_verdicts == ("yes", "yes")
    assert answer.required.verdicts == ("unclear", "unclear")
    assert storage_sentence(answer.required) == (
        "Does storage matter? Unclear on 1 to 2 nodes: going by the system's file, an epoch waits for gfs, 1.7 × as long as everything else takes, but that rests on "
        f"tiers.gfs.node_bandwidth (assumed: 50 MB/s to 400 MB/s); where a node reads more than {NEEDED}, storage does not matter.{SETTLE}"
    )


def test_a_no_that_a_slower_tier_within_its_interval_would_turn_is_unclear(tmp_path: Path) -> None:
    answer = asked(tmp_path, "node_bandwidth: 300 MB/s", assumed("node_bandwidth", "100 MB/s", "400 MB/s"))
    assert answer.required.described_verdicts == ("no", "no")
    assert answer.required.verdicts == ("unclear", "unclear")
    assert storage_sentence(answer.required) == (
        "Does storage matter? Unclear on 1 to 2 nodes: going by the system's file, no: after the first, epochs wait for compute, but that rests on "
        f"tiers.gfs.node_bandwidth (assumed: 100 MB/s to 400 MB/s); where a node reads less than {NEEDED}, storage matters: an epoch takes up to 1.7 × as long as everything else.{SETTLE}"
    )


@pytest.mark.parametrize(("rate", "low", "high", "verdict"), [("100", "50", "150", "yes"), ("300", "200", "400", "no")])
def test_an_interval_on_one_side_of_the_needed_rate_turns_nothing(
    tmp_path: Path, rate: str, low: str, high: str, verdict: str
) -> None:
    answer = asked(tmp_path, f"node_bandwidth: {rate} MB/s", assumed("node_bandwidth", f"{low} MB/s", f"{high} MB/s"))
    assert answer.required.verdicts == (verdict, verdict)
    said = storage_sentence(answer.required)
    assert "rests on" not in said
    assert "settle" not in said
    assert step_sentence(answer.required).endswith("and anywhere within their intervals the answer is the same.")


@pytest.mark.parametrize(
    "figures", [(), ("node_bandwidth: {source: measured}",), (assumed("node_bandwidth", *["100 MB/s"] * 2),)]
)
def test_a_file_without_intervals_is_answered_as_it_stands(tmp_path: Path, figures: tuple[str, ...]) -> None:
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s", *figures)
    assert answer.required.storage is None
    assert answer.required.verdicts == ("yes", "yes")
    point = answer_json(answer)["scaling"][0]
    assert point["storage_slow"] is point["storage_fast"] is point["storage_rests_on"] is None


def test_what_turns_alone_is_named_most_important_first(tmp_path: Path) -> None:
    """Slow servers cost more than a slow link here; the latency changes nothing."""
    answer = asked(
        tmp_path,
        "node_bandwidth: 300 MB/s, bandwidth: 100 MB/s, servers: 8, latency: 1 ms",
        assumed("latency", "0.5 ms", "2 ms"),
        assumed("node_bandwidth", "120 MB/s", "400 MB/s"),
        assumed("servers", "1", "16"),
        assumed("bandwidth", "20 MB/s", "200 MB/s"),
        nodes="1",
    )
    (first,) = answer.required.turns
    assert first is not None
    assert [figure.path.split(".")[-1] for figure in first.figures] == ["servers", "node_bandwidth", "bandwidth"]
    said = storage_sentence(answer.required)
    assert (
        "tiers.gfs.servers (assumed: 1 to 16) and on tiers.gfs.node_bandwidth (assumed: 120 MB/s to 400 MB/s); where"
        in said
    )
    assert said.endswith("or set tiers.gfs.servers and tiers.gfs.node_bandwidth in the system's file.")


def test_where_only_several_turn_it_their_tier_is_named(tmp_path: Path) -> None:
    both = (assumed(key, "50 MB/s", "1 GB/s") for key in ("node_bandwidth", "device_bandwidth"))
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s, device_bandwidth: 100 MB/s", *both)
    said = storage_sentence(answer.required)
    assert answer_json(answer)["scaling"][0]["storage_rests_on"] == {"figures": [], "tiers": ["gfs"]}
    assert "but that rests on several figures of gfs, which are known only within intervals; where" in said
    assert said.endswith("measure the storage with 'tierscope probe', or set its figures in the system's file.")
    assert any("several figures of gfs" in finding.text for finding in answer.findings)


def test_a_fit_with_an_open_end_is_not_asked_for_a_probe(tmp_path: Path) -> None:
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s", "node_bandwidth: {fitted: to a run, low: 90 MB/s, high: null}")
    said = storage_sentence(answer.required)
    assert "(fitted: at least 90 MB/s)" in said
    assert said.endswith(" To settle it, set tiers.gfs.node_bandwidth in the system's file.")


def test_a_verdict_that_the_step_leaves_unclear_stays_so(tmp_path: Path) -> None:
    interval = assumed("node_bandwidth", "50 MB/s", "400 MB/s")
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s", interval, step_seconds=None)
    assert answer.required.verdicts == answer.required.described_verdicts == ("unclear", "unclear")
    assert answer.required.turns == (None, None)
    said = storage_sentence(answer.required)
    assert "Unclear on 1 to 2 nodes: going by the system's file, with the shortest step that may be" in said
    certain = asked(tmp_path, "node_bandwidth: 100 MB/s", step_seconds=None)
    assert "Unclear on 1 to 2 nodes: with the shortest step" in storage_sentence(certain.required)


def test_json_has_both_ends_and_what_the_verdict_rests_on(tmp_path: Path) -> None:
    document = answer_json(
        asked(tmp_path, "node_bandwidth: 100 MB/s", assumed("node_bandwidth", "50 MB/s", "400 MB/s"))
    )
    point = document["scaling"][0]
    assert (point["storage_verdict"], point["storage_matters"], point["waits_for"]) == ("unclear", False, "gfs")
    assert point["storage_rests_on"]["figures"] == ["tiers.gfs.node_bandwidth"]
    assert (point["storage_slow"]["storage_matters"], point["storage_fast"]["storage_matters"]) == (True, False)
    assert point["storage_slow"]["later_seconds"] == pytest.approx(262_144 * 17e6 / 50e6, rel=0.02)
    assert point["storage_fast"]["waits_for"] == "compute"
    assert document["storage_matters_from_nodes"] is None


def test_page_and_figures_say_what_the_terminal_says(tmp_path: Path) -> None:
    answer = asked(tmp_path, "node_bandwidth: 100 MB/s", assumed("node_bandwidth", "50 MB/s", "400 MB/s"))
    drawn = draw_requirements(answer.required)
    page = requirements_page(answer.required, answer.findings, drawn).decode()
    assert "but that rests on tiers.gfs.node_bandwidth (assumed: 50 MB/s to 400 MB/s)" in page
    captions = " ".join(figure.caption for figure in drawn)
    assert "Storage matters on 1, 2 nodes, going by the system's file." in captions
    kinds = [finding.kind for finding in answer.findings]
    assert "storage_uncertain" in kinds
    assert not {"storage_limits", "storage_hidden", "storage_staged", "storage_unclear"} & set(kinds)


def test_a_no_from_memory_is_not_said_to_hold_from_any_tier(tmp_path: Path) -> None:
    """The far tier would do as the file has it, but not as slow as it may be."""
    path = tmp_path / "box.yaml"
    text = SYSTEM.format(rates="node_bandwidth: 300 MB/s").replace("network_", "memory: 100 TB, network_")
    path.write_text(f"{text}figures:\n  tiers.gfs.{assumed('node_bandwidth', '100 MB/s', '400 MB/s')}\n")
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1))
    assert answer.required.verdicts == ("no", "no")
    assert storage_sentence(answer.required) == (
        "Does storage matter? No on 1 to 2 nodes, if main memory keeps the samples: then epochs wait for compute "
        "(read from gfs instead, as slow as its figures allow, an epoch takes up to 1.7 × as long)."
    )
    (finding,) = (finding for finding in answer.findings if finding.kind.startswith("storage"))
    assert finding.kind == "storage_staged"


def cori(network: str, batch: str, step_seconds: float) -> Requirements:
    return require(network, RequireOptions(system="cori-gpu", batch=batch, step_seconds=step_seconds)).required


@pytest.mark.parametrize(
    ("network", "batch", "step_seconds", "verdicts"),
    [
        ("cosmoflow", "4", 0.216, ("yes",) * 3 + ("no",) * 3),
        ("deepcam", "2", 0.414, ("yes",) * 3 + ("no",) * 3),
        ("resnet50", "64", 0.262, ("no",) * 6),
    ],
)
def test_the_studys_networks_get_the_studys_verdicts_anywhere_within_the_intervals(
    network: str, batch: str, step_seconds: float, verdicts: tuple[str, ...]
) -> None:
    """With its steps on V100 (A-X-3): staging made CosmoFlow and DeepCAM faster, and ResNet-50 not."""
    assert cori(network, batch, step_seconds).verdicts == verdicts


def test_a_link_of_which_only_its_nominal_rate_is_known_leaves_cosmoflow_unclear() -> None:
    """As `cori-gpu` had it: the upper end was the adapter's rate."""
    known = load_system("cori-gpu")
    wide = replace(known.figures["tiers.gfs.node_bandwidth"], low=1e9, high=12.5e9)
    other = replace(known, figures={**known.figures, "tiers.gfs.node_bandwidth": wide})
    required = with_storage_span(replace(cori("cosmoflow", "4", 0.216), storage=None), other)
    assert required.verdicts == ("unclear",) * 3 + ("no",) * 3
    assert "Unclear on 1 to 4 nodes: " in storage_sentence(required)
    assert "where a node reads more than 2.52 GB/s, storage does not matter; no on 8 nodes" in storage_sentence(
        required
    )


def test_a_no_that_a_smaller_tier_would_leave_without_an_answer_is_unclear(tmp_path: Path) -> None:
    """At the low capacity files are read from a tier of which nobody says how fast it is."""
    path = tmp_path / "box.yaml"
    near = "lfs: {path: /l, visible_to: node, capacity: 5 TB, bandwidth: 3 GB/s}"
    text = SYSTEM.format(rates="capacity: 100 TB").replace("{gfs:", f"{{{near}, gfs:")
    path.write_text(f"{text}figures:\n  tiers.lfs.{assumed('capacity', '1 TB', '10 TB')}\n")
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1, nodes="1"))
    assert answer.required.described_verdicts == ("no",)
    assert answer.required.verdicts == ("unclear",)
    said = storage_sentence(answer.required)
    assert (
        "rests on tiers.lfs.capacity (assumed: 1 TB to 10 TB); at the slow end, files fit on no tier but gfs, and"
        in said
    )
    assert answer_json(answer)["scaling"][0]["storage_slow"]["storage_matters"] is None


@pytest.mark.parametrize(("rate", "low"), [("300", "10"), ("20", "10")])
def test_the_rate_at_which_it_turns_counts_what_unpacking_hides(tmp_path: Path, rate: str, low: str) -> None:
    """A node unpacks 100 MB/s to files, so reads of a quarter of that are hidden by it."""
    path = tmp_path / "box.yaml"
    interval = assumed("node_bandwidth", f"{low} MB/s", "400 MB/s")
    path.write_text(SYSTEM.format(rates=f"node_bandwidth: {rate} MB/s") + f"figures:\n  tiers.gfs.{interval}\n")
    options = RequireOptions(system=str(path), step_seconds=0.1, nodes="1", compression="4:100MB/s")
    assert "than 25 MB/s, storage " in storage_sentence(require("cosmoflow", options).required)


def test_below_the_named_rate_storage_matters_on_each_number_of_nodes(tmp_path: Path) -> None:
    """Exchange is longer on two nodes, and hides more."""
    path = tmp_path / "box.yaml"
    text = SYSTEM.format(rates="node_bandwidth: 300 MB/s").replace(
        "network_bandwidth: 10 GB/s", "network_bandwidth: 300 MB/s"
    )
    path.write_text(f"{text}figures:\n  tiers.gfs.{assumed('node_bandwidth', '10 MB/s', '400 MB/s')}\n")
    required = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1, nodes="1,2")).required
    first, second = (point.share_bytes / point.others_seconds for point in required.scaling)
    assert second < 0.9 * first
    assert f"where a node reads less than {about_bandwidth(second)}, storage matters" in storage_sentence(required)


def test_what_the_far_tier_costs_is_told_for_its_slow_end_too(tmp_path: Path) -> None:
    """As its finding does; the sentence had what the system's file says alone."""
    path = tmp_path / "box.yaml"
    text = SYSTEM.format(rates="node_bandwidth: 100 MB/s").replace("network_", "memory: 100 TB, network_")
    path.write_text(f"{text}figures:\n  tiers.gfs.{assumed('node_bandwidth', '50 MB/s', '400 MB/s')}\n")
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1))
    assert storage_sentence(answer.required).endswith(
        "(read from gfs instead, an epoch takes 1.7 × as long, and up to 3.4 × where gfs is as slow as its figures allow)."
    )
    (finding,) = (finding for finding in answer.findings if finding.kind == "storage_staged")
    assert "up to 3.40 × as long" in finding.text


def test_a_tier_that_nothing_is_read_from_is_not_named_as_assumed(tmp_path: Path) -> None:
    path = tmp_path / "box.yaml"
    other = "bb: {path: /b, bandwidth: 3 GB/s}"
    text = SYSTEM.format(rates="node_bandwidth: 300 MB/s").replace("{gfs:", f"{{{other}, gfs:")
    path.write_text(f"{text}figures:\n  tiers.bb.{assumed('bandwidth', '1 GB/s', '10 GB/s')}\n")
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1))
    assert "assumed, as the system's file says" not in step_sentence(answer.required)


def test_more_servers_than_can_be_modelled_are_no_reason_to_refuse(tmp_path: Path) -> None:
    """Only at the fast end are there so many: each node has a device of its own."""
    path = tmp_path / "box.yaml"
    path.write_text(
        SYSTEM.format(rates="servers: 100, bandwidth: 1 MB/s, device_shared_by: 64")
        + f"figures:\n  tiers.gfs.{assumed('device_shared_by', '1', '64')}\n"
    )
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1, nodes="4096"))
    assert answer.required.verdicts == ("yes",)


@pytest.mark.parametrize("variation", ["0.5", "0"])
def test_servers_that_differ_less_may_be_slower(tmp_path: Path, variation: str) -> None:
    """The one server is drawn as a fast one: with as much variation as may be it is fast enough, with none it is not."""
    rates = f"read_ops: 45/s, variation: {variation}"
    answer = asked(tmp_path, rates, assumed("variation", "0", "0.5"), nodes="1")
    (described,) = answer.required.described_verdicts
    assert described == ("no" if variation == "0.5" else "yes")
    assert answer.required.verdicts == ("unclear",)
    (turn,) = answer.required.turns
    assert turn is not None
    assert [figure.path for figure in turn.figures] == ["tiers.gfs.variation"]


def test_several_figures_that_turn_it_together_are_told_beside_one_that_does_alone(tmp_path: Path) -> None:
    """On one node the far tier's rate alone; on two a share fits the near tier, unless that is small as well."""
    path = tmp_path / "box.yaml"
    near = "lfs: {path: /l, visible_to: node, capacity: 3 TB, bandwidth: 3 GB/s}"
    text = SYSTEM.format(rates="node_bandwidth: 300 MB/s").replace("{gfs:", f"{{{near}, gfs:")
    figures = assumed("tiers.lfs.capacity", "1 TB", "4 TB"), assumed("tiers.gfs.node_bandwidth", "100 MB/s", "1 GB/s")
    path.write_text(f"{text}figures:\n  {figures[0]}\n  {figures[1]}\n")
    answer = require("cosmoflow", RequireOptions(system=str(path), step_seconds=0.1))
    assert answer.required.verdicts == ("unclear", "unclear")
    assert [turn and len(turn.figures) for turn in answer.required.turns] == [1, 0]
    assert storage_sentence(answer.required).endswith("or set its figures in the system's file.")
    (finding,) = (finding for finding in answer.findings if finding.kind == "storage_uncertain")
    assert finding.text.endswith(": tiers.gfs.node_bandwidth, several figures of lfs and gfs")
