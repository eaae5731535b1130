"""What every storage must do, whoever wrote it: our own, by the registry, and one that is not in it."""

import errno
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tests import toy_storage
from tests.small_disks import mounted
from tierscope.errors import UserError
from tierscope.mounts import filesystem_of
from tierscope.output import manifest
from tierscope.spec.study import Tier
from tierscope.storage import STORAGES
from tierscope.storage.access import READ_FLAGS
from tierscope.storage.base import FILE, FOLDER, LINK, Abilities, Storage, TierPlace
from tierscope.storage.directory import DirectoryStorage
from tierscope.storage.folders import enter, hold
from tierscope.storage.memory import MemoryStorage

TYPES: dict[str, type[Storage]] = {
    **{name: STORAGES.load(name) for name in STORAGES},
    "toy": toy_storage.ToyStorage,
}
CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=TYPES)
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """With a root that is made, and a folder in it."""
    monkeypatch.setenv(toy_storage.HOME, str(tmp_path))
    if request.param != "memory":
        yield made(request.param, str(tmp_path / "tier"))
        return
    root = Path(f"/dev/shm/tierscope-contract-{os.getpid()}")
    try:
        yield made("memory", str(root))
    finally:
        subprocess.run(["rm", "-rf", str(root)], check=True)


def made(name: str, root: str) -> Storage:
    found = TYPES[name](TierPlace(Tier(name="tier", path=root), root))
    found.make_folder(f"{root}/data")
    return found


def put(storage: Storage, name: str, content: bytes = CONTENT) -> str:
    path = f"{storage.root}/data/{name}"
    storage.write(path, lambda: [content[:7], memoryview(content)[7:]], True)
    return path


def get(storage: Storage, path: str, offset: int = 0, nbytes: int = 1 << 20) -> bytes:
    access = storage.open_access()
    fd = access.open(path, READ_FLAGS)
    buffer = memoryview(bytearray(nbytes))
    got = access.preadv(fd, (buffer,), offset)
    access.close(fd)
    access.leave()
    return bytes(buffer[:got])


class TestFiles:
    @pytest.mark.parametrize("offset", [0, 1, 255, 10_239, 10_240, 99_999])
    def test_bytes_written_are_bytes_read_at_any_offset(self, storage: Storage, offset: int) -> None:
        path = put(storage, "file")
        assert get(storage, path, offset) == CONTENT[offset:]
        assert get(storage, path, offset, 5) == CONTENT[offset : offset + 5]

    def test_several_buffers_are_filled_one_after_another(self, storage: Storage) -> None:
        path, access = put(storage, "file"), storage.open_access()
        fd = access.open(path, READ_FLAGS)
        buffers = [memoryview(bytearray(3)), memoryview(bytearray(5))]
        assert access.preadv(fd, buffers, 2) == 8
        assert b"".join(bytes(buffer) for buffer in buffers) == CONTENT[2:10]
        assert access.size(fd) == len(CONTENT)
        access.close(fd)
        access.leave()

    def test_an_access_writes_at_offsets(self, storage: Storage) -> None:
        path, access = f"{storage.root}/data/written", storage.open_access()
        fd = access.create(path)
        for start in range(0, len(CONTENT), 1000):
            part = memoryview(CONTENT)[start : start + 1000]
            assert access.pwrite(fd, part, start) == len(part)
        access.sync(fd)
        access.close(fd)
        folder = access.open_folder(f"{storage.root}/data")
        access.sync(folder)
        access.close(folder)
        access.rename(path, f"{path}-2")
        assert get(storage, f"{path}-2") == CONTENT
        access.remove(f"{path}-2")
        assert storage.look(f"{path}-2") is None
        access.leave()

    def test_a_new_file_is_not_written_over_another(self, storage: Storage) -> None:
        path = put(storage, "file")
        with pytest.raises(FileExistsError):
            storage.write(path, lambda: pytest.fail("asked for content"))
        assert storage.write(path, lambda: [b"shorter"], True) == 7
        assert get(storage, path) == b"shorter"

    def test_a_folder_that_was_made_again_is_written_to(self, storage: Storage) -> None:
        path = put(storage, "file")
        storage.write(f"{storage.root}/data/new", lambda: [b"x"])
        for name in ("file", "new"):
            storage.remove(f"{storage.root}/data/{name}")
        storage.remove_folder(f"{storage.root}/data")
        with pytest.raises(FileNotFoundError):
            storage.write(path, lambda: [b"x"])
        storage.make_folder(f"{storage.root}/data")
        storage.write(path, lambda: [b"y"])
        assert get(storage, path) == b"y"

    def test_many_pieces_are_one_file(self, storage: Storage) -> None:
        path = f"{storage.root}/data/pieces"
        pieces = [bytes([number % 256]) * (number % 5) for number in range(2000)]
        assert storage.write(path, lambda: pieces) == len(b"".join(pieces))
        assert get(storage, path) == b"".join(pieces)

    def test_what_is_there_is_known_and_another_version_is_told(self, storage: Storage) -> None:
        path = put(storage, "file")
        found, folder = storage.look(path), storage.look(f"{storage.root}/data")
        assert found
        assert folder
        assert (found.kind, found.nbytes, folder.kind) == (FILE, len(CONTENT), FOLDER)
        assert storage.look(f"{path}-not") is None
        assert storage.look(path) == found
        time.sleep(0.02)
        put(storage, "file")
        assert storage.look(path) != found

    def test_two_threads_write_and_read_their_own(self, storage: Storage) -> None:
        wrong: list[str] = []

        def work(name: str) -> None:
            access = storage.open_access()
            for number in range(20):
                path, content = f"{storage.root}/data/{name}-{number}", f"{name} {number}".encode() * 50
                fd = access.create(path)
                access.pwrite(fd, memoryview(content), 0)
                access.close(fd)
                if get(storage, path) != content:
                    wrong.append(path)
            access.leave()

        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(storage.entries(f"{storage.root}/data")) == 40


