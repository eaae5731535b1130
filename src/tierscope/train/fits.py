"""Whether a batch fits in the device, said before anything runs; and where it fits by the prediction only, when memory runs out."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tierscope.arch.network import Network
from tierscope.arch.networks import build_network
from tierscope.arch.precision import PRECISIONS, Precision
from tierscope.arch.step_memory import CUDNN, step_memory
from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.shortage import shortage_of
from tierscope.spec.study import Study
from tierscope.train.devices import pick_device
from tierscope.train.model import refuse_single_values
from tierscope.units import about_bytes


def refuse_batch_of(study: Study, number: int) -> None:
    """Also that the device is not there, or a step cannot be trained. `number`: of the last device that ranks of this host need."""
    model = study.workload.model
    assert model.network is not None
    shape = None if model.input is None else tuple(map(int, model.input.split("x")))
    device = pick_device(model.device, number)
    batch, precision = study.workload.reader.batch_size, PRECISIONS[model.arithmetic]
    network = build_network(model.network, shape)
    refuse_too_large(network, batch, precision, model.solver, model.recompute, device, number + 1)
    if batch == 1 or Order.of(study).samples_per_rank % batch == 1:
        refuse_single_values(network)


def refuse_too_large(
    network: Network,
    batch: int,
    precision: Precision,
    optimizer: str,
    recompute: bool,
    device: torch.device,
    ranks: int = 1,
) -> None:
    """`ranks`: that share the machine's memory, where the device has none of its own."""
    if device.type == "cuda":
        room, where = int(torch.cuda.get_device_properties(device).total_memory), "the device has"
    else:
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // ranks
        where = "the machine has" if ranks == 1 else f"each of {ranks} ranks on the machine has"
    refuse_beyond(network, batch, precision, optimizer, recompute, room, where)


def refuse_beyond(
    network: Network,
    batch: int,
    precision: Precision,
    optimizer: str,
    recompute: bool,
    room: int,
    where: str = "the device has",
) -> None:
    """`room`: bytes of the device."""
    peak = step_memory(network, batch, precision, optimizer, CUDNN, recompute).peak
    if peak > room:
        raise UserError(
            f"{network.name}: batch {batch} does not fit: a step needs {about_bytes(peak)} at its peak (predicted), and {where} {about_bytes(room)}; "
            "use a smaller batch"
        )


@contextmanager
def saying_shortage(
    network: Network, batch: int, precision: Precision, optimizer: str, recompute: bool
) -> Iterator[None]:
    """Around steps of a batch that nobody refused: other programs take memory too, and libraries more than is predicted."""
    try:
        yield
    except RuntimeError as error:
        short = shortage_of(error)
        if short is None:
            raise
        peak = step_memory(network, batch, precision, optimizer, CUDNN, recompute).peak
        raise UserError(
            f"{network.name}: a step of batch {batch} failed: {short}, or use a smaller batch; it needs {about_bytes(peak)} at its peak (predicted)"
        ) from None
