"""The ways on which bytes come to an accelerator, and what each allows: samples per second, and how the time of a sample is made up.

Upper bounds of rates and lower bounds of times: nominal peaks, perfect overlap, no preprocessing (Ibrahim et al., PMBS 2021).
"""

from dataclasses import dataclass

from tierscope.arch.requirements import Requirements

DEVICE, HOST = "device memory", "host"


@dataclass(frozen=True, slots=True)
class Way:
    """Of one accelerator, with all accelerators of the most nodes at work. `samples_per_second`: at most, compute included."""

    name: str
    bandwidth: float  # bytes per second
    bytes_per_sample: float
    samples_per_second: float


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of a sample on an accelerator, at least, when samples lie in `place`. None: the system does not say; no read: none is needed."""

    place: str
    compute: float
    exchange: float | None
    read: float | None
    copy: float | None

    @property
    def parts(self) -> dict[str, float]:
        named = {"compute": self.compute, "all-reduce": self.exchange, "read": self.read, "copy": self.copy}
        return {name: seconds for name, seconds in named.items() if seconds}

    @property
    def together(self) -> float:
        """One after another."""
        return sum(self.parts.values())

    @property
    def overlapped(self) -> float:
        """All at once: the longest."""
        return max(self.parts.values())


def peak_rate(requirements: Requirements) -> float:
    """Samples per second of one accelerator at the peak of its units."""
    return requirements.node_sample_bandwidth_at_peak / requirements.sample_bytes / requirements.machine.accelerators


def device_ways(requirements: Requirements) -> dict[str, Way]:
    """`modelled` and `limit`: through the device's own memory."""
    rate, most = requirements.machine.device.memory_bandwidth, peak_rate(requirements)
    moved = {"modelled": requirements.hbm_modelled_bytes, "limit": requirements.hbm_limit_bytes}
    return {name: Way(DEVICE, rate, nbytes, min(most, rate / nbytes)) for name, nbytes in moved.items() if nbytes}


def sample_ways(requirements: Requirements) -> list[Way]:
    """Samples from the host and files from the tiers, as far as the system says how fast these are."""
    machine, moved, most = requirements.machine, requirements.movement, peak_rate(requirements)
    files = requirements.data.file_bytes / requirements.wish.compression.ratio
    ways = []
    if machine.host_bandwidth is not None and moved.samples_dram:
        ways.append(Way(HOST, machine.host_bandwidth, requirements.sample_bytes, min(most, 1 / moved.samples_dram)))
    for storage, seconds in ((machine.near, moved.samples_nvme), (machine.far, moved.samples_pfs)):
        rate = None if storage is None else storage.per_node(requirements.wish.nodes[-1])
        if storage is not None and rate and seconds:
            ways.append(Way(storage.name, rate / machine.accelerators, files, min(most, 1 / seconds)))
    return ways


def spent(requirements: Requirements) -> list[Spent]:
    """For samples in main memory, on the near tier and on the far tier, as far as the system says how fast these are."""
    moved, machine = requirements.movement, requirements.machine
    compute = requirements.step_seconds / requirements.wish.batches[0]
    reads = [] if machine.near is None else [(machine.near.name, moved.samples_nvme)]
    reads.append((machine.far.name, moved.samples_pfs))
    copy = moved.samples_dram
    places = [] if copy is None else [Spent("main memory", compute, moved.allreduce, None, copy)]
    return places + [Spent(name, compute, moved.allreduce, read, copy) for name, read in reads if read is not None]
