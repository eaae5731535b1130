"""No refusal advises what is already so: over many studies that cannot work, whatever key is to be set has another value now."""

import random
import re
from dataclasses import replace

import pytest

from tests.small_study import small_study
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.measure.first_touch import check_policies
from tierscope.spec.check import _problems
from tierscope.spec.study import (
    FILE_ACCESSES,
    FILE_SHUFFLES,
    IO_ENGINES,
    POLICIES,
    PREPROCESSES,
    READ_AHEADS,
    SAMPLE_SHUFFLES,
    SHUFFLES,
    Study,
)

READER = {
    "read_threads": (0, 1),
    "shuffle": SHUFFLES,
    "file_shuffle": FILE_SHUFFLES,
    "sample_shuffle": SAMPLE_SHUFFLES,
    "file_access": FILE_ACCESSES,
    "read_ahead": READ_AHEADS,
    "preprocess": PREPROCESSES,
    "preprocess_time": (0.0, 0.1),
    "computation_threads": (0, 1),
    "data_loader": ("auto", *LOADERS.where(lambda loader: loader.by_name)),
    "odirect": (False, True),
    "io_engine": IO_ENGINES,
}
DATASET = {
    "format": tuple(FORMATS),
    "num_files_train": (1, 24, 25),
    "num_samples_per_file": (1, 3),
    "record_length_bytes_stdev": (0, 100, 5000),
}
CHECKPOINT = {"mode": ("rank_zero", "all_ranks"), "zero_stage": (0, 1), "model_parameters": (None, 1000)}
TIER = {"emulate": (False, True), "bandwidth": (None, 1e9), "discipline": ("fifo", "sharing"), "lustre_ost": (None, 1)}


def draw(dice: random.Random, keys: dict[str, tuple[object, ...]]) -> dict[str, object]:
    """Most keys as they are by themselves, so that more than the first problem is met."""
    return {key: dice.choice(values) for key, values in keys.items() if dice.random() < 0.3}


def some_study(dice: random.Random) -> Study:
    study = small_study("ranks_per_node=2")
    workload, system = study.workload, study.system
    return replace(
        study,
        workload=replace(
            workload,
            reader=replace(workload.reader, **draw(dice, READER)),  # type: ignore[arg-type]
            dataset=replace(workload.dataset, **draw(dice, DATASET)),  # type: ignore[arg-type]
            checkpoint=replace(workload.checkpoint, **draw(dice, CHECKPOINT)),  # type: ignore[arg-type]
        ),
        system=replace(system, tiers=tuple(replace(tier, **draw(dice, TIER)) for tier in system.tiers)),  # type: ignore[arg-type]
        placement=replace(study.placement, policy=dice.choice(POLICIES)),
    )


def refusals(study: Study) -> list[str]:
    found = [problem.text for problem in _problems(study)]
    if not found:
        try:
            check_policies([study])
        except UserError as error:
            found.append(str(error))
    return found


def values_now(study: Study) -> dict[str, str]:
    sections = (study.workload.reader, study.workload.dataset, study.workload.checkpoint, study.placement)
    return {
        key: str(getattr(section, key)).lower()
        for section in sections
        for key in (*READER, *DATASET, *CHECKPOINT, "policy")
        if hasattr(section, key)
    }


def advised(text: str) -> list[tuple[str, str]]:
    """Of "KEY = VALUE, but …; set it to A, set b: B, or …": (KEY, A), (b, B)."""
    said, _, advice = text.rpartition("; ")
    advice = advice.rpartition(": set ")[2] if ": set " in advice else advice
    own = re.findall(r"([a-z_]+) = ", said)
    found = re.findall(r"([a-z_]+): ([a-z0-9_]+)", advice)
    return [*found, *((own[-1], value) for value in re.findall(r"set it to ([a-z0-9_]+)", text) if own)]


def test_what_is_to_be_set_is_not_so_yet() -> None:
    dice, met = random.Random(18), set()
    for _ in range(1500):
        study = some_study(dice)
        now = values_now(study)
        for text in refusals(study):
            pairs = [(key, value) for key, value in advised(text) if key in now]
            met |= {key for key, _ in pairs}
            assert all(now[key] != value for key, value in pairs), (text, pairs)
    assert met >= {
        "data_loader",
        "io_engine",
        "file_access",
        "read_ahead",
        "num_samples_per_file",
        "record_length_bytes_stdev",
    }


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("num_samples_per_file=2", "num_samples_per_file = 2 (format tfrecord); .+: set it to 1, set pinned"),
        ("record_length_bytes_stdev=100", "record_length_bytes_stdev = 100; .+: set it to 0, set pinned"),
        ("format=hdf5", "format = hdf5; .+: set it to raw, tfrecord, npz, npy or csv, set pinned"),
    ],
)
def test_first_touch_names_the_key_that_is_in_its_way(setting: str, wanted: str) -> None:
    with pytest.raises(UserError, match=f"workload.dataset.{re.escape(wanted).replace(re.escape('.+'), '.+')}"):
        check_policies([small_study("policy=first-touch", "lfs.capacity=1 MiB", setting)])
