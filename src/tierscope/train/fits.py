"""Whether a batch fits in the device, said before anything runs."""

import torch

from tierscope.arch.network import Network
from tierscope.arch.networks import build_network
from tierscope.arch.precision import PRECISIONS, Precision
from tierscope.arch.step_memory import CUDNN, step_memory
from tierscope.errors import UserError
from tierscope.spec.study import Study
from tierscope.train.devices import pick_device
from tierscope.units import about_bytes


def refuse_batch_of(study: Study, number: int) -> None:
    """Also that the device is not there."""
    model = study.workload.model
    assert model.network is not None
    shape = None if model.input is None else tuple(map(int, model.input.split("x")))
    device = pick_device(model.device, number)
    batch, precision = study.workload.reader.batch_size, PRECISIONS[model.arithmetic]
    refuse_too_large(build_network(model.network, shape), batch, precision, model.solver, model.recompute, device)


def refuse_too_large(
    network: Network, batch: int, precision: Precision, optimizer: str, recompute: bool, device: torch.device
) -> None:
    if device.type == "cuda":
        room = int(torch.cuda.get_device_properties(device).total_memory)
        refuse_beyond(network, batch, precision, optimizer, recompute, room)


def refuse_beyond(
    network: Network, batch: int, precision: Precision, optimizer: str, recompute: bool, room: int
) -> None:
    """`room`: bytes of the device."""
    peak = step_memory(network, batch, precision, optimizer, CUDNN, recompute).peak
    if peak > room:
        raise UserError(
            f"{network.name}: batch {batch} does not fit: a step needs {about_bytes(peak)} at its peak (predicted), and the device has {about_bytes(room)}; "
            "use a smaller batch"
        )
