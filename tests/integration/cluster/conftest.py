"""One cluster for all tests of this folder; where none can be brought up they are skipped, with the reason."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.cluster import Cluster, Wish, lacking


@pytest.fixture(scope="session")
def _possible() -> None:
    if reasons := lacking():
        pytest.skip("; ".join(reasons))


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
