"""What a reader of requirements must know; the words are in `analysis/wording.py`."""

from collections.abc import Iterator

from tierscope.analysis.wording import Finding
from tierscope.arch.requirements import Requirements
from tierscope.arch.scaling import UNPACKING, Scaled, fits_from
from tierscope.units import counted

BOUNDS = {"memory": "its memory's bandwidth", "tensor": "its 16-bit matrix units", "fp32": "its 32-bit units"}


def find(found: Requirements, has_training_set: bool = True) -> list[Finding]:
    """Most important first. `has_training_set`: it is known how many samples there are."""
    findings = [*_about_memory(found), *_about_storage(found), _what_bounds(found)]
    if not has_training_set:
        findings.append(Finding("assumed_samples", {"samples": found.data.samples}))
    if found.wish.nodes[-1] > found.machine.nodes:
        evidence = {"system": found.machine.name, "nodes": found.machine.nodes, "asked": found.wish.nodes[-1]}
        findings.append(Finding("beyond_system", evidence))
    return [*findings, Finding("from_peaks", {})]


def _about_memory(found: Requirements) -> Iterator[Finding]:
    room = {"memory_bytes": found.machine.memory}
    untried = ["--precision amp"] if found.wish.precision.name == "fp32" else []
    untried += [] if found.wish.checkpointed else ["--checkpointed"]
    if not found.max_batch:
        first = found.batches[0]
        evidence = {"batch": first.batch, "peak_bytes": first.memory.peak, "untried": [*untried, "a smaller --input"]}
        yield Finding("nothing_fits", {**room, **evidence})
        return
    for needs in found.batches:
        if not needs.fits:
            evidence = {"batch": needs.batch, "peak_bytes": needs.memory.peak, "largest": found.max_batch}
            yield Finding("batch_too_large", {**room, **evidence, "untried": untried})


def _about_storage(found: Requirements) -> Iterator[Finding]:
    points = found.scaling
    waiting = [point for point in points if point.storage_matters]
    if not waiting:
        yield Finding("storage_hidden", {"where": _span([point.nodes for point in points])})
    else:
        worst = max(waiting, key=_excess)
        compression = [] if found.wish.compression.ratio != 1 else ["compression (--compression)"]
        evidence = {
            "where": stretches(points),
            "tier": worst.waits_for,
            "nodes": worst.nodes,
            "times": _excess(worst),
            "untried": ["a nearer tier", *compression, "more memory for each node"],
        }
        yield Finding("storage_limits", evidence)
    if (few := fits_from(points)) is not None:
        yield Finding("fits_memory", {"nodes": few})
    last = points[-1]
    if last.first_matters and not last.storage_matters:
        evidence = {
            "nodes": last.nodes,
            "tier": UNPACKING if last.first_waits_for_unpacking else found.machine.far.name,
            "first_seconds": last.first_seconds,
            "later_seconds": last.later_seconds,
        }
        yield Finding("first_epoch_waits", evidence)


def _excess(point: Scaled) -> float:
    """How many times as long storage takes as everything else."""
    return point.later_seconds / max(point.compute_seconds, point.exchange_seconds or 0.0)


def _what_bounds(found: Requirements) -> Finding:
    device, precision = found.machine.device, found.wish.precision
    evidence = {
        "what": BOUNDS[found.bound_by],
        "intensity": found.flops / found.hbm_modelled_bytes,
        "balance": device.peak(precision) / device.memory_bandwidth,
    }
    return Finding("device_bound", evidence)


def stretches(points: tuple[Scaled, ...]) -> str:
    """Numbers of nodes at which storage matters: `from 1 to 2 nodes`."""
    found: list[list[int]] = [[]]
    for point in points:
        if point.storage_matters:
            found[-1].append(point.nodes)
        elif found[-1]:
            found.append([])
    return ", ".join(_span(nodes) for nodes in found if nodes)


def _span(nodes: list[int]) -> str:
    if len(nodes) == 1:
        return f"on {counted(nodes[0], 'node')}"
    return f"from {nodes[0]} to {nodes[-1]} nodes"
