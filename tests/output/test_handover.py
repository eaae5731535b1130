"""Runs handed over as arrays: nothing is lost, and nothing hostile is believed."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tierscope.errors import ResultError
from tierscope.output import handed, handover
from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.provenance import provenance
from tierscope.trace.rank_trace import CheckpointLog, Phases, RankEpoch, RankTrace, Residency, TrainingLog
from tierscope.trace.recorder import LaneTable

RUN = handover.HandedRun(
    point=3,
    repetition=1,
    overhead={"recorder_seconds_per_op": 1e-7},
    provenance=provenance("local", {"gfs": "/"}),
)


def a_rank() -> RankTrace:
    cells = [len(KINDS)] * 4 + [len(KINDS) * BINS] * 2
    lane = LaneTable(1, *(np.arange(count, dtype=np.int64) * factor for factor, count in enumerate(cells, 1)))
    epoch = RankEpoch(
        seconds=1.5,
        samples=8,
        payload_bytes=80,
        stall_seconds=0.1,
        compute_seconds=1.0,
        decode_seconds=0.0,
        order_digest="ab",
        steps_per_entry=1,
        steps=np.ones((4, 3)),
        epoch=1,
        limited_ops=0,
        late_ops=0,
        late_seconds=0.0,
        lanes=(lane,),
        residency=(Residency("gfs", 10, None),),
        span_ns=(5, 9),
        phases=Phases(copy_seconds=0.25),
    )
    training = TrainingLog(
        network="lenet5", parameters=3, device="cpu", software="torch", first_loss=2.0, last_loss=1.0
    )
    return RankTrace(0, 0, (epoch,), "native", CheckpointLog((0.5,), 10, 1), training)


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    path = str(tmp_path / "run.npz")
    handover.save(path, RUN, [a_rank()])
    about, (rank,) = handed.load(path)
    assert about == RUN
    before = a_rank()
    assert (rank.rank, rank.loader, rank.checkpoints, rank.training) == (
        0,
        "native",
        before.checkpoints,
        before.training,
    )
    (epoch,) = rank.epochs
    assert epoch.phases == before.epochs[0].phases
    assert epoch.residency == before.epochs[0].residency
    assert epoch.span_ns == (5, 9)
    np.testing.assert_array_equal(epoch.steps, before.epochs[0].steps)
    np.testing.assert_array_equal(epoch.lanes[0].latencies, before.epochs[0].lanes[0].latencies)


def test_every_flipped_byte_is_told_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    handover.save(str(path), RUN, [a_rank()])
    whole = path.read_bytes()
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        said = refusal(path)
        assert said is None or (str(path) in said and "\n" not in said)


def refusal(path: Path) -> str | None:
    try:
        handed.load(str(path))
    except ResultError as error:
        return str(error)
    return None


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    handover.save(str(path), RUN, [a_rank()])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ResultError, match="is not a run from --hand-over"):
        handed.load(str(path))


def written(path: Path, tree: object) -> str:
    np.savez(path, about=np.frombuffer(json.dumps(tree).encode(), np.uint8))
    return str(path)


@pytest.mark.parametrize(
    "tree",
    [
        {"schema_version": 2, "about": {}, "ranks": []},
        {"schema_version": 1, "about": {}, "ranks": []},
        {"schema_version": 1, "about": {}, "ranks": [{"$type": "Popen", "args": "true"}]},
        {"schema_version": 1, "about": {}, "ranks": [{"$type": "RankTrace", "rank": 0}]},
        {"schema_version": 1, "about": {}, "ranks": [{"$array": "array0"}]},
        {"schema_version": 1, "about": [], "ranks": []},
        [],
    ],
)
def test_other_things_are_refused(tmp_path: Path, tree: object) -> None:
    with pytest.raises(ResultError, match="is not a run from --hand-over"):
        handed.load(written(tmp_path / "run.npz", tree))


GOOD = {"schema_version": 1, "about": {"point": 3, "repetition": 1}}
RANK = {"$type": "RankTrace", "rank": 0, "node": 0, "epochs": []}


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({**GOOD, "ranks": []}, "ranks must be array of length >= 1"),
        ({**GOOD, "ranks": [{**RANK, "rank": "0"}]}, r"ranks\[0\].rank must be int, is str"),
        ({**GOOD, "ranks": [{**RANK, "epochs": [{}]}]}, r"ranks\[0\].epochs\[0\].* is missing"),
        ({**GOOD, "ranks": [RANK], "about": {"point": 3}}, "about.repetition is missing"),
        ({**GOOD, "ranks": [RANK], "schema_version": 9}, "has another version"),
        ({**GOOD, "ranks": [{**RANK, "training": {"loss": 1}}]}, r"ranks\[0\].training.* is missing"),
    ],
)
def test_the_field_that_does_not_fit_is_named(tmp_path: Path, tree: object, reason: str) -> None:
    with pytest.raises(ResultError, match=rf"run\.npz: is not a run from --hand-over \({reason}"):
        handed.load(written(tmp_path / "run.npz", tree))


def test_an_array_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    handover.save(str(path), RUN, [a_rank()])
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "array0"}
    np.savez(path, **arrays)
    with pytest.raises(ResultError, match="must be an array of this file"):
        handed.load(str(path))


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    held = io.BytesIO()
    np.save(held, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.npy", held.getvalue())
    with pytest.raises(ResultError):
        handed.load(str(path))
