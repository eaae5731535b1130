"""Keys that change nothing are known, with the reason; keys that change something are not called so."""

import pytest

from tests.small_study import small_study
from tierscope.plan.inert import effective, inert_axes, inert_keys, why_inert
from tierscope.plan.reading import reading_of
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study

PACKED = ("num_files_train=6", "num_samples_per_file=64", "record_length_bytes=262128", "batch_size=8")
IN_ORDER = (*PACKED, "sample_shuffle=off")


def swept(sweep: str, *settings: str) -> dict[str, str]:
    return inert_axes(small_study(*settings, f"sweep={{{sweep}}}"))


SIZES = "reader.transfer_size: [256 KiB, 1 MiB, 4 MiB]"


def test_the_transfer_size_of_shuffled_records_is_inert() -> None:
    """The study that was tuned although nothing could come of it."""
    (why,) = swept(SIZES, *PACKED).values()
    assert "every sample is read by itself, and has at most 256 KiB" in why
    assert "sample_shuffle: off" in why


def test_the_transfer_size_of_records_in_order_is_not() -> None:
    assert swept(SIZES, *IN_ORDER) == {}


def test_it_is_where_parts_of_batches_are_small() -> None:
    (why,) = swept(SIZES, *IN_ORDER, "batch_size=4", "read_threads=4").values()
    assert "its part of a batch; raise batch_size" in why


def test_values_below_the_limit_still_count() -> None:
    """512 B splits samples of 1,000 bytes, whatever the order."""
    assert swept("reader.transfer_size: [512, 1 MiB]", "num_files_train=6", "num_samples_per_file=4") == {}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("per_file", [1, 5])
@pytest.mark.parametrize("order", ["off", "seed"])
@pytest.mark.parametrize("form", ["tfrecord", "raw", "npz", "csv"])
def test_what_is_inert_reads_the_same(form: str, order: str, per_file: int, threads: int) -> None:
    """Both ways, for sizes around all limits: the same effect if and only if the same reads are planned."""
    studies = [
        small_study(
            f"format={form}", f"sample_shuffle={order}", f"num_samples_per_file={per_file}", f"read_threads={threads}",
            f"transfer_size={size}",
        )
        for size in (512, 1000, 2000, 3000, 6000, 100_000)
    ]  # fmt: skip
    for study in studies:
        for other in studies:
            same = effective(study) == effective(other)
            first, second = reading_of(study), reading_of(other)
            assert same <= (first.pieces == second.pieces and first.reads_per_sample == second.reads_per_sample)


@pytest.mark.parametrize(
    ("sweep", "settings", "why"),
    [
        ("prefetch_size: [1, 8]", ("read_threads=0",), "reads nothing ahead"),
        ("shuffle_nodes: [1, 2]", (), "shuffle = global"),
        ("sample_shuffle: [off, seed]", ("shuffle=off",), "shuffle = off"),
    ],
)
def test_reasons(sweep: str, settings: tuple[str, ...], why: str) -> None:
    (reason,) = swept(sweep, *settings).values()
    assert why in reason


def test_keys_that_act_are_not_called_inert() -> None:
    acting = "read_threads: [1, 2], batch_size: [1, 2], computation_threads: [1, 2], prefetch_size: [1, 2]"
    assert swept(acting, "preprocess=busy", "preprocess_time=1ms") == {}


def test_a_key_that_acts_at_one_point_of_another_is_not_inert() -> None:
    assert swept("prefetch_size: [1, 2], read_threads: [0, 1]") == {}


def test_checkpoints_are_written_in_transfers_too() -> None:
    assert swept(SIZES, *PACKED, "steps_between_checkpoints=5") == {}


def test_what_is_not_simulated_is_inert_in_a_simulation_only() -> None:
    study: Study = small_study("sweep={reader.verify: [off, all]}")
    assert inert_axes(study) == {}
    assert inert_axes(study, simulated=True) == {"verify": "it is not simulated"}
    assert why_inert(study, "workload.reader.verify", simulated=True) == "it is not simulated"


def test_an_effective_study_has_the_values_that_are_named() -> None:
    study = parse_study(
        "study: a\nworkload:\n  dataset: {num_files_train: 2, record_length_bytes: 1000}\n  reader: {}\n  train: {}\nsystem:\n  tiers: {gfs: {path: /x}}",
        "test",
    )
    changed = effective(study)
    for inert in inert_keys(study):
        value: object = changed
        for name in inert.path.split("."):
            value = getattr(value, name)
        assert value == inert.value
