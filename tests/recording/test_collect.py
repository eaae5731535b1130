"""Records of processes → one trace: who belongs to which rank, and nothing lost but what is damaged."""

import os
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.states import START, Op, epoch_chunk, lane_chunk, list_chunk, write_state
from tierscope.native.state import StateHead
from tierscope.recording.collect import Collected, collect
from tierscope.recording.ranks import ranks_of
from tierscope.trace.columns import COLUMNS
from tierscope.trace.description import RANK_WALL, MappedSums, PhaseSums, RecordedProcess

TIERS = ["lfs", "gfs"]
READ = Op("read", 100, 0.5, tier=1)


def collected(folder: Path, running: tuple[int, ...] = ()) -> Collected:
    def still_running(head: StateHead) -> bool:
        return head.pid in running

    return collect(str(folder), TIERS, still_running)


def io_of(found: Collected) -> pl.DataFrame:
    return found.table.filter(pl.col("record") == "io")


def rank_rows(found: Collected) -> list[dict[str, Any]]:
    return found.table.filter(pl.col("record") == "rank").to_dicts()


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({}, None),
        ({"RANK": "3"}, None),  # anybody may use that name
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3),
        ({"RANK": "3", "WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "5"}, 3),
        ({"RANK": "3", "OMPI_COMM_WORLD_RANK": "5", "PMIX_RANK": "6"}, 5),
        ({"PMI_RANK": "1", "PMIX_RANK": "2", "SLURM_PROCID": "3"}, 2),
        ({"PMI_RANK": "1", "MV2_COMM_WORLD_RANK": "4", "SLURM_PROCID": "3"}, 1),
        ({"MV2_COMM_WORLD_RANK": "4", "FLUX_TASK_RANK": "5"}, 4),
        ({"FLUX_TASK_RANK": "5", "PALS_RANKID": "6"}, 5),
        ({"PALS_RANKID": "6", "JSM_NAMESPACE_RANK": "7"}, 6),
        ({"JSM_NAMESPACE_RANK": "7", "SLURM_PROCID": "0"}, 7),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, 0),
        ({"PMI_RANK": "x", "SLURM_PROCID": "4"}, 4),
        ({"PMI_RANK": "-1"}, None),
        ({"PMI_RANK": "²"}, None),
        ({"PMI_RANK": str(2**31)}, None),
    ],
)
def test_the_rank_is_the_launchers(variables: dict[str, str], rank: int | None) -> None:
    assert ranks_of([variables, {"OMPI_COMM_WORLD_RANK": "x"}]) == ([0, 0] if rank is None else [rank, None])


