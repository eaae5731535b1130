"""Findings about requirements: each appears when it should, and only then."""

from dataclasses import replace

from tests.arch.machines import named
from tests.finding_cases import Case, finding_tests
from tierscope.analysis.wording import Finding
from tierscope.arch.findings import find, stretches
from tierscope.arch.movement import Compression
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, requirements

WISH = Wish(PRECISIONS["amp"], nodes=(1, 2, 4))


def needed(name: str = "cosmoflow", samples: int = 49_152, **wish: object) -> Requirements:
    data = replace(NETWORKS[name].data, samples=samples)
    return requirements(build_network(name), named("cori-gpu"), data, replace(WISH, **wish))  # type: ignore[arg-type]


def found(
    name: str = "cosmoflow", samples: int = 49_152, has_training_set: bool = True, **wish: object
) -> list[Finding]:
    return find(needed(name, samples, **wish), has_training_set)


def tiny(memory: int) -> list[Finding]:
    base = needed()
    machine = replace(base.machine, memory=memory)
    return find(requirements(base.network, machine, base.data, WISH))


BASE = needed()
LAST = needed().scaling[-1]
ONE = needed().scaling[0]
UNTRIED = ["--checkpointed", "a smaller --input"]  # beside --precision amp

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
    "storage_limits": Case(
        found,
        {
            "where": "from 1 to 2 nodes",
            "tier": "lfs",
            "nodes": 1,
            "times": ONE.later_seconds / max(ONE.compute_seconds, ONE.exchange_seconds or 0),
            "untried": ["a nearer tier", "compression (--compression)", "more memory for each node"],
        },
        lambda: found("resnet50", 1_281_167),
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
    "assumed_samples": Case(lambda: found(has_training_set=False), {"samples": 49_152}, found),
    "beyond_system": Case(
        lambda: found(nodes=(1, 64)), {"system": "cori-gpu", "nodes": 18, "asked": 64}, lambda: found(nodes=(1, 18))
    ),
    "from_peaks": Case(found, {}, list),
}


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_stretches_that_come_and_go() -> None:
    base = needed().scaling[0]
    points = [replace(base, nodes=1 << place) for place in range(5)]
    calm = [replace(point, waits_for="compute") for point in points]
    assert stretches(tuple(points)) == "from 1 to 16 nodes"
    assert stretches((calm[0], *points[1:3], calm[3], points[4])) == "from 2 to 4 nodes, on 16 nodes"
    assert stretches((points[0], *calm[1:])) == "on 1 node"


def test_no_advice_is_to_do_what_was_done() -> None:
    asked = found(batches=(1, 10**6), checkpointed=True, compression=Compression(4.0))
    advice = " ".join(finding.suggestion for finding in asked)
    assert not any(option in advice for option in ("--checkpointed", "--precision", "--compression"))
    plain = " ".join(finding.suggestion for finding in found(batches=(1, 10**6), precision=PRECISIONS["fp32"]))
    assert all(option in plain for option in ("--checkpointed", "--precision amp", "--compression"))
