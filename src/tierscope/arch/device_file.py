"""A device as it was measured: seconds of drawn sizes of every kind of work, and what its host spends on giving it work; written as YAML.

`tierscope probe --accelerator cuda -o FILE` writes it, `tierscope require --device-file FILE` predicts steps from it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from tierscope.arch.smooth import Smooth
from tierscope.arch.work_kinds import KINDS, Sizes

KIND = "device"
FEWEST_ROWS = 3  # of a kind and precision
SCHEMA_VERSION = 3  # 2: convolutions have features that are products of sizes; 3: a smooth and a rough part


@dataclass(frozen=True, slots=True)
class DeviceOrigin:
    device: str
    memory_bytes: int
    torch: str
    cudnn: str
    time: str


@dataclass(frozen=True, slots=True)
class WorkRow:
    """One piece of work; seconds of each of its kind's ways."""

    sizes: Sizes
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Over all devices of the host, alone: bytes and seconds of the slowest device, smallest first."""

    devices: int
    backend: str
    rows: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """`rows`: by kind and precision, of those precisions that the device has kernels for; `host`: by precision and kind of layer, seconds of forward, backward and update; `left_out`: sizes without room; `all_reduce`: where there are several devices."""

    origin: DeviceOrigin
    ceilings: Mapping[str, float]
    rows: Mapping[tuple[str, str], tuple[WorkRow, ...]]
    host: Mapping[str, Mapping[str, tuple[float, float, float]]]
    left_out: Mapping[str, int]
    smooth: Mapping[tuple[str, str, str], Smooth] = field(default_factory=dict)  # by kind, precision and way
    all_reduce: AllReduce | None = None


def dump_device(device: DeviceFile) -> str:
    lines = [f"kind: {KIND}", f"schema_version: {SCHEMA_VERSION}", "origin:"]
    lines += [
        f"  {key}: {value if isinstance(value, int) else _quoted(value)}"
        for key, value in asdict(device.origin).items()
    ]
    lines += ["ceilings:", *(f"  {key}: {value:.6g}" for key, value in device.ceilings.items())]
    lines += ["host:"]
    for precision, costs in device.host.items():
        lines += [f"  {precision}:"]
        lines += [f"    {kind}: [{', '.join(f'{value:.4g}' for value in seconds)}]" for kind, seconds in costs.items()]
    lines += (
        [] if not device.left_out else ["left_out:", *(f"  {kind}: {count}" for kind, count in device.left_out.items())]
    )
    if device.all_reduce is not None:
        shared = device.all_reduce
        lines += ["all_reduce:", f"  devices: {shared.devices}", f"  backend: {_quoted(shared.backend)}"]
        lines += [
            "  seconds: |  # bytes: seconds",
            *(f"    {nbytes:.0f}: {taken:.4g}" for nbytes, taken in shared.rows),
        ]
    lines += [
        "smooth:  # kind precision way: of the smooth part, by size, over how many octaves seconds stay alike, and the variance it explains; the same of the rough part; variance that sizes do not explain"
    ]
    lines += [f"  {' '.join(key)}: {_smooth_line(smooth)}" for key, smooth in device.smooth.items()]
    lines += ["work:"]
    for kind in KINDS.values():
        lines += [f"  {kind.name}:  # {' '.join(kind.sizes)}: seconds of {', '.join(kind.ways)}"]
        for (name, precision), rows in device.rows.items():
            if name == kind.name:
                lines += [f"    {precision}: |", *(f"      {_row(row)}" for row in rows)]
    return "\n".join(lines) + "\n"


def _smooth_line(smooth: Smooth) -> str:
    values = [value for part in smooth.parts for value in (*part.reach, part.spread)]
    return f"[{', '.join(f'{value:.4g}' for value in (*values, smooth.noise))}]"


def _row(row: WorkRow) -> str:
    return f"{' '.join(f'{size:g}' if size < 1e5 else str(round(size)) for size in row.sizes)}: {' '.join(f'{value:.4g}' for value in row.seconds)}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'
