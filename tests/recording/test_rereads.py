"""Epochs by re-reads, decided from what every rank left: believed where passes are alike, and otherwise not told."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.states import Op, epoch_chunk, lane_chunk, write_state
from tierscope.native.rereads import GAVE_UP_LOCK, GENERATION, NO_PAGE, PAGE, page_name, read_page
from tierscope.native.state import read_head
from tierscope.recording.collect import Collected, collect
from tierscope.trace.description import Rereads

TIERS = ["lfs", "gfs"]
READ = Op("read", 1000, tier=1)
UNITS = 100


def write_page(folder: Path, passes: int = 1, name: str = "rank-node-all-", **changes: Any) -> None:
    """A hundred units that were read once in every pass, each of a generation of its own."""
    page = np.zeros(1, PAGE)
    found = page["rereads"][0]
    plain: dict[str, Any] = {
        "units": UNITS,
        "covered": UNITS,
        "clock": UNITS * passes,
        "epoch_start": UNITS * (passes - 1) + 1,
        "generation": passes - 1,
        "boundaries": passes - 1,
        "first_key": 1,
        "reads": passes,
        "in_passes": passes,
        "size": 10,
        **changes,
    }
    sizes, reads, in_passes, first = (plain.pop(key) for key in ("size", "reads", "in_passes", "first_key"))
    for key, value in plain.items():
        found[key] = value
    found["boundary"][: passes - 1] = range(1, passes)
    found["table"]["key"][:UNITS] = np.arange(first, first + UNITS)
    found["table"]["counts"][:UNITS] = (
        np.full(UNITS, reads) | np.full(UNITS, in_passes) << 16 | np.full(UNITS, sizes) << 26
    )
    (folder / name).write_bytes(page.tobytes())


def write_lanes(folder: Path, *reads: int, name: str = "a", **head: Any) -> None:
    """Of one process: reads in each generation."""
    lanes = [
        lane_chunk([READ] * count, epoch=GENERATION + generation if generation else 1, number=generation)
        for generation, count in enumerate(reads)
    ]
    write_state(folder, name, *lanes, **head)


def told(folder: Path) -> Rereads:
    found = by_rereads(folder).records.rereads
    assert found is not None
    return found


def by_rereads(folder: Path) -> Collected:
    return collect(str(folder), TIERS, lambda head: False, by_rereads=True)


def reads_in(found: Collected) -> dict[int, int]:
    io = found.table.filter(pl.col("record") == "io").group_by("epoch").agg(pl.col("ops").sum()).sort("epoch")
    return dict(io.iter_rows())


def test_passes_that_are_alike_are_epochs(tmp_path: Path) -> None:
    write_page(tmp_path, passes=3, latest=4)
    write_lanes(tmp_path, 5, 5, 5)
    assert told(tmp_path) == Rereads(passes=3, doubt=None, late_reads=4)
    assert reads_in(by_rereads(tmp_path)) == {1: 5, 2: 5, 3: 5}


def test_of_a_sample_of_reads_the_border_is_as_much_wider(tmp_path: Path) -> None:
    write_page(tmp_path, passes=2, latest=4, mask=7, first_key=8)
    write_lanes(tmp_path, 5, 5)
    assert told(tmp_path).late_reads == 4 * 8 + 8 * 7


def test_generations_between_boundaries_are_one_epoch(tmp_path: Path) -> None:
    """What looked like an epoch, and was withdrawn, leaves lanes of its own."""
    write_page(tmp_path, passes=2)
    page = np.fromfile(tmp_path / "rank-node-all-", PAGE)
    page["rereads"]["boundary"][0][0] = 3
    page.tofile(tmp_path / "rank-node-all-")
    write_lanes(tmp_path, 2, 2, 1, 5)
    assert reads_in(by_rereads(tmp_path)) == {1: 5, 2: 5}


IRREGULAR = [2 + unit % 2 for unit in range(UNITS)]


@pytest.mark.parametrize(
    ("page", "lanes", "doubt"),
    [
        ({"reads": IRREGULAR}, (5, 5), "uneven"),
        ({"in_passes": [1 + unit % 2 for unit in range(UNITS)], "reads": 2}, (5, 5), "uneven"),
        ({"longest_run": 26}, (5, 5), "uneven"),
        ({"latest": 11}, (5, 5), "uneven"),
        ({}, (2, 5), "uneven"),  # the first only looked at headers
        ({"covered": 89}, (5, 5), "partial"),
        ({"gave_up": GAVE_UP_LOCK}, (5, 5), "interrupted"),
        ({"units": 99}, (5, 5), "no_page"),  # its numbers contradict each other
    ],
)
def test_otherwise_it_is_one_epoch_and_the_reason_is_told(
    page: dict[str, Any], lanes: tuple[int, ...], doubt: str, tmp_path: Path
) -> None:
    write_page(tmp_path, passes=2, **page)
    write_lanes(tmp_path, *lanes)
    assert told(tmp_path) == Rereads(passes=1, doubt=doubt, late_reads=0)  # type: ignore[arg-type]
    assert reads_in(by_rereads(tmp_path)) == {1: sum(lanes)}


def test_few_bytes_may_be_irregular(tmp_path: Path) -> None:
    """Headers that were looked at before: as many as the samples, but small."""
    sizes = [10 if unit % 2 else 20 for unit in range(UNITS)]
    write_page(tmp_path, passes=2, reads=[3 if size == 10 else 2 for size in sizes], size=sizes)
    write_lanes(tmp_path, 5, 5)
    assert told(tmp_path).passes == 2


def test_what_is_read_again_at_the_end_begins_no_epoch(tmp_path: Path) -> None:
    write_page(tmp_path, passes=3, clock=204, epoch_start=201, covered=4, reads=2, in_passes=2)
    write_lanes(tmp_path, 10, 10, 1)
    assert told(tmp_path).passes == 2
    assert reads_in(by_rereads(tmp_path)) == {1: 10, 2: 11}


@pytest.mark.parametrize(
    ("page", "head", "doubt"),
    [
        ({}, {}, None),
        ({"nearly": 1}, {}, None),  # every file read twice in a row
        ({"reads": [1 + (unit < 5) for unit in range(UNITS)]}, {}, None),
        ({"reads": [1 + (unit < 6) for unit in range(UNITS)]}, {}, "uneven"),
        ({}, {"mapped_ops": 1}, "mapped"),
    ],
)
def test_one_pass_is_sure_where_hardly_anything_is_read_again(
    page: dict[str, Any], head: dict[str, Any], doubt: str | None, tmp_path: Path
) -> None:
    write_page(tmp_path, **page)
    write_lanes(tmp_path, 5, **head)
    assert told(tmp_path) == Rereads(passes=1, doubt=doubt, late_reads=0)  # type: ignore[arg-type]


def test_few_reads_of_each_thread_tell_nothing(tmp_path: Path) -> None:
    write_page(tmp_path, nearly=1)
    write_state(tmp_path, "a", *(lane_chunk([READ], number=number) for number in range(26)))
    assert told(tmp_path).doubt == "few"


def ranks(folder: Path, *passes: int, first_keys: tuple[int, ...] = (1, 1001)) -> None:
    for rank, (count, first) in enumerate(zip(passes, first_keys, strict=True)):
        write_page(folder, count, f"rank-node-PMI_RANK-{rank}", first_key=first)
        write_lanes(folder, *[5] * count, name=f"p{rank}", variables={"PMI_RANK": str(rank)}, pid=rank + 1)


def test_ranks_have_the_same_number_or_none(tmp_path: Path) -> None:
    ranks(tmp_path, 2, 2)
    assert told(tmp_path).passes == 2
    ranks(tmp_path, 2, 3)
    assert told(tmp_path) == Rereads(passes=1, doubt="ranks_differ", late_reads=0)


def test_ranks_that_read_each_others_data_cannot_tell(tmp_path: Path) -> None:
    ranks(tmp_path, 1, 1)
    assert told(tmp_path) == Rereads(passes=1, doubt=None, late_reads=0)
    ranks(tmp_path, 1, 1, first_keys=(1, 51))
    assert told(tmp_path).doubt == "exchanged"


def test_a_process_without_the_page_makes_it_unsure(tmp_path: Path) -> None:
    write_page(tmp_path, passes=2)
    write_lanes(tmp_path, 5, 5)
    write_state(tmp_path, "b", lane_chunk([READ], epoch=NO_PAGE), pid=9)
    assert told(tmp_path).doubt == "no_page"
    assert reads_in(by_rereads(tmp_path)) == {1: 11}


def test_a_rank_on_several_hosts_cannot_tell(tmp_path: Path) -> None:
    write_page(tmp_path, passes=2)
    write_lanes(tmp_path, 5, 5)
    write_lanes(tmp_path, 5, 5, name="b", host=b"other", pid=9)
    assert told(tmp_path).doubt == "scattered"


def test_marks_count_where_there_are_some(tmp_path: Path) -> None:
    write_page(tmp_path, passes=2)
    write_state(
        tmp_path, "a", lane_chunk([READ], epoch=GENERATION + 1), lane_chunk([READ], epoch=7), epoch_chunk(7, 1, 2)
    )
    found = by_rereads(tmp_path)
    assert found.records.rereads is None
    assert reads_in(found) == {1: 1, 7: 1}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "all-"),
        ({"RANK": "3"}, "all-"),
        ({"RANK": "3", "WORLD_SIZE": "4", "PMI_RANK": "1"}, "RANK-3"),
        ({"PMI_RANK": "1", "SLURM_PROCID": "2"}, "PMI_RANK-1"),
        ({"SLURM_PROCID": "../x"}, "all-"),
        ({"SLURM_PROCID": "07"}, "SLURM_PROCID-7"),
    ],
)
def test_the_page_of_a_process(variables: dict[str, str], name: str, tmp_path: Path) -> None:
    write_state(tmp_path, "a", variables=variables)
    head = read_head(str(tmp_path / "a.state"), len(TIERS))
    assert head
    assert page_name(head) == f"rank-node-{name}"


def test_a_page_that_cannot_be_is_none(tmp_path: Path) -> None:
    path = tmp_path / "page"
    assert read_page(str(path)) is None
    write_page(tmp_path, name="page")
    content = path.read_bytes()
    for changed in (content[:-1], b"\xff" * len(content)):
        path.write_bytes(changed)
        assert read_page(str(path)) is None
