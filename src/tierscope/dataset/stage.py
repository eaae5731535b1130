"""Files onto tiers: every node writes its own copies, ranks share the work, what is already there stays.

A file is complete when it has the size that it was written with, which the table of checksums knows where only content decides it: a killed writer
leaves a shorter one, which is written again. Checksums that are missing (an older Tierscope kept none) are worked out from what files must hold; pictures,
whose bytes are Pillow's, are written again. After a
restart of the machine even full-sized files may lack data that never reached the device, so a dataset that
was not marked complete in the same boot is written again as a whole.
"""

import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tierscope.dataset import content
from tierscope.dataset.data_folders import claim_folder, make_folders, names_facts, remove_data
from tierscope.dataset.sums import StagedSums, sums_layout
from tierscope.formats import LIBRARY, NOTHING, WHOLE, Shape
from tierscope.jsonable import JsonObject
from tierscope.output import durable, manifest
from tierscope.output.disk_errors import GENERATING, LOOKING, explained, explanation
from tierscope.output.ours import NAMES
from tierscope.plan.planned import planned
from tierscope.spec.study import Study
from tierscope.storage import striping
from tierscope.storage.base import FILE, Piece, Storage
from tierscope.storage.files import DatasetFiles
from tierscope.storage.opening import open_storages
from tierscope.storage.striping import Striping

SIDE = -1  # stands for the small file beside the samples, which has no number


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
    storage: Storage
    files: DatasetFiles
    node: int | None  # whose copies; None: shared by all nodes
    part: int
    parts: int
    striping: Striping | None = None  # None: wherever the file system puts files
    sums: StagedSums | None = None  # None: there are no samples in files

    @property
    def leads(self) -> bool:
        return self.part == 0


@dataclass(frozen=True, slots=True)
class Missing:
    """What still has to be written for a share, and the room there is for it."""

    tier_name: str
    directory: str
    shared: bool  # by all nodes
    device: int | str
    sealed: bool  # everything that is there was made durable
    files: int
    nbytes: int  # to be written
    disk_bytes: int  # what that takes up: whole blocks
    free_bytes: int
    free_files: int | None  # None: the filesystem has no fixed number of inodes
    resized: int = 0  # of these files: those that are there with another size than they were written with
    unsummed: int = 0  # files that are there, but not their checksums
    example: str = ""  # a path of either, the former first


# What is found of a file.
_COMPLETE, _UNSUMMED, _RESIZED, _MISSING = "complete", "unsummed", "resized", "missing"


