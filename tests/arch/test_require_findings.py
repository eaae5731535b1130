"""Findings about requirements: each appears when it should, and only then."""

from dataclasses import replace

import pytest

from tests.arch.machines import named, storage
from tests.finding_cases import Case, finding_tests
from tierscope.analysis.wording import Finding
from tierscope.arch.findings import find, stretches
from tierscope.arch.movement import Compression
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, requirements
from tierscope.arch.step_seconds import PREDICTED, StepSeconds, given
from tierscope.arch.storage_span import with_storage_span
from tierscope.arch.to_json import to_json
from tierscope.report.requirements import step_sentence
from tierscope.report.storage_verdict import fit_sentence, storage_sentence
from tierscope.spec.known import load_system

WISH = Wish(PRECISIONS["amp"], nodes=(1, 2, 4))


def needed(
    name: str = "cosmoflow",
    samples: int = 49_152,
    step: StepSeconds | None = None,
    assumed: bool = False,
    **wish: object,
) -> Requirements:
    data = replace(NETWORKS[name].data, samples=samples, assumed=assumed)
    return requirements(build_network(name), named("cori-gpu"), data, replace(WISH, **wish), step)  # type: ignore[arg-type]


def found(
    name: str = "cosmoflow",
    samples: int = 49_152,
    assumed: bool = False,
    step: StepSeconds | None = None,
    **wish: object,
) -> list[Finding]:
    return find(needed(name, samples, step, assumed, **wish))


def between(low: float, high: float, *outside: str) -> StepSeconds:
    return StepSeconds(low, low, high, PREDICTED, "told", outside)


def tiny(memory: int) -> list[Finding]:
    base = needed()
    machine = replace(base.machine, memory=memory)
    return find(requirements(base.network, machine, base.data, WISH))


def nameless(bandwidth: float | None) -> list[Finding]:
    """On a system that does not say how fast its only tier is, or that says it."""
    machine = replace(named("cori-gpu"), near=None, node_memory=None, far=storage("gfs", bandwidth))
    return find(requirements(build_network("cosmoflow"), machine, NETWORKS["cosmoflow"].data, WISH))


def within(low: float, high: float) -> list[Finding]:
    """With the far tier's rate for a node somewhere there, and a step that needs 2.5 GB/s."""
    known = load_system("cori-gpu")
    figure = replace(known.figures["tiers.gfs.node_bandwidth"], low=low, high=high)
    asked = needed(samples=262_144, step=given(0.216), batches=(4,))
    return find(with_storage_span(asked, replace(known, figures={"tiers.gfs.node_bandwidth": figure})))


BASE = needed()
LAST = needed().scaling[-1]
SHORT = given(1e-3)  # so short that nothing hides the reads
ONE = needed(step=SHORT).scaling[0]
UNTRIED = ["--checkpointed", "a smaller --input"]  # beside --precision amp

STUDIED = (  # with seconds of a sample on a V100
    needed(samples=49_152, step=given(4 * 0.054), batches=(4,), nodes=(1, 4)),
    needed("deepcam", 9_800, step=given(2 * 0.207), batches=(2,), nodes=(1, 4)),
    needed("resnet50", 1_281_167, step=given(64 * 0.0041), batches=(64,), nodes=(1, 4)),
)

