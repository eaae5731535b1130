"""Whatever a description says, as long as it can be decoded: analyses show it or refuse it, and never break over it."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.in_memory import tmp_path_factory
from tests.trace.test_description import KINDS, RESULTS, mutate, stored_results
from tierscope.commands.analyze import analyze
from tierscope.commands.characterise import characterise_analysis
from tierscope.commands.report import source_of
from tierscope.errors import TierscopeError
from tierscope.output.store import RunStore, read_parquet, write_parquet
from tierscope.report.origins import provenance
from tierscope.trace.trace import RunKey

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

KEY = RunKey(0, 1)
WHOLE = stored_results()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(RESULTS, tmp_path_factory.mktemp("any") / "results"))


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(sorted(KINDS)))
    return name, mutate(draw, copy.deepcopy(WHOLE[name]))


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changed())
def test_it_is_shown_or_refused_with_a_line(results: Path, change: tuple[str, dict[str, Any]]) -> None:
    name, plain = change
    out = str(results / name)
    path = RunStore(out).path(KEY)
    before, table = read_parquet(path)
    write_parquet(path, table, plain)
    try:
        analysis = analyze(out)
        characterise_analysis(out, analysis)
        provenance(source_of(analysis, None, {}))
        refusal = ""
    except TierscopeError as error:
        assert error.exit_code == 2  # noqa: PT017  (whatever it is, it is the user's file)
        refusal = str(error)
    finally:
        write_parquet(path, table, before)
    assert "\n" not in refusal
