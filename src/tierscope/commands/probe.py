"""`tierscope probe --accelerator`: an accelerator, measured in minutes and written as a device file."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, replace

from tierscope.arch.device_file import KIND, SCHEMA_VERSION, DeviceFile, dump_device
from tierscope.errors import UserError
from tierscope.jsonable import JsonObject
from tierscope.output.durable import writing_named


def probe_accelerator(name: str, output: str, say: Callable[[str], None]) -> DeviceFile:
    try:
        import torch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UserError(
            f"--accelerator {name} needs {error.name}, which is not installed; pip install 'tierscope[torch]'"
        ) from None
    from tierscope.arch.step_time import with_smooth  # noqa: PLC0415
    from tierscope.train.device_probe import probe_device  # noqa: PLC0415

    if not torch.cuda.is_available():
        raise UserError(f"--accelerator {name}: torch finds no CUDA device here; run it on a machine that has one")
    measured = probe_device(torch.device(name, 0), say)
    count = torch.cuda.device_count()
    if count > 1:
        from tierscope.train.all_reduce import measure_all_reduce  # noqa: PLC0415

        say(f"all-reduce over {count} devices")
        measured = replace(measured, all_reduce=measure_all_reduce([f"{name}:{number}" for number in range(count)]))
    say("fitting: how seconds depend on sizes")
    device = with_smooth(measured)
    with writing_named(output) as file:
        file.write(dump_device(device).encode())
    return device


def device_json(device: DeviceFile) -> JsonObject:
    """By kind and way: how well sizes that were left out are predicted from all others."""
    from tierscope.arch.smooth import left_out  # noqa: PLC0415
    from tierscope.arch.step_time import measured_points  # noqa: PLC0415

    work = []
    for (kind, precision, way), smooth in device.smooth.items():
        errors, _ = left_out(*measured_points(device, kind, precision, way), smooth)
        middle = statistics.median(abs(float(error)) for error in errors)
        work.append(
            {"kind": kind, "precision": precision, "way": way, "sizes": len(errors), "median_log_error": middle}
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "origin": asdict(device.origin),
        "ceilings": dict(device.ceilings),
        "left_out": dict(device.left_out),
        "all_reduce": None if device.all_reduce is None else asdict(device.all_reduce),
        "work": work,
    }
