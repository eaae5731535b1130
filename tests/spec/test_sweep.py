import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.texts import SMALL, edited, parsed, refusal, swept
from tierscope.spec import keys, sweep
from tierscope.spec.study import Study
from tierscope.spec.tree import parse_yaml


def axis(key: str, values: str) -> tuple[object, ...]:
    (found,) = parsed(swept(f"{{{key}: {values}}}")).sweep
    return found.values


@pytest.mark.parametrize("text", ["0%..100% step 5%", "0..1 step 0.05", "0:1:0.05", "0%:100%:5%", "0..1 step 5%"])
def test_a_range_includes_its_ends_and_every_value_is_the_nearest_fraction(text: str) -> None:
    assert axis("cache_rate", f'"{text}"') == tuple(percent / 100 for percent in range(0, 101, 5))


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 11, 15, 30, 49])
def test_percent_ranges_are_exact_for_any_step(step: int) -> None:
    expected = [percent / 100 for percent in range(0, 101, step)]
    if 100 % step:
        expected.append(1.0)
    assert axis("cache_rate", f"0%..100% step {step}%") == tuple(expected)


@pytest.mark.parametrize(
    ("key", "text", "values"),
    [
        ("cache_rate", "[0%, 30%, 100%]", (0.0, 0.3, 1.0)),
        ("cache_rate", "25%", (0.25,)),
        ("cache_rate", "0%..100% step 30%", (0.0, 0.3, 0.6, 0.9, 1.0)),
        ("cache_rate", "0%..0% step 5%", (0.0,)),
        ("cache_rate", "5%..6% step 50%", (0.05, 0.06)),
        ("batch_size", '"1:10:4"', (1, 5, 9, 10)),
        ("batch_size", "1..9 step 4", (1, 5, 9)),
        ("batch_size", "1  ..  9   step   4", (1, 5, 9)),
        ("batch_size", "[8, 1]", (8, 1)),
        ("record_length_bytes", "4 KiB..12 KiB step 4 KiB", (4096, 8192, 12288)),
        ("record_length_bytes", "1..1099511627770 step 109951162777", (*range(1, 1099511627770, 109951162777), 1099511627770)),
        ("computation_time", "0 ms..3 ms step 1 ms", (0.0, 0.001, 0.002, 0.003)),
        ("computation_time", "0 ns..10 ns step 4 ns", (0.0, 4e-9, 8e-9, 10e-9)),
        ("gfs.bandwidth", "0.5 GB/s..1.5 GB/s step 500 MB/s", (0.5e9, 1e9, 1.5e9)),
        ("gfs.capacity", "[null, 1 GiB]", (None, 2**30)),
        ("gfs.path", "[a, 'b:c:d']", ("a", "b:c:d")),
        ("shuffle", "[off, local]", ("off", "local")),
        ("lfs.emulate", "[false]", (False,)),
        ("seed", "[1, 2]", (1, 2)),
    ],
)  # fmt: skip
def test_values(key: str, text: str, values: tuple[object, ...]) -> None:
    assert axis(key, text) == values


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.integers(1, 10**6))
def test_integer_ranges_hold_every_step_and_the_end(first: int, length: int, step: int) -> None:
    last = first + length % (step * 1000)
    node = parse_yaml(f"{{record_length_bytes: {first}..{last} step {step}}}", "here")
    (values,) = (found.values for found in sweep.read_axes(node, keys.leaf_keys(Study, [])))
    assert values == tuple(sorted({*range(first, last, step), last}))


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ("{cache_rat: [0]}", "my.yaml:20: cache_rat: unknown key; did you mean cache_rate?"),
        ("{path: [a]}", "my.yaml:20: path is ambiguous: system.tiers.lfs.path or system.tiers.gfs.path; write more"),
        ("{cache_rate: [0, 2]}", "my.yaml:20: sweep.cache_rate = 2; must be within 0% – 100%"),
        ("{cache_rate: 0..2 step 1}", "my.yaml:20: sweep.cache_rate = 2; must be within 0% – 100%"),
        ("{cache_rate: 0..1 step 0}", "my.yaml:20: sweep.cache_rate = 0..1 step 0; a range needs first ≤ last and a step above 0"),
        ("{cache_rate: 1..0 step 0.1}", "my.yaml:20: sweep.cache_rate = 1..0 step 0.1; a range needs first ≤ last"),
        ("{cache_rate: 0..1 step 1e-5}", "my.yaml:20: sweep.cache_rate = 0..1 step 1e-5; more than 10000 values: use a larger step"),
        ("{gfs.bandwidth: 1..1e20 step 1e-300}", "my.yaml:20: sweep.gfs.bandwidth = 1..1e20 step 1e-300; more than 10000 values"),
        ("{cache_rate: 0..1 step 0.005, seed: 0..99 step 1}", "my.yaml:20: sweep has 20100 points; at most 10000: use a larger step or fewer keys"),
        ("{cache_rate: []}", "my.yaml:20: sweep.cache_rate is an empty list; add at least one value"),
        ("{cache_rate: [50%, 0.5]}", "my.yaml:20: sweep.cache_rate has a value twice; remove one"),
        ("{cache_rate: [[0, 1]]}", "my.yaml:20: sweep.cache_rate is a list; must be a single value"),
        ("{cache_rate: {a: 1}}", "my.yaml:20: sweep.cache_rate is a mapping; must be a single value"),
        ("{cache_rate: [null]}", "my.yaml:20: sweep.cache_rate has no value"),
        ("{cache_rate: }", "my.yaml:20: sweep.cache_rate has no value"),
        ("{shuffle: 'off:local:off'}", "my.yaml:20: sweep.shuffle = off:local:off; this key does not support ranges: use a list"),
        ("{cache_rate: [0], placement.cache_rate: [1]}", "my.yaml:20: sweep.placement.cache_rate: placement.cache_rate is swept twice; remove one"),
        ("{study: [a, b]}", "my.yaml:20: sweep.study: study cannot be swept; it is set once for the study"),
        ("{repetitions: [1, 2]}", "my.yaml:20: sweep.repetitions: repetitions cannot be swept"),
        ("{goal: [1 s]}", "my.yaml:20: sweep.goal: goal cannot be swept"),
        ("[cache_rate]", "my.yaml:20: sweep must map keys to values, e.g. placement.cache_rate: 0%..100% step 5%"),
        ("0%..100% step 5%", "my.yaml:20: sweep must map keys to values"),
        ("{cache_rate: [0], cache_rate: [1]}", "my.yaml:20: cache_rate is given twice; remove one"),
    ],
)  # fmt: skip
def test_one_line_for_every_mistake(axes: str, said: str) -> None:
    assert refusal(swept(axes)).startswith(said)


