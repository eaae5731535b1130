"""Where ranks run, with hosts made up: a layout that is not the study's is refused."""

import pytest

from tests.tiny import tiny
from tierscope.bench.tasks import Who
from tierscope.errors import UserError
from tierscope.measure.crews import check_layout, crowding, nodes_here

FOUR = ("nodes=2", "ranks_per_node=2")


def who(*hosts: str, cores: int = 8) -> list[Who]:
    return [
        Who(rank, 1000 + rank, host, f"boot of {host}", host, frozenset(range(cores)))
        for rank, host in enumerate(hosts)
    ]


def test_nodes_on_hosts_of_their_own_or_all_on_one_are_right() -> None:
    check_layout(tiny(*FOUR), who("a", "a", "b", "b"))
    check_layout(tiny(*FOUR), who("a", "a", "a", "a"))


@pytest.mark.parametrize("hosts", ["abab", "aaab", "abcd", "aabc"])
def test_ranks_spread_differently_are_refused(hosts: str) -> None:
    with pytest.raises(
        UserError, match=r"2 nodes with 2 ranks each, but the launcher placed 4 ranks .* --map-by ppr:2:node"
    ):
        check_layout(tiny(*FOUR), who(*hosts))


def test_a_path_without_node_is_right_only_where_nodes_are_hosts() -> None:
    study = tiny(*FOUR, "lfs.path=/local/scratch")
    check_layout(study, who("a", "a", "b", "b"))
    with pytest.raises(UserError, match=r"put \{node\} into the path"):
        check_layout(study, who("a", "a", "a", "a"))


def test_emulated_queues_do_not_reach_across_hosts() -> None:
    study = tiny(*FOUR, "gfs.emulate=true", "gfs.metadata_ops=100/s")
    check_layout(study, who("a", "a", "a", "a"))
    with pytest.raises(UserError, match="works only on a single host"):
        check_layout(study, who("a", "a", "b", "b"))


def test_the_fullest_host_decides_and_bound_cores_are_added_up() -> None:
    assert crowding(who("a", "a", "b", cores=4)) == (2, 4)
    bound = [Who(rank, rank, "a", "boot", "a", frozenset({rank})) for rank in range(3)]
    assert crowding(bound) == (3, 3)


def test_the_director_sees_the_nodes_of_its_own_host() -> None:
    assert nodes_here(tiny(*FOUR), who("a", "a", "b", "b")) == [0]
    assert nodes_here(tiny(*FOUR), who("a", "a", "a", "a")) == [0, 1]
