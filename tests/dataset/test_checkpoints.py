"""What a checkpoint consists of, what its files hold, and which folders count."""

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.dataset.checkpoint_folder import CheckpointFolder
from tierscope.dataset.snapshot import Snapshot
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.output import manifest
from tierscope.plan.checkpoints import checkpoint_bytes, parts_of
from tierscope.spec.study import Checkpoint, Tier
from tierscope.storage.base import TierPlace
from tierscope.storage.directory import DirectoryStorage

PAPER = [1024, 1024, 4096, 65536, 4 << 20]
SNAPSHOT = Snapshot(7, 4096)


def sizes(rank: int, ranks: int, **keys: object) -> dict[str, int]:
    return {part.name: part.nbytes for part in parts_of(Checkpoint(**keys), rank, ranks)}  # type: ignore[arg-type]


def folder_on(tier: Path) -> CheckpointFolder:
    return CheckpointFolder(DirectoryStorage(TierPlace(Tier(name="gfs", path=str(tier)), str(tier))))


class TestParts:
    def test_the_papers_five_files_are_the_first_ranks(self) -> None:
        assert list(sizes(0, 4).values()) == PAPER
        assert sizes(1, 4) == {}

    @pytest.mark.parametrize(
        ("precision", "optimizer", "per_parameter"),
        [("bf16", "adam", 14), ("fp32", "adam", 12), ("bf16", "sgd", 10), ("fp32", "sgd", 8), ("bf16", "none", 2)],
    )
    def test_bytes_of_a_parameter(self, precision: str, optimizer: str, per_parameter: int) -> None:
        found = sizes(0, 1, model_parameters=1000, precision=precision, optimizer=optimizer)
        assert sum(found.values()) == per_parameter * 1000

    def test_zero_stages(self) -> None:
        model = {"mode": "all_ranks", "model_parameters": 10}
        for stage, first, other in (
            (0, [10, 60], [10, 60]),
            (1, [20, 60], [60]),
            (2, [20, 60], [60]),
            (3, [10, 60], [10, 60]),
        ):
            assert list(sizes(0, 2, **model, zero_stage=stage).values()) == first
            assert list(sizes(1, 2, **model, zero_stage=stage).values()) == other

    @given(
        ranks=st.integers(1, 70),
        parameters=st.none() | st.integers(1, 10**9),
        mode=st.sampled_from(["rank_zero", "all_ranks"]),
        stage=st.integers(0, 3),
        precision=st.sampled_from(["fp32", "bf16"]),
        optimizer=st.sampled_from(["none", "sgd", "adam"]),
    )
    def test_no_byte_is_lost_or_written_twice(
        self, ranks: int, parameters: int | None, mode: str, stage: int, precision: str, optimizer: str
    ) -> None:
        checkpoint = Checkpoint(
            model_parameters=parameters, mode=mode, zero_stage=stage, precision=precision, optimizer=optimizer
        )
        plain = Checkpoint(model_parameters=parameters, precision=precision, optimizer=optimizer)
        alone = sum(part.nbytes for part in parts_of(plain, 0, 1))
        parts = [part for rank in range(ranks) for part in parts_of(checkpoint, rank, ranks)]
        assert sum(part.nbytes for part in parts) == alone == checkpoint_bytes(checkpoint, range(ranks), ranks)
        assert len({part.name for part in parts}) == len({part.number for part in parts}) == len(parts)
        assert all(part.nbytes > 0 for part in parts)


@given(nbytes=st.integers(1, 300_000), step=st.integers(0, 10**6), file=st.integers(0, 10**6))
def test_checksums_are_those_of_the_bytes(nbytes: int, step: int, file: int) -> None:
    pieces = list(SNAPSHOT.pieces(step, file, nbytes))
    whole = b"".join(pieces)
    assert len(whole) == nbytes
    assert zlib.crc32(whole) == SNAPSHOT.checksum(step, file, nbytes)
    assert all(len(piece) == SNAPSHOT.piece_bytes for piece in pieces[:-1])


def test_content_cannot_be_compressed_and_differs_between_checkpoints() -> None:
    one, other = (b"".join(SNAPSHOT.pieces(step, 0, 100_000)) for step in (1, 2))
    assert len(zlib.compress(one)) > 0.99 * len(one)
    assert one != other


def test_pieces_are_never_larger_than_half_the_pool() -> None:
    snapshot = Snapshot(7, 2**40)
    assert [len(piece) for piece in snapshot.pieces(1, 1, (8 << 20) + 5)] == [8 << 20, 5]


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> CheckpointFolder:
        found = folder_on(tmp_path)
        found.begin(0)
        return found

    def add(self, folder: CheckpointFolder, step: int, finished: bool = True) -> None:
        Path(folder.make(step), "part-000000.bin").write_bytes(b"x")
        if finished:
            folder.finish(step)

    def test_only_finished_ones_count(self, folder: CheckpointFolder) -> None:
        self.add(folder, 5)
        self.add(folder, 1_000_000)
        self.add(folder, 10, finished=False)
        assert folder.complete() == [5, 1_000_000]

    def test_the_last_ones_stay(self, folder: CheckpointFolder) -> None:
        for step in (1, 2, 3, 4):
            self.add(folder, step)
        folder.prune(2)
        assert folder.complete() == [3, 4]
        assert sorted(os.listdir(folder.path)) == ["step-000003", "step-000004", manifest.NAME]

    def test_a_run_begins_without_any(self, folder: CheckpointFolder) -> None:
        self.add(folder, 1)
        self.add(folder, 2, finished=False)
        folder.begin(0)
        assert os.listdir(folder.path) == [manifest.NAME]

    def test_what_is_not_ours_stays(self, folder: CheckpointFolder) -> None:
        for name in ("notes.txt", "step-12", "step-000001.bak"):
            Path(folder.path, name).mkdir()
        os.symlink("/", Path(folder.path, "step-000009"))
        folder.begin(0)
        assert len(os.listdir(folder.path)) == 5
        self.add(folder, 1)
        Path(folder.finished(1), "thesis.tex").write_text("mine")
        with pytest.raises(ForeignDirectoryError, match=r"thesis\.tex: was not created by Tierscope"):
            folder.begin(0)
        assert sorted(os.listdir(folder.finished(1))) == ["part-000000.bin", "thesis.tex"]

    def test_a_folder_of_somebody_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / "model.pt").write_text("mine")
        with pytest.raises(ForeignDirectoryError, match=r"model\.pt"):
            folder_on(tmp_path).begin(0)

    def test_what_cannot_fit_is_refused_at_once(self, folder: CheckpointFolder) -> None:
        with pytest.raises(UserError, match="is free on that disk"):
            folder.begin(2**62)

    def test_one_that_is_being_removed_does_not_count(
        self, folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.add(folder, 1)
        self.add(folder, 2)

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.prune(1)
        assert folder.complete() == [2]