CASES: dict[str, Case] = {
    "nothing_fits": Case(
        lambda: tiny(2**20),
        {"memory_bytes": 2**20, "batch": 1, "peak_bytes": BASE.batches[0].memory.peak, "untried": UNTRIED},
        lambda: tiny(2**40),
    ),
    "batch_too_large": Case(
        lambda: found(batches=(1, 4096)),
        {
            "memory_bytes": 16 * 2**30,
            "batch": 4096,
            "peak_bytes": needed(batches=(4096,)).batches[0].memory.peak,
            "largest": BASE.max_batch,
            "untried": UNTRIED[:1],
        },
        lambda: found(batches=(1, BASE.max_batch)),
    ),
    "storage_hidden": Case(
        lambda: found("resnet50", 1_281_167),
        {"where": "from 1 to 4 nodes"},
        found,
    ),
    "storage_staged": Case(
        lambda: found(step=given(0.054)),
        {
            "where": "from 1 to 4 nodes",
            "places": ["lfs", "memory"],
            "tier": "gfs",
            "times": needed(step=given(0.054)).scaling[0].far_times,
        },
        lambda: found("resnet50", 1_281_167, step=given(0.0041)),
    ),
    "storage_unknown": Case(
        lambda: nameless(None),
        {"where": "from 1 to 4 nodes", "system": "cori-gpu", "tier": "gfs"},
        lambda: nameless(1e9),
    ),
    "step_implausible": Case(
        lambda: found(step=given(1e-6)),
        {"step": 1e-6, "least": BASE.step_seconds, "most": BASE.step.high},
        lambda: found(step=given(BASE.step_seconds)),
    ),
    "less_than_a_step": Case(
        lambda: found(samples=24, nodes=(2, 4)),
        {"nodes": 4, "batch": 1, "share": 24 / 32},
        lambda: found(samples=32, nodes=(2, 4)),
    ),
    "storage_limits": Case(
        lambda: found(step=SHORT),
        {
            "where": "from 1 to 2 nodes",
            "tier": "lfs",
            "nodes": 1,
            "times": ONE.later_seconds / max(ONE.compute_seconds, ONE.exchange_seconds or 0),
            "untried": ["a nearer tier", "compression (--compression)", "more memory per node"],
        },
        lambda: found("resnet50", 1_281_167),
    ),
    "storage_unclear": Case(
        lambda: found(step=between(1e-6, 1e3)),
        {"where": "from 1 to 2 nodes", "about": "told", "low": 1e-6, "high": 1e3},
        lambda: found(step=between(1e-6, 2e-6)),
    ),
    "storage_uncertain": Case(
        lambda: within(1e9, 3e9),
        {"where": "from 1 to 4 nodes", "rests_on": ["tiers.gfs.node_bandwidth"]},
        lambda: within(1e9, 2e9),
    ),
    "step_extrapolated": Case(
        lambda: found(step=between(1e-6, 2e-6, "conv2d side")),
        {"beyond": ["conv2d side"]},
        lambda: found(step=given(1e-6)),
    ),
    "fits_memory": Case(found, {"nodes": 4}, lambda: found(nodes=(1, 2))),
    "first_epoch_waits": Case(
        found,
        {
            "nodes": 4,
            "tier": "gfs",
            "first_seconds": LAST.first_seconds,
            "later_seconds": LAST.later_seconds,
        },
        lambda: found(nodes=(1, 2)),
    ),
    "device_bound": Case(
        found,
        {
            "what": "its memory's bandwidth",
            "intensity": BASE.flops / BASE.hbm_modelled_bytes,
            "balance": 125e12 / 900e9,
        },
        list,
    ),
    "assumed_samples": Case(lambda: found(assumed=True), {"samples": 49_152}, found),
    "beyond_system": Case(
        lambda: found(nodes=(1, 64)), {"system": "cori-gpu", "nodes": 18, "asked": 64}, lambda: found(nodes=(1, 18))
    ),
    "from_peaks": Case(found, {}, lambda: found(step=given(1.0))),
}


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_a_verdict_that_depends_on_the_step_is_no_yes() -> None:
    """Someone in a hurry would buy storage."""
    asked = needed(step=between(1e-6, 1e3))
    assert asked.verdicts == ("unclear", "unclear", "no")
    assert "Yes" not in storage_sentence(asked)
    assert needed(step=given(1e-6)).verdicts == ("yes", "yes", "no")
    assert needed(step=given(1e3)).verdicts == ("no",) * 3


def test_a_small_batch_is_not_called_starved_by_its_roofline() -> None:
    """ResNet-50 with one sample: the host takes a hundred times the roofline to give out its layers, and hides the reads meanwhile."""
    asked = needed("resnet50", 1_281_167, batches=(1,))
    assert asked.step.high > 100 * asked.step.low
    assert asked.step.high > 175 * 127e-6, "what a layer took on the H200"
    assert "yes" not in asked.verdicts


