"""The text of every finding, by kind.

Longer than other modules because it is one table: all sentences are in one place.

A finding has a kind, evidence (numbers in base units, and names) and, made from those, a sentence and a suggestion.
"""

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tierscope.jsonable import JsonObject
from tierscope.units import about_bytes, about_seconds, counted, format_bytes

ONLY_POINT = "the only point"  # of a result without a sweep
# kind → (evidence, what to do). The format of evidence follows the colon: seconds by :time, bytes by :size (rounded) or :bytes
# (exact), amounts with their noun by :count file, words that depend on an amount by :if is|are (# is the amount), lists with what joins them, and
# options not yet tried by :or try (nothing if there are none): no advice recommends what was given.
WORDING: dict[str, tuple[str, str]] = {
    "partial": (
        "only {finished} of {total:count run} {finished:if has|have} finished; all numbers are based on {finished:if that run|those runs}",
        "rerun the same command to finish the rest",
    ),
    "does_not_fit": (
        "{misfits:count point} of {points} {misfits:if does|do} not fit and {misfits:if is|are} not recommended: at {where}, {why}",
        "choose a point that fits, or raise that tier's capacity if it has more space",
    ),
    "no_point_fits": (
        "none of {points:count point} fits, so none is recommended: at {where}, which needs the least space, {why}",
        "sweep smaller cache rates, let each node keep only part of the data (shuffle: local or chunked), or raise that tier's capacity if it has more space",
    ),
    "capacity_unknown": (
        "capacity of {tier} is not set: whether {bytes:size} {whose} fit is unknown",
        "set system.tiers.{tier}.capacity",
    ),
    "emulated": (
        "emulated tiers: {tiers:, }; their times come from configured rates, not from hardware",
        "to measure your own storage, set real paths and remove 'emulate'",
    ),
    "simulated": (
        "simulated ({methods:, }), not measured: times come from the tiers' rates; intervals cover 90 % of shuffles and devices, and of calibrated rates",
        "measure a few points with 'tierscope run' and compare them with 'tierscope report --beside'",
    ),
    "warm_pages": (
        "{tier}: reads were not cold: up to {percent:.0f} % of the checked bytes were in the page cache when their reading began",
        "use a filesystem whose pages can be evicted (not tmpfs), or a dataset larger than memory",
    ),
    "unknown_pages": (
        "{tier}: reads may be warm: this kernel does not report page-cache residency",
        "use Linux 6.5 or newer, or a dataset larger than memory",
    ),
    "warm_storage": (
        "{tier}: reads may be warm: this storage cannot evict files",
        "treat its reads as warm, or use a storage that can evict (docs/storage.md)",
    ),
    "same_device": (
        "{tier} and {other} are on the same device: caching only moves reads to the same hardware",
        "put the near tier on a separate device",
    ),
    "warm_metadata": (
        "META of {tiers:, } may be warm: names and inodes stayed in this host's caches between epochs; the state of server caches is unknown",
        "for cold metadata, set reader.evict: metadata, which drops them before every epoch for the whole machine (root)",
    ),
    "not_evicted": (
        "reads may be warm: the page cache was neither evicted nor checked (reader.evict is false)",
        "drop caches before each run, or use a dataset larger than memory",
    ),
    "trimmed": (
        "{samples:count sample} per epoch {samples:if was|were} dropped because {samples:if it does|they do} not divide evenly among the ranks",
        "set num_files_train to a multiple of the number of ranks",
    ),
    "sleeping_compute": (
        "compute was emulated with sleep(): a host had no spare core",
        "use fewer ranks per host if CPU load matters",
    ),
    "late": (
        "up to {percent:.0f} % of the emulated operations in an epoch ran slower than their configured rates, {seconds:time} in total",
        "lower the emulated rates, or use fewer ranks on this machine",
    ),
    "straggler": (
        "rank {rank} on node {node} is a straggler: {factor:.1f} times the median of the other ranks in {epochs} of {of:count epoch}; it dominates the times of the slowest process",
        "check that node (cores, links, disks, other jobs), or run without it",
    ),
    "straggling_node": (
        "node {node} is a straggler: even its fastest rank takes {factor:.1f} times the median of the other nodes in {epochs} of {of:count epoch}; it dominates the times of the slowest process",
        "check that node (cores, links, disks, other jobs), or run without it",
    ),
    "overhead": (
        "Tierscope's own overhead may be {percent:.0f} % of the I/O time ({seconds:time} per sample)",
        "use larger samples or fewer ranks per core",
    ),
    "threads": (
        "read threads wait for Python's global lock (GIL): about {seconds:time} per operation, {percent:.0f} % of the I/O time",
        "use one read thread and more ranks per node",
    ),
    "decode": (
        "the client is the bottleneck: checking samples took {decode_seconds:time} per epoch in the slowest rank, I/O {io_seconds:time}",
        "faster storage will not help; use more read threads or a cheaper format",
    ),
    "checkpoint_share": (
        "checkpoints take {percent:.0f} % of the epoch at {where} ({checkpoint_seconds:time}): the slowest writer spends {write_seconds:time} writing to {tier}, "
        "the rest is metadata and waiting for other ranks",
        "write checkpoints less often or to a faster tier; if not yet used, try checkpoint.background and checkpoint.mode: all_ranks",
    ),
    "checkpoint_waits": (
        "training waits {checkpoint_seconds:time} for background checkpoints at {where} ({percent:.0f} % of the epoch): the next one is due before the last one to {tier} is done",
        "write checkpoints less often or to a faster tier; if not yet used, try checkpoint.mode: all_ranks",
    ),
    "checkpoints_not_simulated": (
        "checkpoints are not simulated: epoch times exclude them, and nothing else contends for their tier",
        "measure them with 'tierscope run'",
    ),
    "writes_as_reads": (
        "write rates of {tiers:, } are not set: writes are simulated as reads of the same size",
        "set write_bandwidth, or fit it with 'tierscope calibrate' to a run with checkpoints or first-touch",
    ),
    "hidden": (
        "compute hides storage: the rank with the longest epoch waited for data only {percent:.1f} % of it at the best point",
        "faster storage would gain at most that",
    ),
    "nothing_recorded": (
        "no operation on any tier was recorded",
        "check the --tier paths; statically linked and setuid programs, io_uring and direct system calls are not recorded",
    ),
    "running": (
        "the command is still running ({command}; processes: {pids:, }): results so far",
        "analyze again after it exits; its records are kept until then",
    ),
    "ended_command": (
        "the command was killed by {signal} (exit code {code}): results cover the time until then",
        "check the command's own output",
    ),
    "failed_command": (
        "the command failed with exit code {code}: results cover the time until then",
        "check the command's own output",
    ),
    "no_marks": (
        "no epochs were marked: the whole run counts as one epoch, {span_seconds:time} from first to last operation",
        "call tierscope.mark_epoch(n) at the start of epoch n, or trace with --epochs rereads",
    ),
    "rereads_found": (
        "epochs were detected as passes over the same data: {passes}; passes that only check files count too. "
        "Operations before the first re-read of a pass (opens, and up to {late_reads:count read}) count for the previous pass",
        "if your epochs differ, call tierscope.mark_epoch(n) at the start of epoch n",
    ),
    "one_pass": (
        "re-reads show a single pass over the data, {span_seconds:time} from first to last operation: almost nothing was read twice",
        "if there are more epochs, call tierscope.mark_epoch(n) at the start of epoch n: data cached in the program is not read again",
    ),
    "epochs_unsure": (
        "epochs could not be detected from re-reads: {doubt:doubt}. The whole run counts as one epoch, {span_seconds:time} from first to last operation",
        "call tierscope.mark_epoch(n) at the start of epoch n",
    ),
    "epochs_by_opens": (
        "the number of epochs may be wrong: an earlier version started a new epoch whenever a file was opened again",
        "trace again with this version, or call tierscope.mark_epoch(n) at the start of epoch n",
    ),
    "outside": (
        "{ops:count operation} ({seconds:time}) {ops:if belongs|belong} to processes without a rank and {ops:if is|are} not in the table",
        "no action needed, unless they should count: then start those processes under the launcher too",
    ),
    "mapped": (
        "{tier}: files were mapped {ops:count time} (mmap, {bytes:size}); reads through a mapping are not recorded",
        "to record them, let the program read instead of map (NumPy: mmap_mode=None)",
    ),
    "low_coverage": (
        "the recorder saw {is_bound:least}{percent:.0f} % of the bytes that the command {what:did}: {seen_bytes:size} of {all_bytes:size}; {cause:cause}",
        "{cause:remedy}",
    ),
    "elsewhere": (
        "{percent:.0f} % of the bytes read and written ({bytes:size} of {all_bytes:size}) match no tier and are not in these times",
        "add --tier NAME=DIR for these files; shared libraries and standard streams are among them",
    ),
    "coverage_unknown": (
        "{processes:count process} used io_uring: whether all reads were recorded is unknown, because neither the recorder nor the kernel's counter (rchar) sees io_uring",
        "let the program use ordinary reads while it is traced",
    ),
    "page_cache_speed": (
        "{tiers:, }: reads ran at page-cache speed: {read_bytes:size} at {bytes_per_second:size}/s per reading thread, only {device_bytes:size} of it from devices",
        "treat these times as memory speed; to measure storage, evict the files first (vmtouch -e, or drop_caches)",
    ),
    "wall_processes": (
        "wall seconds are summed over up to {processes:count process} of a rank, because they did not share a clock",
        "treat them as an upper bound, or trace again with this version on one host and in one container",
    ),
    "unrecorded": (
        "{processes:count process} could not write records (changed user or root directory, or hit a limit): "
        "at least {ops:count operation} {ops:if is|are} missing",
        "start them as the tracing user, without chroot, and with room for a mapped file (ulimit -f, -v)",
    ),
    "under_way": (
        "{ops:count operation} had not finished when {ops:if its|their} process ended, or {ops:if is|are} still running, the longest for at most {seconds:time}; not in the sums",
        "check for storage that does not respond",
    ),
    "lost_ops": (
        "sums are too small: {ops:count operation} could not be recorded (no space left, or inside a signal handler)",
        "choose an --out with more free space",
    ),
    "lost_rows": (
        "{rows:count row} of the operation list could not be written; sums and histograms are complete",
        "choose an --out with more free space",
    ),
    "cut": (
        "{lanes:count thread} {lanes:if was|were} killed while recording; at most one operation of each is partly counted",
        "no action needed: normal after a kill",
    ),
    "damaged": (
        "{files:count record file} {files:if is|are} damaged; the damaged parts are ignored ({names:; })",
        "check the filesystem of --out, and trace again",
    ),
    "still_running": (
        "{processes:count process} {processes:if was|were} still running when the command exited; later operations are not included",
        "let the command wait for its child processes",
    ),
    "unemulated": (
        "{processes:count process} ran on another host, without emulation; {processes:if its|their} times are those of the real storage",
        "emulate on one host only",
    ),
    "scattered": (
        "{processes:count process} ran on another host than the first process of {processes:if its|their} rank; {processes:if it counts|they count} there, without epoch times",
        "let a launcher assign ranks (torchrun, mpirun, srun), or set RANK and WORLD_SIZE",
    ),
    "root_tier": (
        "{tier} covers the whole filesystem: libraries, temporary files and the program itself count too",
        "set --tier to the data directory",
    ),
    "unreadable_logs": (
        "{logs:count log} cannot be read; {logs:if its|their} data is missing ({names:; })",
        "copy {logs:if it|them} again from where {logs:if it was|they were} written",
    ),
    "damaged_logs": (
        "{logs:count log} {logs:if is|are} damaged or truncated, and only partly read ({names:; })",
        "copy {logs:if it|them} again from where {logs:if it was|they were} written; until then sums are too small or wrong",
    ),
    "negative_times": (
        "{records:count record} {records:if has|have} a negative time, counted as zero",
        "do not trust this log: its clock or its profiler was wrong",
    ),
    "impossible_ranks": (
        "{records:count record} {records:if names a rank|name ranks} that the job did not have; ignored",
        "do not trust this log: it is damaged",
    ),
    "long_meta": (
        "metadata took {meta_seconds:time} in a process that ran for {run_seconds:time} ({log})",
        "do not trust this log unless that process had many threads",
    ),
    "partial_logs": (
        "sums are too small: Darshan ran out of memory for {modules:, } (in {logs:count log}) and dropped files",
        "put the lines 'MAX_RECORDS 100000 POSIX,STDIO' and 'MODMEM 512' in a file and set DARSHAN_CONFIG_PATH to it when the job runs",
    ),
    "no_data_files": (
        "{processes:if the only process|none of # processes} accessed {processes:if no file|a file} on a tier: if the program uses loader workers, they were not captured",
        "check --tier; Darshan captures loader workers only if it was built without MPI (set DARSHAN_ENABLE_NONMPI=1)",
    ),
    "unknown_paths": (
        "{files:count file} ({bytes:size}) {files:if matches|match} no tier and {files:if is|are} not in the table, {files:if |most of them }{prefixes:below}",
        "analyze the logs again with --tier gfs={suggestion}",
    ),
    "other_paths": (
        "{tier}: {files:count file} with {of_bytes:.0f} % of the bytes and {of_seconds:.0f} % of the time ({bytes:size}, {seconds:time}) {files:if matches|match} no tier, "
        "{files:if |most of them }{prefixes:below}",
        "assign these paths to a tier, e.g. --tier gfs={suggestion}",
    ),
    "standard_streams": (
        "standard streams ({names:, }) took {percent:.0f} % of the time of all processes: {seconds:time} in {ops:count operation} ({bytes:size}); they count for no class",
        "print less, or buffer the output: every n-th line, or to a file that is flushed at the end",
    ),
    "program_files": (
        "the program's own files (libraries, bytecode, devices) took {percent:.0f} % of the time of all processes: {seconds:time} in {ops:count operation} "
        "({bytes:size}), mostly below {names:, }; they count for no class",
        "start from a node-local or packed environment (container image, conda-pack), or import less in each process",
    ),
    "grouped_by_start": (
        "{processes:count spawned worker} {processes:if has|have} no parent in the logs; counted for the only program running at the time, which is likely but not certain",
        "make sure that the logs of all processes of the job are included",
    ),
    "lone_workers": (
        "{processes:count spawned worker} {processes:if has an|have} unknown {processes:if parent|parents} and {processes:if counts|count} separately, so the slowest process may be a worker rather than a rank",
        "let the loader fork its workers (multiprocessing_context='fork'): then their logs name their parent",
    ),
    "shared_files": (
        "{tier}: {files:count shared file} {files:if is|are} not in the table: Darshan summed {files:if it|them} over all ranks ({bytes:size} read, {written_bytes:size} written; reads {read_seconds:time}, metadata "
        "{meta_seconds:time}, writes {write_seconds:time}; fastest rank {fastest_seconds:time}, slowest {slowest_seconds:time})",
        "analyze without --no-shared; for times per rank, run with DARSHAN_DISABLE_SHARED_REDUCTION=1",
    ),
    "cut_logs": (
        "{files:count log} {files:if is|are} truncated: the job was probably killed; results cover the time until then",
        "no action needed if the kill was intended; otherwise check the job's own output",
    ),
    "broken_lines": (
        "{lines:count log line} {lines:if is|are} malformed and ignored",
        "check the filesystem that the logs were written to",
    ),
    "no_names": (
        "{ops:count operation} {ops:if has|have} no file name in the logs and {ops:if matches|match} no tier",
        "record again with DFTRACER_INC_METADATA=1",
    ),
    "outside_epochs": (
        "{ops:count operation} ({seconds:time}) {ops:if lies|lie} outside all epochs and {ops:if counts|count} for no class",
        "no action needed, unless they should count: then choose another span with --epoch-span",
    ),
    "missed_by_profiler": (
        "{profilers:, } missed at least {ops:count operation} of the ranks (reads: {bytes:size}); a profiler can lose track of a file "
        "while another thread of its process opens one",
        "omit --profiler for exact counts{untried:or set}",
    ),
    "reads_only": (
        "extended tracing (DXT) holds only reads: the I/O time excludes metadata",
        "omit --dxt to include metadata",
    ),
    "no_epochs": (
        "the logs do not separate epochs: the whole run counts as one",
        "add --epoch-gap (or shorten it) if new processes start every epoch, or let the program write one log per epoch",
    ),
    "starts_of_workers": (
        "the logs do not separate epochs: processes read different files, so gaps between their starts separate workers, not epochs; the whole run counts as one",
        "let the program write one log per epoch",
    ),
    "several_steps": (
        "{steps:count MPI program} of one job ran after one another ({names:first 3}): their times are added up by rank",
        "name one log to see one program; if they are epochs of one training, split them with --epoch-gap",
    ),
    "metadata_dominated": (
        "metadata is {percent:.0f} % of the slowest process's I/O time ({meta_seconds:time}): it spends more time on opens and stats than on reads",
        "pack samples into larger files (TFRecord, tar, HDF5), or keep files open",
    ),
    "metadata_of_writes": (
        "metadata is {percent:.0f} % of the slowest process's I/O time ({meta_seconds:time}): it spends more time on opens, stats and closes than on writes",
        "open fewer files, less often: keep files open, and let fewer processes open a shared file (collective MPI-IO, one writer per node)",
    ),
    "slow_process": (
        "rank {rank} had {times:.1f} × the I/O time of the median process ({slowest_seconds:time} versus {median_seconds:time}): all other ranks wait for it",
        "compare its files, node and workers with those of other ranks",
    ),
    "slow_unplaced": (
        "process {process} had {times:.1f} × the I/O time of the median process ({slowest_seconds:time} versus {median_seconds:time}); which rank waits for it is unknown",
        "compare its files and node with those of other processes",
    ),
    "slow_node": (
        "the processes on node {node} had {times:.1f} × the median I/O time of {nodes:count node}",
        "check that node's disk, network and mounts",
    ),
    "unbalanced_tiers": (
        "{tier} takes {time_percent:.0f} % of the slowest process's I/O time for {bytes_percent:.0f} % of the bytes",
        "move data to other tiers that have space",
    ),
    "tier_not_used": (
        "{tier}: nothing was read from it; {bytes:size} came from other tiers",
        "check that data is there and meant to be read there: the program's paths, or the study's cache_rate and capacities",
    ),
    "small_files": (
        "{tier}: only {mean_bytes:size} read per file on average, in {files:count file}",
        "pack samples into larger files",
    ),
    "small_opens": (
        "{tier}: only {mean_bytes:size} read per open on average, {opens:count open} per epoch",
        "pack samples into larger files, and read more per open",
    ),
    "stdio_reads": (
        "{tier}: {percent:.0f} % of the reads go through buffered streams (stdio), in pieces of the stream's buffer size",
        "read whole samples with one call, or enlarge the stream's buffer",
    ),
    "small_requests": (
        "{tier}: {reads:count read} of {mean_bytes:size} on average, several per open: smaller than {limit} ({limit_bytes:size})",
        "use larger reads: whole files, or adjacent samples, 1 MiB or one stripe at a time",
    ),
    "small_transfers": (
        "{tier}: {reads:count read} of {mean_bytes:size} on average, several per open: the transfer size of {transfer_bytes:size} splits samples",
        "raise reader.transfer_size to 1 MiB or the stripe size",
    ),
    "mostly_small": (
        "{tier}: {percent:.0f} % of {reads:count read} {reads:if is|are} smaller than {limit_bytes:size}, several per open, although others are large",
        "read headers and indexes once and keep them, or read whole files with one call",
    ),
    "random_reads": (
        "{tier}: {percent:.0f} % of the reads are random within their file",
        "read files sequentially and shuffle in memory, or store one sample per file",
    ),
    "read_again": (
        "{tier}: {files} of {of:count file} {files:if was|were} read more than once per epoch",
        "read each sample once: check sharding, validation and restarts",
    ),
    "one_server": (
        "{tier}: {files:if the only file is|all # files are} on the same object server",
        "spread them: run lfs setstripe -c 1 -i -1 on the directory, then copy the files again",
    ),
    "large_on_one_server": (
        "{tier}: {files:count file} of 1 GiB or more {files:if is|are} on a single object server{files:if | each}",
        "stripe {files:if it|them}: run lfs setstripe -c 8 on the directory, then copy the {files:if file|files} again",
    ),
    "idle_servers": (
        "{tier}: {files:count file}, each on {stripe_count} of {servers:count object server}: the other servers are idle",
        "spread the samples over more files, or the files over more servers",
    ),
    "bottleneck_moves": (
        "the bottleneck moves from {before} at {before_where} to {after} at {after_where}: the estimate does not model the extra load on {after}",
        "treat the gain as the best case, and measure again",
    ),
    "stops_mattering": (
        "{class} would then hardly matter: making it infinitely fast would save only {percent:.1f} % more",
        "invest in another class; see the sensitivity table",
    ),
    "beyond_ops": (
        "{class} would have to serve {times:.3g} × its highest operation rate in the sweep ({most_per_second:,.0f}/s at {where}, "
        "where it was {percent:.0f} % of the slowest process's I/O time); if it cannot, this point takes {implied_seconds:time}",
        "plan with that time until a higher rate has been measured",
    ),
    "beyond_bytes": (
        "{class} would have to serve {times:.3g} × its highest throughput in the sweep ({most_per_second:size}/s at {where}, "
        "where it was {percent:.0f} % of the slowest process's I/O time); if it cannot, this point takes {implied_seconds:time}",
        "plan with that time until a higher throughput has been measured",
    ),
    "idle_beyond_ops": (
        "{class} would serve {times:.3g} × its highest operation rate in the sweep ({most_per_second:,.0f}/s at {where}); it was only "
        "{percent:.1f} % of the slowest process's I/O time there, so it probably can; if not, this point takes {implied_seconds:time}",
        "no action needed, unless you know that it cannot",
    ),
    "idle_beyond_bytes": (
        "{class} would serve {times:.3g} × its highest throughput in the sweep ({most_per_second:size}/s at {where}); it was only "
        "{percent:.1f} % of the slowest process's I/O time there, so it probably can; if not, this point takes {implied_seconds:time}",
        "no action needed, unless you know that it cannot",
    ),
    "no_ceilings": (
        "operations and bytes of {classes:, } are unknown: the estimate may exceed what they can serve",
        "add the columns ops and bytes to the table of times",
    ),
    "one_point": (
        "only one point was measured: whether the other classes can keep up is unknown",
        "sweep the cache rate to load them more",
    ),
    "not_identified": (
        "not identified at {points:first 3}: {why}; only the bounds of the interval are known there, not a value within it",
        "measure this point: {command}; then add its result to 'tierscope calibrate', whose --for STUDY lists the fewest points to measure",
    ),
    "upper_bound": (
        "clairvoyant with the bound method is an upper bound: files are prefetched to the near tier even if reading them directly is faster",
        "simulate with --method events",
    ),
    "sampled_operations": (
        "large epochs were sampled: {percent:.2g} % of the operations were simulated; the intervals include the sampling error",
        "lower num_files_train to simulate every operation",
    ),
    "rough_bound": (
        "the bound method ignores that processes which compute together also read together",
        "simulate with --method events",
    ),
    "layout_drawn": (
        "the layout of files on the {servers:, } servers of {tier} is unknown: of {tried} possible ones the one with the median time is simulated, and which server is busiest holds for that one only",
        "plan with the interval, or calibrate on runs with as many servers",
    ),
    "busiest_station": (
        "the busiest station at {where} is {station}, with {seconds:time} of work per epoch; the next is {second}, with {percent:.0f} % of that",
        "speeding it up helps until the next station is the busiest",
    ),
    "staging_pays": (
        "staging to the near tier pays off soonest at {soonest_where}, after {soonest_epochs:count epoch}; at {best_where}, which has the shortest epochs, "
        "it takes {staging_seconds:time} and pays off after {best_epochs}",
        "do not stage if you train for fewer epochs; copying from node to node may be faster and is not simulated",
    ),
    "staging_never_pays": (
        "staging to the near tier never pays off: no epoch is shorter than the {epoch_seconds:time} without cached files",
        "do not stage; look for another bottleneck",
    ),
    "nothing_fits": (
        "not even one sample fits in the {memory_bytes:size} of an accelerator: a step with batch {batch} needs {peak_bytes:size} at its peak",
        "try {untried: or }; otherwise the network must be split over accelerators, which is not modelled",
    ),
    "batch_too_large": (
        "batch {batch} does not fit in the {memory_bytes:size} of an accelerator: it needs {peak_bytes:size} at its peak; the largest that fits is {largest}",
        "use at most that{untried:or try}",
    ),
    "storage_hidden": (
        "storage does not matter for this workload {where} after the first epoch: compute, gradient exchange, unpacking or memory takes longer",
        "do not buy faster storage for it",
    ),
    "storage_staged": (
        "storage does not matter for this workload {where} after the first epoch, if samples come from {places: or }; read from {tier} in every epoch, one takes up to {times:.2f} × as long",
        "stage the data or keep them in memory; do not buy anything faster than that for it",
    ),
    "storage_unknown": (
        "whether storage matters {where} is unknown: system {system} does not say how fast {tier} delivers",
        "add its rates to the system's file, e.g. those of 'tierscope probe'",
    ),
    "less_than_a_step": (
        "with {nodes:count node} an accelerator's share of an epoch is less than a batch of {batch}: {share:.2g} of a step, and times are those of that part",
        "use fewer nodes, a smaller batch, or more samples",
    ),
    "step_implausible": (
        "a step of {step:time} is outside what is thought possible on this accelerator: {least:time} at its nominal peak, {most:time} at the longest",
        "check the time and the system; the verdict on storage rests on both",
    ),
    "storage_limits": (
        "storage matters for this workload {where}: an epoch waits for {tier}, up to {times:.1f} × as long as everything else takes (number of nodes: {nodes})",
        "see what {untried: or } would change",
    ),
    "storage_unclear": (
        "whether storage matters {where} depends on how long a step takes: it is between {low:time} and {high:time} ({about})",
        "measure a step (--measured, --step-seconds), or the device (--device-file)",
    ),
    "storage_uncertain": (
        "whether storage matters {where} depends on figures that are known only within an interval: {rests_on:, }",
        "measure the storage ('tierscope probe'), or set its figures in the system's file",
    ),
    "step_extrapolated": (
        "the device file does not reach as far as this network: {beyond:, } lie outside the measured sizes, and the interval is wider for it",
        "treat the step time as an extrapolation",
    ),
    "fits_memory": (
        "a node's share of the files fits in main memory with {nodes} or more nodes: later epochs need no storage",
        "let the loader keep samples, or leave memory to the page cache",
    ),
    "first_epoch_waits": (
        "the first epoch waits for {tier} ({first_seconds:time}); later ones do not ({later_seconds:time}; number of nodes: {nodes})",
        "include the first epoch when you train for only a few",
    ),
    "device_bound": (
        "an accelerator is bound by {what}: {intensity:.0f} FLOP per byte of memory traffic; its balance is {balance:.0f}",
        "use --layers to see which layers need most",
    ),
    "assumed_samples": (
        "the number of samples is unknown: {samples} {samples:if is|are} assumed, each in a file of its size in memory",
        "set --samples and --sample-file-bytes",
    ),
    "beyond_system": (
        "{system} has {nodes}: up to {asked:count node} {asked:if is|are} extrapolated, with the same nodes and the same storage",
        "treat larger node counts as an estimate for a larger system",
    ),
    "from_peaks": (
        "modelled from layers and nominal peaks with perfect overlap, not measured: times are lower bounds",
        "measure a step on the machine before buying anything",
    ),
    "training_waits": (
        "storage matters for this training: {percent:.1f} % of an epoch is waiting for the tiers ({low_percent:.1f} to {high_percent:.1f} %, 95 %, "
        "n={repetitions}; {where}), compared with training from memory",
        "see which I/O class it is with 'tierscope estimate'; more read threads or prefetching may also hide it",
    ),
    "training_waits_little": (
        "storage does not matter for this training: {percent:.1f} % of an epoch is waiting for the tiers ({low_percent:.1f} to {high_percent:.1f} %, 95 %, "
        "n={repetitions}; {where}), compared with training from memory",
        "do not buy faster storage for it; findings about I/O below concern time that compute hides",
    ),
    "training_wait_unclear": (
        "whether storage matters for this training is not clear: {percent:.1f} % of an epoch is waiting for it, but the interval is {low_percent:.1f} to "
        "{high_percent:.1f} % (95 %, n={repetitions}; {where})",
        "raise repetitions, or train on an otherwise idle machine",
    ),
    "training_wait_unknown": (
        "whether storage matters is unknown after one repetition: the difference from training from memory was {percent:.1f} % of an epoch ({where})",
        "raise repetitions to 5 or more",
    ),
    "loader_limits": (
        "it is not storage that limits this training but {what}: {percent:.1f} % of an epoch apart from storage ({low_percent:.1f} to {high_percent:.1f} %, 95 %, "
        "n={repetitions}; {where}), compared with samples generated on the device",
        "faster storage cannot help: try other read_threads or prefetch_size, less decoding per sample, or another loader with --loader",
    ),
    "input_matters": (
        "decoding and copying samples to the device take {percent:.1f} % of an epoch ({low_percent:.1f} to {high_percent:.1f} %, 95 %; {where}), "
        "compared with samples generated on the device",
        "storage cannot help here: decode in more threads, or store samples in the network's input format",
    ),
    "few_repetitions": (
        "only {repetitions:count repetition}: a 95 % interval of a throughput needs at least {enough}",
        "raise repetitions, with another --out",
    ),
    "low_utilisation": (
        "the device computed only {percent:.0f} % of the epoch at {where}, according to {clock}; it waited for samples {stall_percent:.0f} % of the epoch",
        "read and decode faster or further ahead (read_threads, prefetch_size){untried:or compare with}",
    ),
    "nothing_read": (
        "nothing is read at {where}: {why}, so its I/O time does not describe storage",
        "for I/O, look at points with data: tiers",
    ),
    "sample_repeated": (
        "stored samples are smaller than the input of {network}: each is repeated up to {times:count time} to fill it, so too few bytes are read per sample",
        "set record_length_bytes to the input size, or --input to the stored size",
    ),
    "same_loss": (
        "the loss did not change at {where} ({loss:.4g}): nothing was learnt, although the work was done",
        "check the training setup before you trust its times",
    ),
    "shuffle_local_costs": (
        "local shuffle costs accuracy with {network}, files {layout}, batch {batch} on {ranks:count rank}: {local_percent:.1f} % versus {global_percent:.1f} % with global shuffle "
        "after the last epoch; the ranges over {seeds:count seed} do not overlap",
        "shuffle samples before writing them to files, normalise over several ranks, or shuffle in chunks of nodes",
    ),
    "shuffle_local_enough": (
        "local shuffle shows no loss of accuracy over {seeds:count seed} with {network}, files {layout}, batch {batch} on {ranks:count rank}: {local_percent:.1f} % versus {global_percent:.1f} % "
        "with global shuffle after the last epoch; their ranges overlap",
        "this is a small task; try your own before you rely on it",
    ),
    "shuffle_chunk_enough": (
        "shuffling in groups ({chunk}) is indistinguishable from global shuffle over {seeds:count seed} with {network}, files {layout}, batch {batch}: {percent:.1f} % versus {global_percent:.1f} %, "
        "with {chunk_bytes:size} on each node's near tier instead of {whole_bytes:size}",
        "set reader.shuffle to chunked and shuffle_nodes to {nodes} if the near tier has that much space",
    ),
    "shuffle_io_saved": (
        "simulated on {system}, samples of {sample_bytes:size}, batch {batch}: an epoch has {global_seconds:time} of I/O with global shuffle and {local_seconds:time} with local; "
        "each node's near tier must hold {global_bytes:size} or {local_bytes:size}",
        "weigh that against the accuracy above, epoch by epoch",
    ),
    "shuffle_io_not_saved": (
        "simulated on {system}, samples of {sample_bytes:size}, batch {batch}: local shuffle saves no I/O time, {local_seconds:time} per epoch versus {global_seconds:time} with global; "
        "each node's near tier must hold {local_bytes:size} or {global_bytes:size}",
        "shuffle globally there: the far tier is as fast",
    ),
    "shuffle_few_seeds": (
        "only {seeds:count seed}: at least {enough} are needed to separate the effect of shuffling from chance",
        "use --seeds 5",
    ),
    "probe_warm_reads": (
        "{tier}: reads are warm and show memory, not a device: {filesystem} keeps files in memory even when they are evicted",
        "choose a directory on another filesystem",
    ),
    "probe_unknown_pages": (
        "{tier}: reads may be warm: this kernel does not report whether files were evicted from the page cache",
        "use Linux 6.5 or newer",
    ),
    "probe_at_least": (
        "{tier}: {keys:, }: lower bounds only; {why}",
        "{advice:advice}",
    ),
    "probe_few_repetitions": (
        "{tier}: {points:count point} {points:if was|were} measured fewer than 3 times, so {points:if its range is|their ranges are} unreliable",
        "raise --seconds",
    ),
    "probe_no_time": (
        "{tier}: files of {sizes:bytes} were skipped: not enough time to write them",
        "raise --seconds, or use a smaller --size",
    ),
    "probe_no_room": (
        "{tier}: files of {sizes:bytes} were skipped: not enough space for them",
        "free some space, or use a smaller --size",
    ),
    "probe_one_size": (
        "{tier}: only one file size: latency and bandwidth cannot be separated, so all read time counts as bandwidth",
        "use two or more --size",
    ),
    "probe_misfit": (
        "{tier}: reads of {size:bytes} take {percent:.0f} % {more} time than read_ops and bandwidth predict: the model is coarse at this size",
        "use the --size of your own files, or calibrate with runs of your study",
    ),
    "probe_slow_alone": (
        "{tier}: a single process takes {measured:time} to read {size:bytes}; the rates predict {predicted:time}",
        "trust simulations with several processes per node, not those with one",
    ),
    "probe_own_cost": (
        "{tier}: Tierscope's own loop takes {own:time} of the {open:time} per open",
        "treat metadata_ops and metadata_latency as bounds",
    ),
    "probe_over_budget": (
        "took {took:time} instead of {wanted:time}: writing back to the device or single operations were slow",
        "use fewer --size, or probe when the storage is less busy",
    ),
    "probe_same_device": (
        "{tier} and {other} are on the same device: they are two names for the same storage",
        "choose directories on different filesystems",
    ),
    "probe_left_behind": (
        "{tier}: the probe's directory was not removed: it contains {file}, which Tierscope did not create",
        "move that file and remove the directory",
    ),
    "probe_warm_metadata": (
        "names and inodes of the probe's files were just written and are in this host's caches; the state of server and device caches is unknown",
        "treat metadata rates of local disks as warm",
    ),
    "goal_met": (
        "the goal of {goal_seconds:time} is met at {where} ({io_seconds:time})",
        "{where:met}",
    ),
    "goal_missed": (
        "the goal of {goal_seconds:time} is missed by {over_seconds:time}: the best is {io_seconds:time}, mostly {bottleneck}",
        "start with that class",
    ),
    "epoch_goal_met": (
        "the goal of {goal_seconds:time} per epoch is met at {where} ({epoch_seconds:time})",
        "{where:met}",
    ),
    "epoch_goal_missed": (
        "the goal of {goal_seconds:time} per epoch is missed by {over_seconds:time}: the shortest is {epoch_seconds:time}{bottleneck:held}",
        "{bottleneck:start}",
    ),
    "au_goal_met": (
        "the goal of {goal_percent:.4g} % AU is met at {where} ({percent:.1f} % on average over ranks, {slowest_percent:.1f} % in the slowest)",
        "{where:met}",
    ),
    "au_goal_missed": (
        "the goal of {goal_percent:.4g} % AU is missed by {under_percent:.3g} percentage points: the highest is {percent:.1f} % on average over ranks, {slowest_percent:.1f} % in the slowest, at {where}",
        "reduce waiting for data, or compute more between reads",
    ),
    "goal_unsure": (
        "the goal of {goal} may be missed: the {by} has {value} at {where}, its {span} {good} to {bad}{decided:median}",
        "{by:settle}, or plan with the bad end of the {span}",
    ),
    "goal_unknown": (
        "whether the goal of {goal} is met is unknown: that takes {needed}",
        "choose a goal that this result can be judged by, e.g. --goal io=4s",
    ),
    "case_goal_missed": (
        "case {case} misses the goal of {goal_seconds:time} by {over_seconds:time}: its best is {io_seconds:time}, mostly {bottleneck}",
        "start with that class",
    ),
    "case_epoch_goal_missed": (
        "case {case} misses the goal of {goal_seconds:time} per epoch by {over_seconds:time}: its shortest is {epoch_seconds:time}{bottleneck:held}",
        "{bottleneck:start}",
    ),
    "several_cases": (
        "{cases:count case} ({names:, }): points of different cases are not ranked against each other",
        "use --case NAME to show one case",
    ),
    "inert_key": (
        "the key {key} changes nothing here ({why}): differences between its values are noise",
        "remove it from the sweep, or change what makes it inert",
    ),
    "different_data": (
        "{points:count point} read {groups:count different amount} of data per epoch, so there is no overall best: each amount has its own, and a goal is judged by the points that read most",
        "compare points that read the same amount, or change the sweep so that all do",
    ),
}


