"""Findings in words: every sentence that a reader of numbers gets stands here, by kind.

Longer than other modules because it is one table: whoever looks for a sentence looks here only.

A finding has a kind, evidence (numbers in base units, and names) and, made from those, a sentence and a suggestion.
"""

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tierscope.jsonable import JsonObject
from tierscope.units import about_bytes, about_seconds, counted, format_bytes

# kind → (what was found, what to do about it). How evidence is shown stands behind the colon: seconds by :time, bytes by :size (rounded) or :bytes
# (exact), amounts with their noun by :count file, words that depend on an amount by :if is|are (# is the amount), lists with what joins them, and
# options that are left to try by :or try (nothing if there are none): no advice recommends what was given.
WORDING: dict[str, tuple[str, str]] = {
    "partial": (
        "{finished} of {total:count run} {total:if is|are} finished; all numbers are about those",
        "run the same command again to go on",
    ),
    "emulated": (
        "emulated tiers: {tiers:, }; their times come from configured rates, not from hardware",
        "give real paths and remove 'emulate' to measure your own storage",
    ),
    "simulated": (
        "simulated ({methods:, }): times come from the tiers' rates, nothing was measured; intervals hold 90 % of other shuffles and devices, and of rates where those were calibrated",
        "measure a few points with 'tierscope run', and lay them beside it with 'tierscope report --beside'",
    ),
    "warm_pages": (
        "{tier}: up to {percent:.0f} % of the checked bytes were still in the page cache when an epoch began: not cold",
        "use a filesystem whose pages can be evicted (not tmpfs), or a dataset larger than memory",
    ),
    "unknown_pages": (
        "{tier}: this kernel cannot say whether files were in the page cache; reads may be warm",
        "use Linux 6.5 or newer, or a dataset larger than memory",
    ),
    "warm_storage": (
        "{tier}: its storage cannot evict files: reads may be warm",
        "take its reads as warm ones, or use a storage that can evict (docs/storage.md)",
    ),
    "same_device": (
        "{tier} and {other} are on one device: caching moves reads to the same hardware",
        "put the near tier on a device of its own",
    ),
    "warm_metadata": (
        "META is warm: every file was opened before the epoch to evict its pages; caches of servers are unknown",
        "set reader.evict to false and drop the caches or renew the mount yourself to see cold metadata",
    ),
    "not_evicted": (
        "the page cache was left alone (reader.evict is false): reads may be warm, and nobody looked",
        "make sure yourself that caches were dropped, or that the dataset is larger than memory",
    ),
    "trimmed": (
        "{samples:count sample} per epoch {samples:if was|were} left out, because {samples:if it does|they do} not divide over the ranks",
        "choose num_files_train as a multiple of the ranks",
    ),
    "sleeping_compute": (
        "compute was slept, not computed: a host had no core to spare for it",
        "use fewer ranks per host if the CPU's own load matters",
    ),
    "late": (
        "up to {percent:.0f} % of an epoch's rate-limited operations really took longer than emulated, {seconds:time} in all",
        "lower the emulated rates or the number of ranks on this machine",
    ),
    "straggler": (
        "rank {rank} on node {node} is a straggler: {factor:.1f} times the median of the other ranks in {epochs} of {of:count epoch}; times of the slowest process are mostly its own",
        "look at that node (cores, links, disks, other jobs), or run without it",
    ),
    "straggling_node": (
        "node {node} is a straggler: even its fastest rank takes {factor:.1f} times the median of the other nodes' in {epochs} of {of:count epoch}; times of the slowest process are mostly its own",
        "look at that node (cores, links, disks, other jobs), or run without it",
    ),
    "overhead": (
        "Tierscope itself may account for {percent:.0f} % of the I/O time ({seconds:time} per sample)",
        "read larger samples, or use fewer ranks per core",
    ),
    "threads": (
        "several reading threads wait for Python's lock: about {seconds:time} per operation, {percent:.0f} % of the I/O time",
        "use one reading thread and more ranks per node",
    ),
    "decode": (
        "checking samples took {decode_seconds:time} per epoch in the slowest rank, against {io_seconds:time} of I/O: the client is the limit",
        "faster storage will not help; use more read threads or a cheaper format",
    ),
    "checkpoint_share": (
        "checkpoints take {percent:.0f} % of the epoch at {where} ({checkpoint_seconds:time}): the rank that writes longest has {write_seconds:time} of writes to {tier}; "
        "what is beyond that is metadata and waiting for others",
        "write them less often or to a faster tier; checkpoint.background and checkpoint.mode: all_ranks help where they are not used yet",
    ),
    "checkpoints_not_simulated": (
        "checkpoints are not simulated: epochs are without them, and nothing else uses the tier that they go to",
        "measure them with 'tierscope run'",
    ),
    "hidden": (
        "ranks waited for data {percent:.1f} % of the epoch at the best point: compute hides the storage",
        "faster storage would gain at most that",
    ),
    "nothing_recorded": (
        "no operation on a file of a tier was recorded",
        "check the paths given as --tier; statically linked and setuid programs, io_uring and direct system calls are not seen",
    ),
    "running": (
        "the command still runs ({command}; processes: {pids:, }): this is what it did so far",
        "analyze again when it has ended; its records are kept until then",
    ),
    "ended_command": (
        "the command was ended by {signal} (exit code {code}): this is what it did until then",
        "look at what the command itself printed",
    ),
    "failed_command": (
        "the command ended with exit code {code}: this is what it did until then",
        "look at what the command itself printed",
    ),
    "no_marks": (
        "no epochs were marked: everything counts as one, {span_seconds:time} from the first operation to the last",
        "call tierscope.mark_epoch(n) where epoch n begins, or trace with --epochs rereads",
    ),
    "rereads_found": (
        "epochs are passes over the same data, found by re-reads: {passes}; a pass that only checks or sums up files counts too. "
        "What comes before the first re-read of a pass (opens, and up to {late_reads:count read}) counts for the pass before",
        "call tierscope.mark_epoch(n) where epoch n begins if an epoch of yours is something else",
    ),
    "one_pass": (
        "re-reads show one pass over the data, {span_seconds:time} from the first operation to the last: hardly anything was read twice",
        "call tierscope.mark_epoch(n) where epoch n begins if there are more epochs: what a program keeps in memory it does not read again",
    ),
    "epochs_unsure": (
        "epochs cannot be told by re-reads: {doubt:doubt}. Everything counts as one, {span_seconds:time} from the first operation to the last",
        "call tierscope.mark_epoch(n) where epoch n begins",
    ),
    "epochs_by_opens": (
        "an earlier version took every file that was opened again for the beginning of an epoch: their number may be wrong",
        "trace again with this version, or call tierscope.mark_epoch(n) where epoch n begins",
    ),
    "outside": (
        "operations of processes that are no rank's: {ops} ({seconds:time}); they are not in the table",
        "nothing, unless they should count: then start them under the launcher too",
    ),
    "mapped": (
        "{tier}: {ops} × mmap of its files, {bytes:size} in all; what was read through them is not seen",
        "let the program read instead of map to see it (for NumPy: mmap_mode=None)",
    ),
    "low_coverage": (
        "the recorder saw {is_bound:least}{percent:.0f} % of the bytes that the command {what:did}: {seen_bytes:size} of {all_bytes:size}; {cause:cause}",
        "{cause:remedy}",
    ),
    "coverage_unknown": (
        "processes with an io_uring: {processes}; whether all reads were seen cannot be told, because neither the recorder nor the kernel's counter (rchar) holds what an io_uring reads",
        "let the program use ordinary reads while it is traced",
    ),
    "page_cache_speed": (
        "{tiers:, }: reads ran at page-cache speed: {read_bytes:size} at {bytes_per_second:size}/s for each reading thread, of which devices delivered {device_bytes:size}",
        "take these times as those of memory; evict the files before (vmtouch -e, or drop_caches) to see the storage",
    ),
    "wall_processes": (
        "not all processes of a rank shared one clock, and their wall seconds are added up: up to {processes:count process} of a rank had I/O",
        "read them as an upper bound, or trace again with this version, on one host and in one container",
    ),
    "unrecorded": (
        "processes that could not write their records (they changed user or root directory, or their limits forbade it): {processes}; "
        "at least {ops:count operation} {ops:if is|are} missing",
        "start them as the user who traces, without chroot, and with room for a file and its mapping (ulimit -f, -v)",
    ),
    "under_way": (
        "operations that had not ended when their process did, or that still run: {ops}, the longest for at most {seconds:time}; they are not in the sums",
        "storage that does not answer shows here",
    ),
    "lost_ops": (
        "operations that could not be recorded: {ops} (no space left, or inside a signal's handler); sums are too small by these",
        "give an --out with more room",
    ),
    "lost_rows": (
        "rows of the operation list that could not be written: {rows}; sums and histograms are complete",
        "give an --out with more room",
    ),
    "cut": (
        "threads that were cut off while a record was being made: {lanes}; at most one operation of each is partly counted",
        "nothing: this is what a kill leaves",
    ),
    "damaged": (
        "damaged files of records, left out as far as they are damaged: {files} ({names:; })",
        "check the filesystem of --out, and trace again",
    ),
    "still_running": (
        "processes that still ran when the command had ended: {processes}; what they did later is not in here",
        "let the command wait for what it starts",
    ),
    "unemulated": (
        "processes on another host, where nothing is emulated: {processes}; their times are the storage's own",
        "emulate on one host only",
    ),
    "scattered": (
        "processes on another host than the first of their rank: {processes}; they count there, without their epoch times",
        "let a launcher number them (torchrun, mpirun, srun), or set RANK and WORLD_SIZE",
    ),
    "root_tier": (
        "{tier} is the whole filesystem: libraries, temporary files and the program itself count too",
        "give the directory of the data as --tier",
    ),
    "unreadable_logs": (
        "logs that cannot be read: {logs} ({names:; })",
        "get them again from where they were written; what they hold is missing here",
    ),
    "damaged_logs": (
        "logs that are damaged or cut off, of which only a part was read: {logs} ({names:; })",
        "get them again from where they were written; sums are too small, or wrong",
    ),
    "negative_times": (
        "records with a negative time: {records}; those times count as zero",
        "do not trust this log: its clock or its profiler was wrong",
    ),
    "impossible_ranks": (
        "records of ranks that the job did not have: {records}; they are left out",
        "do not trust this log: it is damaged",
    ),
    "long_meta": (
        "metadata took {meta_seconds:time} in a process that ran for {run_seconds:time} ({log})",
        "do not trust this log, unless that process had many threads",
    ),
    "partial_logs": (
        "Darshan ran out of room for {modules:, } (in {logs:count log}): files are missing, and sums are too small",
        "write the lines 'MAX_RECORDS 100000 POSIX,STDIO' and 'MODMEM 512' into a file, and name it in DARSHAN_CONFIG_PATH when the job runs",
    ),
    "no_data_files": (
        "no file of a tier was touched by {processes:if the only process|any of # processes}: if the program has loader workers, they were not captured",
        "check --tier; for workers use a Darshan built without MPI (DARSHAN_ENABLE_NONMPI=1): it writes a log for every process",
    ),
    "unknown_paths": (
        "{files:count file} ({bytes:size}) {files:if matches|match} no tier and {files:if is|are} not in the table; most of it below {prefixes:, }",
        "analyze the logs again, with --tier gfs={suggestion}",
    ),
    "other_paths": (
        "{tier}: {files:count file} with {of_bytes:.0f} % of the bytes and {of_seconds:.0f} % of the seconds ({bytes:size}, {seconds:time}) {files:if matches|match} no tier; "
        "most of it below {prefixes:, }",
        "give these paths a tier, for example --tier gfs={suggestion}",
    ),
    "standard_streams": (
        "standard streams ({names:, }) took {percent:.0f} % of the time of all processes: {seconds:time} in {ops:count operation} ({bytes:size}); they are in no class",
        "print less, or buffer it: write every n-th line, or to a file that is flushed at the end",
    ),
    "program_files": (
        "the program's own files (libraries, bytecode, devices) took {percent:.0f} % of the time of all processes: {seconds:time} in {ops:count operation} "
        "({bytes:size}), most of it below {names:, }; they are in no class",
        "start from a node-local or packed environment (a container image, conda-pack), or import less in every process",
    ),
    "grouped_by_start": (
        "spawned workers whose logs name no parent: {processes}; they count for the only program that ran when they began, which is likely, not certain",
        "make sure that the logs of all processes of the job are given",
    ),
    "lone_workers": (
        "spawned workers whose parent cannot be told: {processes}; each counts for itself, so the slowest process may be a worker rather than a rank",
        "let the loader fork its workers (multiprocessing_context='fork'): then their logs name their parent",
    ),
    "shared_files": (
        "{tier}: {files:count file} that Darshan summed up over all ranks ({bytes:size} read, {written_bytes:size} written; reads {read_seconds:time}, metadata "
        "{meta_seconds:time}, writes {write_seconds:time}; the fastest rank {fastest_seconds:time}, the slowest {slowest_seconds:time}) {files:if is|are} not in the table",
        "analyze the logs without --no-shared; for every rank's own time run with DARSHAN_DISABLE_SHARED_REDUCTION=1",
    ),
    "cut_logs": (
        "logs that end in the middle: {files}; the job was probably killed, and this is what it did until then",
        "nothing, if it was meant to end; else look at the job's own output",
    ),
    "broken_lines": (
        "lines of the logs that say nothing: {lines}; they are left out",
        "check the filesystem that the logs were written to",
    ),
    "no_names": (
        "operations whose file the logs do not name: {ops}; they are on no tier",
        "record again with DFTRACER_INC_METADATA=1",
    ),
    "outside_epochs": (
        "operations before, between and after epochs: {ops} ({seconds:time}); they are not in the table",
        "nothing, unless they should count: then name another span with --epoch-span",
    ),
    "missed_by_profiler": (
        "operations of ranks that {profilers:, } does not show, at least: {ops} (of reads: {bytes:size}); a profiler can lose track of a file "
        "while another thread of its process opens one",
        "leave --profiler out for exact counts{untried:or set}",
    ),
    "reads_only": (
        "extended tracing (DXT) holds reads only: metadata is missing here, so the I/O time is too short by it",
        "leave --dxt out to see metadata",
    ),
    "no_epochs": (
        "the logs do not tell epochs apart: everything counts as one",
        "give --epoch-gap (a shorter one, if you gave one) where processes begin anew in every epoch, or let the program write one log per epoch",
    ),
    "metadata_dominated": (
        "metadata is {percent:.0f} % of the slowest process's I/O time ({meta_seconds:time}): it opens and looks more than it reads",
        "put samples together in larger files (TFRecord, tar, HDF5), or keep files open",
    ),
    "slow_process": (
        "rank {rank} had {times:.1f} × the I/O time of the median process ({slowest_seconds:time} against {median_seconds:time}): everybody waits for it",
        "see what is different about its files, its node and its workers",
    ),
    "slow_node": (
        "the processes of node {node} had {times:.1f} × the I/O time of the median of {nodes:count node}",
        "check that node's disk, network and mounts",
    ),
    "unbalanced_tiers": (
        "{tier} takes {time_percent:.0f} % of the slowest process's I/O time for {bytes_percent:.0f} % of the bytes",
        "move data away from it, as far as the other tiers have room",
    ),
    "tier_not_used": (
        "{tier}: nothing was read from it, while {bytes:size} came from elsewhere",
        "check that data is there and meant to be read there: by the program's own paths, or by a study's cache_rate and capacities",
    ),
    "small_files": (
        "{tier}: {files:count file} of {mean_bytes:size} read from each on average: an open for every few bytes",
        "put samples together in larger files",
    ),
    "small_opens": (
        "{tier}: {opens:count open} in an epoch with {mean_bytes:size} read after each on average: an open for every few bytes",
        "put samples together in larger files, and read more of a file while it is open",
    ),
    "stdio_reads": (
        "{tier}: {percent:.0f} % of the reads go through buffered streams (stdio), in pieces of the stream's buffer",
        "read whole samples with one call, or give the stream a larger buffer",
    ),
    "small_requests": (
        "{tier}: {reads:count read} of {mean_bytes:size} on average, several for each open: smaller than {limit} ({limit_bytes:size})",
        "let each read fetch more: whole files, or samples that lie together, 1 MiB or a stripe at once",
    ),
    "small_transfers": (
        "{tier}: {reads:count read} of {mean_bytes:size} on average, several for each open: the transfer size of {transfer_bytes:size} cuts samples into pieces",
        "raise reader.transfer_size to 1 MiB or the stripe size",
    ),
    "mostly_small": (
        "{tier}: {percent:.0f} % of {reads:count read} {reads:if is|are} smaller than {limit_bytes:size}, several for each open, though others are large",
        "read headers and indexes once and keep them, or whole files with one call",
    ),
    "random_reads": (
        "{tier}: {percent:.0f} % of the reads jump inside their file",
        "read in the order of the file and shuffle in memory, or store samples apart",
    ),
    "read_again": (
        "{tier}: {files} of {of:count file} {files:if was|were} read more than once in an epoch",
        "let each sample be read once: check sharding, validation and restarts",
    ),
    "one_server": (
        "{tier}: {files:if the only file lies|all # files lie} on the same object server",
        "spread them: lfs setstripe -c 1 -i -1 on the directory, then copy the files anew",
    ),
    "large_on_one_server": (
        "{tier}: {files:count file} of 1 GiB or more {files:if lies|lie} on a single object server each",
        "stripe them: lfs setstripe -c 8 on the directory, then copy the files anew",
    ),
    "idle_servers": (
        "{tier}: {files:count file}, each on {stripe_count} of {servers:count object server}: others have nothing to do",
        "spread the samples over more files, or files over more servers",
    ),
    "bottleneck_moves": (
        "the bottleneck moves from {before} at {before_where} to {after} at {after_where}: how {after} bears the load that is handed to it is not in the estimate",
        "take the gain as the best case, and measure again",
    ),
    "stops_mattering": (
        "{class} hardly matters then: even infinitely fast it would take only {percent:.1f} % more off",
        "spend on another class; the sensitivity says which",
    ),
    "beyond_ops": (
        "{class} would have to serve {times:.3g} × the operations per second that it ever did in the sweep ({most_per_second:,.0f}/s at {where}, "
        "where it was {percent:.0f} % of the slowest process's I/O time); if it cannot, this point takes {implied_seconds:time}",
        "count on that time until the class was seen to serve more",
    ),
    "beyond_bytes": (
        "{class} would have to serve {times:.3g} × the bytes per second that it ever did in the sweep ({most_per_second:size}/s at {where}, "
        "where it was {percent:.0f} % of the slowest process's I/O time); if it cannot, this point takes {implied_seconds:time}",
        "count on that time until the class was seen to serve more",
    ),
    "idle_beyond_ops": (
        "{class} would serve {times:.3g} × the operations per second that it ever did in the sweep ({most_per_second:,.0f}/s at {where}), but was only "
        "{percent:.1f} % of the slowest process's I/O time then: probably it can; if not, this point takes {implied_seconds:time}",
        "no need to act, unless you know that it cannot",
    ),
    "idle_beyond_bytes": (
        "{class} would serve {times:.3g} × the bytes per second that it ever did in the sweep ({most_per_second:size}/s at {where}), but was only "
        "{percent:.1f} % of the slowest process's I/O time then: probably it can; if not, this point takes {implied_seconds:time}",
        "no need to act, unless you know that it cannot",
    ),
    "no_ceilings": (
        "operations and bytes are not known of {classes:, }: whether more would be asked of them than they ever served cannot be told",
        "add the columns ops and bytes to the table of times",
    ),
    "one_point": (
        "one point was measured: what other classes can serve at most, and so whether they can keep up, is not known",
        "sweep the cache rate to see more of them",
    ),
    "upper_bound": (
        "clairvoyant by the bound is an upper bound: files are fetched ahead to the near tier even where reading them directly is faster",
        "simulate it with --method events",
    ),
    "rough_bound": (
        "by the bound, with compute between reads: processes that compute at the same time also read at the same time, which only events show",
        "simulate it with --method events",
    ),
    "busiest_station": (
        "at {where} the busiest station is {station}, with {seconds:time} of work in an epoch; the next is {second}, with {percent:.0f} % of that",
        "a faster one helps until the next is the busiest",
    ),
    "staging_pays": (
        "putting the files on the near tier first pays off soonest at {soonest_where}, after {soonest_epochs:count epoch}; at {best_where}, where epochs are "
        "shortest, it takes {staging_seconds:time} and pays off after {best_epochs}",
        "leave the files where they are if you train for fewer; handing them on from node to node may be faster and is not simulated",
    ),
    "staging_never_pays": (
        "putting files on the near tier first never pays off: no epoch is shorter than the {epoch_seconds:time} without cached files",
        "leave the files where they are, or look for another bottleneck",
    ),
    "nothing_fits": (
        "not even one sample fits the {memory_bytes:size} of an accelerator: a step of batch {batch} needs {peak_bytes:size} at its peak",
        "try {untried: or }; otherwise the network must be split over accelerators, which is not modelled",
    ),
    "batch_too_large": (
        "batch {batch} does not fit the {memory_bytes:size} of an accelerator: it needs {peak_bytes:size} at its peak; the largest that fits is {largest}",
        "use at most that{untried:or try}",
    ),
    "storage_hidden": (
        "storage does not matter for this workload {where} after the first epoch: compute, exchange of gradients, unpacking or memory takes longer",
        "do not buy faster storage for it",
    ),
    "storage_limits": (
        "storage matters for this workload {where}: an epoch waits for {tier}, up to {times:.1f} × as long as everything else takes (number of nodes: {nodes})",
        "see what {untried: or } would change",
    ),
    "fits_memory": (
        "a node's share of the files fits main memory with {nodes} or more nodes: later epochs need no storage then",
        "let the loader keep samples, or leave memory to the page cache",
    ),
    "first_epoch_waits": (
        "the first epoch waits for {tier} ({first_seconds:time}), later ones do not ({later_seconds:time}; number of nodes: {nodes})",
        "count on it when training takes few epochs",
    ),
    "device_bound": (
        "an accelerator waits longest for {what}: {intensity:.0f} FLOP for each byte of its memory, where it could do {balance:.0f}",
        "the table of layers (--layers) shows those that need most",
    ),
    "assumed_samples": (
        "how many samples there are is not known: {samples} {samples:if is|are} assumed, each in a file as large as in memory",
        "give --samples and --sample-file-bytes",
    ),
    "beyond_system": (
        "{system} ends at {nodes}: up to {asked:count node} {asked:if is|are} the same node more often, behind the same storage",
        "take what is beyond it as an estimate of a larger system",
    ),
    "from_peaks": (
        "modelled from layers and nominal peaks, with perfect overlap: times are lower bounds, nothing was measured",
        "measure a step on the machine before buying anything",
    ),
    "training_waits": (
        "storage matters to this training: {percent:.1f} % of an epoch from the tiers is waiting for them ({low_percent:.1f} to {high_percent:.1f} %, 95 %, "
        "n={repetitions}; {where}), by the difference to the same training from memory",
        "see which class of I/O it is with 'tierscope estimate'; more read threads or read-ahead may hide it too",
    ),
    "training_waits_little": (
        "storage does not matter to this training: {percent:.1f} % of an epoch from the tiers is waiting for them ({low_percent:.1f} to {high_percent:.1f} %, 95 %, "
        "n={repetitions}; {where}), by the difference to the same training from memory",
        "do not buy faster storage for it; what is said below about I/O is about time that compute hides",
    ),
    "training_wait_unclear": (
        "whether storage matters to this training cannot be told: {percent:.1f} % of an epoch would be waiting for it, but it may be {low_percent:.1f} to "
        "{high_percent:.1f} % (95 %, n={repetitions}; {where})",
        "raise repetitions, or train on a machine that nobody else uses",
    ),
    "training_wait_unknown": (
        "from one repetition it cannot be told whether storage matters: the difference to training from memory was {percent:.1f} % of an epoch ({where})",
        "raise repetitions to 5 or more",
    ),
    "input_matters": (
        "decoding and copying samples to the device take {percent:.1f} % of an epoch ({low_percent:.1f} to {high_percent:.1f} %, 95 %; {where}), "
        "by the difference to samples that are made there",
        "no storage helps against that: decode in more threads, or store samples as the network takes them",
    ),
    "few_repetitions": (
        "repetitions: {repetitions}; a 95 % interval of a throughput wants at least {enough}",
        "raise repetitions, with another --out",
    ),
    "low_utilisation": (
        "the device computed {percent:.0f} % of the epoch at {where}, by {clock}: most of the rest ({stall_percent:.0f} % of the epoch) it waited for samples",
        "read and decode faster or further ahead (read_threads, prefetch_size){untried:or compare with}",
    ),
    "nothing_read": (
        "nothing is read at {where}: {why}, so its I/O time says nothing about storage",
        "look at points with data: tiers for I/O",
    ),
    "sample_repeated": (
        "stored samples are smaller than what {network} takes: each is repeated up to {times:count time} to fill it, so bytes per sample are too few",
        "set record_length_bytes to what the network takes, or --input to what is stored",
    ),
    "same_loss": (
        "the loss did not change at {where} ({loss:.4g}): nothing was learnt, though the work was done",
        "look at what is trained before you believe its times",
    ),
    "shuffle_local_costs": (
        "local shuffle costs accuracy with {network}, files {layout}, batch {batch} on {ranks:count rank}: {local_percent:.1f} % against {global_percent:.1f} % of global shuffle "
        "after the last epoch; the ranges over {seeds:count seed} do not meet",
        "shuffle samples before they are written to files, normalise over several ranks, or shuffle in chunks of nodes",
    ),
    "shuffle_local_enough": (
        "local shuffle costs no accuracy that {seeds:count seed} could show with {network}, files {layout}, batch {batch} on {ranks:count rank}: {local_percent:.1f} % against {global_percent:.1f} % of "
        "global shuffle after the last epoch; their ranges meet",
        "a small task says so; try your own before you rely on it",
    ),
    "shuffle_chunk_enough": (
        "shuffling in groups ({chunk}) cannot be told from global shuffle by {seeds:count seed}, with {network}, files {layout}, batch {batch}: {percent:.1f} % against {global_percent:.1f} %, "
        "with {chunk_bytes:size} on each node's near tier instead of {whole_bytes:size}",
        "set reader.shuffle to chunked and shuffle_nodes to {nodes} where that much room is there",
    ),
    "shuffle_io_saved": (
        "simulated on {system}, samples of {sample_bytes:size}, batch {batch}: an epoch has {global_seconds:time} of I/O with global shuffle and {local_seconds:time} with local; "
        "the near tier of a node would have to hold {global_bytes:size} and {local_bytes:size}",
        "weigh that against the accuracy above, epoch by epoch",
    ),
    "shuffle_io_not_saved": (
        "simulated on {system}, samples of {sample_bytes:size}, batch {batch}: local shuffle saves no I/O time, {local_seconds:time} of an epoch against {global_seconds:time} with global; "
        "the near tier of a node would have to hold {local_bytes:size} and {global_bytes:size}",
        "shuffle globally there: the far tier is no slower",
    ),
    "shuffle_few_seeds": (
        "seeds: {seeds}; with fewer than {enough} nobody can tell shuffles from seeds",
        "give --seeds 5",
    ),
    "probe_warm_reads": (
        "{tier}: {filesystem} keeps files in memory when told to evict them: its reads are warm and show memory, not a device",
        "give a directory on another filesystem to see a device",
    ),
    "probe_unknown_pages": (
        "{tier}: this kernel cannot say whether files were evicted from the page cache; reads may be warm",
        "use Linux 6.5 or newer",
    ),
    "probe_at_least": (
        "{tier}: {keys:, }: at least so much; {why}",
        "{advice:advice}",
    ),
    "probe_few_repetitions": (
        "{tier}: {points:count point} {points:if was|were} measured fewer than 3 times: {points:if its range says|their ranges say} little",
        "give more --seconds",
    ),
    "probe_no_time": (
        "{tier}: files of {sizes:bytes} are left out: no time to write them",
        "give more --seconds, or a smaller --size",
    ),
    "probe_no_room": (
        "{tier}: files of {sizes:bytes} are left out: no room for them",
        "free some space, or give a smaller --size",
    ),
    "probe_one_size": (
        "{tier}: files of one size only: a read's own time and its bytes cannot be told apart, all of it is bandwidth",
        "give two or more --size",
    ),
    "probe_misfit": (
        "{tier}: reads of {size:bytes} take {percent:.0f} % {more} time than read_ops and bandwidth say: the model is coarse there",
        "give the --size of your own files, or calibrate with runs of your study",
    ),
    "probe_slow_alone": (
        "{tier}: one process alone takes {measured:time} for a read of {size:bytes}, the rates say {predicted:time}",
        "trust simulations with several processes per node, not those with one",
    ),
    "probe_own_cost": (
        "{tier}: our own loop takes {own:time} of the {open:time} of an open",
        "take metadata_ops and metadata_latency as bounds",
    ),
    "probe_over_budget": (
        "took {took:time} instead of {wanted:time}: what had been written went to the device slowly, or operations are slow",
        "give fewer --size, or probe when the storage is less busy",
    ),
    "probe_same_device": (
        "{tier} and {other} are on one device: they are two names for the same storage",
        "give directories on different filesystems",
    ),
    "probe_left_behind": (
        "{tier}: the probe's folder stays: it holds {file}, which is not ours",
        "move it, and remove the folder",
    ),
    "probe_warm_metadata": (
        "names and inodes of our files are in this host's caches, for they were just written; caches of servers and devices are unknown",
        "take rates of local disks as those of warm metadata",
    ),
    "goal_met": (
        "the goal of {goal_seconds:time} is met at {where} ({io_seconds:time})",
        "that is the first point of the sweep that meets it",
    ),
    "goal_missed": (
        "the goal of {goal_seconds:time} is missed by {over_seconds:time}: the best is {io_seconds:time}, most of it {bottleneck}",
        "that class is where to begin",
    ),
    "epoch_goal_met": (
        "the goal of {goal_seconds:time} per epoch is met at {where} ({epoch_seconds:time})",
        "that is the first point of the sweep that meets it",
    ),
    "epoch_goal_missed": (
        "the goal of {goal_seconds:time} per epoch is missed by {over_seconds:time}: the shortest is {epoch_seconds:time}, held up most by {bottleneck}",
        "that is where to begin",
    ),
    "au_goal_met": (
        "the goal of {goal_percent:.4g} % AU is met at {where} ({percent:.1f} % in the mean over ranks, {slowest_percent:.1f} % in the slowest)",
        "that is the first point of the sweep that meets it",
    ),
    "au_goal_missed": (
        "the goal of {goal_percent:.4g} % AU is missed by {under_percent:.3g} percentage points: the highest is {percent:.1f} % in the mean over ranks, {slowest_percent:.1f} % in the slowest, at {where}",
        "ranks that wait less for data, or compute more between reads, raise it",
    ),
    "goal_unknown": (
        "whether the goal of {goal} is met cannot be told: that takes {needed}",
        "give a goal that this result can be judged by, like --goal io=4s",
    ),
    "case_goal_missed": (
        "in case {case} the goal of {goal_seconds:time} is missed by {over_seconds:time}: its best is {io_seconds:time}, most of it {bottleneck}",
        "that class is where to begin",
    ),
    "case_epoch_goal_missed": (
        "in case {case} the goal of {goal_seconds:time} per epoch is missed by {over_seconds:time}: its shortest is {epoch_seconds:time}, held up most by {bottleneck}",
        "that is where to begin",
    ),
    "several_cases": (
        "{cases:count case}, each with a best of its own and none over all; estimates and explorations are about the first, {first}",
        "run the study with --set case=NAME to estimate another",
    ),
    "different_data": (
        "{points:count point} read {groups:count different amount} of data per epoch, so no point is the best of all; estimates and goals are about those that read the most",
        "compare points that read the same amount, or sweep such that all do",
    ),
}


