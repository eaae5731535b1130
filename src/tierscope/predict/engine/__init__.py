"""The discrete-event engine: one epoch of all ranks on the stations of a system, compiled with numba.

A closed network. Every reading thread (lane) of every rank works off its part of each batch: open, reads, close, the next sample. An operation
joins all stations on its way at once and ends when the last of them has served it, plus the tier's latency. A rank's consumer takes batches
in order, computes, and frees their memory, so that at most `prefetch` batches are read ahead of the one in use. A sample's file may be
filled or fetched: copied to the near tier by its reader, behind it or ahead of it. Between steps ranks may save checkpoints.

One heap holds the next event of every entity, and one clock is the time of the earliest. Events at the same time happen in the order in which
they were planned, so that a seed gives the same result everywhere.

    inputs       what is simulated: the requests of all ranks, the system, the loader
    shapes       whether inputs have the shapes and types that compiled code relies on
    state        everything that changes during an epoch, as tables
    compiled     how functions are compiled, and kept for the next process
    ranges       whether numbers in inputs lead to rows that there are
    heap         the next event of every entity
    stations     queues: one after another, or all at once (processor sharing)
    operations   the one way to begin an operation: at all stations on its way
    lanes        threads in an operation: when it ends, and how long they are busy
    copies       fills by readers or behind them, and the fetching threads ahead of them
    readers      a reading thread's event: what it has read, what it reads next
    savers       checkpoints: what a rank's writer does, and what its consumer waits for
    consumers    a rank's batches: complete, computed, past the step barrier
    loop         run_epoch: the entry, and the only loop over events

Modules import only from those above them. Everything above `compiled` works without numba. NUMBA_DISABLE_JIT=1 runs all of it in Python, with the same
result: for debugging.
"""
