"""Data for the points of a study, staged before they are measured."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask
from tierscope.dataset.capacity import check_capacity, check_disks, check_space
from tierscope.dataset.lease import lease, refuse_nested
from tierscope.dataset.stage import Missing
from tierscope.measure.crews import Crews, nodes_here
from tierscope.measure.first_touch import staged_as
from tierscope.spec.study import Point, Study
from tierscope.storage.opening import namespace
from tierscope.storage.striping import Striping
from tierscope.units import counted
from tierscope.watch import Watch


class StudyStaging:
    """Data for points: the largest cache rate once for all points that share a dataset. First-touch points need the last tier only."""

    def __init__(self, points: list[Point], out: str, crews: Crews, watch: Watch, leases: ExitStack) -> None:
        self._out, self._crews, self._watch, self._leases = out, crews, watch, leases
        self._leased: set[str] = set()
        self._largest: dict[Any, Study] = {}
        for point in points:
            wanted = staged_as(point.study)
            key = self._key(wanted)
            known = self._largest.get(key)
            if known is None or known.placement.cache_rate < wanted.placement.cache_rate:
                self._largest[key] = wanted
        for largest in self._largest.values():
            check_capacity(largest)
            check_disks(largest, out)
        self._staged: set[Any] = set()

    @staticmethod
    def _key(study: Study) -> Any:
        """All that decides which files lie where, but for the cache rate."""
        reader = study.workload.reader
        paths = tuple(
            (tier.name, namespace(tier), tier.path, tier.visible_to, tier.capacity, Striping.of(tier))
            for tier in study.system.tiers
        )
        layout = (study.system.nodes, study.system.ranks_per_node, reader.shuffle, reader.shuffle_nodes)
        return study.workload.dataset, study.seed, paths, layout

    def stage_for(self, studies: Iterable[Study]) -> int:
        """Make sure that the data of these studies is there; the bytes written. Whether all of it fits is asked first."""
        wanted = {self._key(study): self._largest[self._key(study)] for study in studies}
        missing = {key: self._survey(study) for key, study in wanted.items() if key not in self._staged}
        nbytes = check_space(pair for pairs in missing.values() for pair in pairs)
        if nbytes:
            self._watch.phase("generating data", nbytes, "bytes")
        written = 0
        for key, pairs in missing.items():
            if not all(share.sealed and not share.files and not share.unsummed for _, share in pairs):
                crew, _ = self._crews.of(wanted[key])
                written += sum(crew.call(StageTask(wanted[key], self._out), self._watch.advance))
            self._staged.add(key)
        return written

    def _survey(self, study: Study) -> list[tuple[str, Missing]]:
        """What is missing, with the host that would write it."""
        crew, who = self._crews.of(study)
        nodes = nodes_here(study, who)
        refuse_nested(study, self._out, nodes[0])
        crew.call(ClaimTask(study, self._out), lambda _: None)
        lease(study, self._out, nodes, self._leased, self._leases)
        missing: list[list[Missing]] = crew.call(SurveyTask(study, self._out), lambda _: None)
        for line in _said_of(share for shares in missing for share in shares):
            self._watch.note(line)
        return [(who[rank].host, share) for rank, shares in enumerate(missing) for share in shares]


def _said_of(shares: Iterable[Missing]) -> Iterator[str]:
    """What is staged again, or gets checksums, although it was complete once: a line for each folder."""
    by_folder: dict[str, list[Missing]] = {}
    for share in shares:
        if share.sealed:
            by_folder.setdefault(share.directory, []).append(share)
    for folder, own in by_folder.items():
        resized, unsummed = sum(share.resized for share in own), sum(share.unsummed for share in own)
        example = next((share.example for share in own if share.example and share.resized), "")
        if resized:
            yield f"{example}: its size has changed; generating {counted(resized, 'such file')} in {folder} again"
        if unsummed:
            yield f"{folder}: {counted(unsummed, 'file')} without checksums, from an older version; adding them now"
