"""What rows of the validation say beside their verdicts."""

import re
from types import SimpleNamespace
from typing import Any

from validation.accelerator import _training
from validation.beds import Asked, widths_by_bed
from validation.emulated import lead_of


def asked(bed: str, low: float, high: float) -> Asked:
    return Asked(bed, "unseen cache rates", 0.5, 1.0, 1.0, low, high)


def test_widths_of_intervals_are_told_bed_by_bed() -> None:
    here = [asked("fuse", 1.0, 1.1), asked("fuse", 1.0, 1.3), asked("sshfs", 1.0, 2.0)]
    assert widths_by_bed(here) == "by bed: fuse 1.20, widest 1.30, sshfs 2.00, widest 2.00"


def test_how_clearly_a_class_led_is_told_with_what_single_epochs_had() -> None:
    def epoch(number: int, **classes: float) -> Any:
        named = {name.replace("_", "-"): seconds for name, seconds in classes.items()}
        return SimpleNamespace(sweep={"cache_rate": 0.5}, epoch=number, classes=named)

    point: Any = SimpleNamespace(sweep={"cache_rate": 0.5}, classes={"GFS-READ": 1.2, "LFS-READ": 1.0, "GFS-META": 0.1})
    epochs = [epoch(1, GFS_READ=9, LFS_READ=1), epoch(2, GFS_READ=1.5, LFS_READ=1), epoch(3, GFS_READ=0.9, LFS_READ=1)]
    assert lead_of(point, epochs) == "GFS-READ over LFS-READ 1.20 ×, 0.90–1.50 in 2 epochs"
    nothing: Any = SimpleNamespace(sweep={}, classes={"GFS-READ": 1.2, "LFS-READ": 0.0})
    assert lead_of(nothing, epochs) == ""


def test_a_share_of_what_is_possible_has_its_interval() -> None:
    shares = [row for row in _training() if row.what.endswith("share of what is possible")]
    assert len(shares) == 6
    for row in shares:
        value, low, high = map(float, re.match(r"([\d.]+) \(([\d.]+)–([\d.]+)\) of ", row.value).groups())  # type: ignore[union-attr]
        assert low <= value <= high
