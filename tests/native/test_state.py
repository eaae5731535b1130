"""The files between a recorded process and us: the layout is C's, and nothing in them is trusted."""

import os
import shutil
import stat
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.states import START, Op, epoch_chunk, lane_chunk, list_chunk, names_bytes, rows, state_bytes, write_state
from tierscope.errors import ResultError, UserError
from tierscope.native import lanes, rereads, setup, state
from tierscope.native.lanes import NativeLane
from tierscope.native.setup import TierSetup, config_bytes, write_setup
from tierscope.native.state import (
    Chunk,
    MarkedEpoch,
    StateDamage,
    StateHead,
    Unrecorded,
    WaitingRows,
    is_plain,
    read_chunks,
    read_head,
    read_names,
    read_unrecorded,
)
from tierscope.native.stations import STATION, TIER, Station, TierStations
from tierscope.output.op_list import rows_of
from tierscope.trace.ops import OP_ROW

C = Path(state.__file__).parent / "c"

STRUCTS = {
    "ts_station": STATION,
    "ts_tier": TIER,
    "ts_config": setup.CONFIG,
    "ts_prefix": setup.PREFIX,
    "ts_head": state.HEAD,
    "ts_phase": state.PHASE,
    "ts_epoch": state.EPOCH,
    "ts_cell": lanes.CELL,
    "ts_lane": lanes.HEAD,
    "ts_op": OP_ROW,
    "ts_list_chunk": state.LIST,
    "ts_rereads": rereads.REREADS,
}
IN_C = {("ts_lane", "nbytes"): "bytes", ("ts_list_chunk", "used"): "list.used", ("ts_list_chunk", "rows"): "list.rows"}
NUMBERS = {
    "TS_VERSION": state.VERSION,
    "TS_MAX_TIERS": state.MAX_TIERS,
    "TS_MAX_PREFIXES": state.MAX_PREFIXES,
    "TS_MAX_STATIONS": state.MAX_STATIONS,
    "TS_HEAD_BYTES": state.HEAD_BYTES,
    "TS_PATH": state.PATH,
    "TS_PHASES": state.PHASES,
    "TS_LIST_ROWS": state.LIST_ROWS,
    "TS_KINDS": lanes.KINDS,
    "TS_BINS": lanes.BINS,
    "TS_LANE_MAGIC": state.LANE_MAGIC,
    "TS_EPOCH_MAGIC": state.EPOCH_MAGIC,
    "TS_LIST_MAGIC": state.LIST_MAGIC,
    "TS_OPTION_OPS": state.OPTION_OPS,
    "TS_OPTION_REREADS": state.OPTION_REREADS,
    "TS_REREAD_SLOTS": rereads.SLOTS,
    "TS_REREAD_EPOCHS": rereads.MOST_BOUNDARIES,
    "TS_GENERATION": rereads.GENERATION,
    "TS_NO_PAGE": rereads.NO_PAGE,
    "TS_GAVE_UP_LOCK": rereads.GAVE_UP_LOCK,
    "TS_GAVE_UP_EPOCHS": rereads.GAVE_UP_EPOCHS,
    "TS_GAVE_UP_CLOCK": rereads.GAVE_UP_CLOCK,
    "TS_MARKED_INSTEAD": rereads.MARKED_INSTEAD,
}


def fields(dtype: np.dtype[np.void]) -> list[tuple[str, int]]:
    assert dtype.names
    assert dtype.fields
    return [(name, int(dtype.fields[name][1])) for name in dtype.names]