class TestFolders:
    def test_names_and_kinds_are_listed(self, storage: Storage) -> None:
        put(storage, "file")
        storage.make_folder(f"{storage.root}/data/a/b")
        storage.make_folder(f"{storage.root}/data/a/b")  # once more changes nothing
        assert storage.entries(f"{storage.root}/data") == {"file": FILE, "a": FOLDER}
        assert storage.entries(storage.root) == {"data": FOLDER}
        assert storage.entries(f"{storage.root}/data/a/b") == {}

    def test_a_rename_moves_a_folder_with_all_in_it(self, storage: Storage) -> None:
        storage.make_folder(f"{storage.root}/data/step.part")
        put(storage, "step.part/file")
        storage.rename(f"{storage.root}/data/step.part", f"{storage.root}/data/step")
        assert storage.entries(f"{storage.root}/data") == {"step": FOLDER}
        assert get(storage, f"{storage.root}/data/step/file") == CONTENT

    def test_a_rename_puts_a_file_in_the_place_of_another(self, storage: Storage) -> None:
        new, old = put(storage, "new", b"new"), put(storage, "old", b"old")
        storage.rename(new, old)
        assert get(storage, old) == b"new"
        assert storage.look(new) is None

    def test_what_is_removed_is_gone(self, storage: Storage) -> None:
        path = put(storage, "file")
        with pytest.raises(OSError) as caught:  # noqa: PT011  (its number is looked at)
            storage.remove_folder(f"{storage.root}/data")
        assert caught.value.errno == errno.ENOTEMPTY
        storage.remove(path)
        storage.remove_folder(f"{storage.root}/data")
        assert storage.entries(storage.root) == {}

    def test_errors_have_the_numbers_of_the_system(self, storage: Storage) -> None:
        gone, folder = f"{storage.root}/data/gone", f"{storage.root}/gone"
        access = storage.open_access()
        for ask in (
            lambda: access.open(gone, READ_FLAGS),
            lambda: access.create(f"{folder}/file"),
            lambda: access.rename(gone, f"{gone}-2"),
            lambda: access.remove(gone),
            lambda: access.open_folder(folder),
            lambda: storage.write(f"{folder}/file", lambda: [b""]),
            lambda: storage.remove(gone),
            lambda: storage.rename(gone, f"{gone}-2"),
            lambda: storage.entries(folder),
            lambda: storage.remove_folder(folder),
            lambda: storage.read_document(gone),
            lambda: storage.sync(folder),
        ):
            with pytest.raises(FileNotFoundError) as caught:
                ask()
            assert caught.value.errno == errno.ENOENT
        access.leave()
        with pytest.raises(FileExistsError):
            storage.make_folder(put(storage, "file"))

    def test_an_entered_folder_is_emptied_by_name(self, storage: Storage) -> None:
        put(storage, "file")
        storage.make_folder(f"{storage.root}/data/inner")
        data = enter(storage, f"{storage.root}/data")
        assert data.names() == ["file", "inner"]
        assert [(name, facts.kind) for name, facts in data.inside()] == [("file", FILE), ("inner", FOLDER)]
        assert data.remove("file") == len(CONTENT)
        inner = data.enter("inner")
        assert inner
        assert inner.path == f"{storage.root}/data/inner"
        inner.leave()
        data.remove_folder("inner")
        assert data.names() == []
        data.leave()
        with pytest.raises(NotADirectoryError):
            enter(storage, put(storage, "again"))


