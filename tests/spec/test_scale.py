import itertools
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny import tiny
from tierscope.errors import UserError
from tierscope.spec import presets
from tierscope.spec.check import find_problem
from tierscope.spec.load import load_study
from tierscope.spec.scale import scale_note, scale_study
from tierscope.spec.study import Study

SHARES = (1e-4, 0.001, 0.01, 0.1, 1)
PRESETS = presets.names()


@cache
def plain(name: str) -> Study:
    """Without a sweep, which is about other keys."""
    return replace(load_study(name), sweep=())


@cache
def scaled(name: str, share: float) -> Study:
    return scale_study(plain(name), share)


def stored_as_asked(full: Study, small: Study, share: float) -> bool:
    """Bytes are that share, but for half a sample of each file, unless every rank has hardly one."""
    before, after = full.workload.dataset, small.workload.dataset
    if full.workload.reader.rank_reads == "all":  # of two ranks, which no study goes below
        share = min(1.0, share * full.system.ranks / 2)
    files, ranks = after.num_files_train, small.system.ranks
    return abs(after.samples - share * before.samples) <= files / 2 + 1e-6 or after.samples < ranks + files


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("share", SHARES)
def test_every_preset_at_every_scale_is_possible_and_that_large(name: str, share: float) -> None:
    full = plain(name)
    small = scaled(name, share)
    assert find_problem(small) is None
    assert small.workload.dataset.record_length_bytes == full.workload.dataset.record_length_bytes
    assert 2 <= small.system.ranks <= full.system.ranks
    if full.workload.dataset.format == "synthetic":
        per_rank = [study.workload.dataset.samples / study.system.ranks for study in (full, small)]
        assert per_rank[0] == per_rank[1]
    else:
        assert stored_as_asked(full, small, share)


@pytest.mark.parametrize("name", PRESETS)
def test_more_of_a_study_is_never_less(name: str) -> None:
    for less, more in itertools.pairwise(scaled(name, share) for share in SHARES):
        assert less.system.ranks <= more.system.ranks
        assert less.workload.dataset.samples <= more.workload.dataset.samples
        assert less.workload.dataset.num_files_train <= more.workload.dataset.num_files_train
        assert (less.workload.checkpoint.model_parameters or 0) <= (more.workload.checkpoint.model_parameters or 0)


@given(
    files=st.integers(1, 5000),
    per_file=st.integers(1, 2000),
    nodes=st.integers(1, 300),
    each=st.integers(1, 8),
    access=st.sampled_from(["shared", "multi"]),
    share=st.floats(1e-5, 1),
)
def test_any_study_at_any_scale(files: int, per_file: int, nodes: int, each: int, access: str, share: float) -> None:
    ranks = nodes * each
    files = files * ranks if access == "multi" else max(files, -(-ranks // per_file))
    settings = {
        "num_files_train": files,
        "num_samples_per_file": per_file,
        "nodes": nodes,
        "ranks_per_node": each,
        "file_access": access,
    }
    full = tiny("sweep={}", *(f"{key}={value}" for key, value in settings.items()))
    small = scale_study(full, share)
    assert find_problem(small) is None
    assert min(2, ranks) <= small.system.ranks <= ranks
    assert stored_as_asked(full, small, share)


def test_proportions_stay_where_whole_numbers_allow_it() -> None:
    full = tiny("sweep={}", "num_files_train=4000", "num_samples_per_file=50", "nodes=100", "ranks_per_node=4")
    small = scale_study(full, 0.1)
    dataset, system = small.workload.dataset, small.system
    assert (dataset.num_files_train, dataset.num_samples_per_file) == (400, 50)
    assert (system.nodes, system.ranks_per_node) == (10, 4)


def test_one_shared_file_stays_one() -> None:
    full = tiny("sweep={}", "num_files_train=1", "num_samples_per_file=10000", "nodes=10")
    dataset = scale_study(full, 0.01).workload.dataset
    assert (dataset.num_files_train, dataset.num_samples_per_file) == (1, 100)


def test_steps_shrink_as_a_ranks_samples_do() -> None:
    steps = ("total_training_steps=1000", "steps_between_checkpoints=100")
    full = tiny("sweep={}", "num_files_train=80000", "nodes=4", *steps)  # 20,000 of a rank
    small = scale_study(full, 0.1)  # 4,000 of each of two
    assert small.workload.train.total_training_steps == 200
    assert small.workload.checkpoint.steps_between_checkpoints == 20


def test_the_whole_of_a_study_is_itself() -> None:
    assert scale_study(tiny(), 1) == tiny()


def test_a_scaled_study_has_a_name_of_its_own() -> None:
    assert scale_study(tiny(), 0.5).study == "tiny-x0.5"
    assert len(scale_study(replace(tiny(), study="a" * 64), 0.001).study) == 64


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_shares_that_are_none(share: float) -> None:
    with pytest.raises(UserError, match="must be above 0 and at most 1"):
        scale_study(tiny(), share)


def test_a_swept_key_that_would_shrink_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"--scale 0.1 would scale system.nodes, which the study sweeps; set a single value, or"
    ):
        scale_study(tiny("sweep={nodes: [1, 2]}"), 0.1)


def test_what_is_said_of_it() -> None:
    full = load_study("imagenet")
    assert scale_note(full, scale_study(full, 0.001)) == (
        "scaled: 2 ranks, 2 files, 1,048 samples, 262 MiB; full study: 512 ranks, 1,024 files, 1,048,576 samples, 256 GiB"
    )
    l2hmc = load_study("llama-checkpoint")
    assert scale_note(l2hmc, scale_study(l2hmc, 0.001)).startswith(
        "scaled: 2 ranks, 320 samples made in memory, a model of 8,030,261 parameters; full study: 8 ranks"
    )


def test_ranks_of_a_model_that_is_split_over_them_stay() -> None:
    """Each writes its own part of a smaller model."""
    split = ("mode=all_ranks", "model_parameters=1000000", "tensor_parallel=2", "steps_between_checkpoints=1")
    full = load_study("llama-checkpoint", [*split, "zero_stage=1"])
    small = scale_study(full, 0.01)
    assert (small.system.ranks, full.system.ranks) == (8, 8)
    assert small.workload.checkpoint.model_parameters == 10_000
    whole = scale_study(load_study("llama-checkpoint", ["model_parameters=1000000"]), 0.01)
    assert whole.system.ranks == 2
