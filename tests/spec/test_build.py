"""Every kind of mistake in a study: one line that names file, line, key, value and fix."""

import pytest

from tests.spec.texts import SMALL, edited, parsed, refusal
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload


def test_what_is_not_written_has_its_default() -> None:
    assert parsed(SMALL) == Study(
        study="small",
        seed=7,
        goal=None,
        workload=Workload(
            dataset=Dataset(
                format="tfrecord",
                num_files_train=64,
                num_samples_per_file=1,
                record_length_bytes=4096,
                num_subfolders_train=0,
            ),
            reader=Reader(
                batch_size=4,
                read_threads=1,
                prefetch_size=2,
                transfer_size=262144,
                shuffle="global",
                shuffle_nodes=1,
            ),
            train=Train(epochs=3, computation_time=0.0),
        ),
        system=System(
            nodes=2,
            ranks_per_node=2,
            tiers=(
                Tier(name="lfs", path="{out}/lfs/{node}", visible_to="node"),
                Tier(name="gfs", path="{out}/gfs", visible_to="global"),
            ),
        ),
        placement=Placement(policy="pinned", cache_rate=0.5),
        sweep=(),
        repetitions=1,
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # unknown keys
        ("batch_size: 4", "batch_sise: 4", "my.yaml:8: workload.reader.batch_sise: unknown key; did you mean batch_size?"),
        ("seed: 7", "sede: 7", "my.yaml:2: sede: unknown key; did you mean seed?"),
        ("seed: 7", "sweeps: {}", "my.yaml:2: sweeps: unknown key; did you mean sweep?"),
        ("visible_to: node", "visible: node", "my.yaml:15: system.tiers.lfs.visible: unknown key; did you mean visible_to?"),
        (
            "cache_rate: 50%",
            "zzz: 1",
            "my.yaml:19: placement.zzz: unknown key; known here: policy, cache_rate",
        ),
        ("seed: 7", "<<: {seed: 7}", "my.yaml:2: <<: unknown key; known here: study, seed, goal, workload"),
        ("seed: 7", '"se\\ned": 7', "my.yaml:2: se\\ned: unknown key; did you mean seed?"),
        # wrong types
        ("batch_size: 4", "batch_size: four", "my.yaml:8: workload.reader.batch_size = four; must be a whole number"),
        ("batch_size: 4", "batch_size: 2.5", "my.yaml:8: workload.reader.batch_size = 2.5; must be a whole number"),
        (
            "batch_size: 4",
            "batch_size: [4]",
            "my.yaml:8: workload.reader.batch_size is a list; must be a single value (samples per step and rank)",
        ),
        (
            "batch_size: 4",
            "batch_size: {a: 4}",
            "my.yaml:8: workload.reader.batch_size is a mapping; must be a single value (samples per step and rank)",
        ),
        (
            "batch_size: 4",
            "batch_size:",
            "my.yaml:8: workload.reader.batch_size has no value; samples per step and rank: add a value or remove the key",
        ),
        ("batch_size: 4", "batch_size: ~", "my.yaml:8: workload.reader.batch_size has no value"),
        ("  nodes: 2", '  nodes: "2\\n3"', "my.yaml:10: system.nodes = 2\\n3; must be a whole number"),
        ("4 KiB", "4 kib", "my.yaml:6: workload.dataset.record_length_bytes = 4 kib; has the unknown unit 'kib'; did you mean KiB?"),
        ("4 KiB", "4 ms", "my.yaml:6: workload.dataset.record_length_bytes = 4 ms; has the unknown unit 'ms'"),
        ("4 KiB", "x" * 200, f"my.yaml:6: workload.dataset.record_length_bytes = {'x' * 77}…; is not a number"),
        ("visible_to: node", "visible_to: nod", "my.yaml:15: system.tiers.lfs.visible_to = nod; must be node or global; did you mean node?"),
        ("visible_to: node", "emulate: yes", "my.yaml:15: system.tiers.lfs.emulate = yes; must be true or false"),
        ("study: small", "study: ../../etc", "my.yaml:1: study = ../../etc; must be letters, digits"),
        # impossible values
        ("cache_rate: 50%", "cache_rate: 1.4", "my.yaml:19: placement.cache_rate = 1.4; must be within 0% – 100%"),
        ("cache_rate: 50%", "cache_rate: 101%", "my.yaml:19: placement.cache_rate = 101%; must be within 0% – 100%"),
        ("cache_rate: 50%", "cache_rate: -5%", "my.yaml:19: placement.cache_rate = -5%; must be within 0% – 100%"),
        ("cache_rate: 50%", "cache_rate: .nan", "my.yaml:19: placement.cache_rate = .nan; is not a number"),
        ("num_files_train: 64", "num_files_train: 0", "my.yaml:5: workload.dataset.num_files_train = 0; must be within 1 – "),
        ("num_files_train: 64", "num_files_train: -3", "my.yaml:5: workload.dataset.num_files_train = -3; must be within 1 – "),
        ("4 KiB", "0", "my.yaml:6: workload.dataset.record_length_bytes = 0; must be within 1 B – 1 TiB"),
        ("4 KiB", "1e308 PiB", "my.yaml:6: workload.dataset.record_length_bytes = 1e308 PiB; is too large"),
        ("  nodes: 2", "  nodes: 0", "my.yaml:10: system.nodes = 0; must be within 1 – "),
        ("seed: 7", "seed: 99999999999999999999", "my.yaml:2: seed = 99999999999999999999; must be within 0 – 9223372036854775807"),
        ("seed: 7", "goal: 0 s", "my.yaml:2: goal = 0 s; must be more than 0 s"),
        ("seed: 7", "goal: 1e308 h", "my.yaml:2: goal = 1e308 h; is too large"),
        ("seed: 7", "repetitions: 0", "my.yaml:2: repetitions = 0; must be within 1 – 1000"),
        ('"{out}/gfs"', '"{out}/{rank}"', "my.yaml:17: system.tiers.gfs.path = {out}/{rank}; has the unknown placeholder {rank}"),
        # what is missing
        ("study: small\n", "", "my.yaml:1: study is missing; name of the results: add it"),
        ("    num_files_train: 64\n", "", "my.yaml:4: workload.dataset.num_files_train is missing; files in the training set: add it"),
        ("    record_length_bytes: 4 KiB\n", "", "my.yaml:4: workload.dataset.record_length_bytes is missing"),
        ('      path: "{out}/gfs"\n', "", "my.yaml:16: system.tiers.gfs.path is missing; directory"),
        # sections
        ("  reader:\n    batch_size: 4\n", "  reader: 4\n", "my.yaml:7: workload.reader must be a mapping of keys to values"),
        ("  reader:\n    batch_size: 4\n", "  reader: [4]\n", "my.yaml:7: workload.reader must be a mapping of keys to values"),
        # tiers
        ("    lfs:\n", "    LFS:\n", "my.yaml:13: system.tiers.LFS: a tier name must be lower-case letters, digits and '_', at most 16"),
        ("    lfs:\n", "    a.b:\n", "my.yaml:13: system.tiers.a.b: a tier name must be"),
        ("    lfs:\n", "    abcdefghijklmnopq:\n", "my.yaml:13: system.tiers.abcdefghijklmnopq: a tier name must be"),
        ("    lfs:\n", "    ? \n    :\n", "my.yaml:13: system.tiers.: a tier name must be"),
        ("    lfs:\n", "    gfs:\n", "my.yaml:16: gfs is given twice; remove one"),
        ("    lfs:\n", "    lfs: !!python/object:x.y\n", "my.yaml:13: tag python/object:x.y is not allowed"),
    ],
)  # fmt: skip
def test_one_line_says_where_what_and_how_to_mend_it(old: str, new: str, said: str) -> None:
    assert refusal(edited(old, new)).startswith(said)


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        ("", "my.yaml:9: system.tiers is missing; name at least one storage tier and its path"),
        ("  tiers:\n", "my.yaml:12: system.tiers is empty; name at least one storage tier and its path"),
        ("  tiers: {}\n", "my.yaml:12: system.tiers is empty; name at least one storage tier and its path"),
        ("  tiers: [lfs, gfs]\n", "my.yaml:12: system.tiers must be a mapping of keys to values"),
        ("  tiers: lfs\n", "my.yaml:12: system.tiers must be a mapping of keys to values"),
        ("  tiers: {gfs: }\n", "my.yaml:12: system.tiers.gfs.path is missing"),
        ("  tiers: {gfs: /data}\n", "my.yaml:12: system.tiers.gfs must be a mapping of keys to values"),
    ],
)
def test_a_system_needs_tiers(tiers: str, said: str) -> None:
    before, rest = SMALL.split("  tiers:\n")
    after = rest[rest.index("placement:") :]
    assert refusal(before + tiers + after).startswith(said)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}"])
def test_an_empty_study_lacks_its_name(text: str) -> None:
    assert "study" in refusal(text)


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words", "42", "~"])
def test_a_study_is_a_mapping(text: str) -> None:
    assert refusal(text) == "my.yaml: a study must be a mapping of keys to values, starting with 'study: NAME'"


def test_an_empty_section_is_as_good_as_none() -> None:
    without = edited("  reader:\n    batch_size: 4\n", "")
    assert parsed(edited("  reader:\n    batch_size: 4\n", "  reader:\n")) == parsed(without)


def test_null_is_a_value_of_optional_keys_only() -> None:
    study = parsed(edited("visible_to: node", "visible_to: node\n      capacity: null\n      bandwidth: 1 MB/s"))
    assert study.system.tiers[0].capacity is None
    assert study.system.tiers[0].bandwidth == 10**6
