"""Values of keys as people write them."""

import pytest

from tierscope.spec.keys import leaf_keys
from tierscope.spec.kinds import Bytes, Optional
from tierscope.spec.shown import has_unit, shown_value
from tierscope.spec.study import Study


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cache_rate", 0.25, "25%"),
        ("placement.cache_rate", 1, "100%"),
        ("cache_rate", 1 / 3, "33.3333%"),
        ("transfer_size", 4 << 20, "4 MiB"),
        ("record_length_bytes", 128 << 10, "128 KiB"),
        ("record_length_bytes", float(128 << 10), "128 KiB"),
        ("record_length_bytes", 0.5, "0.5"),
        ("gfs.bandwidth", 2e8, "200 MB/s"),
        ("gfs.metadata_ops", 900.0, "900/s"),
        ("computation_time", 0.005, "5 ms"),
        ("computation_time", 0, "0 s"),
        ("num_files_train", 1048576, "1048576"),
        ("background", True, "true"),
        ("chunk_size", None, "null"),
        ("format", "tfrecord", "tfrecord"),
        ("my column", 0.5, "0.5"),
        ("my column", 1048576, "1048576"),
    ],
)
def test_a_value_has_the_unit_of_its_key(name: str, value: object, text: str) -> None:
    assert shown_value(name, value) == text


def test_every_size_of_a_study_has_a_unit() -> None:
    kinds = {path: key.kind for path, key in leaf_keys(Study, ("gfs",)).items()}
    sizes = [
        path
        for path, kind in kinds.items()
        if isinstance(kind.kind if isinstance(kind, Optional) else kind, Bytes) and path.rpartition(".")[2] != "memory"
    ]
    assert sizes
    assert all(has_unit(path) for path in sizes)
    assert {shown_value(path, 3 << 20) for path in sizes} == {"3 MiB"}
