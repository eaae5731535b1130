"""Where a measurement comes from."""

import io
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest

import tierscope
from tierscope import mounts as mounted
from tierscope.mounts import filesystem_of
from tierscope.trace import provenance as module
from tierscope.trace.provenance import Provenance, provenance

MOUNTS = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:5 / /data rw shared:5 - lustre mds:/fs rw
22 21 0:6 / /data/near\\040by rw shared:6 master:1 - tmpfs tmpfs rw
23 21 0:7 / /data/twice rw - nfs server:/x rw
24 23 0:8 / /data/twice rw - beegfs other rw
"""


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted, "open", lambda *_, **__: io.StringIO(MOUNTS), raising=False)


def test_it_says_who_where_when_and_with_what(tmp_path: Path) -> None:
    found = provenance("local", {"gfs": str(tmp_path)})
    assert Provenance(**json.loads(json.dumps(asdict(found)))) == found
    assert found.launcher == "local"
    assert found.packages["tierscope"] == tierscope.__version__
    assert "numpy" in found.packages
    assert found.time is not None
    assert datetime.fromisoformat(found.time).utcoffset() is not None
    assert (found.cores or 0) >= 1
    assert (found.memory_bytes or 0) > 2**20
    assert found.filesystems == {"gfs": filesystem_of(str(tmp_path))}


def test_a_package_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("numpy", "no-such-package-of-ours"))
    assert list(provenance("local", {}).packages) == ["numpy"]


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/database", "ext4"),
        ("/data", "lustre"),
        ("/data/x/y", "lustre"),
        ("/data/near by/x", "tmpfs"),
        ("/data/twice/x", "beegfs"),
    ],
)
def test_the_nearest_mount_counts(path: str, kind: str) -> None:
    assert filesystem_of(path) == kind


def test_a_real_mount_is_found() -> None:
    assert filesystem_of("/proc/self") == "proc"


def test_without_a_list_of_mounts_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(mounted, "open", missing, raising=False)
    assert filesystem_of("/") == "unknown"