class TestDocuments:
    def test_a_document_is_replaced_as_a_whole(self, storage: Storage) -> None:
        path = f"{storage.root}/data/document"
        for content in (b"first", b"second and longer", b""):
            storage.write_document(path, content)
            assert storage.read_document(path) == content
        storage.write_document(path, CONTENT)
        assert storage.read_document(path, 10) == CONTENT[:10]
        assert storage.entries(f"{storage.root}/data") == {"document": FILE}  # nothing temporary
        with pytest.raises(OSError):  # noqa: PT011
            storage.read_document(f"{storage.root}/data")

    def test_folders_are_marked_as_ours(self, storage: Storage) -> None:
        folder = f"{storage.root}/ours"
        assert manifest.claim(folder, "dataset", storage) == {}
        manifest.write(folder, "dataset", {"complete": True}, storage)
        assert manifest.claim(folder, "dataset", storage)["complete"] is True
        storage.tidy(folder)
        assert storage.entries(folder) == {manifest.NAME: FILE}

    def test_a_lock_excludes_others_until_it_is_given_back(self, storage: Storage) -> None:
        path = f"{storage.root}/lock"
        assert hold(storage, path) is None  # nobody ever used it
        release = storage.lock(path)
        with pytest.raises(BlockingIOError):
            storage.lock(path)
        with pytest.raises(BlockingIOError):
            hold(storage, path)
        release()
        held = hold(storage, path)
        assert held
        held()
        storage.lock(path)()
        assert storage.look(path)

    @pytest.mark.faults
    def test_a_kill_leaves_the_old_or_the_new(self, storage: Storage, request: pytest.FixtureRequest) -> None:
        """A process that renames and writes documents, killed while it does."""
        folder = f"{storage.root}/data"
        name = request.node.callspec.params["storage"]
        child = subprocess.Popen([sys.executable, "-c", WRITER, name, storage.root], stdout=subprocess.PIPE)
        assert child.stdout
        child.stdout.readline()
        time.sleep(0.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for path in (f"{folder}/document", f"{folder}/renamed"):
            found = storage.read_document(path)
            assert len(found) == 5000
            assert len(set(found)) == 1


WRITER = """
import itertools, sys
from tests.storage.test_contract import made
storage = made(sys.argv[1], sys.argv[2])
folder = f"{storage.root}/data"
for turn in itertools.count():
    content = bytes([turn % 256]) * 5000
    storage.write_document(f"{folder}/document", content)
    storage.write(f"{folder}/renamed.part", lambda: [content[:2000], content[2000:]], True)
    storage.rename(f"{folder}/renamed.part", f"{folder}/renamed")
    if turn == 3:
        print("ready", flush=True)
"""


class TestRoom:
    def test_room_is_plausible(self, storage: Storage) -> None:
        space = storage.space(f"{storage.root}/data/not/there/yet")
        assert 0 < space.free_bytes <= space.total_bytes
        assert space.free_files is None or space.free_files > 0
        assert 0 < space.block_bytes <= 4096
        assert f"{storage.root}/data".startswith(space.place)

    def test_the_device_is_the_same_wherever_one_asks(self, storage: Storage) -> None:
        device = storage.device(storage.root)
        assert device == storage.device(f"{storage.root}/data") == storage.device(f"{storage.root}/data/not/there")
        assert hash(device) is not None

    def test_what_is_synced_survives(self, storage: Storage) -> None:
        path = put(storage, "file")
        storage.sync(f"{storage.root}/data")
        assert get(storage, path) == CONTENT


def test_a_full_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toy_storage.HOME, str(tmp_path))
    monkeypatch.setattr(toy_storage, "TOTAL_BYTES", 1 << 20)
    for disk in mounted(tmp_path / "disk", "1m"):
        for name in TYPES:
            storage = made(name, str(disk / name))
            with pytest.raises(OSError) as caught:  # noqa: PT011
                put(storage, "file", bytes(2 << 20))
            assert caught.value.errno == errno.ENOSPC
            if storage.look(f"{storage.root}/data/file"):
                storage.remove(f"{storage.root}/data/file")