@pytest.mark.parametrize("text", ["0..1 step", "0%..100%", "0:1", "0..1 by 0.1", "0:1:2:3"])
def test_a_range_that_is_none_is_told_how_to_be_one(text: str) -> None:
    line = refusal(swept(f"{{cache_rate: '{text}'}}"))
    assert line.startswith(f"my.yaml:20: sweep.cache_rate = {text}; ")
    assert line.endswith("; a range is written as a..b step c or a:b:c")


@pytest.mark.parametrize("text", ["sweep:\n", "sweep: {}\n", ""])
def test_nothing_swept_is_one_point(text: str) -> None:
    study = parsed(SMALL + text)
    (point,) = sweep.points(study)
    assert (point.index, dict(point.sweep), point.study) == (0, {}, study)


def test_several_axes_make_a_grid_in_the_order_of_the_axes() -> None:
    study = parsed(swept("{reader.batch_size: [2, 1], cache_rate: [0%, 100%, 50%]}"))
    points = list(sweep.points(study))
    assert [point.index for point in points] == list(range(6))
    assert [dict(point.sweep) for point in points] == [
        {"batch_size": batch, "cache_rate": rate} for batch in (2, 1) for rate in (0.0, 1.0, 0.5)
    ]


def test_a_point_is_the_study_with_only_the_swept_values_changed() -> None:
    study = parsed(swept("{cache_rate: [25%], lfs.capacity: [1 GiB], gfs.capacity: [null]}"))
    (point,) = sweep.points(study)
    expected = parsed(edited("50%", "25%", edited("visible_to: node", "visible_to: node\n      capacity: 1 GiB")))
    assert point.study == expected
    assert dict(point.sweep) == {"cache_rate": 0.25, "lfs.capacity": 2**30, "gfs.capacity": None}


def resolved(study: Study) -> list[dict[str, object]]:
    return [dict(point.sweep) for point in sweep.points(study)]


@pytest.mark.parametrize(
    ("settings", "points"),
    [
        ((), [{"cache_rate": 0.0}, {"cache_rate": 1.0}]),
        (("cache_rate=30%",), [{}]),
        (("placement.cache_rate=30%",), [{}]),
        (("sweep={}",), [{}]),
        (("sweep=",), [{}]),
        (("sweep.cache_rate=[10%, 20%]",), [{"cache_rate": 0.1}, {"cache_rate": 0.2}]),
        (("sweep.placement.cache_rate=0..1 step 0.5",), [{"cache_rate": rate} for rate in (0.0, 0.5, 1.0)]),
        (("sweep.cache_rate=70%",), [{"cache_rate": 0.7}]),
        (("sweep={batch_size: [1, 2]}",), [{"batch_size": 1}, {"batch_size": 2}]),
        (("sweep.seed=[1]",), [{"cache_rate": 0.0, "seed": 1}, {"cache_rate": 1.0, "seed": 1}]),
        (("cache_rate=30%", "sweep.cache_rate=[10%]"), [{"cache_rate": 0.1}]),
        (("sweep.cache_rate=[10%]", "cache_rate=30%"), [{}]),
        (("batch_size=2",), [{"cache_rate": 0.0}, {"cache_rate": 1.0}]),
    ],
)
@pytest.mark.parametrize("written", ["cache_rate", "placement.cache_rate"])
def test_what_is_set_by_hand_wins_over_the_sweep(
    written: str, settings: tuple[str, ...], points: list[dict[str, object]]
) -> None:
    assert resolved(parsed(swept(f"{{{written}: [0%, 100%]}}"), *settings)) == points


def test_a_step_need_not_be_a_value_that_the_key_could_have() -> None:
    axis = parsed(swept("{transfer_size: 1 KiB..2 KiB step 256 B}")).sweep[0]
    assert axis.values == (1024, 1280, 1536, 1792, 2048)


def test_a_key_that_is_true_false_or_a_word_is_swept_as_words() -> None:
    """One column of a table cannot hold both; the studies have what was asked for."""
    points = list(sweep.points(parsed(swept("{evict: [true, metadata]}"))))
    assert [point.sweep for point in points] == [{"evict": "true"}, {"evict": "metadata"}]
    assert [point.study.workload.reader.evict for point in points] == [True, "metadata"]
    plain = list(sweep.points(parsed(swept("{evict: [true, false]}"))))
    assert [point.sweep for point in plain] == [{"evict": True}, {"evict": False}]


@pytest.mark.parametrize("text", ["1.." + " " * 200_000 + "x", ".. step" * 50_000, "1..2 step" + " " * 200_000])
def test_a_range_is_split_in_no_time(text: str) -> None:
    start = time.process_time()
    sweep.split_range(text)
    assert time.process_time() - start < 0.5
