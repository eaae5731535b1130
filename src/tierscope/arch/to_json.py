"""Requirements as JSON."""

from dataclasses import asdict

from tierscope.arch.networks import shown
from tierscope.arch.requirements import YES, BatchNeeds, Requirements
from tierscope.arch.scaling import Scaled, fits_from
from tierscope.jsonable import JsonObject

SCHEMA_VERSION = 1
SHUFFLE = "each node reads its own share of the samples in every epoch, shuffled within the share"
PLACEMENT = "later epochs come from main memory where the share fits, else from the fastest tier where it fits; the first from the far tier"


def to_json(requirements: Requirements, layers: bool = False) -> JsonObject:
    """`layers`: every layer too. `storage_matters`, of every number of nodes and in all: however long a step takes and wherever the figures of storage lie in their intervals;
    `storage_verdict` tells "no" from "unclear".

    `storage_slow`, `storage_fast`: later epochs with the shortest step and storage as slow as its figures allow, and with the longest and as fast. `storage_rests_on`: figures that alone
    turn the verdict within their intervals, and tiers whose figures do together; null where it stays. All three are null where no figure of storage is uncertain.
    `storage_matters` of an end is null where nothing says how fast samples come.
    """
    wish, verdicts = requirements.wish, requirements.verdicts
    waiting = [point.nodes for point, verdict in zip(requirements.scaling, verdicts, strict=True) if verdict == YES]
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "requirements",
        "model": requirements.network.name,
        "input": shown(requirements.network.input_shape),
        "system": requirements.machine.name,
        "label": "modelled",
        "precision": wish.precision.name,
        "checkpointed": wish.checkpointed,
        "optimizer": wish.optimizer,
        "parameters": requirements.network.parameters,
        "sample_bytes": requirements.sample_bytes,
        "file_bytes": requirements.data.file_bytes,
        "samples": requirements.data.samples,
        "flops_per_sample": {
            "forward": requirements.network.forward_flops,
            "backward": requirements.network.backward_flops,
        },
        "flops_per_sample_byte": requirements.flops / requirements.sample_bytes,
        "activation_bytes_per_sample": requirements.kept_bytes,
        "kept_rule": wish.kept,
        "hbm_bytes_per_sample": {"limit": requirements.hbm_limit_bytes, "modelled": requirements.hbm_modelled_bytes},
        "bound_by": requirements.bound_by,
        "intensity_flops_per_byte": requirements.flops / requirements.hbm_modelled_bytes,
        "balances_flops_per_byte": machine_balances(requirements),
        "samples_per_second_at_roofline": wish.batches[0]
        / requirements.step_seconds
        * requirements.machine.accelerators,
        "step_seconds": requirements.step_seconds,
        "step": {
            **asdict(requirements.step),
            "outside": list(requirements.step.outside),
            "stand_ins": list(requirements.step.stand_ins),
        },
        "movement_seconds_per_sample": asdict(requirements.movement),
        "movement_batch": wish.batches[0],
        "movement_nodes": wish.nodes[-1],
        "byte_costs": requirements.byte_costs,
        "allreduce_seconds": requirements.allreduce_seconds,
        "batches": [_batch(needs) for needs in requirements.batches],
        "max_batch": requirements.max_batch,
        "node_sample_bandwidth_at_peak": requirements.node_sample_bandwidth_at_peak,
        "node_file_bandwidth_at_peak": requirements.node_file_bandwidth_at_peak,
        "scaling": [
            {
                **_point(point),
                "storage_matters": verdict == YES,
                "storage_verdict": verdict,
                **_within(requirements, place),
            }
            for place, (point, verdict) in enumerate(zip(requirements.scaling, verdicts, strict=True))
        ],
        "assumed": {"shuffle": SHUFFLE, "placement": PLACEMENT},
        "fits_memory_from_nodes": fits_from(requirements.scaling),
        "storage_matters_from_nodes": min(waiting, default=None),
        "storage_matters_until_nodes": max(waiting, default=None),
    }
    if layers:
        document["layers"] = [asdict(cost) for cost in requirements.costs]
    return document


def machine_balances(requirements: Requirements) -> dict[str, float]:
    """FLOP that an accelerator can do while a byte comes to it, by where from; where a network has fewer, that way is its limit."""
    peak = requirements.machine.device.peak(requirements.wish.precision)
    return {
        way: cost * peak / requirements.machine.device.memory_bandwidth for way, cost in requirements.byte_costs.items()
    }


def _point(point: Scaled) -> JsonObject:
    return {**asdict(point), "staging_gain": point.staging_gain, "far_times": point.far_times}


def _within(requirements: Requirements, place: int) -> JsonObject:
    """A number of nodes with storage at the ends of its uncertain figures."""
    storage = requirements.storage
    if storage is None:
        return {"storage_slow": None, "storage_fast": None, "storage_rests_on": None}
    turn = storage.turns[place]
    rests_on = (
        None if turn is None else {"figures": [figure.path for figure in turn.figures], "tiers": list(turn.tiers)}
    )
    return {
        "storage_slow": _later(storage.slow[place]),
        "storage_fast": _later(storage.fast[place]),
        "storage_rests_on": rests_on,
    }


def _later(point: Scaled) -> JsonObject:
    return {
        "later_seconds": point.later_seconds,
        "later_from": point.later_from,
        "waits_for": point.waits_for,
        "storage_matters": point.storage_matters if point.source_known else None,
    }


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
