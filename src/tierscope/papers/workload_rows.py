"""What DLIO's paper says of each application, and what ours does: from the preset itself, from a small run of it on an emulated tier, or simulated whole."""

from collections.abc import Iterator, Mapping

import polars as pl

from tierscope.papers.verdict import UNEXPLAINED, Outcome, Source, Verdict
from tierscope.papers.workload_runs import WorkloadRun
from tierscope.papers.workload_studies import RANKS, SimulatedRun, study_of
from tierscope.plan.order import Order
from tierscope.plan.reading import reading_of
from tierscope.predict.saves import when
from tierscope.spec.study import Study

KIB, MIB = 2**10, 2**20
ALL, MOST = 0.9, 0.5  # of requests: where one size is published for them; where it says "most"
_SEEN = "not fitted, but known when Theta's rates were chosen"
_SITE = "an absolute figure of Theta; here with modelled compute and rates"
_THREADS = "threads of the framework are not part of a preset: it has compute as a time"
Runs = Mapping[str, WorkloadRun]
Simulated = Mapping[str, SimulatedRun]


def statements(runs: Runs, simulated: Simulated) -> list[Verdict]:
    makers = (_cosmic_tagger, _dffn, _cosmoflow, _candle, _frnn, _imagenet, _others)
    return [verdict for maker in makers for verdict in maker(runs, simulated)]


def _said(row_id: str, ours: str, holds: bool, source: Source = "emulated", why: str = "") -> Verdict:
    return Verdict(row_id, ours, "holds" if holds else "does not hold", source, why if holds or why else UNEXPLAINED)


def _input(row_id: str, ours: str, holds: bool, why: str = "") -> Verdict:
    """Of the preset, which was written from the published figure: that it is as published is no result."""
    return _said(row_id, ours, holds, "input", why)


def _beside(row_id: str, ours: str, why: str = _SITE, source: Source = "simulated") -> Verdict:
    return Verdict(row_id, ours, "beside", source, why)


def _unavailable(row_id: str, why: str) -> Verdict:
    missing: Outcome = "not available here"
    return Verdict(row_id, "", missing, "", why)


def _time(run: SimulatedRun) -> str:
    return f"I/O {run.io_seconds:.3g} s, {100 * run.io_share:.3g} % of {run.seconds:.4g} s"


def _rate(run: SimulatedRun) -> str:
    return f"{run.bandwidth / 1e9:.3g} GB/s of {run.ranks} processes, {run.rank_bandwidth / 1e6:.3g} MB/s of a process"


