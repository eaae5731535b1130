"""A storage that Tierscope does not know, in one file, carries whole studies: nothing else is changed for it."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import toy_storage
from tests.kept_ranks import kept_ranks  # noqa: F401  (a fixture: ranks go on from study to study)
from tests.small_pictures import small_pictures  # noqa: F401  (the same)
from tests.tiny import TINY, tiny
from tierscope.cli.main import main
from tierscope.errors import UserError
from tierscope.loaders.choose import choose_loader
from tierscope.measure.storages import check_hosts, check_storages
from tierscope.storage import STORAGES
from tierscope.storage.base import TierPlace
from tierscope.tuning.candidates import check_runnable

pytestmark = pytest.mark.whole

ON_TOY = ("lfs.storage=toy", "gfs.storage=toy")
CHECKPOINTS = ("epochs_between_checkpoints=1", "model_parameters=20000", "checkpoint.verify=true", "mode=all_ranks")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As a package would be, for this process and the ranks of all these tests; where it keeps its files."""
    folder = tmp_path_factory.mktemp("toy")
    packages, home = folder / "packages", folder / "databases"
    home.mkdir()
    install(packages, "toy = toy_storage_package:ToyStorage")
    inherited = [path for path in sys.path if path.endswith("src")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", ":".join([str(packages), *inherited]))
        patch.syspath_prepend(str(packages))
        patch.setenv(toy_storage.HOME, str(home))
        yield home


def install(packages: Path, entry: str) -> None:
    about = packages / "toy_storage-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(toy_storage.__file__, packages / "toy_storage_package.py")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-storage\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[tierscope.storages]\n{entry}\n")


@pytest.fixture
def toy(installed: Path) -> Path:
    """Where it keeps its files: none are left by other tests."""
    for left in installed.iterdir():
        left.unlink()
    return installed


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(TINY)
    return tmp_path / "out"


