"""What a reader of requirements must know; the words are in `analysis/wording.py`."""

from collections.abc import Iterator

from tierscope.analysis.wording import Finding
from tierscope.arch.requirements import UNCLEAR, YES, Requirements, StorageTurn
from tierscope.arch.scaling import HARDLY, UNPACKING, Scaled, fits_from
from tierscope.arch.step_seconds import ROOFLINE
from tierscope.units import counted

BOUNDS = {"memory": "its memory's bandwidth", "tensor": "its 16-bit matrix units", "fp32": "its 32-bit units"}


def find(requirements: Requirements) -> list[Finding]:
    """Most important first."""
    findings = [*_about_memory(requirements), *_about_storage(requirements), _what_bounds(requirements)]
    if not requirements.step_plausible:
        thought = requirements.plausible_step
        findings.insert(0, Finding("step_implausible", {"step": requirements.step.seconds, "least": thought.low, "most": thought.high}))  # fmt: skip
    findings += _about_steps(requirements)
    if requirements.data.assumed:
        findings.append(Finding("assumed_samples", {"samples": requirements.data.samples}))
    if requirements.wish.nodes[-1] > requirements.machine.nodes:
        evidence = {
            "system": requirements.machine.name,
            "nodes": requirements.machine.nodes,
            "asked": requirements.wish.nodes[-1],
        }
        findings.append(Finding("beyond_system", evidence))
    if requirements.step.source == ROOFLINE:
        return [*findings, Finding("from_peaks", {})]
    if requirements.step.outside or requirements.step.stand_ins:
        beyond = [*requirements.step.outside, *(f"layers of kind {kind}" for kind in requirements.step.stand_ins)]
        findings.append(Finding("step_extrapolated", {"beyond": beyond}))
    return findings


def _about_steps(requirements: Requirements) -> Iterator[Finding]:
    """Too many nodes for the data: an epoch is less than a step."""
    batch, devices = requirements.wish.batches[0], requirements.machine.accelerators
    few = [point for point in requirements.scaling if point.samples_per_node < batch * devices]
    if few:
        evidence = {"nodes": few[0].nodes, "batch": batch, "share": few[0].samples_per_node / devices / batch}
        yield Finding("less_than_a_step", evidence)


def _about_memory(requirements: Requirements) -> Iterator[Finding]:
    room = {"memory_bytes": requirements.machine.memory}
    untried = ["--precision amp"] if requirements.wish.precision.name == "fp32" else []
    untried += [] if requirements.wish.checkpointed else ["--checkpointed"]
    if not requirements.max_batch:
        first = requirements.batches[0]
        evidence = {"batch": first.batch, "peak_bytes": first.memory.peak, "untried": [*untried, "a smaller --input"]}
        yield Finding("nothing_fits", {**room, **evidence})
        return
    for needs in requirements.batches:
        if not needs.fits:
            evidence = {"batch": needs.batch, "peak_bytes": needs.memory.peak, "largest": requirements.max_batch}
            yield Finding("batch_too_large", {**room, **evidence, "untried": untried})


def _about_storage(requirements: Requirements) -> Iterator[Finding]:
    if not requirements.batches[0].fits:
        return  # there is no such step
    points, verdicts = requirements.scaling, requirements.verdicts
    waiting = [point for point, verdict in zip(points, verdicts, strict=True) if verdict == YES]
    unknown = [point.nodes for point in points if not point.source_known]
    unclear = [point.nodes for point, verdict in zip(points, requirements.described_verdicts, strict=True) if verdict == UNCLEAR and point.source_known]  # fmt: skip
    turned = [(point.nodes, turn) for point, turn in zip(points, requirements.turns, strict=True) if turn is not None]
    far = requirements.machine.far.name
    if unknown:
        yield Finding("storage_unknown", {"where": _span(unknown), "system": requirements.machine.name, "tier": far})
    if unclear:
        evidence = {"where": _span(unclear), "about": requirements.step.about, "low": requirements.step.low}
        yield Finding("storage_unclear", {**evidence, "high": requirements.step.high})
    if turned:
        names = [name for _, turn in turned for name in _rests_on(turn)]
        evidence = {"where": _span([nodes for nodes, _ in turned]), "rests_on": list(dict.fromkeys(names))}
        yield Finding("storage_uncertain", evidence)
    if not waiting and not unclear and not unknown and not turned:
        where = _span([point.nodes for point in points])
        slowest = () if requirements.storage is None else requirements.storage.slow
        times = max(point.far_times or 1.0 for point in (*requirements.fast, *slowest))
        if times < HARDLY:
            yield Finding("storage_hidden", {"where": where})
        else:
            places = list(dict.fromkeys(point.later_from for point in points))
            yield Finding("storage_staged", {"where": where, "places": places, "tier": far, "times": times})
    elif waiting:
        worst = max(waiting, key=lambda point: point.storage_times)
        compression = [] if requirements.wish.compression.ratio != 1 else ["compression (--compression)"]
        evidence = {
            "where": stretches(points, verdicts),
            "tier": worst.waits_for,
            "nodes": worst.nodes,
            "times": worst.storage_times,
            "untried": ["a nearer tier", *compression, "more memory per node"],
        }
        yield Finding("storage_limits", evidence)
    if (few := fits_from(points)) is not None:
        yield Finding("fits_memory", {"nodes": few})
    last = points[-1]
    if last.first_matters and not last.storage_matters:
        evidence = {
            "nodes": last.nodes,
            "tier": UNPACKING if last.first_waits_for_unpacking else requirements.machine.far.name,
            "first_seconds": last.first_seconds,
            "later_seconds": last.later_seconds,
        }
        yield Finding("first_epoch_waits", evidence)


def _rests_on(turn: StorageTurn) -> list[str]:
    return [figure.path for figure in turn.figures] or [f"several figures of {' and '.join(turn.tiers)}"]


def _what_bounds(requirements: Requirements) -> Finding:
    device, precision = requirements.machine.device, requirements.wish.precision
    evidence = {
        "what": BOUNDS[requirements.bound_by],
        "intensity": requirements.flops / requirements.hbm_modelled_bytes,
        "balance": device.peak(precision) / device.memory_bandwidth,
    }
    return Finding("device_bound", evidence)


def stretches(points: tuple[Scaled, ...], verdicts: tuple[str, ...]) -> str:
    """Numbers of nodes at which storage matters: `from 1 to 2 nodes`."""
    spans: list[list[int]] = [[]]
    for point, verdict in zip(points, verdicts, strict=True):
        if verdict == YES:
            spans[-1].append(point.nodes)
        elif spans[-1]:
            spans.append([])
    return ", ".join(_span(nodes) for nodes in spans if nodes)


def _span(nodes: list[int]) -> str:
    if len(nodes) == 1:
        return f"on {counted(nodes[0], 'node')}"
    return f"from {nodes[0]} to {nodes[-1]} nodes"
