"""Kinds of work on torch: every one can be done in its ways, a device without room leaves it out, and a batch that does not fit is refused."""

import pytest

from tierscope.arch.networks import build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.work_draws import COUNTS, draws
from tierscope.arch.work_kinds import KINDS
from tierscope.errors import UserError
from tierscope.spec.study import Study

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")
CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", sorted(set(COUNTS) - {"sgd", "adam"}))
def test_every_kind_of_work_is_done_in_all_its_ways(kind: str) -> None:
    from tierscope.train.device_probe import _row  # noqa: PLC0415
    from tierscope.train.device_work import WorkMemory  # noqa: PLC0415

    small = next(sizes for sizes in draws(kind) if KINDS[kind].elements(sizes) < 2e5 and KINDS[kind].flops(sizes) < 1e8)
    row = _row(kind, small, WorkMemory.of(CPU, 1 << 20), CPU)
    assert row is not None
    assert row.sizes == small
    assert len(row.seconds) == len(KINDS[kind].ways)
    assert all(seconds > 0 for seconds in row.seconds)


def test_work_without_room_is_left_out() -> None:
    from tierscope.train.device_probe import _row  # noqa: PLC0415
    from tierscope.train.device_work import WorkMemory  # noqa: PLC0415

    assert _row("add", (1e6,), WorkMemory.of(CPU, 1 << 10), CPU) is None


def test_a_batch_that_does_not_fit_is_refused_with_the_prediction() -> None:
    from tierscope.train.fits import refuse_beyond  # noqa: PLC0415

    network = build_network("resnet50")
    refuse_beyond(network, 8, PRECISIONS["fp32"], "sgd", False, 1 << 40)
    with pytest.raises(UserError, match=r"batch 4096 does not fit: .* at its peak \(predicted\)"):
        refuse_beyond(network, 4096, PRECISIONS["fp32"], "sgd", False, 16 << 30)


def test_a_study_is_refused_by_the_memory_of_the_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the study asks this of a rank before data are written."""
    from types import SimpleNamespace  # noqa: PLC0415

    from tierscope.spec.load import parse_study  # noqa: PLC0415
    from tierscope.train.start import refuse_large_batch  # noqa: PLC0415

    def study(device: str, batch: int) -> Study:
        text = f"""
study: s
workload:
  dataset: {{format: raw, num_files_train: 8192, record_length_bytes: 1 KiB}}
  reader: {{batch_size: {batch}}}
  model: {{network: resnet50, device: {device}}}
system: {{nodes: 1, ranks_per_node: 1, tiers: {{gfs: {{path: /nowhere}}}}}}
"""
        return parse_study(text, "s.yaml")

    refuse_large_batch(study("cpu", 8), 0)
    with pytest.raises(UserError, match=r"batch 1000000 does not fit: .* \(predicted\), and each of 2 ranks on the machine has .*; use a smaller batch$"):  # fmt: skip
        refuse_large_batch(study("cpu", 1_000_000), 1)
    with pytest.raises(UserError, match="torch finds no CUDA device; set cpu or auto"):
        refuse_large_batch(study("cuda", 8), 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=16 << 30))
    refuse_large_batch(study("auto", 8), 0)
    with pytest.raises(
        UserError, match=r"batch 4096 does not fit: .* at its peak \(predicted\), and the device has 16 GiB"
    ):
        refuse_large_batch(study("auto", 4096), 0)


def test_a_precision_without_kernels_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes of measuring ended in a traceback."""
    from tierscope.arch.device_file import WorkRow  # noqa: PLC0415
    from tierscope.train import device_probe  # noqa: PLC0415

    def row(kind: str, sizes: object, memory: object, _device: object) -> WorkRow | None:
        return None if kind == "conv3d" and memory.is_narrow else WorkRow((1.0,), (1.0,))  # type: ignore[attr-defined]

    monkeypatch.setattr(device_probe, "_row", row)
    monkeypatch.setattr(device_probe, "host_seconds", lambda _device, precision: precision.name)
    said: list[str] = []
    measured = device_probe.probe_device(CPU, said.append, share=0.01)
    assert list(measured.host) == ["fp32"]
    assert {precision for _, precision in measured.rows} == {"fp32"}
    assert "amp: left out: the device has no kernels of conv3d for it, or no room" in said
    monkeypatch.setattr(device_probe, "_row", lambda *_: None)
    with pytest.raises(UserError, match="too few sizes in any precision"):
        device_probe.probe_device(CPU, said.append, share=0.01)