# What ended a probe before storage was busy → what to do about it.
ADVICE = {
    "processes": "raise --ranks, or probe from several nodes at a time",
    "time": "give more --seconds",
    "cores": "probe on a host that has cores to spare",
}


# Why epochs cannot be told by re-reads (trace/description.py).
DOUBTS = {
    "few": "fewer than 20 different reads, or 4 of each thread, are too few to tell a pass from a repetition",
    "mapped": "files were mapped, and what is read through a mapping is not seen",
    "uneven": "what is read again does not come in passes that are alike (random samples, validation now and then, files that are read twice)",
    "partial": "the last pass is not whole (the command was ended, or read a part of the data again)",
    "ranks_differ": "ranks read their data a different number of times",
    "exchanged": "ranks read each other's data, as they do where a shuffle is over all ranks",
    "scattered": "processes of one rank ran on several hosts",
    "too_many": "there are too many passes to keep apart",
    "interrupted": "a process was stopped or killed while it noted a read",
    "no_page": "a process could not share its notes with the others of its rank (descriptors, limits, space in --out)",
}

# Why the recorder saw less than the kernel counted → the likely cause, and what to do about it.
CAUSES = {
    "mmap": (
        "likely cause: mapped files (mmap), which count with all that their page faults can have read",
        "let the program read instead of map to see it (for NumPy: mmap_mode=None)",
    ),
    "process": (
        "likely cause: a process that the recorder was not loaded into (statically linked, setuid, or started without LD_PRELOAD), or direct system calls",
        "use a dynamically linked build, and pass LD_PRELOAD and TIERSCOPE_RECORD on to every process; until then sums of tiers are too small",
    ),
    "library": (
        "likely cause: a library that reads more than its loader records",
        "compare with 'tierscope trace' of the same command, which sees all reads of all libraries",
    ),
}
_DID = {"read": "read", "written": "wrote"}


