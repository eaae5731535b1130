"""What of the cluster needs no cluster: wishes, records, and the statistics of a mount."""

import os
from pathlib import Path

import pytest

from tools.cluster import ClusterError, Wish
from tools.cluster_moosefs import parse_stats
from tools.cluster_namespaces import Process
from tools.cluster_record import Record

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"osts": 27}, "osts = 27; must be within 1–26"),
        ({"nodes": 0}, "nodes = 0; must be within 1–99"),
        ({"ost_mbit": 0}, "ost_mbit = 0; must be within 0.1–100000, or none"),
    ],
)
def test_wishes_that_cannot_be(wish: dict[str, int], message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        Wish(**wish)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    me = Process.of(os.getpid())
    assert me
    record = Record("abcdef", Wish(mds_mbit=2, state=tmp_path), me, me, {"n1": me}, {"net:[1]"})
    record.save(tmp_path)
    assert Record.load(tmp_path) == record
    assert record.alive


def test_what_is_no_record_is_told(tmp_path: Path) -> None:
    assert Record.load(tmp_path) is None
    (tmp_path / "record.json").write_text('{"schema": 1}')
    with pytest.raises(ClusterError, match="is no record of a cluster"):
        Record.load(tmp_path)


def test_statistics_of_a_mount() -> None:
    text = "fuse_ops.open: 12\nmaster.bytes_sent: 3\n\nsome words\nfuse_ops: 15\n"
    assert parse_stats(text) == {"fuse_ops.open": 12, "master.bytes_sent": 3, "fuse_ops": 15}