def call(command: str, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([command, *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def on_toy(command: str, out: Path, *settings: str) -> int:
    sets = [word for setting in (*ON_TOY, *settings) for word in ("--set", setting)]
    return call(command, str(out.parent / "study.yaml"), "--out", str(out), *sets)


def refused(*settings: str, profiler: str = "builtin") -> str:
    with pytest.raises(UserError) as caught:
        check_storages([tiny("sweep={}", *settings)], "/out", profiler)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_whole_study_from_data_to_nothing(toy: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert on_toy("generate", out, *CHECKPOINTS) == 0
    assert len(list(toy.glob("*.lock"))) == 3
    staged = sum(path.stat().st_size for path in toy.iterdir())
    assert staged > 2 * 24 * 1024
    capfd.readouterr()
    assert on_toy("run", out, *CHECKPOINTS) == 0
    said = "".join(capfd.readouterr())
    assert (
        "lfs: storage toy cannot evict files because the database keeps pages as it likes: its reads may be warm"
        in said
    )
    assert "gfs: storage toy is read only in Python because its files are rows of a database: data_loader: auto" in said
    assert "generating data" not in said  # it was all there
    assert not (out / "tiers").exists()
    assert call("analyze", str(out), "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert {point["sweep"]["cache_rate"] for point in found["points"]} == {0.0, 0.5, 1.0}
    text = json.dumps(found)
    assert "reads may be warm" in text
    assert "checkpoint" in text

    finished = sorted((out / "runs").iterdir())
    finished[1].unlink()
    kept = finished[0].read_bytes()
    assert on_toy("run", out, *CHECKPOINTS) == 0
    assert "resuming: 2 of 3 runs are finished" in "".join(capfd.readouterr())
    assert sorted((out / "runs").iterdir()) == finished
    assert finished[0].read_bytes() == kept

    assert call("clean", "--data", "--yes", str(out)) == 0
    said = capfd.readouterr().out
    assert f"{out}/tiers/lfs/1/raw-24x1-1024B-seed7  dataset, " in said
    assert f"{out}/tiers/gfs/checkpoints  checkpoints, " in said
    assert call("clean", "--yes", str(out)) == 0
    said = capfd.readouterr().out
    assert f"{out}/tiers/gfs  tier, " in said
    assert not out.exists()
    assert list(toy.iterdir()) == []


def test_a_result_goes_whatever_its_study_says_of_tiers_elsewhere(
    out: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAR_AWAY", str(out.parent / "far"))
    sets = ["--set", "gfs.path=$FAR_AWAY/gfs", "--set", "lfs.storage=nobodys", "--set", "sweep={}"]
    study = str(out.parent / "study.yaml")
    rates = ["--set", "gfs.bandwidth=1GB/s", "--set", "gfs.metadata_ops=unlimited", "--set", "lfs.path=/l"]
    assert call("simulate", study, "--out", str(out), *sets, *rates) == 0
    monkeypatch.delenv("FAR_AWAY")
    assert call("clean", "--yes", str(out)) == 0
    assert not out.exists()


@pytest.mark.faults
def test_what_is_damaged_there_is_written_again(toy: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = ("sweep={}", "cache_rate=50%")
    assert on_toy("generate", out, *settings) == 0
    table = toy_storage.Table(f"{out}/tiers/gfs")
    (short,) = table.ask("select path from rows where path like '%000000003.raw'")
    table.ask("update rows set data = x'00' where path = ?", short[0])
    assert on_toy("run", out, *settings) == 0
    assert table.ask("select length(data) from rows where path = ?", short[0]) == [(1024,)]


@pytest.mark.parametrize("threads", [0, 2])
def test_copies_that_ranks_make_lie_there_too(toy: Path, out: Path, threads: int) -> None:
    settings = ("sweep={}", "policy=first-touch", "cache_rate=50%", f"read_threads={threads}", "format=tfrecord")
    assert on_toy("run", out, *settings, "repetitions=2") == 0
    table = toy_storage.Table(f"{out}/tiers/lfs/0")
    assert len(table.ask("select path from rows where path like '%first-touch/%.tfrecord'")) == 12
    assert table.ask("select path from rows where path like '%.part'") == []
    assert call("clean", "--yes", str(out)) == 0
    assert list(toy.iterdir()) == []


def test_one_tier_may_lie_there_and_another_in_a_directory(toy: Path, out: Path) -> None:
    sets = ["--set", "gfs.storage=toy", "--set", "sweep={}", "--set", "cache_rate=50%"]
    assert call("run", str(out.parent / "study.yaml"), "--out", str(out), *sets) == 0
    assert len(list((out / "tiers" / "lfs" / "0").rglob("*.raw"))) == 12
    assert not (out / "tiers" / "gfs").exists()
    assert call("clean", "--yes", str(out)) == 0
    assert not out.exists()
    assert list(toy.iterdir()) == []


def test_a_tier_in_use_is_refused(toy: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert on_toy("generate", out, "sweep={}") == 0
    release = toy_storage.ToyStorage(TierPlace(tiny(*ON_TOY).system.tiers[1], f"{out}/tiers/gfs")).lock(
        f"{out}/tiers/gfs/lock"
    )
    capfd.readouterr()
    assert on_toy("run", out, "sweep={}") == 2
    assert "gfs: in use by another study; wait for it to finish" in capfd.readouterr().err
    assert call("clean", "--yes", str(out)) == 2
    assert "is in use by another command" in capfd.readouterr().err
    release()
    assert call("clean", "--yes", str(out)) == 0


@pytest.mark.usefixtures("toy")
class TestDeclarations:
    """What it cannot do is refused or chosen around, by what it declares."""

    @pytest.mark.parametrize(("threads", "name"), [(0, "inline"), (2, "threads")])
    def test_auto_means_a_loader_in_python(self, threads: int, name: str) -> None:
        assert choose_loader(tiny(*ON_TOY, f"read_threads={threads}")) == name

    @pytest.mark.parametrize(
        ("setting", "fix"),
        [
            ("reader.data_loader=native", "data_loader: auto or threads"),
            ("reader.data_loader=pytorch", "data_loader: auto or threads"),
            ("reader.odirect=true", "odirect: false"),
            ("reader.io_engine=uring", "io_engine: pread"),
            ("dataset.format=hdf5", "format: raw"),
        ],
    )
    def test_what_needs_paths_is_refused_in_one_line(self, setting: str, fix: str) -> None:
        key, _, value = setting.partition("=")
        assert refused("gfs.storage=toy", setting) == (
            f"workload.{key} = {value}, but tier gfs is on storage toy, which does not support it because "
            f"its files are rows of a database; set {fix}, or another storage"
        )

    def test_a_profiler_is_refused(self) -> None:
        assert refused(*ON_TOY, profiler="darshan").startswith("--profiler = darshan, but tier lfs is on storage toy")

    def test_placing_on_servers_is_refused(self) -> None:
        assert "because it has no object servers; set lustre_ost: null" in refused(*ON_TOY, "gfs.lustre_ost=3")

    def test_tuning_asks_too(self) -> None:
        with pytest.raises(UserError, match="is on storage toy, which does not support it"):
            check_runnable(tiny("sweep={}", *ON_TOY, "data_loader=native"), "local", "/out")

    def test_hosts_cannot_share_it(self) -> None:
        lfs, gfs = tiny(*ON_TOY).system.tiers
        check_hosts(lfs)
        with pytest.raises(
            UserError, match=r"^system\.tiers\.gfs\.storage = toy, but visible_to = global and ranks run"
        ):
            check_hosts(gfs)


def test_an_unknown_name_is_refused_with_a_guess() -> None:
    assert refused("gfs.storage=memroy") == (
        "system.tiers.gfs.storage: storage 'memroy' is unknown; did you mean memory?"
    )


def test_a_package_that_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "packages", "broken = toy_storage_package:Gone")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    with pytest.raises(UserError, match=r"storage 'broken' \(toy_storage_package:Gone\) cannot be loaded: .*Gone"):
        STORAGES.load("broken")


def test_memory_carries_a_study(tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ram = Path(f"/dev/shm/tierscope-test-{tmp_path.name}")
    sets = ["--set", "lfs.storage=memory", "--set", f"lfs.path={ram}/{{node}}", "--set", "sweep={}"]
    study = str(out.parent / "study.yaml")
    try:
        assert call("run", study, "--out", str(out), *sets, "--set", "cache_rate=50%") == 0
        assert "lfs: storage memory cannot evict files because its pages are the files" in "".join(capfd.readouterr())
        assert len(list((ram / "1").rglob("*.raw"))) == 12
        assert "storage: memory" in (out / "study.yaml").read_text()
        assert call("clean", "--data", "--yes", str(out)) == 0
        assert call("clean", "--yes", str(ram / "0"), str(ram / "1"), str(out)) == 0
        assert list(ram.iterdir()) == []
    finally:
        shutil.rmtree(ram, ignore_errors=True)
    assert call("run", study, "--out", str(out), *sets, "--set", "reader.odirect=true") == 2
    assert (
        "does not support it because there is no device behind its pages; set odirect: false" in capfd.readouterr().err
    )


def test_tiers_on_one_device_are_named_before_anything_is_measured(
    out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "lfs and gfs are on the same device: they are two names for the same storage"
    emulated = ["--set", "gfs.emulate=true", "--set", "gfs.latency=10us"]
    for settings, expected in (([], 1), (emulated, 0)):
        result = out / str(expected)
        run = ["run", str(out.parent / "study.yaml"), "--out", str(result), "--set", "sweep={}", *settings]
        assert call(*run) == 0
        assert "".join(capfd.readouterr()).count(line) == expected