def _steps(study: Study) -> int:
    """Of a rank in the whole run."""
    return -(-Order.of(study).samples_per_rank // study.workload.reader.batch_size) * study.workload.train.epochs


def _stored(study: Study) -> int:
    return reading_of(study).file_bytes * study.workload.dataset.num_files_train


def _apart(run: WorkloadRun) -> str:
    return f"hidden {100 * (run.hidden or 0.0):.0f} % of I/O"


def _all_but_first(run: WorkloadRun) -> bool:
    """Whether no more than the first batch is waited for; nothing can hide that."""
    return run.hidden is not None and run.hidden >= 1 - 1.5 / _steps(run.study)


def begins_fast(run: WorkloadRun) -> tuple[float, float]:
    """Bytes a second of all ranks until the first batch is there, and of the whole epoch after it."""
    reads = run.reads().filter(pl.col("epoch") == 1)
    first = reads.filter(pl.col("step") == 0)
    start = float(reads["start_seconds"].min())  # type: ignore[arg-type]
    turn = float((first["start_seconds"] + first["seconds"]).max())  # type: ignore[arg-type]
    end = float((reads["start_seconds"] + reads["seconds"]).max())  # type: ignore[arg-type]
    later = reads.filter(pl.col("step") > 0)
    return (
        int(first["bytes"].sum()) / max(turn - start, 1e-9),
        int(later["bytes"].sum()) / max(end - turn, 1e-9),
    )


def accesses(run: WorkloadRun) -> list[int]:
    """Reads of every file by all ranks, also of those that nobody read."""
    counted = dict(run.reads().group_by("file").len().rows())
    return [counted.get(file, 0) for file in range(run.study.workload.dataset.num_files_train)]


def _fast_text(rates: tuple[float, float]) -> str:
    return f"{rates[0] / 1e6:.3g} MB/s for the first batch, {rates[1] / 1e6:.3g} MB/s after it"


def _cosmic_tagger(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("cosmic-tagger"), runs["cosmic-tagger"], simulated["cosmic-tagger"]
    dataset = study.workload.dataset
    sizes = f"{dataset.samples:,} samples of {dataset.record_length_bytes / 1e3:g} ± {dataset.record_length_bytes_stdev / 1e3:g} KB, {_stored(study) / 1e9:.3g} GB"
    yield _input(
        "D-F1-1",
        sizes,
        abs(_stored(study) / 33e9 - 1) < 0.05,
        f"no file can have all that is published: 43,000 samples in 33 GB have {33e9 / dataset.samples / 1e3:.0f} KB each, not 40; samples are as published, and the file is not the 33 GB that D-C-7 asks for",
    )
    batch, steps, epochs = study.workload.reader.batch_size, _steps(study), study.workload.train.epochs
    yield _input("D-F1-2", f"{steps} steps, {epochs} epoch, {batch} samples of a process in a step", (steps, epochs, batch) == (150, 1, 32), "every process reads on from its own place in the file (D-C-9)")  # fmt: skip
    yield _beside("D-F1-3", _time(whole))
    yield _beside("D-F1-4", _rate(whole), f"{_SITE}; the published 11 MB/s of all and 4 MB/s of each contradict each other (D-C-8); 4 MB/s chose the latency")  # fmt: skip
    yield _unavailable("D-F1-5", "read-ahead that an open triggers on the server is not modelled; afterwards a process reads " + f"{whole.rank_bandwidth / 1e6:.2g} MB/s, to which the latency was chosen")  # fmt: skip
    share = run.share_of_reads(2 * KIB, 6 * KIB)
    yield _said("D-F1-6", f"{100 * share:.1f} % of {len(run.reads()):,} requests have 2 to 6 KiB", share > MOST)
    order = run.character.metrics["sequential_percent"].value or 0.0
    yield _said("D-F1-7", f"{order:.1f} % of reads are sequential; all samples are in some process's stretch", order > 95)  # fmt: skip
    yield _said("D-F1-8", f"{study.workload.reader.read_threads} reading threads beside the training loop, {_apart(run)}", (run.hidden or 0.0) < 0.05, why="a step's samples are read before it computes, by the process itself; " + _THREADS)  # fmt: skip
    yield Verdict("D-F1-9", f"23 / 227 = {100 * 23 / 227:.1f} %; ours hides {100 * (run.hidden or 0.0):.0f} %", "beside", "arithmetic", "ours reads inline, so nothing is hidden; the published percentage is that of the published seconds")  # fmt: skip


def _dffn(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("dffn"), runs["dffn"], simulated["dffn"]
    dataset = study.workload.dataset
    both = dataset.num_files_train == 1 and dataset.statistics.file_bytes is not None
    gib = dataset.samples * dataset.record_length_bytes / 2**30
    yield _input("D-F2-1", f"one data and one metadata file, {dataset.samples:,} samples, {gib:.3g} GiB", both and dataset.samples == 18_678 and abs(gib - 2.28) < 0.01, "2.28 GiB at four bytes a voxel (D-C-12)")  # fmt: skip
    steps, batch = _steps(study), study.workload.reader.batch_size
    yield _input("D-F2-2", f"{steps} steps, {study.workload.train.epochs} epoch, {batch} samples in each", (steps, batch, study.workload.train.epochs) == (400, 32, 1))  # fmt: skip
    own = Order.of(study).samples_per_rank
    read = own * RANKS * dataset.record_length_bytes
    yield _beside("D-F2-3", f"{100 * own / dataset.samples:.0f} % of the samples at random, {read / 1e9:.0f} GB in all", "400 steps of 32 samples are more than a third (D-C-13): steps are as published, bytes are not", "arithmetic")  # fmt: skip
    yield _beside("D-F2-4", _time(whole), f"{_SITE}; compute time is derived from the share")  # fmt: skip
    yield _beside("D-F2-5", _rate(whole), f"{_SITE}; {_SEEN}")
    data, side = run.share_of_reads(64 * KIB, 64 * KIB), run.share_of_reads(90, 110, beside=True)
    yield _said("D-F2-6", f"{100 * data:.0f} % of the data file's requests have 64 KiB, {100 * side:.0f} % of the metadata file's about 100 B", data > ALL and side > ALL, why="the rest are HDF5's own")  # fmt: skip
    yield _said("D-F2-7", _apart(run), (run.hidden or 0.0) < 0.05)


def _cosmoflow(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("cosmoflow"), runs["cosmoflow"], simulated["cosmoflow"]
    dataset, train = study.workload.dataset, study.workload.train
    terabytes = dataset.samples * dataset.record_length_bytes / 1e12
    yield _input("D-F3-1", f"{terabytes:.3g} TB in {dataset.num_files_train:,} {dataset.format} files, {dataset.samples:,} samples", (dataset.num_files_train, dataset.samples) == (1024, 262_144) and abs(terabytes - 2) < 0.01, "samples have the bytes that 2 TB leave for each (D-C-15)")  # fmt: skip
    yield _input("D-F3-2", f"{train.epochs} epochs, {_steps(study):,} steps of a process, batch {study.workload.reader.batch_size}", _steps(study) == 256_000, "512 processes need 2,048 steps each for four epochs; what the 256,000 count is unknown (D-C-17)")  # fmt: skip
    yield _beside("D-F3-3", _time(whole), f"{_SITE}; compute is derived from the published share and bandwidth, not from 431 s, which contradict them (D-C-16)")  # fmt: skip
    yield _beside("D-F3-4", f"{whole.read_bytes / 1e12:.3g} TB, {_rate(whole)}", f"{_SITE}; the rate of a stream is fitted to it", "fitted")  # fmt: skip
    yield _beside("D-F3-5", f"two whole files an epoch, {whole.rank_bandwidth / 1e6:.3g} MB/s", "512 processes at 756 MB/s exceed the file system's peak (D-C-16)")  # fmt: skip
    share = run.share_of_reads(256 * KIB, 256 * KIB)
    yield _said("D-F3-6", f"{100 * share:.1f} % of requests have 256 KiB", share > ALL, why="the others end a sample")
    rates = begins_fast(run)
    yield _said("D-F3-7", _fast_text(rates), rates[0] > rates[1])
    yield _unavailable("D-F3-8", _THREADS)
    yield _unavailable("D-F3-9", "preprocessing is not part of the preset: only on Theta")
    yield _said("D-F3-10", f"{_apart(run)}; simulated whole {100 * (whole.hidden or 0.0):.0f} %", _all_but_first(run) and (whole.hidden or 0) > 0.95, why="all but the first batch")  # fmt: skip


def _candle(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("candle"), runs["candle"], simulated["candle"]
    dataset, reader = study.workload.dataset, study.workload.reader
    row_bytes, file_bytes = dataset.record_length_bytes // 4, _stored(study)
    yield _input("D-F4-1", f"{file_bytes / 1e6:.0f} MB of CSV, {dataset.samples:,} rows of {row_bytes:,} numbers", abs(file_bytes / 700e6 - 1) < 0.05, "Tierscope's CSV has ten digits and a comma for every number, and no key for fewer; the published file has 9.5 characters for each; rows and numbers are as published")  # fmt: skip
    yield _input("D-F4-2", f"{study.workload.train.epochs} epochs, batch {reader.batch_size}", (study.workload.train.epochs, reader.batch_size) == (60, 20))  # fmt: skip
    yield _beside(
        "D-F4-3", _time(whole), f"{_SITE}; compute time is derived from the share; parsing of rows is not in it"
    )
    yield _beside("D-F4-4", _rate(whole), f"{_SITE}; {_SEEN}; the published figures contradict each other (D-C-18)")
    share = run.share_of_reads(256 * KIB, 256 * KIB)
    yield _said("D-F4-5", f"{100 * share:.0f} % of requests have 256 KiB", share > ALL, why="cut from a buffer, whatever a row of text takes (D-C-18); the last request of a batch is shorter")  # fmt: skip
    later = run.reads().filter(pl.col("epoch") > 1)
    everybody = run.reads().group_by("rank").agg(pl.col("bytes").sum())["bytes"].to_list()
    same = len(set(everybody)) == 1 and everybody[0] == _stored(run.study)
    yield _said("D-F4-6", f"each process reads all {everybody[0]:,} B of the one file, {len(later)} reads after that; {_apart(run)}", same and not len(later) and not run.hidden, why=_THREADS)  # fmt: skip
    needed = dataset.samples * reading_of(study).sample_bytes
    yield _unavailable("D-F4-7", f"nobody's memory is filled for it: {needed / 1e6:.0f} MB of a process; a load that does not fit the host is refused in one line (dataset/memory.py, with its tests)")  # fmt: skip


def _frnn(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("frnn"), runs["frnn"], simulated["frnn"]
    dataset = study.workload.dataset
    yield _input("D-F5-1", f"{_stored(study) / 1e9:.3g} GB in {dataset.num_files_train:,} {dataset.format} files of {dataset.record_length_bytes // MIB} MiB", dataset.num_files_train == 2800 and round(_stored(study) / 1e9) == 6, "a file is one sample here, which stands for its 1,024")  # fmt: skip
    used = _steps(study) * RANKS * 1024
    yield _input("D-F5-2", f"batch of one file with 1,024 samples, {_steps(study)} of a process: {used / 1e6:.3g} M samples", abs(used / 2**20 - 1) < 0.05, "28 GB read are more than 1 M samples (D-C-19): bytes are as published, samples are not")  # fmt: skip
    yield _beside("D-F5-3", _time(whole), f"{_SITE}; compute time is derived from the share; the published I/O time does not follow from bytes and bandwidth (D-C-19)")  # fmt: skip
    yield _beside("D-F5-4", f"{whole.read_bytes / 1e9:.3g} GB, {_rate(whole)}", f"{_SITE}; epochs are derived from the 28 GB, the bandwidth is {_SEEN}")  # fmt: skip
    tiny, large = run.share_of_reads(1, 100, beside=True), run.share_of_reads(2 * MIB, 5 * MIB)
    yield _said("D-F5-5", f"{len(run.reads(beside=True)):,} requests of 64 B of the list, {len(run.reads()):,} of 2 MiB", tiny > ALL and large > ALL, why="a file has 2 MiB, so no request can have 4 (D-C-19); how many tiny ones there are is assumed")  # fmt: skip
    yield _said("D-F5-6", _apart(run), (run.hidden or 0.0) < 0.05, why=_THREADS)


def _imagenet(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run, whole = study_of("imagenet"), runs["imagenet"], simulated["imagenet"]
    dataset = study.workload.dataset
    steps, batch = _steps(study), study.workload.reader.batch_size
    layout = (dataset.num_files_train, dataset.num_samples_per_file, batch, steps)
    yield _input("D-F6-1", f"{layout[0]:,} files × {layout[1]:,} × 256 KiB with TFRecord's own bytes, batch {batch}, {steps} steps in {study.workload.train.epochs} epochs", layout == (1024, 1024, 32, 100))  # fmt: skip
    yield _beside("D-F6-2", _time(whole), f"{_SITE}; compute is derived from the published share and bandwidth, not from 2,757 s, which contradict them (D-C-20)")  # fmt: skip
    yield _beside("D-F6-3", _rate(whole), f"{_SITE}; the rate of a stream is fitted to it", "fitted")
    order = run.character.metrics["sequential_percent"].value or 0.0
    by_file = sorted(accesses(run))
    uneven = by_file[-1] > 1.2 * by_file[0]
    shuffled = run.study.workload.reader.file_shuffle == "seed"
    yield _said("D-F6-4", f"{order:.1f} % of reads sequential; {by_file[0]:,} to {by_file[-1]:,} reads of a file", shuffled and order > 90 and uneven, why="each process goes through files in an order of its own, since 100 steps read 1.64 M images, more than there are (D-C-20); the preset deals them out")  # fmt: skip
    share, rates = run.share_of_reads(256 * KIB, 256 * KIB), begins_fast(run)
    yield _said("D-F6-5", f"{100 * share:.1f} % of requests have 256 KiB; {_fast_text(rates)}", share > ALL and rates[0] > rates[1])  # fmt: skip
    yield _unavailable("D-F6-6", "preprocessing is not part of the preset: only on Theta")
    yield _said("D-F6-7", f"{_apart(run)}; simulated whole {100 * (whole.hidden or 0.0):.0f} %", _all_but_first(run) and (whole.hidden or 0) > 0.95, why="all but the first batch")  # fmt: skip


def _others(runs: Runs, simulated: Simulated) -> Iterator[Verdict]:
    study, run = study_of("climate"), runs["climate"]
    layout = (study.workload.train.epochs, _steps(study), study.workload.reader.batch_size)
    yield _input("D-A7-1", "{} epoch, {:,} steps, batch {}, made in memory".format(*layout), layout == (1, 1200, 1))
    reads = run.reads(beside=True)
    each_rank = sorted(reads.group_by("rank").len()["len"].to_list())
    spread = reads["step"].n_unique()
    written = study.workload.checkpoint.model_parameters or 0
    per_rank = 4 * written // RANKS
    sized = set(reads["bytes"].to_list()) == {500} and set(each_rank) == {50} and not len(run.reads())
    yield _said("D-A7-2", f"{each_rank[0]} reads of 500 B of each rank, before {spread} different steps; {per_rank / 1e6:g} MB of each rank at the end; I/O {100 * simulated['climate'].io_share:.2g} % of the run, simulated", sized and spread > 20 and per_rank == 4_000_000, why="plain bytes, neither HDF5 nor JSON; compute is assumed")  # fmt: skip
    study, whole = study_of("l2hmc"), simulated["l2hmc"]
    steps = _steps(study)
    saves = tuple(when(study, 1, steps).steps)
    yield _input("D-A8-1", f"{steps} steps, batch {study.workload.reader.batch_size}, made in memory, rank 0 saves after steps {', '.join(map(str, saves))}", steps == 150 and saves == (50, 100, 150))  # fmt: skip
    share, compute = whole.most_written_share, study.workload.train.computation_time
    enough = 1000 * compute * 99 * share / (1 - share)
    yield _said("D-A8-2", f"five files, the largest of 4 MiB; writing takes {100 * share:.2g} % of the run of rank 0", share < 0.01, "simulated", f"the verdict hangs on an assumption: with the {1000 * compute:g} ms of compute that are assumed for a step writing takes so much, with {enough:.0f} ms it takes 1 %; and the files are the benchmark's five, which are built in, not the application's four of several MB (D-C-26)")  # fmt: skip
