"""What is done with samples between reading and training, by whom, and how long it takes."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.small_study import NEEDS_LIBRARY, loader_of, plan_of, reading, small_study, source_of, stage
from tierscope.dataset import content
from tierscope.errors import DamagedDataError
from tierscope.formats import FORMATS, Shape
from tierscope.loaders import Batch
from tierscope.loaders.preprocess import Floats, Preprocess, make_preprocess
from tierscope.plan.file_format import make_format
from tierscope.spec.study import PREPROCESSES, Study

loaders = pytest.mark.parametrize("name", ["inline", "threads", pytest.param("native", marks=NEEDS_LIBRARY)])
behind = pytest.mark.parametrize("name", ["threads", pytest.param("native", marks=NEEDS_LIBRARY)])


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("staged"))
    for settings in ((), ("format=csv",), ("format=raw",)):
        stage(small_study(*settings), out)
    return out


class Watched(Preprocess):
    """Notes which threads it is done by; the first few wait for one another, so that none does all."""

    def __init__(self, mode: str, form: Any, together: int = 1, fails: bool = False) -> None:
        super().__init__(mode, 0.0, form)
        self.threads: set[str] = set()
        self._fails, self._meeting = fails, threading.Barrier(together)

    def __call__(self, payloads: Any) -> list[Floats]:
        name = threading.current_thread().name
        if name not in self.threads:
            self.threads.add(name)
            self._meeting.wait(20)
        if self._fails:
            raise ValueError("cannot be decoded")
        return super().__call__(payloads)


def read(study: Study, out: str, name: str, preprocess: Preprocess | None, threads: int = 0) -> list[Batch]:
    source = replace(source_of(study, out), preprocess=preprocess, preprocess_threads=threads)
    loader = loader_of(study, source, name)
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        found = [replace(batch, payloads=[memoryview(bytes(one)) for one in batch.payloads]) for batch in batches]
    loader.finish()
    return found


def test_every_mode_is_tested_here() -> None:
    assert PREPROCESSES == ("none", "busy", "sleep", "decode")


@loaders
@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("form", ["raw", "csv", "tfrecord"])
def test_decode_gives_every_sample_as_floats(staged: str, name: str, form: str, threads: int) -> None:
    study = small_study(f"format={form}", "read_threads=2", "batch_size=7")
    preprocess = make_preprocess("decode", 0, make_format(study))
    batches = read(study, staged, name, preprocess, threads)
    assert sum(len(batch.arrays) for batch in batches) == 24
    for batch in batches:
        assert batch.preprocess_ns > 0
        for sample, array in zip(batch.samples, batch.arrays, strict=True):
            whole = b"".join(content.payload(study.seed, int(sample), 1000))
            assert array.dtype == np.float32
            assert array.astype(np.uint8).tobytes() == whole


@loaders
@pytest.mark.parametrize("mode", ["busy", "sleep"])
def test_emulated_work_takes_its_time_for_every_sample_and_makes_nothing(staged: str, name: str, mode: str) -> None:
    study = small_study("num_files_train=24", "read_threads=1")
    batches = read(study, staged, name, make_preprocess(mode, 0.0005, make_format(study)))
    assert [batch.preprocess_ns >= 0.0005e9 * len(batch.samples) for batch in batches] == [True] * 5
    assert [len(batch.arrays) for batch in batches] == [0] * 5


@loaders
def test_without_it_there_is_no_time_of_it(staged: str, name: str) -> None:
    assert make_preprocess("none", 0, make_format(small_study())) is None
    assert make_preprocess("busy", 0, make_format(small_study())) is None
    assert make_preprocess("sleep", 0, make_format(small_study())) is None
    assert {batch.preprocess_ns for batch in read(small_study(), staged, name, None)} == {0}


@behind
@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_threads_of_their_own_as_asked_for(staged: str, name: str, threads: int) -> None:
    study = small_study("read_threads=2", "batch_size=6", "prefetch_size=3")
    preprocess = Watched("decode", make_format(study), together=threads)
    read(study, staged, name, preprocess, threads)
    assert {thread.rpartition("preprocess")[1:][0] for thread in preprocess.threads} == {"preprocess"}
    assert len(preprocess.threads) == threads


def test_none_of_their_own_those_that_read_do_it(staged: str) -> None:
    study = small_study("read_threads=2")
    preprocess = Watched("decode", make_format(study), together=2)
    read(study, staged, "threads", preprocess)
    assert preprocess.threads == {"reader-0", "reader-1"}
    inline = Watched("decode", make_format(study))
    read(study, staged, "inline", inline)
    assert inline.threads == {threading.current_thread().name}


@loaders
@pytest.mark.parametrize("threads", [0, 2])
def test_a_sample_that_cannot_be_decoded_is_named(staged: str, name: str, threads: int) -> None:
    study = small_study("read_threads=2")
    with pytest.raises(DamagedDataError, match=r"\.tfrecord: sample 0: cannot be decoded; delete the file"):
        read(study, staged, name, Watched("decode", make_format(study), fails=True), threads)


@loaders
@pytest.mark.parametrize("threads", [0, 2])
def test_leaving_early_leaves_no_thread(staged: str, name: str, threads: int) -> None:
    study = small_study("read_threads=2", "batch_size=2")
    preprocess = make_preprocess("decode", 0, make_format(study))
    source = replace(source_of(study, staged), preprocess=preprocess, preprocess_threads=threads)
    before = set(threading.enumerate())
    with reading(loader_of(study, source, name), plan_of(study).reads(0, 1)) as batches:
        next(batches)
    assert set(threading.enumerate()) <= before


def test_decoding_is_that_of_the_format() -> None:
    form = FORMATS.load("csv")(Shape(1, 8))
    stored = memoryview(b"".join(form.encode([[b"\x01\x02\x03\x04\xff\0\0\0"]])))
    (array,) = Preprocess("decode", 0, form)([stored])
    assert array.tolist() == [1, 2, 3, 4, 255, 0, 0, 0]
