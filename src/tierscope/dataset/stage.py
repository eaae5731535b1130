"""Files onto tiers: every node writes its own copies, ranks share the work, what is already there stays.

A file is complete when it has its full size: a killed writer leaves a shorter one, which is written again. After a
restart of the machine even full-sized files may lack data that never reached the device, so a dataset that
was not marked complete in the same boot is written again as a whole.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tierscope.dataset import content
from tierscope.errors import (
    AWAY,
    ForeignDirectoryError,
    OutOfSpaceError,
    StoppedError,
    TierscopeError,
    UserError,
)
from tierscope.formats import LIBRARY, NOTHING, Shape
from tierscope.formats.raw import Raw
from tierscope.output import durable, manifest
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.spec.study import Study
from tierscope.storage import striping
from tierscope.storage.files import DatasetFiles
from tierscope.storage.striping import Striping

STATISTICS = 0  # number of the one file that samples made in memory are drawn from
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_MAX_PIECES = 512
_BLOCK = 4096  # network filesystems call their transfer size a block


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where a rank stands when it shares work with others."""

    rank: int
    ranks: int
    node: int
    rank_on_node: int
    ranks_on_node: int


@dataclass(frozen=True, slots=True)
class Share:
    """One rank's part of the files of one tier."""

    tier: int
    tier_name: str
    files: DatasetFiles
    node: int | None  # whose copies; None: shared by all nodes
    part: int
    parts: int
    striping: Striping | None = None  # None: wherever the file system puts files

    @property
    def leads(self) -> bool:
        return self.part == 0


@dataclass(frozen=True, slots=True)
class Missing:
    """What still has to be written for a share, and the room there is for it."""

    tier_name: str
    directory: str
    shared: bool  # by all nodes
    device: int
    sealed: bool  # everything that is there was made durable
    files: int
    nbytes: int  # to be written
    disk_bytes: int  # what that takes up: whole blocks
    free_bytes: int
    free_files: int | None  # None: the filesystem has no fixed number of inodes


