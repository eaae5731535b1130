"""One cluster for all tests of this folder; where none can be brought up they are skipped, with the reason.

With TIERSCOPE_CLUSTER=required in the environment they fail instead.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.cluster import Cluster, Wish, lacking
from tools.cluster_study import without_mpi


def _without(reason: str) -> None:
    if os.environ.get("TIERSCOPE_CLUSTER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def _everything_ends() -> Iterator[None]:
    """Who ends the tests ends what they have brought up, not only with Ctrl-C."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def _possible() -> None:
    if reasons := lacking():
        _without("; ".join(reasons))


@pytest.fixture(scope="session")
def _mpi() -> None:
    """For tests whose ranks span the nodes."""
    if reason := without_mpi():
        _without(reason)


@pytest.fixture(scope="session")
def cluster(_possible: None) -> Iterator[Cluster]:
    with Cluster(Wish(osts=4, ost_mbit=100, nodes=4, lfs_mib=64, ost_mib=512)) as made:
        yield made


@pytest.fixture
def folder(cluster: Cluster, request: pytest.FixtureRequest) -> Path:
    """A folder of the GFS for one test, whose files no node has in its cache."""
    made = cluster.gfs / str(request.node.name)
    cluster.run("login", ["mkdir", str(made)])
    return made
