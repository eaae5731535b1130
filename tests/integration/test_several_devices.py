"""Paths of several devices, without any: who joins whom over what, and that averages over ranks are those of one process (over gloo)."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tierscope.bench.work import RankPlace
from tierscope.errors import UserError

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")


def place(rank: int = 0, size: int = 2, on_host: int = 2, meeting: str | None = "/meet") -> RankPlace:
    return RankPlace(rank, size, rank, on_host, meeting)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.setattr(
        "torch.distributed.init_process_group", lambda backend, **more: calls.append({"backend": backend, **more})
    )
    return calls


@pytest.mark.parametrize(("device", "backend"), [("cuda:1", "nccl"), ("cpu", "gloo")])
def test_devices_join_over_nccl_and_cpus_over_gloo(
    joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, device: str, backend: str
) -> None:
    from tierscope.train.work import join  # noqa: PLC0415

    current: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    join(place(rank=1, size=4, on_host=2), torch.device(device))
    assert joined == [{"backend": backend, "init_method": "file:///meet", "rank": 1, "world_size": 4}]
    assert current == ([torch.device(device)] if backend == "nccl" else []), (
        "events and streams are those of the current"
    )
    assert "GLOO_SOCKET_IFNAME" not in os.environ  # on several hosts the loopback would find nobody


def test_ranks_of_one_host_meet_on_its_loopback(joined: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.work import join  # noqa: PLC0415

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    join(place(), torch.device("cpu"))
    assert os.environ.pop("GLOO_SOCKET_IFNAME") == "lo"
    with pytest.raises(UserError, match=r"^ranks that train together need a place to meet"):
        join(place(meeting=None), torch.device("cpu"))
    assert len(joined) == 1


def test_every_rank_of_a_host_has_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.devices import pick_device  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(pick_device("auto", number)) for number in (0, 1)] == ["cuda:0", "cuda:1"]
    assert str(pick_device("cpu", 1)) == "cpu"
    with pytest.raises(
        UserError, match=r"^3 ranks of one host need a device each, but torch finds 2; lower system.ranks_per_node"
    ):
        pick_device("cuda", 2)


RANK = """
import sys
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from tierscope.bench.work import RankPlace
from tierscope.train.exchange import Exchange
from tierscope.train.work import join

torch.set_num_threads(1)
rank, size, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
device = torch.device("cpu")
join(RankPlace(rank, size, rank, size, meeting), device)
torch.manual_seed(0)
plain = torch.nn.Linear(4, 2)
wrapped = DistributedDataParallel(plain)
exchange = Exchange(device, size)
wrapped.register_comm_hook(None, exchange.reduce)
inputs = torch.arange(4.0 * 2 * size).view(size, 2, 4)
wrapped(inputs[rank]).square().mean().backward()
own = plain.weight.grad.clone()
alone = torch.nn.Linear(4, 2)
alone.load_state_dict(plain.state_dict())
alone(inputs.view(-1, 4)).square().mean().backward()
assert torch.allclose(own, alone.weight.grad, rtol=1e-5), (own, alone.weight.grad)
assert exchange.turn() > 0
assert exchange.turn() == 0
exchange.settle()
distributed.destroy_process_group()
"""


def test_gradients_of_three_ranks_are_those_of_one_process_with_all_samples(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*command, str(rank), "3", str(tmp_path / "meet")], stderr=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=180)
        assert rank.returncode == 0, errors


def test_all_reduce_is_measured_over_processes_of_their_own() -> None:
    """As `probe --accelerator` does over several devices, here over gloo: more bytes take longer, the slowest process counts."""
    from tierscope.train.all_reduce import measure_all_reduce  # noqa: PLC0415

    shared = measure_all_reduce(["cpu", "cpu"], (4096.0, float(1 << 24)))
    assert (shared.devices, shared.backend) == (2, "gloo")
    assert [nbytes for nbytes, _ in shared.rows] == [4096.0, float(1 << 24)]
    assert 0 < shared.rows[0][1] < shared.rows[1][1]


def test_a_device_that_is_not_there_is_one_line() -> None:
    from tierscope.errors import StoppedError  # noqa: PLC0415
    from tierscope.train.all_reduce import measure_all_reduce  # noqa: PLC0415

    if torch.cuda.device_count() > 1:
        pytest.skip("there are devices")
    with pytest.raises(StoppedError, match=r"^all-reduce over 2 devices failed: ") as error:
        measure_all_reduce(["cuda:0", "cuda:1"], (4096.0,))
    assert "\n" not in str(error.value)