def test_the_studys_own_steps_are_not_longer_than_require_thinks_possible() -> None:
    """Seconds of a sample on a V100, A-X-3 of the Architecture study: CosmoFlow takes 16.5 times the roofline."""
    for name, batch, seconds in (("cosmoflow", 4, 0.054), ("deepcam", 2, 0.207), ("resnet50", 64, 0.0041)):
        step = needed(name, batches=(batch,)).step
        assert step.low < batch * seconds < step.high, name
        assert batch * seconds < 17 * step.low, "and so much longer is not needed"


def test_json_calls_nothing_a_yes_that_is_unclear() -> None:
    """A script reads one key; that of the roofline alone said true beside the verdict "unclear"."""
    document = to_json(needed(step=between(1e-6, 1e3)))
    assert [point["storage_matters"] for point in document["scaling"]] == [False] * 3
    assert [point["storage_verdict"] for point in document["scaling"]] == ["unclear", "unclear", "no"]
    assert document["storage_matters_from_nodes"] is document["storage_matters_until_nodes"] is None
    sure = to_json(needed(step=given(1e-6)))
    assert (sure["storage_matters_from_nodes"], sure["storage_matters_until_nodes"]) == (1, 2)
    assert [point["storage_matters"] for point in sure["scaling"]] == [True, True, False]


def test_measured_steps_order_networks_as_published() -> None:
    """Seconds of a sample on a V100: A-X-3 of the Architecture study. The order alone: how far the gains are from the published ones is judged in `python -m validation architecture`."""
    cosmoflow, deepcam, resnet = STUDIED
    gains = [asked.scaling[0].staging_gain or 0.0 for asked in (cosmoflow, deepcam)]
    assert gains[0] > gains[1] > 1
    assert "no" == resnet.verdicts[0] == resnet.verdicts[1]
    assert resnet.scaling[0].far_times == 1


def test_the_first_sentence_says_what_a_no_rests_on() -> None:
    """For someone in a hurry, "do not buy faster storage" meant that gfs alone will do."""
    cosmoflow, deepcam, resnet = map(storage_sentence, STUDIED)
    assert cosmoflow == (
        "Does storage matter? No on 1 node, if the data are staged on lfs: then epochs wait for compute (read from gfs instead, an epoch takes 1.57 × as long); "
        "no on 4 nodes, if main memory keeps the samples: then epochs wait for compute (read from gfs instead, an epoch takes 1.57 × as long)."
    )
    assert "(read from gfs instead, an epoch takes 1.47 × as long)" in deepcam
    assert resnet == "Does storage matter? No on 1 to 4 nodes, even if every epoch is read from gfs: after the first, epochs wait for compute."  # fmt: skip
    advice = [finding.suggestion for finding in find(STUDIED[0]) if finding.kind == "storage_staged"]
    assert advice == ["stage the data or keep them in memory; do not buy anything faster than that for it"]


def test_a_yes_says_why_nothing_nearer_helps() -> None:
    said = storage_sentence(needed(samples=262_144, step=SHORT, nodes=(1, 2, 8)))
    assert "yes on 1 to 2 nodes: an epoch waits for gfs (a node's share of the files does not fit lfs), 34.1 × " in said
    assert "; yes on 8 nodes: an epoch waits for lfs, 7.57 × as long as everything else takes" in said
    assert said.endswith("(read from gfs instead, an epoch takes 2 × as long).")


def test_a_system_without_a_tier_of_its_nodes() -> None:
    far = replace(needed().machine, near=None)
    slow, short = (requirements(BASE.network, far, BASE.data, WISH, step) for step in (given(1e3), SHORT))
    assert storage_sentence(slow).endswith(
        ": no on 1 to 4 nodes, even if every epoch is read from gfs: after the first, epochs wait for compute."
    )
    assert "yes on 1 to 2 nodes: an epoch waits for gfs, 34.1 × as long" in storage_sentence(short)


