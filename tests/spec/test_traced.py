"""`--tier` and `--emulate`: what they mean, and one clear line for what is wrong."""

from pathlib import Path

import pytest

from tierscope.errors import UserError
from tierscope.spec import schema, traced
from tierscope.spec.lustre_check import LUSTRE_KEYS
from tierscope.spec.study import Tier
from tierscope.spec.traced import emulation_lines, read_rules, read_tiers


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two directories, a link to one, and a place without storage worth naming."""
    for name in ("lfs", "gfs"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("gfs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(traced, "_storage_mounts", list)
    return tmp_path


def refusal(*tiers: str, emulate: tuple[str, ...] = ()) -> str:
    with pytest.raises(UserError) as caught:
        read_tiers(tiers, emulate)
    return str(caught.value)


def test_tiers_keep_their_order_and_paths_become_absolute(here: Path) -> None:
    near, far = read_tiers(["lfs=lfs", f"gfs={here}/gfs/,/"])
    assert (near.name, near.prefixes) == ("lfs", (f"{here}/lfs",))
    assert (far.name, far.prefixes) == ("gfs", (f"{here}/gfs", "/"))
    assert not near.tier.emulate


def test_links_count_as_written_and_as_they_lead(here: Path) -> None:
    (tier,) = read_tiers(["gfs=link"])
    assert tier.prefixes == (f"{here}/link", f"{here}/gfs")


def test_nested_paths_are_fine_and_home_is_known(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    near, far = read_tiers(["lfs=~/lfs", "all=."])
    assert near.prefixes == (f"{here}/lfs",)
    assert far.prefixes == (str(here),)


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([], "--tier is missing; name the paths of the data, nearest tier first: --tier lfs=/local --tier gfs=/lustre"),
        (["gfs"], "--tier gfs: must be NAME=/path[,/path2…], e.g. gfs=/lustre"),
        (["gfs="], "--tier gfs=: must be NAME=/path[,/path2…], e.g. gfs=/lustre"),
        (["GFS=gfs"], "--tier GFS=gfs: a tier name must be lower-case letters, digits and '_', at most 16"),
        (["=gfs"], "--tier =gfs: a tier name must be lower-case letters, digits and '_', at most 16"),
        (
            [f"{'g' * 17}=gfs"],
            f"--tier {'g' * 17}=gfs: a tier name must be lower-case letters, digits and '_', at most 16",
        ),
        (["gfs=gfs,"], "--tier gfs=gfs,: a path is empty; write it like gfs=/path,/path2"),
        (["gfs=nowhere"], "--tier gfs=nowhere: nowhere: no such file or directory; name an existing one"),
        (
            ["gfs=gfs,v2"],
            "--tier gfs=gfs,v2: v2: no such file or directory; name an existing one (a comma separates paths, it cannot be part of one)",
        ),
        (
            ["gfs=gfs", "gfs=lfs"],
            "--tier gfs=lfs: gfs is given twice; write all its paths in one: gfs=/path,/path2",
        ),
    ],
)
def test_bad_tiers_get_one_clear_line(tiers: list[str], message: str) -> None:
    assert refusal(*tiers) == message


def test_what_may_not_be_looked_at_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.stat", refuse)  # root may look anywhere
    assert refusal("gfs=gfs") == "--tier gfs=gfs: gfs: permission denied; change the mode of the directories above it"


def test_one_path_cannot_belong_to_two_tiers(here: Path) -> None:
    assert refusal("lfs=gfs", "gfs=link") == f"--tier gfs=link: {here}/gfs already belongs to lfs; use separate paths"


def test_what_is_mounted_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_storage_mounts", lambda: ["/work (lustre)", "/scratch (NVMe)"])
    assert refusal().endswith("(mounted here: /work (lustre), /scratch (NVMe))")


def test_mounts_are_read_without_trust() -> None:
    assert all(isinstance(mount, str) for mount in traced._storage_mounts())


def test_emulated_keys_are_those_of_a_studys_tier() -> None:
    near, far = read_tiers(
        ["lfs=lfs", "gfs=gfs"],
        ["gfs.bandwidth=20MB/s", "gfs.servers=3", "gfs.metadata_ops = 900/s", "gfs.variation=10%", "gfs.latency=2ms"],
    )
    tier = far.tier
    assert not near.tier.emulate
    assert tier.emulate
    assert (tier.bandwidth, tier.servers, tier.metadata_ops) == (2e7, 3, 900.0)
    assert (tier.variation, tier.latency) == (0.1, 0.002)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("gfs", "must be TIER.KEY=VALUE, e.g. gfs.bandwidth=20MB/s"),
        ("bandwidth=1MB/s", "must be TIER.KEY=VALUE, e.g. gfs.bandwidth=20MB/s"),
        ("gsf.bandwidth=1MB/s", "gsf is not a tier of this command; did you mean gfs?"),
        ("tape.bandwidth=1MB/s", "tape is not a tier of this command; tiers: lfs, gfs"),
        ("gfs.bandwith=1MB/s", "gfs.bandwith: unknown key; did you mean gfs.bandwidth?"),
        (
            "gfs.path=/x",
            "gfs.path: unknown key; known here: metadata_ops, metadata_latency, read_ops, bandwidth, write_ops, write_bandwidth, servers, node_bandwidth, device_bandwidth, "
            "gateway_bandwidth, latency, stream_bandwidth, variation",
        ),
        ("gfs.bandwidth=20MB", "gfs.bandwidth = 20MB; is an amount, not a rate; write it like 40 MiB/s"),
        (
            "gfs.bandwidth=20mb/s",
            "gfs.bandwidth = 20mb/s; has the unknown unit 'mb'; did you mean MB? (expected bytes per second like 40 MiB/s)",
        ),
        ("gfs.servers=0", "gfs.servers = 0; must be within 1 – 100000"),
        ("gfs.latency=", "has no value; set gfs.latency (latency of each read, outside any queue), or remove it"),
        ("gfs.bandwidth= ", "has no value; set gfs.bandwidth (bytes per second and server), or remove it"),
    ],
)
def test_bad_settings_get_one_clear_line(setting: str, message: str) -> None:
    assert refusal("lfs=lfs", "gfs=gfs", emulate=(setting,)) == f"--emulate {setting}: {message}"


def test_a_limited_stream_is_a_rate_of_its_own() -> None:
    tiers = read_tiers(["gfs=gfs"], ["gfs.stream_bandwidth=17.5MB/s"])
    assert tiers[0].tier.stream_bandwidth == 17.5e6
    assert emulation_lines(tiers) == ["emulating gfs: stream_bandwidth 17500 kB/s"]


def test_what_was_understood_is_told_tier_by_tier() -> None:
    tiers = read_tiers(
        ["lfs=lfs", "gfs=gfs"], ["gfs.bandwidth=20", "gfs.latency=5", "gfs.servers=1", "gfs.variation=0.1"]
    )
    assert emulation_lines(tiers) == ["emulating gfs: bandwidth 20 B/s, latency 5 s, variation 10%"]
    assert emulation_lines(read_tiers(["gfs=gfs"])) == []


def test_a_tier_without_a_rate_cannot_be_emulated() -> None:
    assert (
        refusal("gfs=gfs", emulate=("gfs.servers=4",))
        == "--emulate: gfs has no limiting rate; add metadata_ops, metadata_latency, read_ops, bandwidth, write_ops, write_bandwidth, "
        "node_bandwidth, device_bandwidth, gateway_bandwidth or latency"
    )


@pytest.mark.parametrize(
    "setting",
    [
        "metadata_servers=2",
        "metadata_variation=50%",
        "stripe_count=2",
        "stripe_size=1MiB",
        "service_variation=1",
        "discipline=sharing",
        "background=50%",
    ],
)
def test_what_is_emulated_for_studies_only_says_so(setting: str) -> None:
    name = setting.partition("=")[0]
    assert refusal("gfs=gfs", emulate=("gfs.bandwidth=1MB/s", f"gfs.{setting}")) == (
        f"--emulate gfs.{setting}: gfs.{name} can only be emulated by 'tierscope run'; here: metadata_ops, metadata_latency, "
        "read_ops, bandwidth, write_ops, write_bandwidth, servers, node_bandwidth, device_bandwidth, gateway_bandwidth, latency, stream_bandwidth, variation"
    )


def test_every_key_that_says_how_a_tier_serves_is_known_to_trace_or_refused_by_name() -> None:
    others = {
        "path",
        "visible_to",
        "device_shared_by",
        "gateway_shared_by",
        "capacity",
        "emulate",
        "storage",
        *LUSTRE_KEYS,
    }
    names = {field.yaml for field in schema.fields(Tier)} - others
    assert names == {*traced.EMULATED_KEYS, *traced._STUDIES_ONLY}


def test_a_traced_command_meets_one_link() -> None:
    (tier,) = read_tiers(["gfs=gfs"], ["gfs.node_bandwidth=1MB/s", "gfs.metadata_latency=2ms"])
    assert emulation_lines([tier]) == ["emulating gfs: metadata_latency 2 ms, node_bandwidth 1 MB/s"]
    links = ("gfs.node_bandwidth=1MB/s", "gfs.device_bandwidth=2MB/s")
    assert refusal("gfs=gfs", emulate=links) == (
        "--emulate: gfs.device_bandwidth: only one link per tier can be emulated for a traced command; use the slowest"
    )


def test_tiers_of_logs_are_paths_of_another_machine() -> None:
    """They need not exist here, and no link here leads them astray."""
    assert read_rules(["lfs=/nvme/{job},/tmp", "gfs=/lustre/me/", "link=/a/../b"]) == {
        "lfs": ("/nvme/{job}", "/tmp"),
        "gfs": ("/lustre/me",),
        "link": ("/b",),
    }
    assert list(read_rules(["gfs=/g", "lfs=/l"])) == ["gfs", "lfs"]
    assert read_rules([]) == {}
    assert read_rules(["all=/"]) == {"all": ("/",)}


def test_a_path_of_a_log_that_is_given_twice_to_one_tier_is_given_once() -> None:
    assert read_rules(["gfs=/g,/g/,/h"]) == {"gfs": ("/g", "/h")}


@pytest.mark.parametrize("path", ["//lustre", "///lustre", "//lustre/"])
def test_a_slash_too_many_is_no_other_path(path: str) -> None:
    assert read_rules([f"gfs={path}"]) == {"gfs": ("/lustre",)}


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        (["gfs"], "--tier gfs: must be NAME=/path[,/path2…], e.g. gfs=/lustre"),
        (["gfs="], "--tier gfs=: must be NAME=/path[,/path2…], e.g. gfs=/lustre"),
        (["GFS=/g"], "--tier GFS=/g: a tier name must be lower-case letters, digits and '_', at most 16"),
        (["9p=/g"], "--tier 9p=/g: a tier name must be lower-case letters, digits and '_', at most 16"),
        (["gfs=/g,,/h"], "--tier gfs=/g,,/h: a path is empty; write it like gfs=/path,/path2"),
        (["gfs=lustre"], "--tier gfs=lustre: lustre is not an absolute path; write it as in the logs, e.g. /lustre"),
        (["gfs=/g,~/h"], "--tier gfs=/g,~/h: ~/h is not an absolute path; write it as in the logs, e.g. /lustre"),
        (["gfs=/g", "gfs=/h"], "--tier gfs=/h: gfs is given twice; write all its paths in one: gfs=/path,/path2"),
        (["gfs=/g/", "lfs=/l,/g"], "--tier lfs=/l,/g: /g already belongs to gfs; use separate paths"),
    ],
)
def test_bad_tiers_of_logs_get_one_clear_line(tiers: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_rules(tiers)
    assert str(caught.value) == message
