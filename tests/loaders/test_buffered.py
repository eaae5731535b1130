"""Packed records that are read in order are cut from reads of `transfer_size`; every byte is read once, by whichever loader, and in the model."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_study import NEEDS_LIBRARY, loader_of, plan_of, reading, small_study, source_of, stage, tier_files
from tierscope.bench.loading import null_source
from tierscope.bench.resolved import ResolvedRun
from tierscope.errors import TierscopeError
from tierscope.formats import FORMATS
from tierscope.loaders.base import SampleSource, split_steps
from tierscope.loaders.buffered import runs_of
from tierscope.native import library
from tierscope.plan.file_format import make_format
from tierscope.plan.reading import is_buffered, mean_read_bytes, reading_of
from tierscope.predict import events
from tierscope.predict.runs import run_reads
from tierscope.predict.schedule import lay_out
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Study
from tierscope.trace.ops import OP_ROW, READ
from tierscope.trace.recorder import OpSink

IN_ORDER = ("sample_shuffle=off", "num_files_train=6", "num_samples_per_file=8")
Reads = Counter[tuple[int, int, int]]  # file, offset, bytes


def reads_of_epoch(study: Study, source: SampleSource, name: str | None, folder: Path) -> Reads:
    """What the loader asked for, by the recorder."""
    ops = folder / f"ops-{name}"
    ops.unlink(missing_ok=True)
    sink = OpSink(str(ops))
    loader = loader_of(study, source, name, sink)
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        for _ in batches:
            pass
    loader.finish()
    sink.close()
    rows = np.fromfile(ops, OP_ROW)
    rows = rows[rows["kind"] == READ]
    return Counter(zip(*(rows[name].tolist() for name in ("file", "offset", "bytes")), strict=True))


def modelled(study: Study) -> Reads:
    """What the model has the first rank ask for."""
    simulation = Simulation.of(study)
    schedule = simulation.schedule(1)
    runs = run_reads(simulation.reading, schedule)
    assert runs is not None
    assert simulation.reading.buffer is not None
    assert all(part.flags.c_contiguous for part in (runs.counts, runs.firsts, runs.lasts, runs.starts)), (
        "or the engine is compiled twice"
    )
    request, starts = simulation.reading.buffer.request_bytes, schedule.inside
    assert starts is not None, "the test wants a tier with stripes, so that places in files are known"
    reads: Reads = Counter()
    for sample, count in enumerate(runs.counts[0].tolist()):
        first = int(runs.starts[0, sample] + runs.firsts[0, sample])
        for number in range(count):
            nbytes = int(runs.lasts[0, sample]) if number == count - 1 else request
            reads[int(schedule.files[0, sample]), first + number * request, nbytes] += 1
    return reads


def expected(study: Study) -> Reads:
    """By hand: parts of batches, cut where files end, in reads of transfer_size."""
    form, reader = make_format(study), study.workload.reader
    reads: Reads = Counter()
    for work in split_steps(plan_of(study).reads(0, 1), reader.batch_size):
        share = -(-len(work.samples) // max(1, reader.read_threads))
        for start in range(0, len(work.samples), share):
            places = list(zip(work.files[start : start + share], work.inside[start : start + share], strict=True))
            for file, of_file in itertools.groupby(places, key=lambda place: place[0]):
                extents = [form.extents(inside, file)[0] for _, inside in of_file]
                at, end = extents[0].offset, extents[-1].offset + extents[-1].nbytes
                while at < end:
                    nbytes = min(reader.transfer_size, end - at)
                    reads[file, at, nbytes] += 1
                    at += nbytes
    return reads


@given(
    record=st.integers(1, 5000),
    transfer=st.integers(512, 20_000),
    per_file=st.integers(2, 40),
    files=st.integers(1, 5),
    batch=st.integers(1, 33),
    threads=st.integers(0, 4),
    form=st.sampled_from(["tfrecord", "raw", "csv"]),
)
@settings(max_examples=25, deadline=None)
def test_every_byte_is_read_once_in_reads_of_the_transfer_size(
    tmp_path_factory: pytest.TempPathFactory,
    record: int,
    transfer: int,
    per_file: int,
    files: int,
    batch: int,
    threads: int,
    form: str,
) -> None:
    study = small_study(
        f"format={form}", f"record_length_bytes={record}", f"transfer_size={transfer}", f"num_files_train={files}",
        f"num_samples_per_file={per_file}", f"batch_size={batch}", f"read_threads={threads}", "sample_shuffle=off",
        "tiers.gfs.stripe_count=4", "tiers.gfs.stripe_size=1MiB", "tiers.gfs.bandwidth=1GB/s", "tiers.gfs.servers=4",
        "cache_rate=0",
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("ops")
    source = null_source(ResolvedRun.of(study))
    wanted = expected(study)
    for name in (None, *(["native"] if library.load() else [])):
        assert reads_of_epoch(study, source, name, folder) == wanted
    assert modelled(study) == wanted
    of_file = {file: sorted((at, nbytes) for other, at, nbytes in wanted if other == file) for file in range(files)}
    for pieces in of_file.values():
        ends = [at + nbytes for at, nbytes in pieces]
        assert [at for at, _ in pieces] == [0, *ends[:-1]]
        assert ends[-1] == make_format(study).file_bytes
    ops, nbytes_read = events.counted(
        study, Simulation.of(study).stations, reading_of(study), lay_out(study, plan_of(study), 1)
    )
    assert ops[0, -1, 1] == wanted.total()
    assert nbytes_read[0, -1, 1] == sum(nbytes for _, _, nbytes in wanted.elements())


def test_the_transfer_size_is_the_size_of_requests() -> None:
    """256 KiB samples: the wrong answer was 262,144 bytes whatever the key said."""
    for size, most in (("256KiB", 1 << 18), ("1MiB", 1 << 20), ("4MiB", 1 << 22)):
        study = small_study(
            "record_length_bytes=262128", "num_files_train=2", "num_samples_per_file=64", "batch_size=32",
            "sample_shuffle=off", f"transfer_size={size}",
        )  # fmt: skip
        assert mean_read_bytes(study) == most
        assert reading_of(study).pieces == ((0, most),)


@pytest.mark.parametrize(
    "other",
    [
        "sample_shuffle=seed",
        "num_samples_per_file=1",
        "odirect=true",
        "io_engine=uring",
        "format=npz",
        "data_loader=pytorch",
    ],
)
def test_what_cannot_be_buffered_is_read_by_record(other: str) -> None:
    assert is_buffered(small_study(*IN_ORDER))
    assert not is_buffered(small_study(*IN_ORDER, other))


def test_ranks_that_take_turns_sample_by_sample_are_not_buffered() -> None:
    off = ("shuffle=off", "num_files_train=6", "num_samples_per_file=8")
    assert is_buffered(small_study(*off))
    assert not is_buffered(small_study(*off, "ranks_per_node=2"))


@pytest.mark.parametrize("name", [pytest.param("native", marks=NEEDS_LIBRARY), "threads", "inline"])
@pytest.mark.parametrize("transfer", [512, 1500, 1 << 20])
def test_samples_are_whole(tmp_path: Path, name: str, transfer: int) -> None:
    threads = 0 if name == "inline" else 2
    study = small_study(*IN_ORDER, f"read_threads={threads}", f"transfer_size={transfer}")
    shuffled = small_study(*IN_ORDER, "sample_shuffle=seed", f"read_threads={threads}")
    stage(study, str(tmp_path))
    contents = []
    for each_study in (study, shuffled):
        loader = loader_of(each_study, source_of(each_study, str(tmp_path)), name)
        with reading(loader, plan_of(each_study).reads(0, 1)) as batches:
            pairs = [
                (int(sample), bytes(payload))
                for batch in batches
                for sample, payload in zip(batch.samples, batch.payloads, strict=True)
            ]
        loader.finish()
        contents.append(dict(pairs))
    assert contents[0] == contents[1]
    assert len(contents[0]) == 48


@pytest.mark.parametrize("name", [pytest.param("native", marks=NEEDS_LIBRARY), "threads"])
def test_a_file_that_is_too_short_names_the_sample(tmp_path: Path, name: str) -> None:
    study = small_study(*IN_ORDER, "transfer_size=3000", "cache_rate=0", "num_files_train=1")
    stage(study, str(tmp_path))
    path = Path(tier_files(study, str(tmp_path))[-1].path(0))
    path.write_bytes(path.read_bytes()[:5000])
    loader = loader_of(study, source_of(study, str(tmp_path)), name)
    with (
        pytest.raises(TierscopeError, match="sample 4") as caught,
        reading(loader, plan_of(study).reads(0, 1)) as batches,
    ):
        list(batches)
    loader.finish()
    assert "936" in str(caught.value)  # bytes of it that are there


def test_samples_of_different_sizes_are_cut_too(tmp_path: Path) -> None:
    study = small_study(*IN_ORDER, "record_length_bytes_stdev=300", "transfer_size=2500", "read_threads=2")
    stage(study, str(tmp_path))
    source = source_of(study, str(tmp_path))
    assert reads_of_epoch(study, source, "threads", tmp_path) == expected(study)


def test_runs_end_with_their_file() -> None:
    study = small_study(*IN_ORDER, "batch_size=20")
    work = next(split_steps(plan_of(study).reads(0, 1), 20))
    runs = runs_of(make_format(study), work)
    assert [run.end for run in runs] == [8 * 1016] * 16 + [4 * 1016] * 4


def test_larger_requests_take_less_time_where_each_has_a_latency() -> None:
    """By events and by the bound; and the operations of both are the same."""
    seconds: dict[str, list[float]] = {"events": [], "bound": []}
    for size in ("64KiB", "256KiB", "1MiB"):
        study = small_study(
            "record_length_bytes=64KiB", "num_files_train=2", "num_samples_per_file=64", "batch_size=32", "cache_rate=0",
            "sample_shuffle=off", f"transfer_size={size}", "tiers.gfs.latency=10ms", "tiers.gfs.bandwidth=1GB/s",
        )  # fmt: skip
        simulation = Simulation.of(study)
        for method, of_method in seconds.items():
            outcome = simulation.epoch(1, method)
            assert int(outcome.ops[0, -1, 1]) == run_reads(simulation.reading, simulation.schedule(1)).counts.sum()  # type: ignore[union-attr]
            of_method.append(float(outcome.seconds[0]))
    for of_method in seconds.values():
        assert of_method[0] > 3 * of_method[1] > 6 * of_method[2] / 2
    assert seconds["events"] == pytest.approx(seconds["bound"], rel=0.02)


def test_packed_formats_are_those_whose_samples_touch() -> None:
    packed = {
        name for name in FORMATS if not FORMATS[name].extra and is_buffered(small_study(*IN_ORDER, f"format={name}"))
    }
    assert packed == {"tfrecord", "raw", "csv"}