def test_the_layout_is_that_of_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    expected = []
    lines = []
    for name, dtype in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {dtype.itemsize}")
        for field, offset in fields(dtype):
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {IN_C.get((name, field), field)}));')
            expected.append(f"{name}.{field} {offset}")
    for name, value in NUMBERS.items():
        lines.append(f'printf("{name} %lld\\n", (long long){name});')
        expected.append(f"{name} {value}")
    lines.append('printf("%.8s %.8s\\n", TS_CONFIG_MAGIC, TS_STATE_MAGIC);')
    expected.append(f"{state.CONFIG_MAGIC.decode()} {state.STATE_MAGIC.decode()}")
    source = tmp_path / "layout.c"
    source.write_text(
        '#include "state.h"\n#include "rereads.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n"
    )
    subprocess.run([compiler, "-std=gnu11", f"-I{C}", str(source), "-o", str(tmp_path / "layout")], check=True)
    told = subprocess.run([str(tmp_path / "layout")], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == expected


def test_the_config_says_what_was_given(tmp_path: Path) -> None:
    near = TierSetup(("/local", "/mnt/nvme0/local"))
    far = TierSetup(
        ("/", "/local/far"),
        TierStations(
            (Station(0, 5.0, 0.0),),
            (Station(1, 2.0, 0.5), Station(3, 0.0, 0.5, write_per_byte_ns=0.75)),
            (Station(2, 0.0, 0.25),),
            1000,
            7,
            stream_ns=12.5,
        ),
    )
    write_setup(str(tmp_path), [near, far], 4, "a-boot", state.OPTION_OPS)
    assert (tmp_path / "board").read_bytes() == bytes(32)
    assert (tmp_path / "lost").read_bytes() == bytes(16)
    raw = (tmp_path / "config").read_bytes()
    head = np.frombuffer(raw, setup.CONFIG, 1)[0]
    assert (head["magic"], head["crc"], head["bytes"]) == (b"TSCONF01", zlib.crc32(raw[12:]), len(raw))
    assert (head["version"], head["options"], head["boot"]) == (1, 1, b"a-boot")
    assert (head["tiers"], head["prefixes"], head["servers"], head["slots"]) == (2, 4, 2, 4)
    assert head["tier"][0]["emulated"] == 0
    assert head["tier"][1].tolist() == ((0, 5.0, 0.0, 5.0, 0.0), (2, 0.0, 0.25, 0.0, 0.25), 1000, 7, 12.5, 1, 0, 2)
    prefixes = np.frombuffer(raw, setup.PREFIX, 4, setup.CONFIG.itemsize)
    assert [(row["path"], row["length"], row["tier"]) for row in prefixes] == [
        (b"/mnt/nvme0/local", 16, 0),
        (b"/local/far", 10, 1),
        (b"/local", 6, 0),
        (b"", 0, 1),
    ]
    servers = np.frombuffer(raw, STATION, 2, setup.CONFIG.itemsize + 4 * setup.PREFIX.itemsize)
    assert servers.tolist() == [(1, 2.0, 0.5, 2.0, 0.5), (3, 0.0, 0.5, 0.0, 0.75)]


def test_a_board_without_stations_can_still_be_mapped(tmp_path: Path) -> None:
    write_setup(str(tmp_path), [TierSetup(("/x",))], 0, "boot")
    assert (tmp_path / "board").stat().st_size == 8


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([TierSetup((f"/{number}",)) for number in range(9)], "9 tiers are too many; at most 8"),
        ([TierSetup(tuple(f"/{number}" for number in range(65)))], "65 paths of tiers are too many; at most 64"),
        (
            [TierSetup(("/x",), TierStations(servers=(Station(0, 1.0, 0.0),) * 5000))],
            "5000 emulated servers are too many; at most 4096",
        ),
        ([TierSetup(("/" + "x" * 4088,))], f"/{'x' * 59}…: path of a tier is too long; at most 4087 bytes"),
    ],
)
def test_what_does_not_fit_is_refused(tiers: list[TierSetup], message: str) -> None:
    with pytest.raises(UserError) as caught:
        config_bytes(tiers, 0, "boot", 0)
    assert str(caught.value) == message


def head_of(path: Path, tiers: int = 2) -> StateHead:
    head = read_head(str(path), tiers)
    assert head is not None
    return head


def chunks_of(path: Path) -> list[Chunk]:
    return list(read_chunks(head_of(path)))


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    operations = [Op("open", 0, 0.5), Op("read", 4096, 0.25, tier=1), Op("read", 100, 0.125, tier=1)]
    waiting = rows({"epoch": 1, "bytes": 7}, {"epoch": 2})
    path = write_state(
        tmp_path,
        "node-100-1",
        lane_chunk(operations, epoch=3, number=4, limited_ops=2, late_ops=1, late_ns=9),
        epoch_chunk(3, 1, 2.5, {"compute": 0.25, "é": 1}),
        list_chunk(waiting),
        variables={"RANK": 3, "WORLD_SIZE": 8},
        lost_ops=5,
        lost_rows=6,
        mapped_ops=7,
        unemulated=1,
    )
    head = head_of(path)
    assert (head.pid, head.parent, head.host, head.boot, head.command) == (100, 1, "node", "boot", "python train.py")
    assert head.variables == {"RANK": "3", "WORLD_SIZE": "8"}
    assert (head.lost_ops, head.lost_rows, head.mapped_ops, head.unemulated) == (5, 6, 7, True)
    lane, epoch, rest = chunks_of(path)
    assert isinstance(lane, NativeLane)
    assert (lane.number, lane.epoch, lane.limited_ops, lane.late_ops, lane.late_ns) == (4, 3, 2, 1, 9)
    assert lane.whole
    assert lane.cells["bytes"].sum() == 4196
    second = START + 10**9
    assert epoch == MarkedEpoch(3, second, second + 1_500_000_000, 0, (("compute", 250_000_000, 1), ("é", 10**9, 1)))
    assert rest == WaitingRows(waiting)


