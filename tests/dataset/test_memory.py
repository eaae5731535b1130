"""Whether a dataset fits into memory."""

from pathlib import Path

import pytest

from tests.small_study import small_study
from tierscope.dataset import memory
from tierscope.dataset.memory import check_memory, free_memory
from tierscope.errors import UserError


def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 10 * 2**30)
    check_memory(8 * 2**30, small_study("read_ahead=all").workload)
    with pytest.raises(UserError) as caught:
        check_memory(8 * 2**30 + 1, small_study("read_ahead=all").workload)
    assert str(caught.value) == (
        "workload.reader.read_ahead = all; the ranks' samples take 8 GiB of memory, more than 80 % of the 10 GiB that are free; "
        "use fewer ranks or samples, shuffle: local, or read_ahead: batches"
    )


@pytest.mark.parametrize(
    ("settings", "key", "advice"),
    [
        (("read_ahead=all", "shuffle=local"), "workload.reader.read_ahead = all", "or read_ahead: batches"),
        (("network=lenet5", "data=memory"), "workload.model.data = memory", "shuffle: local, or data: tiers"),
    ],
)
def test_it_advises_nothing_that_is_so(
    monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...], key: str, advice: str
) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 2**30)
    with pytest.raises(UserError) as caught:
        check_memory(2**40, small_study(*settings).workload)
    assert str(caught.value).startswith(f"{key}; ")
    assert str(caught.value).endswith(f"; use fewer ranks or samples, {advice}")


def test_the_page_cache_counts_as_free(tmp_path: Path) -> None:
    """After staging, it holds what was written."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  900 kB\nMemFree:  3 kB\nMemAvailable:      700 kB\n")
    assert free_memory(str(meminfo)) == 700 * 1024
    meminfo.write_text("MemFree:  3 kB\n")
    assert free_memory(str(meminfo)) > 2**20  # what the system says
    assert free_memory(str(tmp_path / "none")) > 2**20
    assert free_memory() > 2**20
