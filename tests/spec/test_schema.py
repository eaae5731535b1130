"""What every key of a study must offer, over all that are declared."""

import dataclasses

import pytest

from tierscope.spec import keys, kinds, schema, study
from tierscope.spec.study import Study

SECTIONS: list[type] = [
    study.Dataset,
    study.Reader,
    study.Train,
    study.Model,
    study.Hdf5Layout,
    study.Statistics,
    study.Checkpoint,
    study.Transformer,
    study.Workload,
    study.Tier,
    study.Accelerator,
    study.Hardware,
    study.System,
    study.Placement,
    Study,
]
KEYS = {
    f"{section.__name__}.{field.yaml}": field
    for section in SECTIONS
    for field in schema.fields(section)
    if isinstance(field.meta, schema.Key)
}


def test_every_section_is_covered_here() -> None:
    reached: set[type] = {Study}
    for section in SECTIONS:
        reached |= {
            field.meta.type
            for field in schema.fields(section)
            if isinstance(field.meta, schema.Section | schema.NamedSections)
        }
    assert reached == set(SECTIONS)


@pytest.mark.parametrize("field", KEYS.values(), ids=KEYS.keys())
def test_every_key_has_help_of_one_line(field: schema.Field) -> None:
    assert field.meta.help.strip()
    assert field.meta.help.isprintable()


@pytest.mark.parametrize("field", KEYS.values(), ids=KEYS.keys())
def test_every_default_is_a_value_that_could_be_written(field: schema.Field) -> None:
    assert isinstance(field.meta, schema.Key)
    if field.required:
        return
    if field.default is None:
        assert isinstance(field.meta.kind, kinds.Optional)
    else:
        back = field.meta.kind.parse(field.meta.kind.format(field.default))
        assert back == field.default
        assert type(back) is type(field.default)


@pytest.mark.parametrize("section", SECTIONS)
def test_sections_are_frozen_and_slotted(section: type) -> None:
    assert dataclasses.is_dataclass(section)
    assert section.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(section)


def test_only_what_nobody_can_guess_is_required() -> None:
    required = {name for name, field in KEYS.items() if field.required}
    assert required == {"Study.study", "Dataset.num_files_train", "Dataset.record_length_bytes", "Tier.path"}


def test_dlios_names_are_used() -> None:
    paths = keys.leaf_keys(Study, ["gfs"])
    for dlio in (
        "dataset.format",
        "dataset.num_files_train",
        "dataset.num_samples_per_file",
        "dataset.record_length_bytes",
        "dataset.num_subfolders_train",
        "reader.batch_size",
        "reader.read_threads",
        "reader.prefetch_size",
        "reader.transfer_size",
        "train.epochs",
        "train.computation_time",
    ):
        assert f"workload.{dlio}" in paths


def test_a_key_may_be_called_differently_in_yaml() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Section:
        length: int = schema.key(kinds.Integer(), "how long", 3, yaml="class")
        other: int = 5

    (field,) = schema.fields(Section)
    assert (field.name, field.yaml, field.default, field.required) == ("length", "class", 3, False)
