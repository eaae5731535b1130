"""Small epochs of every kind whose results the event engine must repeat to the last bit.

`python -m tests.predict.engine_cases` writes engine_cases.json anew; a change to it is a change of results, and belongs in CHANGELOG.md.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.predict.queueing import Case, by_events, case_of, study_of, tier
from tests.predict.saving import epochs_of, saving
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Placement, Study, Tier

STORED = Path(__file__).parent / "engine_cases.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """An epoch and how it is simulated."""

    case: Case
    barrier: bool = False
    seed: int = 0

    @property
    def varies(self) -> bool:
        return bool(self.case.stations.variation.any())

    def outcome(self) -> Outcome:
        return by_events(self.case, barrier=self.barrier, seed=self.seed)


class StoredSaving(Stored):
    """The last epoch of a study that saves checkpoints."""

    __slots__ = ()

    def outcome(self) -> Outcome:
        return epochs_of(self.case.study)[-1]


def _near(**keys: Any) -> Tier:
    return tier("lfs", **{"visible_to": "node", "device_shared_by": 2, "read_ops": 900.0, "bandwidth": 1e6, **keys})


def _far(**keys: Any) -> Tier:
    return tier(**{"metadata_ops": 500.0, "servers": 3, "bandwidth": 2e5, "latency": 0.002, **keys})


def _pinned(*tiers: Tier, barrier: bool = False, apart: int | None = None, simulate: int = 0, **keys: Any) -> Stored:
    """Files stay where they are; `simulate`: the seed of the simulation."""
    settings = {"files": 96, "nodes": 4, "ranks_per_node": 2, "batch": 3, "cache_rate": 0.4, **keys}
    return Stored(case_of(study_of(*(tiers or (_near(), _far())), **settings), apart=apart), barrier, simulate)


def _copying(
    policy: str, *tiers: Tier, epoch: int = 1, rate: float = 0.5, barrier: bool = False, **keys: Any
) -> Stored:
    """Files are copied to the near tier, behind the reader or ahead of it."""
    settings = {"files": 96, "nodes": 4, "ranks_per_node": 2, "batch": 3, **keys}
    study = study_of(*(tiers or (_near(metadata_ops=700.0), _far())), **settings)
    train = replace(study.workload.train, epochs=3)
    study = replace(
        study, workload=replace(study.workload, train=train), placement=Placement(policy=policy, cache_rate=rate)
    )
    return Stored(_case_at(study, epoch), barrier)


def _case_at(study: Study, epoch: int) -> Case:
    simulation = Simulation.of(study)
    schedules = [simulation.schedule(number) for number in range(1, epoch + 1)]
    return Case(study, simulation.stations, simulation.reading, schedules[-1], np.zeros(study.system.ranks))


@cache
def cases() -> Mapping[str, Stored]:
    return {**_steady(), **_copied(), **_varying(), **_mixed(), **_saved()}


def _saved() -> dict[str, Stored]:
    """With checkpoints, of two epochs."""

    def case(*tiers: Tier, **checkpoint: Any) -> StoredSaving:
        wanted = {
            "model_parameters": 2000,
            "steps_between_checkpoints": 2,
            "mode": "all_ranks",
            "fsync": True,
            **checkpoint,
        }
        study = saving(
            *(tiers or (_near(metadata_ops=700.0), _far(write_bandwidth=1e5))),
            epochs=2, files=96, nodes=4, ranks_per_node=2, batch=3, cache_rate=0.4, transfer=700,
            checkpoint=wanted,
            compute=0.01,
        )  # fmt: skip
        return StoredSaving(_case_at(study, 1))

    sharing = {"discipline": "sharing"}
    return {
        "checkpoints": case(),
        "checkpoints of one rank": case(mode="rank_zero"),
        "checkpoints behind training": case(background=True),
        "checkpoints behind training, sharing": case(_near(**sharing), _far(**sharing), background=True),
        "checkpoints that are copied on": case(tier="lfs", drain=True),
        "checkpoints behind training that are copied on": case(tier="lfs", drain=True, background=True),
    }


def _steady() -> dict[str, Stored]:
    """Services take what they take; files stay where they are."""
    sharing = {"discipline": "sharing"}
    striped = {"servers": 4, "stripe_count": 3, "stripe_size": 512}
    links = {"node_bandwidth": 3e5, "device_bandwidth": 4e5, "gateway_bandwidth": 5e5, "gateway_shared_by": 3}
    return {
        "one rank, one tier": _pinned(_far(), nodes=1, ranks_per_node=1),
        "one tier without rates": _pinned(tier(latency=0.01)),
        "two tiers": _pinned(),
        "three tiers": _pinned(_near(), _far(), tier("archive", bandwidth=1e5, latency=0.05, metadata_servers=3)),
        "reads inline": _pinned(threads=0, compute=0.01),
        "three threads": _pinned(threads=3, batch=7),
        "more threads than samples": _pinned(threads=5, batch=3, prefetch=1),
        "nothing read ahead": _pinned(prefetch=0, threads=2, compute=0.02),
        "read ahead of compute": _pinned(prefetch=4, threads=2, compute=0.02),
        "overhead": _pinned(overhead=0.003, threads=2),
        "step barrier": _pinned(barrier=True, threads=2),
        "step barrier and compute": _pinned(barrier=True, compute=0.01, prefetch=1),
        "step barrier, compute and overhead": _pinned(barrier=True, compute=0.004, overhead=0.002, threads=3),
        "ranks start apart": _pinned(apart=5, threads=2, compute=0.01),
        "several metadata servers": _pinned(
            _near(metadata_ops=300.0), _far(metadata_servers=3, metadata_latency=0.001)
        ),
        "links and gateways": _pinned(_near(), _far(**links), threads=2),
        "striped": _pinned(_near(), _far(**striped), record=1900),
        "striped, several reads": _pinned(_near(), _far(**striped), record=5000, transfer=700, threads=2),
        "packed files": _pinned(_near(), _far(**striped), per_file=4, files=32, record=900),
        "packed files in order": _pinned(_near(**striped), _far(**striped), per_file=4, files=32, shuffle="off"),
        "sharing": _pinned(_near(**sharing), _far(**sharing)),
        "sharing, striped, several reads": _pinned(_near(), _far(**sharing, **striped), transfer=700, threads=3),
        "sharing near, links": _pinned(_near(**sharing), _far(**links), threads=2, overhead=0.001),
        "background": _pinned(_near(background=0.2), _far(background=0.5), threads=2),
        "sharing and background": _pinned(_near(**sharing, background=0.3), _far(**sharing, background=0.6), threads=2),
        "another seed": _pinned(simulate=2**63 - 1, threads=2),
        "last batch is short": _pinned(files=104, batch=5, threads=3, prefetch=1, compute=0.001),
    }


def _copied() -> dict[str, Stored]:
    """Files are copied to the near tier."""
    shared = (_near(discipline="sharing", metadata_ops=300.0), _far(discipline="sharing"))
    striped = (
        _near(servers=2, stripe_count=2, stripe_size=512, metadata_ops=700.0),
        _far(stripe_count=2, stripe_size=512, node_bandwidth=3e5),
    )
    packed: dict[str, Any] = {"per_file": 3, "files": 32, "shuffle": "local"}
    return {
        "fills": _copying("first-touch"),
        "fills, later epoch": _copying("first-touch", epoch=2, threads=2),
        "fills, least recently used": _copying("lru", epoch=3, threads=2, compute=0.005),
        "fills, sharing": _copying("first-touch", *shared, threads=3),
        "fills, packed files": _copying("first-touch", *striped, rate=1.0, **packed),
        "fills, packed files, sharing": _copying("lru", *shared, rate=1.0, threads=2, overhead=0.001, **packed),
        "fetched ahead": _copying("clairvoyant"),
        "fetched ahead, behind compute": _copying("clairvoyant", rate=1.0, compute=0.02, threads=2),
        "fetched ahead, later epoch": _copying("clairvoyant", epoch=2, threads=3, batch=7, compute=0.01),
        "fetched ahead, sharing": _copying("clairvoyant", *shared, rate=1.0, threads=2, prefetch=0, compute=0.01),
        "fetched ahead, striped": _copying("clairvoyant", *striped, rate=1.0, record=1900, compute=0.01),
        "fetched ahead, striped, several reads": _copying(
            "clairvoyant", *striped, rate=1.0, record=1900, transfer=700, compute=0.02, threads=2
        ),
        "fetched ahead, little room": _copying("clairvoyant", _near(capacity=4000), _far(), rate=1.0, compute=0.02),
        "fetched ahead, step barrier": _copying("clairvoyant", rate=1.0, compute=0.01, overhead=0.001, barrier=True),
    }


def _varying() -> dict[str, Stored]:
    """Stations whose services vary."""
    some = {"service_variation": 0.7, "metadata_variation": 1.0}
    shared = {**some, "discipline": "sharing"}
    return {
        "varying": _pinned(_near(**some), _far(**some), simulate=3),
        "varying opens only": _pinned(_near(), _far(metadata_variation=2.0), threads=2, simulate=4),
        "varying hardly": _pinned(_near(service_variation=0.05), _far(), simulate=5),
        "varying much": _pinned(_near(), _far(service_variation=4.0), compute=0.01, simulate=6),
        "varying, sharing": _pinned(_near(**shared), _far(**shared), threads=2, simulate=7),
        "varying, striped": _pinned(_near(), _far(**some, stripe_count=3, stripe_size=512), record=1900, simulate=8),
        "varying fills": _copying("first-touch", _near(**some, metadata_ops=700.0), _far(**some), threads=2),
        "varying fetches": _copying("clairvoyant", _near(**some), _far(**some), rate=1.0, compute=0.02, threads=2),
        "varying fills, sharing": _copying("lru", _near(**shared, metadata_ops=700.0), _far(**shared), epoch=2),
    }


def _mixed() -> dict[str, Stored]:
    """Drawn at random: combinations that nobody thought of. Their stations do not vary."""
    found = {}
    for number in range(20):
        rng = np.random.default_rng(number)

        def one_of(*values: Any, rng: np.random.Generator = rng) -> Any:
            return values[int(rng.integers(len(values)))]

        def any_tier(name: str, one_of: Any = one_of) -> Tier:
            return tier(
                name,
                visible_to=one_of("node", "global"),
                device_shared_by=one_of(None, 1, 2),
                gateway_shared_by=one_of(None, 1, 3),
                metadata_servers=one_of(1, 2),
                metadata_ops=one_of(None, 300.0),
                servers=one_of(1, 2, 4),
                read_ops=one_of(None, 500.0),
                bandwidth=2e5,
                stripe_count=one_of(1, 2, 3),
                stripe_size=512,
                node_bandwidth=one_of(None, 3e5),
                device_bandwidth=one_of(None, 4e5),
                gateway_bandwidth=one_of(None, 5e5),
                latency=one_of(0.0, 0.0001, 0.002),
                background=one_of(0.0, 0.3),
                discipline=one_of("fifo", "sharing"),
            )

        keys = {
            "nodes": one_of(1, 3, 5),
            "ranks_per_node": one_of(1, 2),
            "files": 60,
            "batch": one_of(1, 2, 5),
            "threads": one_of(0, 1, 2, 3),
            "prefetch": one_of(0, 1, 3),
            "compute": one_of(0.0, 0.005),
            "overhead": one_of(0.0, 0.001),
            "record": one_of(400, 1900),
            "transfer": one_of(700, 2**40),
            "barrier": one_of(True, False),
            "shuffle": one_of("global", "local"),
        }
        tiers = any_tier("lfs"), any_tier("gfs")
        policy = one_of("pinned", "first-touch", "lru", "clairvoyant")
        packed = {} if policy == "clairvoyant" else {"per_file": one_of(1, 3)}
        if policy == "pinned":
            found[f"mixed {number}"] = _pinned(*tiers, **keys, **packed)
        else:
            found[f"mixed {number}"] = _copying(policy, *tiers, epoch=one_of(1, 2), **keys, **packed)
    return found


def _kinds(some: Any) -> Any:
    """Of an epoch that writes nothing, opens and reads alone: as digests were made before there were writes."""
    return some if some[:, :, 2].any() else some[:, :, :2]


def digest(outcome: Outcome) -> str:
    """Of the exact bytes of all that was simulated."""
    load = outcome.load
    busy, wall, ops, nbytes = (_kinds(some) for some in (outcome.busy, outcome.wall, outcome.ops, outcome.nbytes))
    arrays = (outcome.seconds, outcome.stall, busy, wall, outcome.steps, load.seconds, load.ops)
    found = hashlib.sha256()
    saved = () if outcome.saved is None else (outcome.saved.standstill, outcome.saved.busy, outcome.saved.nbytes)
    for array in (*arrays, ops, nbytes, *saved):
        found.update(repr((array.dtype.str, array.shape)).encode() if array is not None else b"none")
        found.update(np.ascontiguousarray(array).tobytes() if array is not None else b"")
    return found.hexdigest()[:32]


def numbers(outcome: Outcome) -> dict[str, Any]:
    """A few of them, to see what changed."""
    return {
        "seconds": float(outcome.seconds.max()),
        "stall": float(outcome.stall.sum()),
        "busy": float(outcome.busy.sum()),
        "wall": float(outcome.wall.sum()),
        "work": float(outcome.load.seconds.sum()),
        "ops": int(outcome.load.ops.sum()),
    }


def main() -> None:
    found = {}
    for name, stored in cases().items():
        outcome = stored.outcome()
        found[name] = {"varies": stored.varies, "digest": digest(outcome), **numbers(outcome)}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    STORED.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