@pytest.mark.parametrize("seconds", [1e-9, 1e6])
def test_a_step_that_cannot_be_makes_the_first_sentence_doubtful(seconds: float) -> None:
    said = storage_sentence(needed(step=given(seconds), nodes=(1, 64)))
    assert said.startswith("Does storage matter? This is doubtful: a step of ")
    assert "(possible: 3.28 ms to 72.8 ms)" in said
    assert said.endswith("(extrapolated: cori-gpu has 18 nodes).")
    assert "doubtful" not in storage_sentence(STUDIED[0])


def test_ends_that_print_alike_are_one_number() -> None:
    said = storage_sentence(needed(step=between(5e-3, 5.00001e-3), nodes=(1,)))
    assert " to " not in said


def test_an_assumed_training_set_is_said_in_the_first_sentence() -> None:
    """A million samples that nobody named may fit main memory, or not."""
    said = storage_sentence(needed(samples=1_000_000, assumed=True))
    assert said.endswith(" (assumed: 1,000,000 samples of 16.2 MiB; use --samples and --sample-file-bytes).")
    assert "assumed" not in storage_sentence(needed(samples=1_000_000))


def test_layers_that_a_device_file_does_not_have_are_named_beside_the_step() -> None:
    step = replace(between(1e-3, 2e-3), stand_ins=("Attention", "LayerNorm"))
    assert "told; not measured there: layers of kind Attention, LayerNorm." in step_sentence(needed(step=step))


def test_a_batch_that_does_not_fit_is_told_so_and_nothing_else() -> None:
    """It was told that storage matters, for a step that cannot be."""
    asked = needed(batches=(4096,))
    assert (fit_sentence(asked) or "").startswith("Batch 4,096 does not fit: a step needs 2 TiB of an accelerator's 16 GiB; the largest that fits is 31.")  # fmt: skip
    assert asked.verdicts == ("unclear",) * 3
    kinds = [finding.kind for finding in find(asked)]
    assert kinds[0] == "batch_too_large"
    assert not any(kind.startswith("storage") for kind in kinds)
    assert fit_sentence(needed(batches=(1, 4096))) is None, "the others are about memory alone"


def test_storage_of_unknown_speed_is_unclear() -> None:
    """Nothing was waited for, so it was a no."""
    machine = replace(named("cori-gpu"), near=None, node_memory=None, far=storage("gfs", None))
    asked = requirements(build_network("cosmoflow"), machine, NETWORKS["cosmoflow"].data, WISH)
    assert asked.verdicts == ("unclear",) * 3
    assert (
        storage_sentence(asked)
        == "Does storage matter? Unclear on 1 to 4 nodes: system cori-gpu does not say how fast its storage is."
    )


def test_exchange_that_nobody_knows_is_said_not_to_count() -> None:
    """It may hide the reads."""
    silent = replace(named("cori-gpu"), network_bandwidth=None)
    asked = requirements(build_network("cosmoflow"), silent, NETWORKS["cosmoflow"].data, WISH, SHORT)
    said = storage_sentence(asked)
    assert said.endswith(" (exchange is not counted on 2 to 4 nodes: cori-gpu does not say how fast its links are).")
    assert "not counted" not in storage_sentence(needed())


def test_stretches_that_come_and_go() -> None:
    base = needed().scaling[0]
    points = tuple(replace(base, nodes=1 << place) for place in range(5))
    assert stretches(points, ("yes",) * 5) == "from 1 to 16 nodes"
    assert stretches(points, ("no", "yes", "yes", "unclear", "yes")) == "from 2 to 4 nodes, on 16 nodes"
    assert stretches(points, ("yes", *("no",) * 4)) == "on 1 node"


def test_no_advice_is_to_do_what_was_done() -> None:
    asked = found(batches=(1, 10**6), step=SHORT, checkpointed=True, compression=Compression(4.0))
    advice = " ".join(finding.suggestion for finding in asked)
    assert not any(option in advice for option in ("--checkpointed", "--precision", "--compression"))
    plain = " ".join(
        finding.suggestion for finding in found(batches=(1, 10**6), precision=PRECISIONS["fp32"], step=given(1e-6))
    )
    assert all(option in plain for option in ("--checkpointed", "--precision amp", "--compression"))