def test_one_variable_numbers_all_processes() -> None:
    """srun torchrun: agents have the number of their node, workers that of their rank; and mpirun below a batch script."""
    agents = [{"SLURM_PROCID": str(node)} for node in range(2)]
    workers = [{**agents[rank // 2], "RANK": str(rank), "WORLD_SIZE": "4"} for rank in range(4)]
    assert ranks_of([*agents, *workers]) == [None, None, 0, 1, 2, 3]
    assert ranks_of(agents) == [0, 1]
    assert ranks_of([agents[0], {**agents[0], "PMIX_RANK": "5"}]) == [None, 5]


def test_without_a_launcher_everything_is_one_rank(tmp_path: Path) -> None:
    for number in range(3):
        write_state(tmp_path, f"p{number}", lane_chunk([READ]), lane_chunk([READ], number=1), pid=10 + number)
    found = collected(tmp_path)
    assert dict(found.table.schema) == COLUMNS
    assert set(io_of(found)["rank"]) == {0}
    assert io_of(found)["lane"].to_list() == [0, 1, 2, 3, 4, 5]
    assert io_of(found)["busy_seconds"].sum() == pytest.approx(3.0)
    assert [process.rank for process in found.processes] == [0, 0, 0]
    assert (found.records.ranks, found.records.nodes, found.records.process_count) == (1, 1, 3)


def test_workers_fall_under_the_rank_whose_variables_they_inherit(tmp_path: Path) -> None:
    for rank in (0, 1):
        mine = {"RANK": rank, "WORLD_SIZE": 2}
        write_state(tmp_path, f"main{rank}", lane_chunk([READ]), pid=10 + rank, variables=mine)
        for worker in range(2):
            pid = 20 + 10 * rank + worker
            write_state(tmp_path, f"w{pid}", lane_chunk([READ]), pid=pid, parent=10 + rank, variables=mine)
    found = collected(tmp_path)
    sums = io_of(found).group_by("rank").agg(pl.col("ops").sum(), pl.col("lane").sort()).sort("rank")
    assert sums.rows() == [(0, 3, [0, 1, 2]), (1, 3, [0, 1, 2])]


def test_lanes_are_numbered_in_the_order_of_start_and_process(tmp_path: Path) -> None:
    for pid, start in ((7, 300), (5, 200), (9, 200)):
        write_state(tmp_path, f"p{pid}", lane_chunk([Op("read", pid)]), pid=pid, start_realtime_ns=start)
    assert io_of(collected(tmp_path)).sort("lane")["bytes"].to_list() == [5, 9, 7]


def test_lanes_of_every_epoch_are_numbered_from_0(tmp_path: Path) -> None:
    first, second = (lane_chunk([READ], epoch=epoch, number=epoch) for epoch in (1, 2))
    found = collected(write_state(tmp_path, "a", first, second).parent)
    assert io_of(found).select("epoch", "lane").rows() == [(1, 0), (2, 0)]
    assert found.processes[0].lanes == {1: 0, 2: 0}


def test_nodes_are_in_the_order_of_their_smallest_rank(tmp_path: Path) -> None:
    layout = {0: "zebra", 1: "ant", 2: "ant", 3: "zebra"}
    for rank, host in layout.items():
        variables = {"SLURM_PROCID": rank, "SLURMD_NODENAME": host}
        write_state(tmp_path, f"r{rank}", lane_chunk([READ]), variables=variables, host=b"login")
    found = collected(tmp_path)
    assert [(row["rank"], row["node"]) for row in rank_rows(found)] == [(0, 0), (1, 1), (2, 1), (3, 0)]
    assert found.records.nodes == 2


def test_a_rank_on_two_hosts_is_where_it_began(tmp_path: Path) -> None:
    for number, host in enumerate((b"a", b"b")):
        write_state(tmp_path, f"p{number}", lane_chunk([READ]), host=host, start_realtime_ns=number)
    assert set(collected(tmp_path).table["node"]) == {0}


def test_clocks_of_two_hosts_are_not_mixed(tmp_path: Path) -> None:
    far = 10**15
    mark, foreign_mark = epoch_chunk(1, 1), epoch_chunk(1, 2, 900)
    write_state(tmp_path, "a", lane_chunk([READ, READ], last_ns=START + 3 * 10**9), mark, start_realtime_ns=1)
    foreign = lane_chunk([READ], first_ns=far, last_ns=far + 10**9)
    write_state(tmp_path, "b", foreign, foreign_mark, start_realtime_ns=2, host=b"b", boot=b"other")
    same = lane_chunk([READ], last_ns=START + 4 * 10**9)
    write_state(tmp_path, "c", same, start_realtime_ns=3, host=b"a-container")
    found = collected(tmp_path)
    assert io_of(found)["ops"].sum() == 4
    assert [row["epoch_seconds"] for row in rank_rows(found)] == [3.0]
    assert (found.records.span_seconds, found.records.scattered_processes) == (4.0, 1)


@pytest.mark.parametrize(
    ("processes", "one_clock"),
    [
        ([{}, {}], True),
        ([{}, {"shares_clock": 0}], False),
        ([{"shares_clock": 0}], True),  # a rank's only process needs no other clock
        ([{"variables": {"PMI_RANK": rank}, "shares_clock": 0} for rank in range(2)], True),
        ([{"variables": {"PMI_RANK": 1}, "shares_clock": rank % 2} for rank in range(2)], False),
        ([{"variables": {"PMI_RANK": 1}}, {"shares_clock": 0}, {"shares_clock": 0}], True),  # beside the ranks
        ([{}, {"host": b"other", "boot": b"another"}], False),  # each host has its own
    ],
)
def test_wall_seconds_are_a_union_where_the_processes_of_a_rank_share_a_clock(
    processes: list[dict[str, Any]], one_clock: bool, tmp_path: Path
) -> None:
    for number, changes in enumerate(processes):
        write_state(tmp_path, f"p{number}", lane_chunk([READ]), start_realtime_ns=number, **changes)
    assert (RANK_WALL in collected(tmp_path).provides) == one_clock


def test_a_process_without_operations_needs_no_clock(tmp_path: Path) -> None:
    write_state(tmp_path, "a", lane_chunk([READ]))
    write_state(tmp_path, "b", epoch_chunk(1, 1, 2), shares_clock=0)
    assert RANK_WALL in collected(tmp_path).provides


def test_processes_beside_the_ranks_are_kept_without_a_rank(tmp_path: Path) -> None:
    write_state(tmp_path, "rank", lane_chunk([READ]), variables={"PMI_RANK": 0})
    write_state(tmp_path, "launcher", lane_chunk([Op("open", 0, 0.25)]))
    found = collected(tmp_path)
    assert io_of(found).filter(pl.col("rank").is_null())["kind"].to_list() == ["open"]
    assert [row["rank"] for row in rank_rows(found)] == [0]
    assert (found.records.outside_ops, found.records.outside_seconds) == (1, 0.25)


def test_marked_epochs_have_their_time_and_phases(tmp_path: Path) -> None:
    write_state(
        tmp_path,
        "a",
        lane_chunk([READ], epoch=1),
        epoch_chunk(1, 1, 3, {"compute": 0.5, "save": 0.25}),
        lane_chunk([READ], epoch=2, last_ns=START + 4_500_000_000),
        epoch_chunk(2, 3, 0, {"compute": 0.125}),
    )
    found = collected(tmp_path)
    first, second = rank_rows(found)
    assert (first["epoch_seconds"], first["compute_seconds"]) == (2.0, 0.5)
    assert (second["epoch_seconds"], second["compute_seconds"]) == (1.5, 0.125)  # to its last operation
    assert (first["samples"], first["stall_seconds"], first["step_read_seconds"]) == (None, None, None)
    assert found.provides == ("lanes", "busy", "wall", "epochs", "compute", RANK_WALL)
    assert found.records.phases["save"] == PhaseSums(seconds=0.25, count=1)
    assert found.records.marked


def test_of_a_ranks_processes_the_longest_epoch_counts_and_computing_adds_up(tmp_path: Path) -> None:
    write_state(tmp_path, "a", epoch_chunk(1, 1, 2, {"compute": 1}), epoch_chunk(2, 2, 3), epoch_chunk(1, 3, 4))
    write_state(tmp_path, "b", epoch_chunk(1, 1, 2.5, {"compute": 1}))
    first, second = rank_rows(collected(tmp_path))
    assert (first["epoch_seconds"], first["compute_seconds"]) == (2.0, 2.0)  # 1 was marked twice in a
    assert (second["epoch_seconds"], second["compute_seconds"]) == (1.0, 0.0)


def test_without_marks_no_epoch_has_a_time_but_the_span_is_known(tmp_path: Path) -> None:
    write_state(tmp_path, "a", lane_chunk([READ, READ]))
    write_state(tmp_path, "b", epoch_chunk(1, phases={"load": 1}))  # a phase is no mark
    found = collected(tmp_path)
    (row,) = rank_rows(found)
    assert (row["epoch_seconds"], row["compute_seconds"]) == (None, None)
    assert (found.records.marked, found.records.span_seconds) == (False, 1.0)
    assert found.provides == ("lanes", "busy", "wall", RANK_WALL)


def test_epochs_that_were_found_by_rereads_have_no_time(tmp_path: Path) -> None:
    write_state(tmp_path, "a", lane_chunk([READ], epoch=1), lane_chunk([READ], epoch=2))
    found = collected(tmp_path)
    assert [row["epoch_seconds"] for row in rank_rows(found)] == [None, None]
    assert "epochs" in found.provides
    assert not found.records.marked


def test_maps_losses_and_punctuality_are_added_up(tmp_path: Path) -> None:
    for number in range(2):
        chunk = lane_chunk([Op("mmap", 1000, tier=1), Op("mmap", 24, tier=1)], limited_ops=2, late_ops=1, late_ns=500)
        counts = {"lost_ops": 3, "lost_rows": 4, "mapped_ops": 2, "unemulated": 1}
        write_state(tmp_path, f"p{number}", chunk, **counts)
    found = collected(tmp_path)
    assert found.records.mapped == {"gfs": MappedSums(ops=4, bytes=2048)}
    names = ("lost_ops", "lost_rows", "mapped_ops", "unemulated_processes")
    assert [getattr(found.records, name) for name in names] == [6, 8, 4, 2]
    (row,) = rank_rows(found)
    assert (row["limited_ops"], row["late_ops"], row["late_seconds"]) == (4, 2, 1e-6)


def test_damage_costs_what_is_damaged_and_is_named(tmp_path: Path) -> None:
    write_state(tmp_path, "good", lane_chunk([READ]))
    write_state(tmp_path, "half", lane_chunk([READ]), b"\1" * 100)
    write_state(tmp_path, "bad", lane_chunk([READ]), crc=1)
    write_state(tmp_path, "cut", lane_chunk([READ], sequence=3))
    (tmp_path / "empty.state").write_bytes(b"")
    (tmp_path / "rank-node-0").write_bytes(b"is no state")
    found = collected(tmp_path)
    assert io_of(found)["ops"].sum() == 3
    assert found.records.damaged_file_count == 2
    assert found.records.damaged_files[0] == "bad.state: checksum mismatch"
    assert found.records.damaged_files[1].startswith("half.state: cannot be read from byte")
    assert found.records.cut_lanes == 1


def test_what_is_no_file_is_damaged_and_nobody_waits_for_it(tmp_path: Path) -> None:
    write_state(tmp_path, "good", lane_chunk([READ]))
    for name in ("pipe.state", "good.ops"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "good.names").symlink_to("/dev/zero")
    (tmp_path / "link.state").symlink_to("good.state")
    found = collected(tmp_path)
    assert io_of(found)["ops"].sum() == 1
    assert found.records.damaged_files == tuple(
        f"{name}: is not a regular file" for name in ("good.names", "good.ops", "link.state", "pipe.state")
    )


def test_what_could_not_be_recorded_is_counted(tmp_path: Path) -> None:
    (tmp_path / "lost").write_bytes(struct.pack("<QQ", 2, 70))
    records = collected(tmp_path).records
    assert (records.unrecorded_processes, records.unrecorded_ops) == (2, 70)


def test_nothing_recorded_is_one_rank_that_did_nothing(tmp_path: Path) -> None:
    found = collected(tmp_path)
    (row,) = rank_rows(found)
    assert (row["rank"], row["epoch"], row["node"]) == (0, 1, 0)
    assert io_of(found).is_empty()
    assert (found.records.ranks, found.records.nodes, found.records.span_seconds) == (1, 1, None)


def test_processes_are_listed_with_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.recording.collect.MOST_LISTED", 2)
    monkeypatch.setattr("tierscope.recording.collect._ROWS", 3)  # more than one batch of rows
    for number in range(5):
        write_state(tmp_path, f"p{number}", lane_chunk([READ], number=7), list_chunk(), pid=number, start_realtime_ns=0)
    found = collected(tmp_path, running=(1, 4))
    assert len(found.records.processes) == 2
    assert found.records.process_count == 5
    assert found.records.still_running == 2
    assert found.records.processes[1] == RecordedProcess(
        pid=1, parent=1, command="python train.py", rank=0, host="node", start=0.0, lanes=1
    )
    assert io_of(found)["ops"].sum() == 5
