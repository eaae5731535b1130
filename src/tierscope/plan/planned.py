"""A study's format and its plan, which needs the size of the format's files."""

from tierscope.formats import Format
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.spec.study import Study


def planned(study: Study, repetition: int = 1) -> tuple[Format, Plan]:
    form = make_format(study)
    return form, Plan.of(study, form.file_bytes, repetition)
