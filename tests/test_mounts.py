"""The table of mounts, as the kernel writes it."""

from pathlib import Path

from tierscope.mounts import Mount, mounts

LINES = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /two\040words\134 rw - lustre 10.0.0.1@tcp:/big rw,flock
31 22 0:27 / /tab\011ulated rw shared:2 master:3 - nfs4 server:/a\040b rw
cut off
32 22 0:28 / /short rw - tmpfs
"""


def test_names_are_as_they_are(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_bytes(LINES.encode() + b"33 22 0:29 / /\xff rw - xfs /dev/nvme0n1 rw\n")
    assert list(mounts(str(table))) == [
        Mount("/", "ext4", "/dev/sda1"),
        Mount("/two words\\", "lustre", "10.0.0.1@tcp:/big"),
        Mount("/tab\tulated", "nfs4", "server:/a b"),
        Mount("/\udcff", "xfs", "/dev/nvme0n1"),
    ]


def test_nothing_is_told_where_there_is_no_table(tmp_path: Path) -> None:
    assert list(mounts(str(tmp_path / "none"))) == []
