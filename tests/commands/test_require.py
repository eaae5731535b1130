"""Requirements put together: the station model beside plain bandwidths, and what options change."""

from pathlib import Path

import pytest

from tierscope.arch.stations import reading_threads
from tierscope.commands.require import RequireOptions, answer_json, require
from tierscope.errors import UserError

CORI = RequireOptions(system="cori-gpu", nodes="1..16", precision="amp")


def test_stations_need_at_least_what_bandwidths_say() -> None:
    """Where links are all there is, both agree; opens, latencies and shared servers come on top."""
    found = require("cosmoflow", CORI).required
    for point in found.scaling:
        share = point.share_bytes / 1.6e9
        assert point.first_storage_seconds == pytest.approx(share, rel=0.02)


def test_many_small_files_wait_for_the_metadata_server_that_bandwidths_do_not_see() -> None:
    found = require(
        "resnet50", RequireOptions(system="cori-gpu", nodes="16", sample_file_bytes="4kB", samples=10**7)
    ).required
    (point,) = found.scaling
    assert point.share_bytes / 1.6e9 < 2
    assert point.first_storage_seconds == pytest.approx(10**7 / 30_000, rel=0.05)
    assert point.first_seconds >= (point.first_storage_seconds or 0)


def test_packed_files_are_opened_once() -> None:
    found = require("resnet50", RequireOptions(system="cori-gpu", nodes="16")).required
    assert found.scaling[0].first_storage_seconds == pytest.approx(150e9 / 16 / 1.6e9, rel=0.05)


def test_a_system_of_ones_own_without_rates_has_no_station_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    accelerator = "{count: 1, memory: 1 GB, memory_bandwidth: 1 TB/s, fp32: 1 TFLOP/s}"
    path.write_text(f"system: mine\nhardware: {{accelerator: {accelerator}}}\ntiers: {{gfs: {{path: /tmp/x}}}}\n")
    answer = require("lenet5", RequireOptions(system=str(path)))
    (point,) = answer.required.scaling
    assert (point.storage_seconds, point.far_seconds, point.waits_for) == (None, None, "compute")
    document = answer_json(answer)
    assert document["system"] == "mine"
    assert document["movement_seconds_per_sample"]["samples_pfs"] is None


def test_another_shape_has_files_in_proportion() -> None:
    usual = require("resnet50", CORI).required
    wide = require("resnet50", RequireOptions(system="cori-gpu", input="3x448x448")).required
    assert wide.data.file_bytes == pytest.approx(4 * usual.data.file_bytes)
    assert wide.sample_bytes == 4 * usual.sample_bytes


def test_nodes_are_the_systems_powers_of_two_unless_told() -> None:
    assert require("lenet5", RequireOptions(system="cori-gpu")).required.wish.nodes == (1, 2, 4, 8, 16, 18)
    assert require("lenet5", RequireOptions(system="h200-node")).required.wish.nodes == (1,)


def test_threads_are_a_nodes_cores_divided() -> None:
    found = require("lenet5", CORI).required
    assert reading_threads(found.machine) == 5


def test_huge_systems_are_answered_without_stations() -> None:
    (point,) = require("resnet50", RequireOptions(system="cori-gpu", nodes="1000000")).required.scaling
    assert point.storage_seconds is None


@pytest.mark.parametrize("compression", ["4", "4:1GB/s"])
def test_compression_is_read_less(compression: str) -> None:
    plain = require("cosmoflow", CORI).required.scaling[0]
    packed = require(
        "cosmoflow", RequireOptions(system="cori-gpu", nodes="1", precision="amp", compression=compression)
    ).required
    point = packed.scaling[0]
    assert point.share_bytes == pytest.approx(plain.share_bytes / 4)
    assert point.first_storage_seconds == pytest.approx((plain.first_storage_seconds or 0) / 4, rel=0.02)
    if ":" in compression:
        assert point.far_seconds == pytest.approx(262_144 * 17e6 / 1e9)


def test_a_traced_network_needs_a_shape() -> None:
    with pytest.raises(UserError, match="add --input"):
        require("torch.nn:Identity", CORI)


def test_a_transformer_is_no_list_of_layers() -> None:
    with pytest.raises(UserError, match="llama3-8b: is a transformer; use 'tierscope require llama3-8b'"):
        require("llama3-8b", CORI)
