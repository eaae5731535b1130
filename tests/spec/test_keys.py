import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.errors import SpecError
from tierscope.spec import keys
from tierscope.spec.study import Study

PATHS = list(keys.leaf_keys(Study, ["lfs", "gfs"]))


def refusal(short: str) -> str:
    with pytest.raises(SpecError) as caught:
        keys.resolve(short, PATHS, "here")
    return str(caught.value)


def test_leaves_are_full_paths_with_a_copy_of_the_tier_keys_for_each_tier() -> None:
    assert len(PATHS) == len(set(PATHS))
    assert {"seed", "workload.reader.batch_size", "system.tiers.lfs.path", "system.tiers.gfs.path"} <= set(PATHS)
    assert not any(path.startswith(("sweep", "system.tiers.path")) for path in PATHS)


@pytest.mark.parametrize(
    ("short", "path"),
    [
        ("cache_rate", "placement.cache_rate"),
        ("placement.cache_rate", "placement.cache_rate"),
        ("reader.batch_size", "workload.reader.batch_size"),
        ("gfs.bandwidth", "system.tiers.gfs.bandwidth"),
        ("tiers.lfs.bandwidth", "system.tiers.lfs.bandwidth"),
        ("study", "study"),
        ("nodes", "system.nodes"),
    ],
)
def test_a_suffix_that_fits_one_key_means_it(short: str, path: str) -> None:
    assert keys.resolve(short, PATHS, "here") == path


def test_a_suffix_of_two_keys_is_refused_with_both() -> None:
    assert refusal("bandwidth") == (
        "here: bandwidth is ambiguous: system.tiers.lfs.bandwidth or system.tiers.gfs.bandwidth; write more of the path"
    )


@pytest.mark.parametrize(
    ("short", "hint"),
    [
        ("cache_rat", "did you mean cache_rate?"),
        ("gfs.bandwith", "did you mean gfs.bandwidth?"),
        ("workload.reader.batchsize", "did you mean workload.reader.batch_size?"),
        ("qqqq", "'tierscope presets demo' prints every key"),
        ("", "'tierscope presets demo' prints every key"),
        ("ache_rate", "did you mean cache_rate?"),
        ("reader", "did you mean"),
    ],
)
def test_an_unknown_key_gets_a_hint(short: str, hint: str) -> None:
    line = refusal(short)
    assert line.startswith(f"here: {short}: unknown key; ")
    assert hint in line


@given(st.sampled_from(PATHS), st.integers(0, 5))
def test_any_suffix_resolves_to_its_key_or_is_ambiguous(path: str, cut: int) -> None:
    parts = path.split(".")
    short = ".".join(parts[min(cut, len(parts) - 1) :])
    if sum(f".{other}".endswith(f".{short}") for other in PATHS) > 1:
        assert f"{short} is ambiguous: " in refusal(short)
        assert path in refusal(short)
    else:
        assert keys.resolve(short, PATHS, "here") == path


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["placement.cache_rate"], ["cache_rate"]),
        (["placement.cache_rate", "seed"], ["cache_rate", "seed"]),
        (["system.tiers.lfs.bandwidth", "system.tiers.gfs.bandwidth"], ["lfs.bandwidth", "gfs.bandwidth"]),
        (
            ["system.tiers.lfs.bandwidth", "system.tiers.gfs.bandwidth", "system.nodes"],
            ["lfs.bandwidth", "gfs.bandwidth", "nodes"],
        ),
        (["system.tiers.gfs.bandwidth", "system.tiers.gfs.gateway_bandwidth"], ["bandwidth", "gateway_bandwidth"]),
        ([], []),
    ],
)
def test_short_names(paths: list[str], names: list[str]) -> None:
    assert keys.short_names(paths) == dict(zip(paths, names, strict=True))


@given(st.lists(st.sampled_from(PATHS), unique=True, max_size=8))
def test_short_names_tell_the_swept_keys_apart(paths: list[str]) -> None:
    names = keys.short_names(paths)
    assert len(set(names.values())) == len(paths)
    for path, name in names.items():
        assert keys.resolve(name, paths, "here") == path
