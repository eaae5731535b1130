"""All-reduce over the devices of a node as it was measured, in place of what their links allow at least."""

import math
from dataclasses import replace
from itertools import pairwise

from tierscope.arch.device_file import AllReduce, DeviceFile
from tierscope.arch.machine import Machine


def with_measured_links(machine: Machine, device: DeviceFile, nbytes: float) -> Machine:
    """With links over which a ring takes as long as was measured for so many bytes of gradients; as it is where another number of devices was measured."""
    shared = device.all_reduce
    if shared is None or shared.devices != machine.accelerators or nbytes <= 0:
        return machine
    moved = 2 * (shared.devices - 1) / shared.devices * nbytes
    return replace(machine, peer_bandwidth=moved / all_reduce_seconds(shared, nbytes), far_bandwidth=None)


def all_reduce_seconds(shared: AllReduce, nbytes: float) -> float:
    """Between measured sizes on a line through their logarithms. Below them as long as the smallest, above in proportion to the largest."""
    (least, shortest), (most, longest) = shared.rows[0], shared.rows[-1]
    if nbytes <= least:
        return shortest
    if nbytes >= most:
        return longest * nbytes / most
    (low, first), (high, last) = next(pair for pair in pairwise(shared.rows) if pair[1][0] >= nbytes)
    share = math.log(nbytes / low) / math.log(high / low)
    return float(first * (last / first) ** share)
