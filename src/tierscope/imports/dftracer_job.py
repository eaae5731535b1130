"""All processes of a job that DFTracer traced: which one counts for which rank, and what their epochs are."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from tierscope.imports.dftracer_events import Process
from tierscope.imports.dftracer_outline import Outline, Span, Started
from tierscope.imports.dftracer_sums import FileSums, Interval

_NUMBERED = re.compile(r"-(\d{1,9})-of-(\d{1,9})\.pfw(?:\.gz)?$")
_MOST_EPOCHS = 1 << 20
_NEVER_NS = 2**63


class TracedJob:
    """All processes: their parents, their epochs, their ranks."""

    def __init__(self, outlines: Sequence[Outline]) -> None:
        self.outlines = outlines
        self.started: dict[Process, Started] = {}
        self.hosts: dict[str, str] = {}
        self.said_ranks: dict[Process, int] = {}
        self._files: dict[Process, int] = {}  # the first one that tells of a process
        spans: dict[Process, list[Span]] = defaultdict(list)
        for place, outline in enumerate(outlines):
            self.started.update(outline.started)
            self.hosts.update(outline.hosts)
            self.said_ranks.update(outline.ranks)
            for process in outline.processes | outline.spans.keys():
                self._files.setdefault(process, place)
            for process, of_process in outline.spans.items():
                spans[process] += of_process
        self.epochs = _epochs(spans)
        self.numbered = _numbers([outline.path for outline in outlines])

    @property
    def has_epochs(self) -> bool:
        return bool(self.epochs)

    def root(self, process: Process) -> Process:
        """The process that it counts for."""
        seen = {process}
        while process not in self.epochs and process not in self.said_ranks and process in self.started:
            parent = (process[0], self.started[process].parent or 0)
            if parent not in self._files or parent in seen:
                break
            process = parent
            seen.add(process)
        return process

    @cached_property
    def all_epochs(self) -> dict[Process, list[Interval]]:
        """Of loader workers too: those of their rank."""
        by_process = {process: self.epochs.get(self.root(process), []) for process in self._files}
        return {process: epochs for process, epochs in by_process.items() if epochs}

    def ranks(self, sums: Sequence[FileSums]) -> dict[Process, int]:
        """Of all processes that matter: with epochs, those that have some; else all. By the files' numbers, else by what MPI said, else by start."""
        for place, of_file in enumerate(sums):
            for process in [*(key[0] for key in of_file.cells), *(key[0] for key in of_file.compute)]:
                self._files.setdefault(process, place)
        if self.numbered:
            return {process: self.numbered[self._files[self.root(process)]] for process in self._files}
        roots = sorted({self.root(process) for process in self._files}, key=self.order)
        if self.has_epochs:
            roots = [process for process in roots if process in self.epochs]
        said = [self.said_ranks.get(process, -1) for process in roots]
        good = len(set(said)) == len(said) and all(0 <= rank < 2**31 for rank in said)
        numbers = dict(zip(roots, said if good else range(len(roots)), strict=True))
        return {process: numbers[root] for process in self._files if (root := self.root(process)) in numbers}

    def order(self, process: Process) -> tuple[int, Process]:
        begun = self.started[process].at_ns if process in self.started else _NEVER_NS
        return begun, process

    def nodes(self, ranks: Mapping[Process, int]) -> dict[int, int]:
        """Node of each rank, numbered in the order of ranks."""
        hosts: dict[str, int] = {}
        of_rank: dict[int, int] = {}
        for process, rank in sorted(ranks.items(), key=lambda pair: pair[1]):
            host = self.hosts.get(process[0], process[0])
            of_rank.setdefault(rank, hosts.setdefault(host, len(hosts)))
        return of_rank


def _numbers(paths: Sequence[str]) -> list[int]:
    """Ranks by names like trace-3-of-8.pfw, where all files have such; else nothing."""
    matches = [match for path in paths if (match := _NUMBERED.search(path))]
    numbers = [int(match[1]) for match in matches]
    good = (
        len(matches) == len(paths) and len(set(numbers)) == len(numbers) and len({match[2] for match in matches}) == 1
    )
    return numbers if good and all(int(match[1]) < int(match[2]) for match in matches) else []


def _epochs(spans: Mapping[Process, list[Span]]) -> dict[Process, list[Interval]]:
    """Numbered as the spans themselves say, where all do so, else in order."""
    kept = {process: _outermost(of_process) for process, of_process in spans.items() if of_process}
    said = {process: [_number(epoch) for _, _, epoch in of_process] for process, of_process in kept.items()}
    good = all(0 not in of_process and of_process == sorted(set(of_process)) for of_process in said.values())
    return {
        process: [
            (start, start + long, number if good else place)
            for place, ((start, long, _), number) in enumerate(zip(of_process, said[process], strict=True), start=1)
        ]
        for process, of_process in kept.items()
    }


def _outermost(spans: list[Span]) -> list[Span]:
    """In order, without any that begin within another."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or span[0] >= kept[-1][0] + kept[-1][1]:
            kept.append(span)
    return kept


def _number(epoch: object) -> int:
    """0: none."""
    text = str(epoch)
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) and int(text) <= _MOST_EPOCHS else 0