@pytest.mark.parametrize("content", [b"", bytes(100), bytes(4096)])
def test_a_process_that_ended_before_it_recorded_is_no_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.state"
    path.write_bytes(content)
    assert read_head(str(path), 2) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (state_bytes()[:200], "is truncated"),
        (state_bytes(magic=b"ELF"), "is not a state file of a recorded process"),
        (state_bytes(version=9), "version 9 is not supported by this Tierscope (1)"),
        (state_bytes(crc=1), "checksum mismatch"),
        (state_bytes(tiers=3), "has other tiers or kinds of operation than this trace"),
        (state_bytes(kinds=7), "has other tiers or kinds of operation than this trace"),
    ],
)
def test_a_head_that_cannot_be_believed_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.state"
    path.write_bytes(content)
    with pytest.raises(ResultError) as caught:
        read_head(str(path), 2)
    assert str(caught.value) == f"{path}: {reason}"


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"gone\.state: cannot be read: No such file or directory"):
        read_head(str(tmp_path / "gone.state"), 2)
    head = head_of(write_state(tmp_path, "x"))
    os.unlink(head.path)
    assert list(read_chunks(head)) == [StateDamage("cannot be read: No such file or directory")]


@pytest.mark.parametrize("kind", ["pipe", "link", "socket", "device", "folder"])
def test_what_is_no_regular_file_is_not_waited_for_and_not_followed(tmp_path: Path, kind: str) -> None:
    """A program may have put it there between two looks, too."""
    head = head_of(write_state(tmp_path, "x", LANE))
    os.rename(head.path, tmp_path / "elsewhere")
    put(head.path, kind)
    with pytest.raises(ResultError) as caught:
        read_head(head.path, 2)
    assert str(caught.value) == f"{head.path}: is not a regular file"
    assert list(read_chunks(head)) == [StateDamage("is not a regular file")]
    assert list(read_names(head.path)) == []
    assert not is_plain(head.path)
    with pytest.raises(OSError, match="is not a regular file"):
        list(rows_of(head.path))


def put(path: str, kind: str) -> None:
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            os.symlink("elsewhere", path)
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case "folder":
            os.mkdir(path)
        case _:
            try:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # zeros without end
            except PermissionError:
                pytest.skip("only root makes devices")


@pytest.mark.parametrize(
    ("content", "unrecorded"),
    [
        (None, Unrecorded()),
        (b"", Unrecorded()),
        (bytes(16), Unrecorded()),
        (struct.pack("<QQ", 3, 70), Unrecorded(3, 70)),
        (struct.pack("<QQ", 3, 70)[:15], Unrecorded()),
        (struct.pack("<QQ", 3, 1 << 63) + b"more", Unrecorded(3, 0)),
    ],
)
def test_what_could_not_be_recorded_is_not_trusted_either(
    tmp_path: Path, content: bytes | None, unrecorded: Unrecorded
) -> None:
    if content is not None:
        (tmp_path / "lost").write_bytes(content)
    assert read_unrecorded(str(tmp_path)) == unrecorded


def test_a_pipe_in_place_of_the_count_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lost")
    assert read_unrecorded(str(tmp_path)) == Unrecorded()


LANE = lane_chunk([Op("read", 10, 0.5)])


def test_a_lane_that_was_cut_off_keeps_its_sums(tmp_path: Path) -> None:
    path = write_state(tmp_path, "x", lane_chunk([Op("read", 10, 0.5)], sequence=3, check=0))
    (lane,) = chunks_of(path)
    assert isinstance(lane, NativeLane)
    assert not lane.whole
    assert lane.cells["ops"].sum() == 1