# Why a probe ended before the storage was saturated → what to do about it.
ADVICE = {
    "processes": "raise --ranks, or probe from several nodes at a time",
    "time": "raise --seconds",
    "cores": "probe on a host with spare cores",
}


# Why epochs could not be detected from re-reads (trace/description.py).
DOUBTS = {
    "few": "fewer than 20 different reads, or fewer than 4 per thread",
    "mapped": "files were mapped, and reads through a mapping are not recorded",
    "uneven": "the re-reads do not form similar passes (random samples, occasional validation, files read twice)",
    "partial": "the last pass is incomplete (the command was killed, or read part of the data again)",
    "ranks_differ": "ranks read their data a different number of times",
    "exchanged": "ranks read each other's data, as with a shuffle over all ranks",
    "scattered": "processes of one rank ran on several hosts",
    "too_many": "there are too many passes to separate",
    "interrupted": "a process was stopped or killed while it recorded a read",
    "no_page": "a process could not share its records with the others of its rank (descriptors, limits, space in --out)",
}

# Why the recorder saw less than the kernel counted → the likely cause, and what to do about it.
CAUSES = {
    "mmap": (
        "likely cause: mapped files (mmap), counted with the most that their page faults can have read",
        "to record these reads, let the program read instead of map (NumPy: mmap_mode=None)",
    ),
    "writable_mmap": (
        "likely cause: mapped files (mmap) that can be written, counted with the most that their page faults can have read or written",
        "to record these reads and writes, let the program use calls instead of maps",
    ),
    "process": (
        "likely cause: a process without the recorder (statically linked, setuid, or started without LD_PRELOAD), or direct system calls",
        "use a dynamically linked build, and pass LD_PRELOAD and TIERSCOPE_RECORD to every process; until then the sums are too small",
    ),
    "library": (
        "likely cause: a library that reads more than its loader records",
        "compare with 'tierscope trace' of the same command, which records the reads of all libraries",
    ),
}
# An epoch that misses its goal even without waiting, in place of the class to start with.
BEYOND_STORAGE = "non-I/O time: no storage can meet it"
_DID = {"read": "read", "written": "wrote", "read or written": "read or wrote"}


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