class _Words(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        how, _, what = format_spec.partition(" ")
        if how in _SHOWN:
            return _SHOWN[how](value, what)
        if isinstance(value, list):
            return format_spec.join(map(str, value))
        return str(super().format_field(value, format_spec))


def _by_amount(value: int, words: str) -> str:
    single, _, several = words.partition("|")
    return (single if value == 1 else several).replace("#", str(value))


def _exact_bytes(value: int | list[int], _: str) -> str:
    return ", ".join(map(format_bytes, value)) if isinstance(value, list) else format_bytes(value)


def _or_else(options: list[str], words: str) -> str:
    """Options that were not given, if there are any left."""
    return f", or {words} {' or '.join(options)}" if options else ""


_SHOWN: dict[str, Callable[[Any, str], str]] = {
    "time": lambda value, _: "an unknown time" if value is None else about_seconds(value),
    "size": lambda value, _: about_bytes(value),
    "bytes": _exact_bytes,
    "count": counted,
    "if": _by_amount,
    "advice": lambda value, _: ADVICE[value],
    "doubt": lambda value, _: DOUBTS[value],
    "or": _or_else,
    "cause": lambda value, _: CAUSES[value][0],
    "remedy": lambda value, _: CAUSES[value][1],
    "did": lambda value, _: _DID[value],
    "least": lambda value, _: "at least " if value else "",
}


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    evidence: JsonObject

    @property
    def text(self) -> str:
        return _Words().vformat(WORDING[self.kind][0], (), self.evidence)

    @property
    def suggestion(self) -> str:
        return _Words().vformat(WORDING[self.kind][1], (), self.evidence)


def finding_json(finding: Finding) -> JsonObject:
    evidence, text, suggestion = finding.evidence, finding.text, finding.suggestion
    return {"kind": finding.kind, "evidence": evidence, "text": text, "suggestion": suggestion}


def shown_evidence(finding: Finding) -> JsonObject:
    """Evidence as its sentences show it: times, sizes and lists as text, numbers as they are."""
    fields = string.Formatter().parse(" ".join(WORDING[finding.kind]))
    specs = {name: spec or "" for _, name, spec, _ in fields if name}
    words, as_text = _Words(), ("time", "bytes", "advice", "doubt", ", ")
    return {
        name: words.format_field(value, specs[name]) if specs.get(name) in as_text else value
        for name, value in finding.evidence.items()
    }
