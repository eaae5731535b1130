"""What imported logs say on top of their numbers; the sentences that were wrong once are in tests/test_headlines.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import one_line, run
from tests.imports.darshan_logs import needs_library, reading
from tests.imports.dftracer_lines import began, call, named
from tests.imports.put_logs import LUSTRE, horovod, logged, small_and_large, writing

pytestmark = needs_library
__all__ = ["logged"]  # a fixture


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def test_what_a_given_tier_does_not_cover_is_a_column_and_a_finding(
    logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logged(*horovod(), processes=4)
    found = shown(capsys, "analyze", log, "--tier", "gfs=/gpfs/alpin")
    assert found["best"]["bottleneck"] == "OTHER-READ"
    (said,) = [each for each in found["findings"] if each["kind"] == "other_paths"]
    assert said["evidence"]["of_bytes"] == 100
    assert "/gpfs/alpine/imagenet" in said["text"]


def test_names_that_are_no_paths_can_be_given_a_tier_too(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(reading("1234567", seconds=3.0))
    assert run("analyze", log) == 2
    assert one_line(capsys).endswith("--tier all=/")
    assert shown(capsys, "analyze", log, "--tier", "all=/")["best"]["bottleneck"] == "ALL-READ"


def test_a_rest_on_no_tier_is_a_column_and_no_sentence(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(
        reading("/scratch/a", seconds=10.0, BYTES_READ=1000),
        reading("/tmp/x", seconds=0.1, meta=0.0, BYTES_READ=10),
        mounts=LUSTRE,
    )
    found = shown(capsys, "analyze", log)
    assert found["totals"]["classes"]["OTHER-READ"] == {"seconds": 0.1, "ops": 1, "bytes": 10}
    assert "other_paths" not in {each["kind"] for each in found["findings"]}


def test_a_stranger_may_call_a_tier_other(logged: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = logged(reading("/a/x", seconds=3.0), reading("/b/x", seconds=1.0))
    classes = shown(capsys, "analyze", log, "--tier", "other=/a")["totals"]["classes"]
    assert classes["OTHER-READ"]["seconds"] == 3.0
    assert classes["OTHER_2-READ"]["seconds"] == 1.0


@pytest.mark.parametrize("options", [[], ["--no-shared"], ["--classes", "read,meta"], ["--tier", "gfs=/gpfs"]])
def test_characterise_counts_what_the_breakdown_counts(
    options: list[str], logged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [*small_and_large(), writing("/scratch/out", 1, 7.0), reading("/gpfs/z", 2, 0.01, 0.01, BYTES_READ=9)]
    log = logged(*records, processes=4, mounts=LUSTRE)
    broken_down, character = (shown(capsys, command, log, *options) for command in ("analyze", "characterise"))
    totals = broken_down["totals"]["classes"]
    counted = {name: sums for name, sums in totals.items() if name in broken_down["io_classes"]}
    assert character["metrics"]["io_seconds"]["value"] == pytest.approx(sum(one["seconds"] for one in counted.values()))
    assert character["metrics"]["bytes"]["value"] == sum(one["bytes"] for one in counted.values())
    written = sum(one["bytes"] for name, one in totals.items() if name.endswith("WRITE"))
    assert character["writes"]["write_bytes"] == written == 1 << 20
    slowest = max(one["io_seconds"] for one in character["by_rank"]["rows"])
    assert slowest == pytest.approx(broken_down["best"]["io_seconds"])
    assert shown(capsys, "compare", log, log, *options)["cosine"] == pytest.approx(1.0)


def test_dftracer_asks_for_tiers_that_hold_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far, near = "/data/a.bin", "/lib/x.so"
    lines = [*began(), *named(far, near), call("read", far, 0, 50, ret=100), call("write", far, 60, 7, ret=10)]
    path = tmp_path / "t.pfw"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, call("read", near, 100, 1, ret=1)]))
    assert run("analyze", path) == 2
    assert one_line(capsys).endswith(f"tierscope analyze {path} --tier gfs=/data")
    found = shown(capsys, "analyze", path, "--tier", "gfs=/data")
    assert found["totals"]["write_seconds"] == pytest.approx(7e-6)
    assert found["totals"]["apart"]["program"]["read_ops"] == 1
    given = shown(capsys, "analyze", path, "--tier", "gfs=/elsewhere")
    assert given["best"]["bottleneck"] == "OTHER-READ"