class Stager:
    """One rank's work on the data of a study (at its largest cache rate)."""

    def __init__(self, study: Study, out: str, place: StagingPlace) -> None:
        dataset = study.workload.dataset
        self._study = study
        self._first_of_node = place.rank_on_node == 0
        form, self._plan = planned(study)
        self._side_bytes = dataset.statistics.file_bytes
        self._format = form
        self._layout = layout = sums_layout(study, form)
        self._sizes = _sizes_of_files(self._format.shape)
        self.shares: list[Share] = []
        storages = open_storages(study, out, place.node)
        for index, (tier, storage) in enumerate(zip(study.system.tiers, storages, strict=True)):
            files = DatasetFiles.of(tier, out, place.node, dataset, study.seed, form.suffix)
            node, part, parts = None, place.rank, place.ranks
            if tier.visible_to == "node":
                node, part, parts = place.node, place.rank_on_node, place.ranks_on_node
            sums = StagedSums(storage, files.folder, layout, part, content.pool_of(study)) if layout else None
            self.shares.append(Share(index, tier.name, storage, files, node, part, parts, Striping.of(tier), sums))

    def claim(self) -> None:
        """The leading rank of each tier makes and marks the directories. Changes nothing that is there."""
        for share in self._led():
            manifest.claim(share.files.tier_root, "tier", share.storage)
            mark = claim_folder(share.storage, share.files.folder, "dataset", names_facts(share.files))
            if share.striping:
                place = striping.verify if "complete" in mark else striping.fix  # as long as no file can be there
                place(share.striping, share.files.folder)
            make_folders(share.storage, share.files)

    def distrust(self) -> None:
        """The leading rank of each tier drops what cannot be trusted; only when nobody else uses the tier (a lease)."""
        for share in self._led():
            with explained(share.files.folder, GENERATING):
                share.storage.tidy(share.files.folder)
                mark = manifest.read(share.files.folder, share.storage) or {}
                if not self._trust(mark):
                    self._discard(share)
                if share.sums:
                    share.sums.distrust()
                if not mark.get("complete"):
                    self._mark(share, complete=False)
                elif NAMES not in mark:  # of an older version
                    manifest.write(share.files.folder, "dataset", mark | names_facts(share.files), share.storage)

    def _led(self) -> list[Share]:
        return [share for share in self.shares if share.leads]

    def _trust(self, mark: JsonObject) -> bool:
        """Whether files of full size really hold their data: not if the host that wrote them went down meanwhile."""
        restarted = mark.get("host") == socket.gethostname() and mark.get("boot_id") != durable.boot_id()
        return bool(mark.get("complete")) or not restarted

    def _discard(self, share: Share) -> None:
        """Remove data files that may be hollow; the folder is ours, and so is everything with these names."""
        if share.sums:
            share.sums.drop()
        remove_data(share.storage, share.files)
        make_folders(share.storage, share.files)

    def _mark(self, share: Share, complete: bool) -> None:
        state = {"complete": complete, "host": socket.gethostname(), "boot_id": durable.boot_id()}
        manifest.write(share.files.folder, "dataset", state | names_facts(share.files), share.storage)

    def missing(self) -> list[Missing]:
        """What this rank will have to write, found by looking at every file of its shares."""
        missing = []
        for share in self.shares:
            storage, folder = share.storage, share.files.folder
            (count, side), resized, unsummed, example = self._counted(share)
            sizes = ((count - side, self._format.file_bytes), (side, self._side_bytes or 0))
            with explained(folder, LOOKING):
                space, device = storage.space(folder), storage.device(folder)
                sealed = bool((manifest.read(folder, storage) or {}).get("complete"))
            missing.append(
                Missing(
                    tier_name=share.tier_name,
                    directory=folder,
                    shared=share.node is None,
                    sealed=sealed,
                    device=device,
                    files=count,
                    nbytes=sum(number * nbytes for number, nbytes in sizes),
                    disk_bytes=sum(number * -(-nbytes // space.block_bytes) for number, nbytes in sizes)
                    * space.block_bytes,
                    free_bytes=space.free_bytes,
                    free_files=space.free_files,
                    resized=resized,
                    unsummed=unsummed,
                    example=example,
                )
            )
        return missing

    def _counted(self, share: Share) -> tuple[tuple[int, int], int, int, str]:
        """Files to be written, and whether that beside the samples is one; those with another size among them; those without checksums; and one of the latter two."""
        states, examples, side = Counter[str](), dict[str, str](), 0
        for file, path in self._paths(share):
            state = self._state(share, path, file)
            states[state] += 1
            side += file == SIDE and state in (_MISSING, _RESIZED)
            examples.setdefault(state, path)
        again = states[_UNSUMMED] if not self._follows else 0
        example = examples.get(_RESIZED) or examples.get(_UNSUMMED) or ""
        count = states[_MISSING] + states[_RESIZED] + again
        return (count, side), states[_RESIZED], states[_UNSUMMED], example

    @property
    def _follows(self) -> bool:
        """Whether what loaders hand over follows from the study alone: the bytes of a picture are its encoder's."""
        return self._format.reading != WHOLE

    def _paths(self, share: Share) -> Iterator[tuple[int, str]]:
        if self._side_bytes is not None and share.leads and share is self.shares[-1]:
            yield SIDE, share.files.side_path
        if self._format.reading == NOTHING:
            return
        for block in self._plan.files_on(share.tier, share.node, share.part, share.parts):
            for file in block.tolist():
                yield file, share.files.path(file)

    def _state(self, share: Share, path: str, file: int) -> str:
        """A file whose size only its content decides gets its name when it is complete."""
        expected = self._expected_bytes(file)
        try:
            facts = share.storage.look(path)
            if facts is None or facts.kind != FILE:
                return _MISSING
            if expected is not None:
                whole = facts.nbytes == expected
            else:
                whole = share.sums.has_size(file, facts.nbytes) if share.sums else facts.nbytes > 0
            if not whole:
                return _RESIZED
            summed = file == SIDE or share.sums is None or share.sums.knows(file)
            return _COMPLETE if summed else _UNSUMMED
        except OSError as error:
            raise explanation(error, path, LOOKING) from None

    def _expected_bytes(self, file: int) -> int | None:
        """None: only its content decides."""
        return self._side_bytes if file == SIDE else self._format.file_bytes_of(file)

    def write(self, progress: Callable[[int], None]) -> int:
        """Write what is missing, after `reopen` by all; the bytes written."""
        total = 0
        for share in self.shares:
            for file, path in self._paths(share):
                written = self._write_file(share, path, file)
                total += written
                if written:
                    progress(written)
            if share.sums:
                with explained(share.files.folder, GENERATING):
                    share.sums.finish()
        return total

    def reopen(self) -> None:
        """What is added to a complete dataset may be hollow after a restart too: it is not complete until sealed again."""
        for share in self._led():
            with explained(share.files.folder, GENERATING):
                self._mark(share, complete=False)

    def _write_file(self, share: Share, path: str, file: int) -> int:
        """Write a file unless it is there; the bytes written."""
        try:
            if self._expected_bytes(file) is None:
                return 0 if self._is_there(share, path, file) else self._write_named_last(share, path, file)
            try:
                return share.storage.write(path, lambda: self._encoded(share, file))  # the usual case costs no look
            except FileExistsError:
                if self._is_there(share, path, file):
                    return 0
                return share.storage.write(path, lambda: self._encoded(share, file), True)
        except OSError as error:
            raise explanation(error, path, GENERATING) from None

    def _is_there(self, share: Share, path: str, file: int) -> bool:
        """With its checksums: those that are missing follow from what the file must hold, if from anything."""
        state = self._state(share, path, file)
        if state == _UNSUMMED and self._follows:
            facts = share.storage.look(path)
            encoded = self._format.encode(self._samples(file)) if self._format.hands_over_encoded else []
            self._keep_sums(share, file, encoded, facts.nbytes if facts else 0)
            return True
        return state == _COMPLETE

    def _write_named_last(self, share: Share, path: str, file: int) -> int:
        """What is there under the other name was left by a writer that was killed."""
        unfinished = share.files.unfinished(file)
        try:
            written = self._write_unnamed(share, unfinished, file)
        except FileExistsError:
            share.storage.remove(unfinished)
            written = self._write_unnamed(share, unfinished, file)
        share.storage.rename(unfinished, path)
        return written

    def _write_unnamed(self, share: Share, unfinished: str, file: int) -> int:
        storage = share.storage
        if self._format.reading != LIBRARY:
            return storage.write(unfinished, lambda: self._encoded(share, file))
        with durable.created(unfinished, storage.root) as new:
            self._format.write(new, self._samples(file))
        facts = storage.look(unfinished)
        written = facts.nbytes if facts else 0
        self._keep_sums(share, file, [], written)
        return written

    def _encoded(self, share: Share, file: int) -> list[Piece]:
        if file == SIDE:
            return content.payloads(content.pool_of(self._study), 0, [self._side_bytes or 0])[0]
        encoded = self._format.encode(self._samples(file))
        self._keep_sums(share, file, encoded, sum(map(len, encoded)) if self._layout and self._layout.sized else 0)
        return encoded

    def _keep_sums(self, share: Share, file: int, encoded: Sequence[Piece], nbytes: int) -> None:
        """Of a file that is there or about to be; `nbytes`: its size, where only its content decides it."""
        if share.sums is None:
            return
        if self._format.hands_over_encoded:
            share.sums.add_encoded(file, encoded)
        else:
            share.sums.add_generated(file, self._sizes(file))
        share.sums.add_size(file, nbytes)

    def _samples(self, file: int) -> list[list[Piece]]:
        dataset = self._study.workload.dataset
        return content.payloads(content.pool_of(self._study), file * dataset.num_samples_per_file, self._sizes(file))

    def sync(self) -> None:
        """After all ranks wrote: their checksums become one table, and one of every node makes durable what the node wrote, on every tier."""
        for share in self._led():
            if share.sums:
                with explained(share.files.folder, GENERATING):
                    share.sums.merge()
        for share in self.shares if self._first_of_node else ():
            with explained(share.files.folder, GENERATING):
                share.storage.sync(share.files.folder)

    def seal(self) -> None:
        """After every node synced: the leading rank says that the data is complete."""
        for share in self._led():
            if share.striping and (first := next(self._paths(share), None)):
                striping.verify(share.striping, first[1])
            with explained(share.files.folder, GENERATING):
                self._mark(share, complete=True)


def _sizes_of_files(shape: Shape) -> Callable[[int], list[int]]:
    """The sizes of a file's samples; those of the last file are kept."""
    if shape.alike:
        usual = [shape.record_bytes] * shape.samples_per_file
        return lambda _: usual

    @lru_cache(maxsize=1)
    def sizes(file: int) -> list[int]:
        listed: list[int] = shape.of_file(file).tolist()
        return listed

    return sizes
