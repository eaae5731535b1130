"""How long a step is, where somebody knows better than the roofline: as the user says, as a device file predicts, or as it was measured."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierscope.arch.machine import Machine
from tierscope.arch.network import Network
from tierscope.arch.precision import PARAMETER_BYTES
from tierscope.arch.requirements import Wish
from tierscope.arch.step_seconds import PREDICTED, StepSeconds, given
from tierscope.errors import UserError

if TYPE_CHECKING:
    from tierscope.arch.device_file import DeviceFile


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Options as they were typed."""

    step_seconds: float | None = None
    device_file: str | None = None
    measured: str | None = None


def known_step(
    wanted: StepOptions, network: Network, machine: Machine, wish: Wish
) -> tuple[StepSeconds | None, Machine]:
    """None: nothing was given, so it is the roofline. The machine has the links of its nodes as a device file measured them."""
    options = {
        "--step-seconds": wanted.step_seconds,
        "--device-file": wanted.device_file,
        "--measured": wanted.measured,
    }
    named = [name for name, value in options.items() if value is not None]
    if len(named) > 1:
        raise UserError(f"{named[1]}: cannot be combined with {named[0]}; remove one of them")
    if wanted.step_seconds is not None:
        return given(wanted.step_seconds), machine
    if wanted.device_file is not None:
        from tierscope.arch.device_links import with_measured_links  # noqa: PLC0415
        from tierscope.arch.device_match import refuse_other_device  # noqa: PLC0415
        from tierscope.arch.device_parse import load_device  # noqa: PLC0415  (NumPy)

        device = load_device(wanted.device_file)
        refuse_other_device(wanted.device_file, device, machine)
        linked = with_measured_links(machine, device, PARAMETER_BYTES * network.parameters)
        return predicted(device, network, wish, linked is not machine), linked
    if wanted.measured is None:
        return None, machine
    from tierscope.commands.measured_step import measured_step  # noqa: PLC0415  (tables)

    return measured_step(wanted.measured, network, machine, wish), machine


def predicted(device: "DeviceFile", network: Network, wish: Wish, is_linked: bool = False) -> StepSeconds:
    """`is_linked`: all-reduce within a node is as measured, too."""
    from tierscope.arch.step_time import predict_step  # noqa: PLC0415

    step = predict_step(device, network, wish.batches[0], wish.precision, wish.optimizer, wish.checkpointed)
    about = f"predicted from one {device.origin.device} as measured {device.origin.time[:10]}; 95 % interval"
    if is_linked and device.all_reduce is not None:
        about += f"; all-reduce in a node as measured alone over {device.all_reduce.devices} devices"
    return StepSeconds(step.seconds, *step.interval, PREDICTED, about, step.outside, step.stand_ins, is_linked)