@pytest.mark.parametrize(
    "damaged",
    [
        lane_chunk([Op("read")], late_ns=-1),
        lane_chunk([Op("read", 1, 5.0)], last_ns=START, check=0),  # five seconds in no time
        lane_chunk([Op("read")], epoch=-1),
        LANE[:128] + struct.pack("<q", -5) + LANE[136:],  # a negative count
        LANE[:128] + struct.pack("<q", 9) + LANE[136:],  # operations without a histogram
    ],
)
def test_impossible_lanes_are_left_out_and_what_follows_is_read(tmp_path: Path, damaged: bytes) -> None:
    first, second = chunks_of(write_state(tmp_path, "x", damaged, LANE))
    assert first == StateDamage("has impossible numbers at byte 4096")
    assert isinstance(second, NativeLane)


def test_other_impossible_chunks_are_left_out_too(tmp_path: Path) -> None:
    long = bytearray(list_chunk())
    long[16:24] = struct.pack("<Q", 513)
    late = bytearray(epoch_chunk(1, 1, 2))
    late[16:24] = struct.pack("<Q", 1 << 63)
    chunks = chunks_of(write_state(tmp_path, "x", bytes(long), bytes(late), epoch_chunk(-2), LANE))
    assert [isinstance(chunk, StateDamage) for chunk in chunks] == [True, True, True, False]


def test_the_rest_behind_an_unknown_chunk_is_given_up(tmp_path: Path) -> None:
    lane, damage = chunks_of(write_state(tmp_path, "x", LANE, b"\1" * 64, LANE))
    assert isinstance(lane, NativeLane)
    assert damage == StateDamage(f"cannot be read from byte {4096 + len(LANE)} on")


def test_a_truncated_file_gives_what_is_left(tmp_path: Path) -> None:
    path = write_state(tmp_path, "x", LANE, LANE)
    os.truncate(path, 4096 + len(LANE) + 50)
    short, lane, damage = chunks_of(path)
    assert short == StateDamage(f"holds {4096 + len(LANE) + 50} bytes of {4096 + 2 * len(LANE)}")
    assert isinstance(lane, NativeLane)
    assert isinstance(damage, StateDamage)


def test_an_absurd_size_is_not_believed(tmp_path: Path) -> None:
    damage, lane = chunks_of(write_state(tmp_path, "x", LANE, used=1 << 63))
    assert isinstance(damage, StateDamage)
    assert isinstance(lane, NativeLane)


WHOLE = state_bytes(LANE, epoch_chunk(1, 1, 2, {"compute": 1}), list_chunk(rows({"bytes": 1})), lane_chunk(epoch=2))


def survive(folder: Path, content: bytes) -> None:
    """Whatever is in the file: chunks, damage or our own error."""
    path = folder / "x.state"
    path.write_bytes(content)
    try:
        head = read_head(str(path), 2)
    except ResultError:
        return
    for chunk in read_chunks(head) if head else ():
        if isinstance(chunk, NativeLane):
            assert (chunk.cells["busy_ns"] >= 0).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=20))
def test_flipped_bytes_never_raise(folder: Path, changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    survive(folder, bytes(content))


@given(st.lists(st.tuples(st.integers(4096, len(WHOLE) - 8), st.integers(0, 2**64 - 1)), min_size=1, max_size=5))
def test_wild_numbers_never_raise(folder: Path, changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place - place % 8 : place - place % 8 + 8] = struct.pack("<Q", value)
    survive(folder, bytes(content))


@given(st.integers(0, len(WHOLE)), st.binary(max_size=200))
def test_truncated_and_prolonged_files_never_raise(folder: Path, length: int, more: bytes) -> None:
    survive(folder, WHOLE[:length] + more)


@given(st.binary(max_size=10_000))
def test_random_bytes_never_raise(folder: Path, content: bytes) -> None:
    survive(folder, content)
    survive(folder, state_bytes(content))


def test_names_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "x.names"
    whole = names_bytes({1: "/gfs/a", 2**63 - 1: "/gfs/é"})
    path.write_bytes(whole)
    assert list(read_names(str(path))) == [(1, "/gfs/a"), (2**63 - 1, "/gfs/é")]
    path.write_bytes(whole[:-1])
    assert list(read_names(str(path))) == [(1, "/gfs/a")]
    path.write_bytes(struct.pack("<QI", 1, 1 << 31) + b"x")
    assert list(read_names(str(path))) == []
    assert list(read_names(str(tmp_path / "gone"))) == []


@given(content=st.binary(max_size=300))
def test_random_names_never_raise(folder: Path, content: bytes) -> None:
    (folder / "x.names").write_bytes(content)
    for number, name in read_names(str(folder / "x.names")):
        assert 0 <= number < 2**63
        assert name
