"""Copies of files from the last tier to the near one: what each of them asks of servers and links.

A write costs what a read of as many bytes costs, unless the tier has rates of writing. A new entry costs an open of the near tier's metadata server.
"""

from dataclasses import dataclass

import numpy as np

from tierscope.plan.stations import Stations, stripes
from tierscope.predict.outcome import FloatArray
from tierscope.spec.study import Study


@dataclass(frozen=True, slots=True)
class Copy:
    """Of one file; only the near tier that it goes to and the last one take part."""

    ops: FloatArray  # by tier: writes of the near one, reads of the last beyond the sample itself
    nbytes: FloatArray  # by (tier, stripe)


def copy_of(study: Study, stations: Stations, file_bytes: int, sample_bytes: int, near: int = 0) -> Copy:
    """`sample_bytes`: what somebody has just read of the file; 0: nothing."""
    tiers = stations.tiers
    whole = study.workload.dataset.num_samples_per_file == 1 and sample_bytes > 0
    rest = 0 if whole else max(0, file_bytes - sample_bytes)
    nbytes = np.zeros((len(tiers), max(tier.stripe_count for tier in tiers)))
    ops = np.zeros(len(tiers))
    for number, size in ((near, file_bytes), (len(tiers) - 1, rest)):
        count = tiers[number].stripe_count
        nbytes[number, :count] = stripes(0, size, count, tiers[number].stripe_size)
        ops[number] = -(-size // study.workload.reader.transfer_size)
    return Copy(ops, nbytes)
