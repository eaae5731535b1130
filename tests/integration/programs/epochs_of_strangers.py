"""Programs of strangers, to be traced: each reads `gfs` as its name says, for so many epochs. Not a module of the tests.

python epochs_of_strangers.py make
python epochs_of_strangers.py NAME EPOCHS
"""

import multiprocessing
import os
import random
import struct
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

DICE = random.Random(3)
SMALL = [f"gfs/small-{number:02d}.npy" for number in range(60)]
LARGE = [f"gfs/large-{number:02d}.npy" for number in range(30)]
RECORDS = [f"gfs/{number:02d}.tfrecord" for number in range(12)]
TABLES = [f"gfs/{number}.h5" for number in range(3)]
SAMPLES = 150
FORK = multiprocessing.get_context("fork")


def make() -> None:
    import h5py  # noqa: PLC0415

    numbers = np.random.default_rng(1)
    os.makedirs("gfs", exist_ok=True)
    for path in SMALL:
        np.save(path, numbers.random(numbers.integers(50, 400)))
    for path in LARGE:
        np.save(path, numbers.random(numbers.integers(20_000, 60_000)))
    for path in TABLES:
        with h5py.File(path, "w") as file:
            file.create_dataset("plain", data=numbers.random((SAMPLES, 512)))
            file.create_dataset("chunked", data=numbers.random((SAMPLES, 512)), chunks=(1, 512))
    for path in RECORDS:
        with open(path, "wb") as file:
            for _ in range(int(numbers.integers(20, 60))):
                data = numbers.bytes(int(numbers.integers(500, 3000)))
                file.write(struct.pack("<QI", len(data), 0) + data + b"sum.")


def shuffled(items: Iterable[Any]) -> list[Any]:
    found = list(items)
    DICE.shuffle(found)
    return found


def load(paths: Iterable[str], **how: Any) -> None:
    for path in paths:
        np.load(path, **how).sum()


def look_at_header(path: str) -> None:
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)


def npy(epochs: int) -> None:
    for _ in range(epochs):
        load(shuffled(SMALL))


def npy_large(epochs: int) -> None:
    for _ in range(epochs):
        load(shuffled(LARGE))


def npy_mapped(epochs: int) -> None:
    for _ in range(epochs):
        load(shuffled(SMALL), mmap_mode="r")


def npy_mapped_once(epochs: int) -> None:
    arrays = [np.load(path, mmap_mode="r") for path in LARGE]
    for _ in range(epochs):
        for array in shuffled(arrays):
            array.sum()


def npy_threads(epochs: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(epochs):
            list(pool.map(np.load, shuffled(SMALL)))


def hdf5_opened_for_each_sample(epochs: int, name: str = "plain") -> None:
    import h5py  # noqa: PLC0415

    for _ in range(epochs):
        for path, sample in shuffled((path, sample) for path in TABLES for sample in range(SAMPLES)):
            with h5py.File(path) as file:
                file[name][sample]


def hdf5_opened_once_per_epoch(epochs: int) -> None:
    import h5py  # noqa: PLC0415

    for _ in range(epochs):
        files = [h5py.File(path) for path in TABLES]
        for file, sample in shuffled((file, sample) for file in range(len(TABLES)) for sample in range(SAMPLES)):
            files[file]["chunked"][sample]
        for file in files:
            file.close()


def hdf5_kept_open(epochs: int) -> None:
    import h5py  # noqa: PLC0415

    files = [h5py.File(path) for path in TABLES]
    for _ in range(epochs):
        for file, sample in shuffled((file, sample) for file in range(len(TABLES)) for sample in range(SAMPLES)):
            files[file]["plain"][sample]


def tfrecord(epochs: int) -> None:
    for _ in range(epochs):
        for path in shuffled(RECORDS):
            with open(path, "rb") as file:
                file.read(12)
            with open(path, "rb") as file:
                while head := file.read(12):
                    file.read(struct.unpack("<Q", head[:8])[0] + 4)


def uneven(paths: list[str]) -> list[list[str]]:
    return [paths[:5], paths[5:25], paths[25:]]


def new_workers(epochs: int) -> None:
    for _ in range(epochs):
        workers = [FORK.Process(target=load, args=(part,)) for part in uneven(shuffled(SMALL))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def serve(tasks: Any, done: Any) -> None:
    while (path := tasks.get()) is not None:
        np.load(path)
        done.put(path)


def persistent_workers(epochs: int) -> None:
    done = FORK.Queue()
    queues = [FORK.Queue() for _ in range(3)]
    workers = [FORK.Process(target=serve, args=(queue, done)) for queue in queues]
    for worker in workers:
        worker.start()
    for _ in range(epochs):
        for queue, paths in zip(queues, uneven(shuffled(SMALL)), strict=True):
            for path in paths:
                queue.put(path)
        for _ in SMALL:
            done.get()
    for queue, worker in zip(queues, workers, strict=True):
        queue.put(None)
        worker.join()


def torch_loader(epochs: int, persistent: int) -> None:
    from torch.utils.data import DataLoader  # noqa: PLC0415

    class Arrays:
        def __len__(self) -> int:
            return len(SMALL)

        def __getitem__(self, number: int) -> float:
            return float(np.load(SMALL[number]).sum())

    loader: Any = DataLoader(
        Arrays(),
        batch_size=7,
        shuffle=True,
        num_workers=3,
        persistent_workers=bool(persistent),
    )
    for _ in range(epochs):
        for _ in loader:
            pass


def ranks_that_exchange(epochs: int) -> None:
    """Two ranks, each with half of what was shuffled over both: a file is another rank's in another epoch."""
    parts = [shuffled(SMALL) for _ in range(epochs)]

    def rank(number: int) -> None:
        os.environ.update(RANK=str(number), WORLD_SIZE="2")
        for part in parts:
            load(part[number::2])

    ranks = [FORK.Process(target=rank, args=(number,)) for number in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()


def validation_apart(epochs: int) -> None:
    for _ in range(epochs):
        load(shuffled(SMALL[:50]))
        load(SMALL[50:])


def validation_of_the_same(epochs: int) -> None:
    for _ in range(epochs):
        load(shuffled(SMALL))
        load(SMALL[50:])


def with_replacement(epochs: int) -> None:
    for _ in range(epochs):
        load(DICE.choices(SMALL, k=len(SMALL)))


def each_file_twice(epochs: int) -> None:
    for _ in range(epochs):
        for path in shuffled(LARGE):
            np.load(path).sum()
            np.load(path).sum()


def headers_first(epochs: int) -> None:
    for path in LARGE:
        look_at_header(path)
    npy_large(epochs)


def small_headers_first(epochs: int) -> None:
    """A buffer holds all of such a file: the first look at it reads as much as an epoch does."""
    for path in SMALL:
        look_at_header(path)
    npy(epochs)


def checkpoints(epochs: int) -> None:
    for epoch in range(epochs):
        load(shuffled(SMALL))
        np.save(f"gfs/checkpoint-{epoch}.npy", np.zeros(10_000))
        np.load(f"gfs/checkpoint-{epoch}.npy")


def few_files(epochs: int) -> None:
    for _ in range(epochs):
        load(SMALL[:3])


def ended_early(epochs: int) -> None:
    npy(epochs)
    load(shuffled(SMALL)[:20])


if __name__ == "__main__":
    wanted: Callable[..., None] = globals()[sys.argv[1]]
    wanted(*map(int, sys.argv[2:]))
