"""Files of ours read by those whose formats they are, without our adapters."""

import csv
import io
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.formats.any_file import payloads_of, read, write
from tierscope.formats import FORMATS, Shape
from tierscope.spec.study import Hdf5Layout

SHAPES = [Shape(1, 1), Shape(1, 4096), Shape(7, 333), Shape(2, 100_001)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def written(name: str, shape: Shape, folder: Path) -> tuple[Path, list[bytes]]:
    path, payloads = folder / f"file{FORMATS.load(name).suffix}", payloads_of(shape)
    write(FORMATS.load(name)(shape), path, payloads)
    return path, payloads


@shapes
@pytest.mark.parametrize("mapped", [False, True])
def test_numpy_reads_npy(shape: Shape, mapped: bool, tmp_path: Path) -> None:
    path, payloads = written("npy", shape, tmp_path)
    array = np.load(path, allow_pickle=False, mmap_mode="r" if mapped else None)
    assert (array.dtype, array.shape) == (np.uint8, (shape.samples_per_file, shape.record_bytes))
    assert [row.tobytes() for row in array] == payloads


def words(payload: bytes) -> list[int]:
    padded = payload + bytes(-len(payload) % 4)
    return [int(word) for word in np.frombuffer(padded, "<u4")]


@shapes
def test_the_csv_module_reads_csv(shape: Shape, tmp_path: Path) -> None:
    path, payloads = written("csv", shape, tmp_path)
    with path.open(newline="", encoding="ascii") as text:
        rows = [[int(field) for field in row] for row in csv.reader(text)]
    assert rows == [words(payload) for payload in payloads]


def test_pandas_reads_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path, payloads = written("csv", Shape(5, 402), tmp_path)
    frame = pandas.read_csv(path, header=None)
    assert frame.to_numpy().tolist() == [words(payload) for payload in payloads]


@shapes
@pytest.mark.parametrize(
    "layout", [Hdf5Layout(), Hdf5Layout(chunk_size=1), Hdf5Layout(compression="gzip"), Hdf5Layout(compression="lzf")]
)
def test_h5py_reads_hdf5(shape: Shape, layout: Hdf5Layout, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    if layout.chunk_size and shape.record_bytes > 5000:
        pytest.skip("a chunk per byte takes for ever")
    path, payloads = written("hdf5", Shape(shape.samples_per_file, shape.record_bytes, options=layout), tmp_path)
    with h5py.File(path) as file:
        data, ends = file["x"][:], file["ends"][:]
        assert file["x"].chunks == ((1,) if layout.chunk_size else None if layout == Hdf5Layout() else file["x"].chunks)
        assert file["x"].compression == (None if layout.compression == "none" else layout.compression)
    starts = [0, *ends.tolist()]
    assert [data[start:end].tobytes() for start, end in zip(starts, ends.tolist(), strict=False)] == payloads


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="h5dump is not installed")
def test_h5dump_reads_hdf5(tmp_path: Path) -> None:
    path, payloads = written("hdf5", Shape(3, 20), tmp_path)
    out = tmp_path / "dumped"
    subprocess.run(["h5dump", "-d", "/x", "-b", "LE", "-o", out, path], check=True, capture_output=True)
    assert out.read_bytes() == b"".join(payloads)


@shapes
def test_pyarrow_reads_parquet(shape: Shape, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, payloads = written("parquet", shape, tmp_path)
    assert parquet.read_table(path).column("x").to_pylist() == payloads
    assert parquet.ParquetFile(path).num_row_groups == shape.samples_per_file


def test_pandas_and_polars_read_parquet(tmp_path: Path) -> None:
    path, payloads = written("parquet", Shape(5, 402), tmp_path)
    assert pytest.importorskip("polars").read_parquet(path)["x"].to_list() == payloads
    assert pytest.importorskip("pandas").read_parquet(path)["x"].tolist() == payloads


@shapes
def test_lmdb_reads_lmdb(shape: Shape, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    path, payloads = written("lmdb", shape, tmp_path)
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False) as database, database.begin() as transaction:
        found = [(struct.unpack(">Q", key)[0], value) for key, value in transaction.cursor()]
    assert found == list(enumerate(payloads))


def test_an_lmdb_of_many_samples_in_several_transactions(tmp_path: Path) -> None:
    path, payloads = written("lmdb", Shape(2500, 90), tmp_path)
    assert read(FORMATS.load("lmdb")(Shape(2500, 90)), path) == payloads
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]  # no file of locks beside it


@pytest.mark.parametrize("nbytes", [1, 16, 17, 4096, 10_000])
def test_pillow_reads_png(nbytes: int, tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    path, (payload,) = written("png", Shape(1, nbytes), tmp_path)
    with image_module.open(path) as image:
        assert (image.format, image.mode) == ("PNG", "L")
        pixels = image.tobytes()
    assert pixels[:nbytes] == payload
    assert len(pixels) - nbytes < image.width


@pytest.mark.parametrize("nbytes", [16, 17, 4096, 10_000])
def test_pillow_reads_jpeg(nbytes: int, tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    path, (payload,) = written("jpeg", Shape(1, nbytes), tmp_path)
    with image_module.open(io.BytesIO(path.read_bytes())) as image:
        assert (image.format, image.mode) == ("JPEG", "L")
        assert image.info["comment"] == payload[:8].hex().encode()
        pixels = np.frombuffer(image.tobytes(), np.uint8)[:nbytes]
    change = np.abs(pixels.astype(int) - np.frombuffer(payload, np.uint8))
    assert change.mean() < 20  # with losses, but the same picture
