"""The format of a study's files: the registered adapter, told how large samples are."""

from dataclasses import replace

from tierscope.errors import UserError
from tierscope.formats import FORMATS, Format, Shape
from tierscope.plan.sizes import SampleSizes
from tierscope.spec.study import Study


def make_format(study: Study) -> Format:
    """The adapter for the study's files."""
    dataset = study.workload.dataset
    adapter = FORMATS.load(dataset.format)
    section = FORMATS[dataset.format].options
    options = getattr(dataset, section) if section else None
    shape = Shape(dataset.num_samples_per_file, dataset.record_length_bytes, options=options)
    if dataset.record_length_bytes_stdev:
        sizes = SampleSizes.of(dataset, study.seed, adapter.ragged)
        shape = replace(shape, largest_bytes=sizes.largest, sizes=sizes.of_file)
    try:
        return adapter(shape)
    except ValueError as error:
        raise UserError(f"workload.dataset.format = {dataset.format}; {error}") from None
