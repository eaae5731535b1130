"""Work that a schedule asks of stations, beside where each stripe is by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.plan.stations import NONE, TierQueues
from tierscope.predict.demand import _OwnersOfStripes


def queues(servers: int, stripes: int, nodes_per_device: int, hashed: bool) -> TierQueues:
    links = dict.fromkeys(("metadata", "node_link", "device_link", "gateway"), NONE)
    return TierQueues(
        **links, name="gfs", nodes_per_device=nodes_per_device, nodes_per_gateway=1, metadata_servers=1, servers_first=3,
        servers=servers, stripe_count=stripes, stripe_size=1, latency=0.0, metadata_latency=0.0, hashed=int(hashed)
    )  # fmt: skip


@pytest.mark.parametrize("varies", [False, True], ids=["whole files", "samples anywhere in files"])
@given(data=st.data())
def test_every_stripe_visits_the_server_that_holds_it(varies: bool, data: st.DataObject) -> None:
    servers = data.draw(st.integers(1, 7))
    stripes, nodes_per_device = data.draw(st.integers(1, servers)), data.draw(st.integers(1, 4))
    known = queues(servers, stripes, nodes_per_device, data.draw(st.booleans()))
    count = data.draw(st.integers(0, 12))
    node, file, first = (
        np.array(data.draw(st.lists(st.integers(0, most), min_size=count, max_size=count)), np.int64)
        for most in (7, 10**6, stripes - 1)
    )
    owners = _OwnersOfStripes(known, node, file, first if varies else 0)
    for stripe in range(stripes):
        expected = np.zeros(64, np.int64)
        for at in range(count):
            of_sample = (int(first[at]) if varies else 0) + stripe
            expected[known.server_of(int(node[at]), int(file[at]), of_sample % stripes)] += 1
        assert (owners.visits(stripe, 64) == expected).all()
