"""What the words of a report mean: one sentence each, for the page and for the docs, so that there is one explanation of every term.

`GLOSSARY` is plain data, in alphabetical order; it imports nothing, and to read it costs nothing. `key` is what links point at.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """`text`: what it means, in one sentence."""

    key: str
    name: str
    text: str


GLOSSARY = (
    Term(
        "au",
        "Accelerator utilisation (AU)",
        "The share of an epoch that accelerators spend computing rather than waiting for data, as DLIO defines it: the mean over processes, without the first step.",
    ),
    Term("best", "Best point", "The point of the sweep with the shortest epoch, or with the least I/O time where epochs are not known, among those that fit their storage."),
    Term("bottleneck", "Bottleneck", "The class that takes most of the slowest process's I/O time."),
    Term(
        "busy",
        "Busy seconds",
        "The durations of a process's operations added up; operations that run at the same time all count, so the sum may exceed the time on the clock.",
    ),
    Term(
        "cache-rate",
        "Cache rate",
        "The share of the dataset that is kept on near storage, which usually means a full copy of that share on every node: 30 % takes 30 % of the dataset's bytes on each of them.",
    ),
    Term("class", "Class", "All operations of one kind on one storage tier, such as GFS-META: opens, closes and stats on the global file system; READ and WRITE are the transfers of data."),
    Term("emulated", "Emulated", "The tier's rates were configured, not found: Tierscope slowed a real directory down to them."),
    Term("epoch", "Epoch", "One pass over the training data; the first is kept apart, because caches are cold."),
    Term("scaling", "Estimate by scaling", "A class with N % more throughput takes 100 / (100 + N) of its time in every process, and nothing else changes."),
    Term("goal", "Goal", "A limit for an epoch: the most I/O time, the longest epoch, or the lowest accelerator utilisation that you accept."),
    Term("hidden", "Hidden I/O", "I/O that happens while the process computes, so that nobody waits for it."),
    Term(
        "interval",
        "Interval (low – high)",
        "Where the median lies with 95 % confidence; of fewer than six values their range, and of a simulation 90 % of what was simulated.",
    ),
    Term("point", "Point", "One combination of the swept values, for example a cache rate of 40 % on 8 nodes."),
    Term("price", "Price", "What one more percent of a class's throughput costs, or one GiB held on a tier over all nodes together, in whatever money you think in."),
    Term("process", "Process (rank)", "One of the processes that train together, usually one for each accelerator."),
    Term("simulated", "Simulated", "Computed from a model of the storage; nothing was run."),
    Term("slowest", "Slowest process", "The process with the most I/O time in an epoch: all the others wait for it, so its time is the one that counts."),
    Term("tier", "Tier", "A kind of storage that data is read from, such as a node's own SSD (often lfs) or the parallel file system that all nodes share (often gfs)."),
    Term("wall", "Wall seconds", "Time on the clock during which a process had I/O in progress; operations that overlap share it, so it never exceeds the epoch."),
)  # fmt: skip