class TestAbilities:
    def test_what_it_cannot_do_it_gives_a_reason_for(self, storage: Storage) -> None:
        abilities = storage.abilities
        names = [field.name for field in fields(Abilities) if field.name not in ("why", "emulated")]
        assert set(abilities.why) == {name for name in names if not getattr(abilities, name)}
        assert all(reason and not reason.endswith(".") for reason in abilities.why.values())

    def test_a_declaration_without_a_reason_is_refused(self) -> None:
        with pytest.raises(ValueError, match="evict"):
            Abilities(paths=True, evict=False, direct_io=True, striping=True, share_hosts=True)

    def test_paths_are_files_of_the_system_where_it_says_so(self, storage: Storage) -> None:
        path = put(storage, "file")
        assert os.path.exists(path) == storage.abilities.paths
        if storage.abilities.paths:
            assert Path(path).read_bytes() == CONTENT

    def test_what_can_be_evicted_is_not_resident_afterwards(self, storage: Storage) -> None:
        path = put(storage, "file", bytes(1 << 20))
        storage.sync(f"{storage.root}/data")
        access = storage.open_access()
        fd = access.open(path, READ_FLAGS)
        before = after = access.resident(fd, 1 << 20)
        assert before is None or 0 <= before <= 1 << 20
        for _ in range(50 if storage.abilities.evict else 0):  # pages that are being written back stay for a moment
            access.evict(fd)
            after = access.resident(fd, 1 << 20)
            if before is None or after == 0:
                break
            time.sleep(0.01)
        access.close(fd)
        access.leave()
        if before is not None and storage.abilities.evict and filesystem_of(path) not in ("tmpfs", "ramfs"):
            assert after == 0

    def test_direct_reads_work_where_it_says_so(self, storage: Storage) -> None:
        if not (storage.abilities.direct_io and storage.abilities.paths):
            return
        path = put(storage, "file", bytes(4096))
        if filesystem_of(path) in ("ext4", "xfs", "btrfs"):
            fd = os.open(path, READ_FLAGS | os.O_DIRECT)
            room = mmap.mmap(-1, 4096)
            assert os.preadv(fd, [room], 0) == 4096
            os.close(fd)
            room.close()


class TestLinks:
    """Nothing follows one out of the tier; the tier's own directory may be one."""

    @pytest.fixture
    def linked(self, storage: Storage, tmp_path: Path) -> Storage:
        if not storage.abilities.paths:
            pytest.skip("no links there")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "precious").write_text("years of work")
        os.symlink(tmp_path / "elsewhere" / "precious", f"{storage.root}/data/link")
        os.symlink(tmp_path / "elsewhere", f"{storage.root}/folder")
        return storage

    def test_a_link_is_seen_as_one_and_not_followed(self, linked: Storage, tmp_path: Path) -> None:
        link, folder = f"{linked.root}/data/link", f"{linked.root}/folder"
        found = linked.look(link)
        assert found
        assert found.kind == linked.entries(linked.root)["folder"] == LINK
        access = linked.open_access()
        for ask in (
            lambda: linked.write(link, lambda: [b"ours"], True),
            lambda: access.create(link),
            lambda: linked.read_document(link),
            lambda: linked.entries(folder),
            lambda: linked.tidy(folder),
            lambda: enter(linked, folder),
        ):
            with pytest.raises(OSError) as caught:  # noqa: PT011
                ask()
            assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
        linked.write_document(link, b"ours")  # takes the link's place
        assert linked.read_document(link) == b"ours"
        linked.remove(f"{linked.root}/folder")
        assert {path.name: path.read_text() for path in (tmp_path / "elsewhere").iterdir()} == {
            "precious": "years of work"
        }

    def test_the_root_may_be_one(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "root").symlink_to(tmp_path / "there")
        storage = made("directory", str(tmp_path / "root"))
        assert storage.entries(storage.root) == {"data": FOLDER}


def test_memory_is_refused_where_there_is_a_disk(tmp_path: Path) -> None:
    if filesystem_of(str(tmp_path)) in ("tmpfs", "ramfs"):
        pytest.skip("all is in memory here")
    place = TierPlace(Tier(name="ram", path=str(tmp_path)), str(tmp_path / "ram"))
    assert DirectoryStorage(place)
    with pytest.raises(
        UserError, match=r"^system\.tiers\.ram\.path = .* is on .*, not in memory; use a path below /dev"
    ):
        MemoryStorage(place)
