"""Requirements as JSON."""

from dataclasses import asdict

from tierscope.arch.networks import shown
from tierscope.arch.requirements import BatchNeeds, Requirements
from tierscope.arch.scaling import Scaled, fits_from, matters_from, matters_until
from tierscope.jsonable import JsonObject

SCHEMA_VERSION = 1


def to_json(found: Requirements, layers: bool = False) -> JsonObject:
    """`layers`: every layer too."""
    wish = found.wish
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "requirements",
        "model": found.network.name,
        "input": shown(found.network.input_shape),
        "system": found.machine.name,
        "label": "modelled",
        "precision": wish.precision.name,
        "checkpointed": wish.checkpointed,
        "optimizer": wish.optimizer,
        "parameters": found.network.parameters,
        "sample_bytes": found.sample_bytes,
        "file_bytes": found.data.file_bytes,
        "samples": found.data.samples,
        "flops_per_sample": {"forward": found.network.forward_flops, "backward": found.network.backward_flops},
        "flops_per_sample_byte": found.flops / found.sample_bytes,
        "activation_bytes_per_sample": found.kept_bytes,
        "kept_rule": wish.kept,
        "hbm_bytes_per_sample": {"limit": found.hbm_limit_bytes, "modelled": found.hbm_modelled_bytes},
        "bound_by": found.bound_by,
        "intensity_flops_per_byte": found.flops / found.hbm_modelled_bytes,
        "balances_flops_per_byte": machine_balances(found),
        "samples_per_second_at_roofline": wish.batches[0] / found.step_seconds * found.machine.accelerators,
        "step_seconds": found.step_seconds,
        "movement_seconds_per_sample": asdict(found.movement),
        "movement_batch": wish.batches[0],
        "movement_nodes": wish.nodes[-1],
        "byte_costs": found.byte_costs,
        "allreduce_seconds": found.allreduce_seconds,
        "batches": [_batch(needs) for needs in found.batches],
        "max_batch": found.max_batch,
        "node_sample_bandwidth_at_peak": found.node_sample_bandwidth_at_peak,
        "node_file_bandwidth_at_peak": found.node_file_bandwidth_at_peak,
        "scaling": [_point(point) for point in found.scaling],
        "fits_memory_from_nodes": fits_from(found.scaling),
        "storage_matters_from_nodes": matters_from(found.scaling),
        "storage_matters_until_nodes": matters_until(found.scaling),
    }
    if layers:
        document["layers"] = [asdict(cost) for cost in found.costs]
    return document


def machine_balances(found: Requirements) -> dict[str, float]:
    """FLOP that an accelerator can do while a byte comes to it, by where from; where a network has fewer, that way is its limit."""
    peak = found.machine.device.peak(found.wish.precision)
    return {way: cost * peak / found.machine.device.memory_bandwidth for way, cost in found.byte_costs.items()}


def _point(point: Scaled) -> JsonObject:
    return {**asdict(point), "storage_matters": point.storage_matters, "staging_gain": point.staging_gain}


def _batch(needs: BatchNeeds) -> JsonObject:
    memory = asdict(needs.memory)
    where = memory.pop("peak_at")
    return {
        "batch": needs.batch,
        "memory_bytes": memory,
        "peak_at": where,
        "fits": needs.fits,
        "fits_l2": needs.fits_l2,
    }
