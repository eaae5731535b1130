"""Where logged paths lie: rules first, then Lustre, then mounts; the program's own files are never data."""

from collections.abc import Sequence

import pytest

from tierscope.imports.paths import LUSTRE, PROGRAM, STREAMS, UNKNOWN, TierRules, common_folder

MOUNTS = [("/", "ext4"), ("/home", "nfs"), ("/home/me/fast", "xfs"), ("/merged", "overlay"), ("/scratch", "lustre")]


def tier_of(path: str, mounts: Sequence[tuple[str, str]] = MOUNTS, on_lustre: bool = False, **given: str) -> str:
    rules = TierRules({name: tuple(paths.split(",")) for name, paths in given.items()})
    (found,) = rules.of_all([path], mounts, {0} if on_lustre else set())
    return found


def test_rules_come_before_lustre_and_lustre_before_mounts() -> None:
    assert tier_of("/home/me/a.npz", on_lustre=True, gfs="/home") == "gfs"
    assert tier_of("/home/me/a.npz", on_lustre=True, gfs="/elsewhere") == LUSTRE
    assert tier_of("/home/me/a.npz") == "nfs"


@pytest.mark.parametrize("order", [("gfs", "lfs"), ("lfs", "gfs")])
def test_the_longest_rule_holds_whatever_the_order(order: tuple[str, str]) -> None:
    given = {"gfs": ("/data",), "lfs": ("/data/near/", "/data/also")}
    rules = TierRules({name: given[name] for name in order})
    paths = ["/data/near/a", "/data/also/a", "/data/far/a"]
    assert rules.of_all(paths, MOUNTS, set()) == ["lfs", "lfs", "gfs"]


def test_a_rule_ends_where_a_name_does() -> None:
    assert tier_of("/data", gfs="/data") == "gfs"
    assert tier_of("/data/a", gfs="/data/") == "gfs"
    assert tier_of("/database/a", gfs="/data") == UNKNOWN
    assert tier_of("/anything/a", gfs="/") == "gfs"


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("/home/me/a", "nfs"),
        ("/home/me/fast/a", "xfs"),
        ("/home/me/faster/a", "nfs"),
        ("/homely/a", UNKNOWN),
        ("/scratch", "lustre"),
        ("/data/a", UNKNOWN),  # only / holds it, which tells nothing
        ("/merged/a", UNKNOWN),  # an overlay has its files elsewhere
    ],
)
def test_the_longest_mount_holds(path: str, tier: str) -> None:
    assert tier_of(path) == tier
    assert tier_of(path, MOUNTS[::-1]) == tier


@pytest.mark.parametrize(
    ("kind", "name"),
    [("nfs4", "nfs4"), ("fuse.glusterfs", "fuse_glusterfs"), ("GPFS", "gpfs"), ("a" * 40, "a" * 16), ("", UNKNOWN)],
)
def test_a_mounts_kind_becomes_a_tiers_name(kind: str, name: str) -> None:
    assert tier_of("/m/a", [("/m", kind)]) == name


@pytest.mark.parametrize("mount", ["/", "//", ""])
def test_the_root_tells_nothing_however_it_is_written(mount: str) -> None:
    assert tier_of("/m/a", [(mount, "nfs")]) == UNKNOWN


@pytest.mark.parametrize("kind", ["9p", "_fs", "9", "-"])
def test_a_mounts_kind_never_becomes_a_name_that_no_tier_may_have(kind: str) -> None:
    """A result with such a tier cannot be read again."""
    name = tier_of("/m/a", [("/m", kind)])
    assert name == UNKNOWN or name[0].isalpha()


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/train.pyc",
        "/home/me/lib.so",
        "/home/me/lib.so.1.2",
        "/home/me/venv/lib/python3.11/random",
        "/home/me/site-packages/numpy/data.npz",
        "/scratch/__pycache__/x",
        "/usr/share/data.bin",
        "/proc/self/maps",
        "/dev/shm/a",
        "pipe:[77]",
        "",
    ],
)
def test_the_programs_own_files_are_apart(path: str) -> None:
    assert tier_of(path) == PROGRAM
    assert tier_of(path, on_lustre=True) == PROGRAM


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("/usr/data/a.npz", "gfs"),
        ("/dev/shm/a.npz", "gfs"),
        ("/usr/lib/libc.so.6", PROGRAM),
        ("/usr/lib/python3/dist-packages/x/y.npz", PROGRAM),
        ("/dev/null", PROGRAM),
        ("<STDIN>", STREAMS),
        ("<other>", PROGRAM),
    ],
)
def test_a_rule_may_cover_a_systems_folder_but_what_is_no_data_stays_apart(path: str, tier: str) -> None:
    assert tier_of(path, gfs="/usr,/dev/shm") == tier


def test_weights_are_data() -> None:
    """PyTorch's files end in .pth as often as Python's lists of folders do; a rule says which they are."""
    assert tier_of("/gfs/checkpoints/resnet50.pth", gfs="/gfs") == "gfs"


@pytest.mark.parametrize("path", ["3710437467", "//1968299212", "a.npz", "./a.npz"])
def test_names_without_a_folder_and_anonymised_numbers_are_on_no_tier(path: str) -> None:
    assert tier_of(path) == UNKNOWN
    assert tier_of(path, gfs="/data") == UNKNOWN


def test_every_path_gets_its_own_answer_in_order() -> None:
    rules = TierRules({"gfs": ("/gfs",)})
    paths = ["/gfs/a", "/x/b", "/home/c", "/usr/d"]
    assert rules.of_all(paths, MOUNTS, {1}) == ["gfs", LUSTRE, "nfs", PROGRAM]
    assert rules.of_all([], MOUNTS, set()) == []


def test_tiers_are_in_order_nearest_first() -> None:
    rules = TierRules({"lfs": ("/l",), "gfs": ("/g",)})
    assert rules.order({"gfs", "nfs", "xfs", "lustre", PROGRAM, UNKNOWN}) == ["xfs", "lfs", "gfs", "lustre", "nfs"]
    assert TierRules({}).order({"tmpfs", "lustre"}) == ["tmpfs", "lustre"]


def test_what_is_plainly_no_data_is_so_below_a_rule_too() -> None:
    assert tier_of("/gfs/x.so", gfs="/gfs") == PROGRAM
    assert tier_of("/usr/x.npz", gfs="/usr") == "gfs"
    assert tier_of("/usr/x.npz") == PROGRAM


@pytest.mark.parametrize("path", ["<STDIN>", "<STDOUT>", "<STDERR>"])
def test_standard_streams_are_apart_from_the_programs_files(path: str) -> None:
    assert tier_of(path) == tier_of(path, gfs="/") == STREAMS


def test_what_matches_no_tier_has_a_name_that_nobody_gave() -> None:
    rules = TierRules({"gfs": ("/g",), "other": ("/o",)})
    assert TierRules({}).other == "other"
    assert rules.other not in rules.given
    assert TierRules({"gfs": ("/g",)}).order({"gfs", "other", "lustre"}) == ["other", "gfs", "lustre"]


def test_the_folder_that_holds_all() -> None:
    assert common_folder(["/a/b/c", "/a/b/d/e"]) == "/a/b"
    assert common_folder(["/a", "/b"]) == "/"
    assert common_folder([]) == ""
    assert common_folder(["/a", "b"]) == ""
