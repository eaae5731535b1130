"""What is cold when ranks read: pages of files, and names and inodes where that is asked for."""

from collections.abc import Iterator, Sequence
from itertools import islice

from tierscope.bench.group import Group
from tierscope.bench.loading import in_memory
from tierscope.bench.resolved import ResolvedRun
from tierscope.formats import NOTHING
from tierscope.loaders import LOADERS, SampleSource
from tierscope.loaders.cold_reads import ColdReads, ColdTally, ColdTier, CountedUses, OnlyUse, Uses
from tierscope.plan.plan import Block, Reads
from tierscope.plan.uses import file_uses
from tierscope.spec.study import EVICT_METADATA
from tierscope.storage import dropping
from tierscope.storage.access import READ_FLAGS
from tierscope.storage.base import Storage
from tierscope.storage.cold import MAX_CHECKED
from tierscope.trace.rank_trace import Residency


class Coldness:
    """One rank's. Emulated tiers are left warm: there the queues make the time, and the disk underneath should not."""

    def __init__(self, run: ResolvedRun, storages: Sequence[Storage], names: Sequence[str], group: Group) -> None:
        self._run, self._group, self._storages, self._names = run, group, storages, names
        self._evict = run.study.workload.reader.evict
        self.tiers = [ColdTier(storage.abilities.evict, not storage.abilities.emulated) for storage in storages]
        per_node = run.study.system.ranks_per_node
        self._first = group.rank // per_node * per_node  # of this node
        self.reads = ColdReads(self.tiers, run.format.file_bytes_of)

    def drop_metadata(self) -> None:
        """By all ranks, when nobody reads any more. One of every node does it, for the whole host."""
        if self._evict != EVICT_METADATA:
            return
        if self._group.rank == self._first:
            pairs = zip(self._storages, self.tiers, strict=True)
            dropping.drop_metadata([storage.root for storage, tier in pairs if tier.looks])
        self._group.barrier()

    def begin(self, reads: Reads, epoch: int) -> None:
        self.reads.begin(self._uses(reads, epoch))

    def _uses(self, reads: Reads, epoch: int) -> Uses:
        """Nobody has to count where a file is opened once in an epoch, by one rank."""
        study, plan = self._run.study, self._run.plan
        ahead = in_memory(study)
        once = study.workload.dataset.num_samples_per_file == 1 and not ahead
        if once or self._run.format.reading == NOTHING:
            return OnlyUse()

        def reads_of(rank: int) -> Iterator[Block]:
            return plan.blocks_of(plan.order.reachable(rank)) if ahead else reads.reads(rank, epoch)

        sharing = range(self._first, min(self._first + study.system.ranks_per_node, study.system.ranks))
        return CountedUses(file_uses(reads_of, self._group.rank, sharing, study.workload.dataset.num_files_train))

    def of_statistics(self) -> ColdReads:
        """For a file that all ranks read at once: the first of every node evicts it."""
        left_alone = ColdTier(evicts=False, looks=False)
        tiers = self.tiers if self._group.rank == self._first else [left_alone] * len(self.tiers)
        nbytes = self._run.study.workload.dataset.statistics.file_bytes
        return ColdReads(tiers, lambda _: nbytes)

    def look_afterwards(self, source: SampleSource, reads: Reads, epoch: int) -> None:
        """For a loader whose files the preload library evicts: what is left of some, when nobody will read them in this run any more."""
        if not LOADERS[self._run.loader].evicted_in_c or epoch < self._run.plan.epochs:
            return
        blocks = reads.reads(self._group.rank, epoch)
        places = {
            place: None for block in blocks for place in zip(block.files.tolist(), block.tiers.tolist(), strict=True)
        }
        for file, tier in islice(places, MAX_CHECKED):
            access = self._storages[tier].open_access()
            try:
                fd = access.open(source.files[tier].path(file), READ_FLAGS)
                nbytes = access.size(fd)
                self.reads.add(
                    [
                        ColdTally(1, nbytes, access.resident(fd, nbytes))
                        if at == tier and self.tiers[tier].looks
                        else ColdTally()
                        for at in range(len(self.tiers))
                    ]
                )
                access.close(fd)
            finally:
                access.leave()

    def seen(self) -> tuple[Residency, ...]:
        """Of the epoch that is over."""
        triples = zip(self._names, self.tiers, self.reads.tallies, strict=True)
        return tuple(
            Residency(name, tally.checked_bytes, tally.resident_bytes, tally.nanoseconds / 1e9)
            for name, tier, tally in triples
            if tier.looks
        )