def _first(names: list[str], most: str) -> str:
    """As many names, and how many others there are; all are in the evidence."""
    others = len(names) - int(most)
    return "; ".join(names[: int(most)]) + (f" and {others} more" if others > 0 else "")


def _or_else(options: list[str], words: str) -> str:
    """Options that were not given, if there are any left."""
    return f", or {words} {' or '.join(options)}" if options else ""


def _below(prefixes: list[str], _: str) -> str:
    """Where files are; names that are not paths are in brackets (imports/untiered.py)."""
    paths = [prefix for prefix in prefixes if not prefix.startswith("(")]
    others = ["without a path in the log"] if len(paths) < len(prefixes) else []
    return " or ".join([f"below {', '.join(paths)}", *others] if paths else others)


def _held_by(bottleneck: str | None, _: str) -> str:
    """What keeps an epoch from its goal: I/O may be a small part of it."""
    if bottleneck == BEYOND_STORAGE:
        return "; time outside I/O alone exceeds the goal, so no storage can meet it"
    return "" if bottleneck is None else f"; the largest class of its I/O is {bottleneck}"


def _start_with(bottleneck: str | None, _: str) -> str:
    return (
        "start with that class"
        if bottleneck not in (None, BEYOND_STORAGE)
        else "reduce compute and other work beside I/O"
    )


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
    "below": _below,
    "met": lambda value, _: (
        "no action needed"
        if value == ONLY_POINT
        else "this is the first point of the sweep that meets it over its whole range"
    ),
    "held": _held_by,
    "start": _start_with,
    "did": lambda value, _: _DID[value],
    "median": lambda value, _: "" if value is None else f"; the median decides: {value}",
    "settle": lambda value, _: "measure this point" if value == "simulation" else "add repetitions",
    "least": lambda value, _: "at least " if value else "",
    "first": _first,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reader of numbers must know: `kind` for programs, `evidence` in base units, `text` and `suggestion` for people. The last two are put together when they are read, which costs microseconds."""

    kind: str
    evidence: JsonObject

    @property
    def text(self) -> str:
        """What was found, as one sentence."""
        return _Words().vformat(WORDING[self.kind][0], (), self.evidence)

    @property
    def suggestion(self) -> str:
        """What to do about it."""
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
