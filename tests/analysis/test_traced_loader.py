"""The first sentence about a traced program with a loader: what its workers spent decides, and what cannot be seen is not claimed."""

import json
from typing import Any

import pytest

from tierscope.analysis.storage_stall import UNCLEAR
from tierscope.analysis.traced_loader import limit_json, loader_limit, traced_limit
from tierscope.analysis.training_limits import BOTH, LOADER, NEITHER, STORAGE
from tierscope.analysis.wording import Finding
from tierscope.trace.description import LoaderUse


def use(**changes: Any) -> LoaderUse:
    """Two workers for ten seconds each."""
    plain: dict[str, Any] = {
        "frameworks": ("torch",),
        "workers": 2,
        "other_readers": 1,
        "window_seconds": 20.0,
        "io_seconds": 1.0,
        "user_seconds": 18.0,
        "system_seconds": 0.5,
        "delay_seconds": 0.2,
        "training_cpu_share": 0.3,
    }
    return LoaderUse(**{**plain, **changes})


@pytest.mark.parametrize(
    ("changes", "answer", "start"),
    [
        ({}, LOADER, "The loader, not storage, limits this program: the loader's 2 worker processes were busy at least 95 % of the time, 5 % with I/O on these tiers and 90 to 94 %"),
        ({"io_seconds": 18.5, "user_seconds": 0.5}, STORAGE, "Storage, not the loader's own work, limits this program"),
        ({"io_seconds": 8.0, "user_seconds": 10.0}, BOTH, "Storage and the loader both limit this program"),
        ({"user_seconds": 2.0, "training_cpu_share": 0.99}, NEITHER, "Neither storage nor the loader limits this program, its training process does"),
        ({"user_seconds": 2.0}, UNCLEAR, "Whether storage or the loader limits this program cannot be determined"),  # it waits for a device, or for the slowest worker
        ({"user_seconds": 2.0, "training_cpu_share": None}, UNCLEAR, "Whether storage or the loader limits this program cannot be determined"),
        ({"user_seconds": 4.0, "training_cpu_share": 0.99, "delay_seconds": 14.0}, LOADER, "The loader, not storage"),  # eight workers on two cores are not idle
        ({"user_seconds": 2.0, "training_cpu_share": 0.99, "delay_seconds": None}, UNCLEAR, "Whether storage or the loader"),
        ({"user_seconds": 2.0, "training_cpu_share": 0.99, "system_seconds": 15.0}, UNCLEAR, "Whether storage or the loader"),  # handing over
        ({"window_seconds": 0.1, "user_seconds": 0.09}, UNCLEAR, "Whether storage or the loader"),
    ],
)  # fmt: skip
def test_the_first_sentence(changes: dict[str, Any], answer: str, start: str) -> None:
    limit = traced_limit(use(**changes))
    assert limit.answer == answer
    assert limit.text.startswith(start)
    assert limit.text.endswith(".")


@pytest.mark.parametrize(("framework", "loader"), [("torch", "pytorch"), ("tensorflow", "tensorflow")])
def test_a_process_that_reads_and_trains_cannot_be_taken_apart(framework: str, loader: str) -> None:
    """tf.data reads in threads, a DataLoader without workers in the training loop itself."""
    limit = traced_limit(use(workers=0, window_seconds=0.0, frameworks=(framework,)))
    assert (limit.answer, limit.shares) == (UNCLEAR, None)
    assert f"'tierscope train STUDY --loader {loader} --storage-matters'" in limit.text


def test_too_few_cores_are_named() -> None:
    text = traced_limit(use(user_seconds=4.0, delay_seconds=14.0)).text
    assert text.startswith("The loader, not storage, limits this program, for lack of free cores: ")
    assert "; 70 % waiting for a free core)" in text
    assert "free core" not in traced_limit(use()).text


def test_files_from_the_page_cache_acquit_no_storage() -> None:
    warm = loader_limit(use(), [Finding("page_cache_speed", {})])
    assert warm is not None
    assert warm.text.endswith("its files came from the page cache: from slower storage, storage may limit it too.")
    cold = loader_limit(use(), [])
    assert cold is not None
    assert "page cache" not in cold.text
    assert loader_limit(None, []) is None


def test_json_has_all_that_was_seen() -> None:
    found = limit_json(use(), traced_limit(use()))
    json.dumps(found, allow_nan=False)
    assert (found["answer"], found["workers"], found["shares"]["io"]) == (LOADER, 2, 0.05)
