"""Which classes matter most: the page's axes and the command's example name the same two."""

import pytest

from tests.report.sources import rows_at, swept
from tests.traces import CLASSES, times_of
from tierscope.analysis.breakdown import break_down
from tierscope.cli.main import main
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import Sensitivity, by_gain, classes_by_gain, sensitivity


def test_the_class_that_takes_most_off_is_first() -> None:
    times = swept()
    processes = Processes.of(times)
    first, *_ = classes_by_gain(processes, break_down(times))
    assert first == min(sensitivity(processes), key=lambda one: one.change_percent[50.0]).class_name != CLASSES[0]


def test_where_compute_hides_all_the_longest_classes_are_first() -> None:
    """All gains are equal then: the first two by name said nothing."""
    nothing = [
        Sensitivity(name, dict.fromkeys((10.0, 50.0, 100.0), 0.0), -1e-14 * place, "epoch")
        for place, name in enumerate(CLASSES)
    ]
    seconds = dict(zip(CLASSES, (0.1, 0.2, 3.0, 0.4), strict=True))
    assert [one.class_name for one in by_gain(nothing, seconds)][:2] == [CLASSES[2], CLASSES[3]]


def test_the_example_of_explore_names_the_two_that_matter(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    times = times_of(rows_at({}, 1.0, 9.0), [])
    path = tmp_path_factory.mktemp("csv") / "times.csv"
    times.table.select("rank", "epoch", "class", "seconds").write_csv(path)
    with pytest.raises(SystemExit):
        main(["explore", str(path), "--goal", "1s"])
    named = classes_by_gain(Processes.of(times), break_down(times))[:2]
    assert named != list(CLASSES[:2])
    assert " ".join(f"--vary {name}=0:200:10" for name in named) in capsys.readouterr().err