class Stager:
    """One rank's work on the data of a study (at its largest cache rate)."""

    def __init__(self, study: Study, out: str, place: StagingPlace) -> None:
        dataset = study.workload.dataset
        self._study = study
        self._first_of_node = place.rank_on_node == 0
        form = make_format(study)
        self._plan = Plan.of(study, form.file_bytes)
        self._statistics = dataset.statistics.file_bytes
        self._format = form if self._statistics is None else Raw(Shape(1, self._statistics))  # of what is written
        self.shares: list[Share] = []
        for index, tier in enumerate(study.system.tiers):
            files = DatasetFiles.of(tier, out, place.node, dataset, study.seed, form.suffix)
            node, part, parts = None, place.rank, place.ranks
            if tier.visible_to == "node":
                node, part, parts = place.node, place.rank_on_node, place.ranks_on_node
            self.shares.append(Share(index, tier.name, files, node, part, parts, Striping.of(tier)))

    def claim(self) -> None:
        """The leading rank of each tier makes and marks the directories. Changes nothing that is there."""
        for share in self._led():
            manifest.claim(share.files.tier_root, "tier")
            found = manifest.claim(share.files.folder, "dataset")
            if share.striping:
                place = striping.verify if "complete" in found else striping.fix  # as long as no file can be there
                place(share.striping, share.files.folder)
            make_folders(share.files)

    def distrust(self) -> None:
        """The leading rank of each tier drops what cannot be trusted; only when nobody else uses the tier (a lease)."""
        for share in self._led():
            with explained(share.files.folder):
                durable.remove_leftovers(share.files.folder)
                found = manifest.read(share.files.folder) or {}
                if not self._trust(found):
                    self._discard(share)
                if not found.get("complete"):
                    self._mark(share, complete=False)

    def _led(self) -> list[Share]:
        return [share for share in self.shares if share.leads]

    def _trust(self, found: dict[str, Any]) -> bool:
        """Whether files of full size really hold their data: not if the host that wrote them went down meanwhile."""
        restarted = found.get("host") == socket.gethostname() and found.get("boot_id") != durable.boot_id()
        return bool(found.get("complete")) or not restarted

    def _discard(self, share: Share) -> None:
        """Remove data files that may be hollow; the folder is ours, and so is everything with these names."""
        for folder in share.files.folders():
            for entry in os.scandir(folder):
                if share.files.owns(entry.name):
                    os.unlink(entry.path)

    def _mark(self, share: Share, complete: bool) -> None:
        state = {"complete": complete, "host": socket.gethostname(), "boot_id": durable.boot_id()}
        manifest.write(share.files.folder, "dataset", state)

    def missing(self) -> list[Missing]:
        """What this rank will have to write, found by looking at every file of its shares."""
        found = []
        for share in self.shares:
            count = sum(not self._complete(path, file) for file, path in self._paths(share))
            disk = os.statvfs(share.files.folder)
            block = min(disk.f_frsize, _BLOCK)
            found.append(
                Missing(
                    tier_name=share.tier_name,
                    directory=share.files.folder,
                    shared=share.node is None,
                    sealed=bool((manifest.read(share.files.folder) or {}).get("complete")),
                    device=os.stat(share.files.folder).st_dev,
                    files=count,
                    nbytes=count * self._format.file_bytes,
                    disk_bytes=count * -(-self._format.file_bytes // block) * block,
                    free_bytes=disk.f_bavail * disk.f_frsize,
                    free_files=disk.f_favail if disk.f_files else None,
                )
            )
        return found

    def _paths(self, share: Share) -> Iterator[tuple[int, str]]:
        if self._statistics is not None:  # and no files of samples
            if share.leads and share is self.shares[-1]:
                yield STATISTICS, share.files.path(STATISTICS)
            return
        if self._format.reading == NOTHING:
            return
        for block in self._plan.files_on(share.tier, share.node, share.part, share.parts):
            for file in block.tolist():
                yield file, share.files.path(file)

    def _complete(self, path: str, file: int) -> bool:
        """A file whose size only its content decides gets its name when it is complete."""
        expected = self._format.file_bytes_of(file)
        try:
            found = os.lstat(path)
            complete = found.st_size > 0 if expected is None else found.st_size == expected
            return complete and stat.S_ISREG(found.st_mode)
        except FileNotFoundError:
            return False
        except OSError as error:
            kind = StoppedError if error.errno in AWAY else UserError
            raise kind(f"{path}: cannot be read: {error.strerror}; check the directory") from None

    def write(self, progress: Callable[[int], None]) -> int:
        """Write what is missing, after `reopen` by all; the bytes written."""
        total = 0
        for share in self.shares:
            for file, path in self._paths(share):
                written = self._write_file(path, share.files.unfinished(file), file)
                total += written
                if written:
                    progress(written)
        return total

    def reopen(self) -> None:
        """What is added to a complete dataset may be hollow after a restart too: it is not complete until sealed again."""
        for share in self._led():
            with explained(share.files.folder):
                self._mark(share, complete=False)

    def _write_file(self, path: str, unfinished: str, file: int) -> int:
        """Write a file unless it is there; the bytes written."""
        try:
            if self._format.file_bytes_of(file) is None:
                return self._write_named_last(path, unfinished, file)
            try:
                fd = os.open(path, _CREATE | os.O_EXCL, 0o644)  # the usual case costs no look
            except FileExistsError:
                if self._complete(path, file):
                    return 0
                fd = os.open(path, _CREATE | os.O_TRUNC, 0o644)
            return self._fill(fd, file)
        except OSError as error:
            raise _explanation(error, path) from None

    def _write_named_last(self, path: str, unfinished: str, file: int) -> int:
        """What is there under the other name was left by a writer that was killed."""
        if self._complete(path, file):
            return 0
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        if self._format.reading == LIBRARY:
            self._format.write(unfinished, self._samples(file))
        else:
            self._fill(os.open(unfinished, _CREATE | os.O_EXCL, 0o644), file)
        written = os.stat(unfinished).st_size
        os.replace(unfinished, path)
        return written

    def _fill(self, fd: int, file: int) -> int:
        try:
            pieces = self._format.encode(self._samples(file))
            _write_pieces(fd, pieces)
        finally:
            os.close(fd)
        return sum(len(piece) for piece in pieces)

    def _samples(self, file: int) -> list[list[bytes | bytearray | memoryview]]:
        dataset, seed = self._study.workload.dataset, self._study.seed
        first = file * dataset.num_samples_per_file
        sizes = self._format.shape.of_file(file).tolist()
        return [
            content.payload(seed, first + inside, nbytes, dataset.compressibility)
            for inside, nbytes in enumerate(sizes)
        ]

    def sync(self) -> None:
        """After the ranks of this node wrote: one of them makes durable what the node wrote, on every tier."""
        for share in self.shares if self._first_of_node else ():
            with explained(share.files.folder):
                durable.sync_filesystem(share.files.folder)

    def seal(self) -> None:
        """After every node synced: the leading rank says that the data is complete."""
        for share in self._led():
            if share.striping and (first := next(self._paths(share), None)):
                striping.verify(share.striping, first[1])
            with explained(share.files.folder):
                self._mark(share, complete=True)


def make_folders(files: DatasetFiles) -> None:
    """All that must be there before files are written."""
    with explained(files.folder):
        for folder in files.folders():
            os.makedirs(folder, exist_ok=True)
            if os.path.islink(folder):
                raise ForeignDirectoryError(f"{folder}: is a symbolic link; replace it by a directory or remove it")


@contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _explanation(error, path) from None


def _explanation(error: OSError, path: str) -> TierscopeError:
    """A full disk and servers that fail can be resumed from; whatever else the system refuses is the user's to mend."""
    said = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]  # a library's own words are long
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutOfSpaceError(
            f"{path}: {said} while generating; free some space and run the same command again to go on"
        )
    if error.errno in AWAY:
        return StoppedError(
            f"{path}: cannot be written: {said}; run the same command again when the storage is back: what is there stays"
        )
    return UserError(f"{path}: cannot be written: {said}; check the directory")


def _write_pieces(fd: int, pieces: list[bytes | bytearray | memoryview]) -> None:
    for start in range(0, len(pieces), _MAX_PIECES):
        some = pieces[start : start + _MAX_PIECES]
        left = sum(len(piece) for piece in some)
        written = os.writev(fd, some)
        if written < left:  # a signal, a quota or a very large write: finish byte by byte count
            rest = memoryview(b"".join(some))[written:]
            while len(rest):
                rest = rest[os.write(fd, rest) :]
